// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"
)

// frames reads a whole console.
func frames(t *testing.T, r io.Reader) []Frame {
	t.Helper()
	var all []Frame
	reader := NewReader(r)
	for {
		f, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
}

// line is a frame as it stands on the console.
func line(t *testing.T, f Frame) string {
	t.Helper()
	var out bytes.Buffer
	if err := NewWriter(&out).Send(f.Kind, f.Subject, f.Text); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestRoundTrip(t *testing.T) {
	want := []Frame{
		{Hello, "5.10.0-32-cloud-arm64", ""},
		{Output, "example.org/a/b", "two\nlines\r\n"},
		{Output, "a", "\x02deadbeef done \"\" \"\""},
		{Output, "a", "BUG: Oops WARNING: --- FAIL: TestA\x16=== RUN"},
		{Output, "a", "\x00\xff\xfe binary, \u00fc and \u6f22"},
		{Log, FromKernel, `[    1.5] quoted "text" and \ backslash`},
		{Done, "", ""},
	}
	var console bytes.Buffer
	w := NewWriter(&console)
	for _, f := range want {
		if err := w.Send(f.Kind, f.Subject, f.Text); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range strings.Split(strings.TrimSuffix(console.String(), "\n"), "\n") {
		if strings.Count(l, start) != 1 || strings.ContainsAny(l, "\r\x00") {
			t.Errorf("line %d is not plain: %q", i, l)
		}
	}
	if got := frames(t, &console); !reflect.DeepEqual(got, want) {
		t.Errorf("read\n%q\nwant\n%q", got, want)
	}
}

func TestReaderRawText(t *testing.T) {
	output := Frame{Output, "p", "hello\n"}
	done := Frame{Done, "", ""}
	whole := line(t, output)
	tests := []struct {
		name, console string
		want          []Frame
	}{
		{"empty", "", nil},
		{"blank lines", "\r\n \r\n", nil},
		{"kernel text", "[    0.1] Kernel panic - not syncing\r\n", []Frame{{Raw, "", "[    0.1] Kernel panic - not syncing"}}},
		{"no newline at the end", "last words", []Frame{{Raw, "", "last words"}}},
		{"text before a frame", "partial text" + whole, []Frame{{Raw, "", "partial text"}, output}},
		{"carriage return", strings.TrimSuffix(whole, "\n") + "\r\n", []Frame{output}},
		{"frame at the end without newline", strings.TrimSuffix(whole, "\n"), []Frame{output}},
		{"cut frame before a whole one", "\x02abc" + whole, []Frame{{Damaged, "", "abc"}, output}},
		{"changed byte", strings.Replace(whole, "hello", "hellO", 1) + line(t, done),
			[]Frame{{Damaged, "", strings.Trim(strings.Replace(whole, "hello", "hellO", 1), "\x02\n")}, done}},
		{"kernel text in the middle", whole[:15] + "[    9.0] Oops\n" + whole[15:], []Frame{
			{Damaged, "", whole[1:15] + "[    9.0] Oops"},
			{Raw, "", strings.TrimSuffix(whole[15:], "\n")},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := frames(t, strings.NewReader(tt.console)); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("read\n%q\nwant\n%q", got, tt.want)
			}
		})
	}
}

// A line without an end must not be kept in memory for ever.
func TestReaderLongLine(t *testing.T) {
	got := frames(t, strings.NewReader(strings.Repeat("x", 3*maxLine)))
	if len(got) != 3 || len(got[0].Text) != maxLine {
		t.Errorf("read %d pieces, want 3 of %d bytes", len(got), maxLine)
	}
}

// The largest frame that /init sends fits into a line.
func TestLargestFrame(t *testing.T) {
	want := Frame{Output, "p", strings.Repeat("\xff", MaxText)}
	if got := frames(t, strings.NewReader(line(t, want))); len(got) != 1 || got[0] != want {
		t.Errorf("read %d frames", len(got))
	}
}

func TestWriterIsShared(t *testing.T) {
	var console bytes.Buffer
	w := NewWriter(&console)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if err := w.Send(Output, "p", "text"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, f := range frames(t, &console) {
		if (f != Frame{Output, "p", "text"}) {
			t.Fatalf("frame %+v", f)
		}
	}
}
