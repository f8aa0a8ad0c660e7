// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/internal/golden"
)

func TestRecordedFrames(t *testing.T) { testFrames(t, golden.Recorded(t)) }
func TestKeptFrames(t *testing.T)     { testFrames(t, golden.Kept(t)) }

// testFrames takes every recorded frame apart and builds it again.
func testFrames(t *testing.T, dir string) {
	frames := 0
	for _, path := range golden.Traces(t, dir) {
		trace := golden.Load(t, path)
		for i, s := range trace.Steps {
			if s.Chunk || len(s.Bytes) == 0 {
				continue
			}
			frames++
			r := bytes.NewReader(s.Bytes)
			m, err := Read(r, MaxLen)
			if err != nil || r.Len() > 0 {
				t.Errorf("%s step %d: %v, %d bytes left", trace.Name, i, err, r.Len())
				continue
			}
			switch {
			case m.Type == Monitor:
				// Other attributes than all other messages.
			case trace.Name == "monitor" && m.Type == Invoke && m.Peer == MonitorObject:
				// ubus monitor sends what its buffer happens to hold.
			case trace.Name == "bad-unaligned":
				// Its body is no list of attributes.
			default:
				m.Body = rebuild(t, m)
			}
			got, err := m.Append(nil)
			if err != nil || !bytes.Equal(got, s.Bytes) {
				t.Errorf("%s step %d, %s:\n got %.200x (%v)\nwant %.200x", trace.Name, i, s.Note, got, err, s.Bytes)
			}
		}
	}
	t.Logf("%d frames", frames)
}

// rebuild decodes a message's attributes, blobmsg included, and encodes them in
// the order in which they stood.
func rebuild(t *testing.T, m *Message) []byte {
	t.Helper()
	a := Parse(m.Body)
	out := Body{}
	for raw := range blob.All(m.Body) {
		switch id := raw.ID; id {
		case AttrStatus:
			out = out.Uint32(id, a.Status)
		case AttrObjID:
			out = out.Uint32(id, a.ObjID)
		case AttrObjType:
			out = out.Uint32(id, a.ObjType)
		case AttrTarget:
			out = out.Uint32(id, a.Target)
		case AttrObjPath:
			out = out.String(id, a.Path)
		case AttrMethod:
			out = out.String(id, a.Method)
		case AttrUser:
			out = out.String(id, a.User)
		case AttrGroup:
			out = out.String(id, a.Group)
		case AttrActive:
			out = out.Bool(id, a.Active)
		case AttrNoReply:
			out = out.Bool(id, a.NoReply)
		case AttrSignature:
			out = out.Bytes(id, again(t, a.Signature))
		case AttrData:
			out = out.Bytes(id, again(t, a.Data))
		case AttrSubscribers:
			list := Body{}
			for _, s := range a.Subscribers {
				list = list.Uint32(0, s)
			}
			out = out.Bytes(id, list)
		default:
			out = out.Bytes(id, raw.Payload)
		}
	}
	return out
}

func again(t *testing.T, list []byte) []byte {
	t.Helper()
	table, err := blobmsg.Decode(list)
	if err != nil {
		t.Fatalf("%.200x: %v", list, err)
	}
	out, err := blobmsg.Encode(table)
	if err != nil {
		t.Fatalf("%v: %v", table, err)
	}
	return out
}

func TestRead(t *testing.T) {
	header := []byte{0, 3, 0, 1, 0, 0, 0, 0}
	frame := func(word ...byte) []byte { return append(bytes.Clone(header), word...) }
	for name, tt := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing":         {nil, io.EOF},
		"half a header":   {header[:5], io.ErrUnexpectedEOF},
		"no length":       {header, io.ErrUnexpectedEOF},
		"length 0":        {frame(0, 0, 0, 0), ErrLength},
		"length 3":        {frame(0, 0, 0, 3), ErrLength},
		"length 4":        {frame(0, 0, 0, 4), nil},
		"short body":      {frame(0, 0, 0, 8, 1, 2), io.ErrUnexpectedEOF},
		"1 MiB announced": {frame(0, 16, 0, 0), io.ErrUnexpectedEOF},
		"1 MiB and 1":     {frame(0, 16, 0, 1), ErrLength},
		"the most":        {frame(0, 255, 255, 255), ErrLength},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(bytes.NewReader(tt.in), MaxLen)
			if !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestAppendRefusesTooMuch(t *testing.T) {
	m := &Message{Type: Ping, Body: make([]byte, MaxLen-blob.HeaderLen)}
	if _, err := m.Append(nil); err != nil {
		t.Errorf("exactly 1 MiB: %v", err)
	}
	m.Body = append(m.Body, 0)
	if _, err := m.Append(nil); !errors.Is(err, ErrLength) {
		t.Errorf("a byte more: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	for _, path := range golden.Traces(f, golden.Kept(f)) {
		for _, s := range golden.Load(f, path).Steps {
			if len(s.Bytes) > 0 && len(s.Bytes) < 4096 {
				f.Add(s.Bytes)
			}
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		m, err := Read(r, MaxLen)
		if err != nil {
			return
		}
		Parse(m.Body)
		out, err := m.Append(nil)
		if err != nil {
			t.Fatal(err)
		}
		if read := in[:len(in)-r.Len()]; !bytes.Equal(out, read) {
			t.Errorf("%x became %x", read, out)
		}
	})
}
