// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
	"github.com/xdpl2/xdpl2/internal/ubus/internal/golden"
)

func FuzzDecode(f *testing.F) {
	for _, p := range golden.Pairs(f, golden.Kept(f)) {
		if p.Blob != nil && len(p.Blob) < 4096 {
			f.Add(p.Blob[blob.HeaderLen:])
		}
	}
	for _, b := range golden.Blobs(f, golden.Kept(f)) {
		f.Add(b.Blob[blob.HeaderLen:])
	}
	f.Fuzz(func(t *testing.T, list []byte) {
		Format(list, false)
		Format(list, true)
		table, err := Decode(list)
		if err != nil {
			return
		}
		// What was lost in reading (unnamed bits, padding, text behind a NUL)
		// stays lost; everything else survives.
		once, err := Encode(table)
		if err != nil {
			t.Fatalf("%v: %v", table, err)
		}
		back, err := Decode(once)
		if err != nil {
			t.Fatalf("%x: %v", once, err)
		}
		if twice, err := Encode(back); err != nil || !bytes.Equal(once, twice) {
			t.Errorf("%x became %x, %v", once, twice, err)
		}
		text, err := json.Marshal(table)
		if err != nil || !json.Valid(text) {
			t.Errorf("%v as JSON: %s, %v", table, text, err)
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	for _, p := range golden.Pairs(f, golden.Kept(f)) {
		if len(p.JSON) < 4096 {
			f.Add(p.JSON)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ParseJSON(text)
		if err != nil {
			return
		}
		list, err := Encode(table)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		back, err := Decode(list)
		if err != nil {
			t.Fatalf("%q: %x: %v", text, list, err)
		}
		if again, err := Encode(back); err != nil || !bytes.Equal(list, again) {
			t.Errorf("%q: %x became %x, %v", text, list, again, err)
		}
	})
}
