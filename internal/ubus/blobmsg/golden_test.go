// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"bytes"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
	"github.com/xdpl2/xdpl2/internal/ubus/internal/golden"
)

// inside strips the header of a blob.
func inside(t *testing.T, b []byte) []byte {
	t.Helper()
	_, _, n := blob.Word(b)
	if n > len(b) {
		t.Fatalf("%x: length %d", b, n)
	}
	return b[blob.HeaderLen:n]
}

func TestRecordedPairs(t *testing.T) { testPairs(t, golden.Recorded(t)) }
func TestKeptPairs(t *testing.T)     { testPairs(t, golden.Kept(t)) }

func testPairs(t *testing.T, dir string) {
	pairs := golden.Pairs(t, dir)
	for _, p := range pairs {
		table, err := ParseJSON(p.JSON)
		if p.Blob == nil {
			if err == nil {
				t.Errorf("%.80s: accepted as %v, json-c refuses it", p.JSON, table)
			}
			continue
		}
		if err != nil {
			t.Errorf("%.80s: %v", p.JSON, err)
			continue
		}
		want := inside(t, p.Blob)
		got, err := Encode(table)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%.80s:\n got %.200x (%v)\nwant %.200x", p.JSON, got, err, want)
		}
		back, err := Decode(want)
		if err != nil {
			t.Errorf("%.80s: decode: %v", p.JSON, err)
			continue
		}
		if got, err = Encode(back); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%.80s: decoded and encoded:\n got %.200x (%v)\nwant %.200x", p.JSON, got, err, want)
		}
		if got := string(Format(want, false)); got != p.Format {
			t.Errorf("%.80s: prints as\n got %.200q\nwant %.200q", p.JSON, got, p.Format)
		}
		if got := string(Format(want, true)); got != p.FormatIndent {
			t.Errorf("%.80s: prints indented as\n got %.200q\nwant %.200q", p.JSON, got, p.FormatIndent)
		}
	}
	t.Logf("%d pairs", len(pairs))
}

func TestRecordedBlobs(t *testing.T) { testBlobs(t, golden.Recorded(t)) }
func TestKeptBlobs(t *testing.T)     { testBlobs(t, golden.Kept(t)) }

func testBlobs(t *testing.T, dir string) {
	blobs := golden.Blobs(t, dir)
	for _, b := range blobs {
		list := inside(t, b.Blob)
		if got := string(Format(list, false)); got != b.Format {
			t.Errorf("%s: %x prints as\n got %q\nwant %q", b.Description, list, got, b.Format)
		}
		named, outermost := true, true
		for a, err := range All(list) {
			named = named && a.Named
			outermost = outermost && err == nil
		}
		if got := named && outermost; got != b.Check {
			t.Errorf("%s: %x: check is %v, libubox says %v", b.Description, list, got, b.Check)
		}
		// Decode asks for no names.
		table, err := Decode(list)
		if (err == nil) != outermost {
			t.Errorf("%s: %x: decoded to %v, %v", b.Description, list, table, err)
		}
	}
	t.Logf("%d blobs", len(blobs))
}
