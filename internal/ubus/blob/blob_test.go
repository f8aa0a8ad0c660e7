// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
)

func TestAppend(t *testing.T) {
	for name, tt := range map[string]struct {
		got, want []byte
	}{
		"empty":  {Append(nil, 7, nil), []byte{7, 0, 0, 4}},
		"bytes":  {Append(nil, 7, []byte{1, 2, 3, 4, 5}), []byte{7, 0, 0, 9, 1, 2, 3, 4, 5, 0, 0, 0}},
		"string": {AppendString(nil, 2, "abc"), []byte{2, 0, 0, 8, 'a', 'b', 'c', 0}},
		"longer": {AppendString(nil, 2, "abcd"), []byte{2, 0, 0, 9, 'a', 'b', 'c', 'd', 0, 0, 0, 0}},
		"number": {AppendUint32(nil, 3, 0x12345678), []byte{3, 0, 0, 8, 0x12, 0x34, 0x56, 0x78}},
		"bool":   {AppendBool(nil, 10, true), []byte{10, 0, 0, 5, 1, 0, 0, 0}},
		// Padding is relative to the attribute, not to the buffer.
		"behind": {AppendBool([]byte{0xff}, 10, false), []byte{0xff, 10, 0, 0, 5, 0, 0, 0, 0}},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("%s: got %x, want %x", name, tt.got, tt.want)
		}
	}
}

func TestNested(t *testing.T) {
	b, mark := Begin(nil, 6, true)
	b = AppendString(b, 1, "x")
	b, err := End(b, mark)
	if want := []byte{0x86, 0, 0, 12, 1, 0, 0, 6, 'x', 0, 0, 0}; err != nil || !bytes.Equal(b, want) {
		t.Errorf("got %x, %v", b, err)
	}
}

func TestTooLong(t *testing.T) {
	b, mark := Begin(nil, 1, false)
	b = append(b, make([]byte, MaxLen-HeaderLen)...)
	if _, err := End(bytes.Clone(b), mark); err != nil {
		t.Errorf("the longest: %v", err)
	}
	if _, err := End(append(b, 0), mark); !errors.Is(err, ErrTooLong) {
		t.Errorf("longer: %v", err)
	}
}

func TestAll(t *testing.T) {
	first := []byte{1, 0, 0, 5, 0xaa, 0, 0, 0}
	one := []Attr{{ID: 1, Payload: []byte{0xaa}}}
	for name, tt := range map[string]struct {
		behind []byte
		want   []Attr
	}{
		"nothing":         {nil, one},
		"too short":       {[]byte{2, 0, 0}, one},
		"length 3":        {[]byte{2, 0, 0, 3, 0, 0, 0, 0}, one},
		"beyond the end":  {[]byte{2, 0, 0, 9, 1, 2, 3, 4}, one},
		"without padding": {[]byte{2, 0, 0, 5, 1}, one},
		"whole":           {[]byte{0x82, 0, 0, 4}, append(slices.Clone(one), Attr{2, true, []byte{}})},
	} {
		got := slices.Collect(All(append(bytes.Clone(first), tt.behind...)))
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
	for range All(append(bytes.Clone(first), first...)) {
		break
	}
}

func TestCString(t *testing.T) {
	for in, want := range map[string]string{"": "", "ab": "ab", "ab\x00": "ab", "a\x00b\x00": "a", "\x00": ""} {
		s, ended := CString([]byte(in))
		if s != want || ended != (len(s) < len(in)) {
			t.Errorf("%q: got %q, %v", in, s, ended)
		}
	}
}
