// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"fmt"
	"testing"
)

// stations is a reply near the limit of a message.
func stations() any {
	type station struct {
		MAC    string  `json:"mac"`
		VLAN   int     `json:"vlan"`
		Port   string  `json:"port"`
		Source string  `json:"source"`
		Seen   float64 `json:"seen_seconds"`
	}
	var list struct {
		Total    int       `json:"total"`
		Stations []station `json:"stations"`
	}
	for i := range 8000 {
		list.Stations = append(list.Stations, station{fmt.Sprintf("02:00:00:00:%02x:%02x", i>>8, i&255), 1, "eth1", "bridge", 0.5})
	}
	return list
}

func BenchmarkEncode(b *testing.B) {
	v := stations()
	var n int
	for b.Loop() {
		list, err := Encode(v)
		if err != nil {
			b.Fatal(err)
		}
		n = len(list)
	}
	b.SetBytes(int64(n))
}

func BenchmarkDecode(b *testing.B) {
	list, err := Encode(stations())
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(list)))
	for b.Loop() {
		if _, err := Decode(list); err != nil {
			b.Fatal(err)
		}
	}
}
