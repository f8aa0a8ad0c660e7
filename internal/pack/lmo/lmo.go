// SPDX-License-Identifier: Apache-2.0

// Package lmo makes the catalogues that LuCI translates with (.lmo) from the
// files that translators edit (.po).
//
// A catalogue holds the translations one after the other, each padded to four
// bytes, then an index that is sorted by the hash of the original, and at last
// the index's offset. All numbers are big-endian. Originals are not stored.
package lmo

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// An entry of the index.
type entry struct {
	Key    uint32 // hash of the original, 0 for the rule of the plural
	Forms  uint32 // number of plural forms, 1 without any
	Offset uint32
	Length uint32
}

// keyLimit bounds what LuCI can look up; it composes keys in a buffer of this size.
const keyLimit = 4096

// Compile turns a .po file into a catalogue. A file without translations is an
// error: LuCI would find the language, and show English.
func Compile(po []byte) ([]byte, error) {
	messages, err := parse(string(po))
	if err != nil {
		return nil, err
	}
	var index []entry
	var values bytes.Buffer
	add := func(key, forms uint32, value string) {
		index = append(index, entry{key, forms, uint32(values.Len()), uint32(len(value))})
		values.WriteString(value)
		for values.Len()%4 != 0 {
			values.WriteByte(0)
		}
	}
	translated := false
	for _, m := range messages {
		if m.id == "" {
			if rule, ok := pluralRule(m.forms[0]); ok {
				add(0, 0, rule)
			}
			continue
		}
		if len(m.forms) == 0 || m.forms[0] == "" {
			continue // not translated
		}
		for i, value := range m.forms {
			key := m.key(i)
			if len(key) >= keyLimit {
				return nil, fmt.Errorf("line %d: the text is too long (%d bytes, at most %d)", m.line, len(key), keyLimit-1)
			}
			// A translation that equals its original is what LuCI shows anyway.
			if h := hash(key); value != "" && h != hash(value) {
				add(h, uint32(len(m.forms)), value)
				translated = true
			}
		}
	}
	if !translated {
		return nil, errors.New("nothing is translated in it")
	}
	slices.SortStableFunc(index, func(a, b entry) int {
		switch {
		case a.Key < b.Key:
			return -1
		case a.Key > b.Key:
			return 1
		}
		return 0
	})
	end := uint32(values.Len())
	for _, v := range []any{index, end} {
		if err := binary.Write(&values, binary.BigEndian, v); err != nil {
			return nil, err
		}
	}
	return values.Bytes(), nil
}

// pluralRule finds the rule in the header, whose lines end with the two
// characters \n.
func pluralRule(header string) (string, bool) {
	const name = "Plural-Forms: "
	lines := strings.Split(header, `\n`)
	for _, line := range lines[:len(lines)-1] {
		if len(line) >= len(name) && strings.EqualFold(line[:len(name)], name) {
			return line[len(name):], true
		}
	}
	return "", false
}

// key is what LuCI looks a plural form up by.
func (m *message) key(form int) string {
	var b strings.Builder
	if m.context != "" {
		b.WriteString(m.context + "\x01")
	}
	b.WriteString(m.id)
	if m.plural != "" {
		fmt.Fprintf(&b, "\x02%d", form)
	}
	return b.String()
}

// hash is Paul Hsieh's SuperFastHash as LuCI computes it: the start value is
// the length, and a last odd byte counts as signed.
func hash(s string) uint32 {
	if s == "" {
		return 0
	}
	h := uint32(len(s))
	pair := func(i int) uint32 { return uint32(s[i]) | uint32(s[i+1])<<8 }
	signed := func(i int) uint32 { return uint32(int32(int8(s[i]))) }
	i := 0
	for ; len(s)-i >= 4; i += 4 {
		h += pair(i)
		h = h<<16 ^ (pair(i+2)<<11 ^ h)
		h += h >> 11
	}
	switch len(s) - i {
	case 3:
		h += pair(i)
		h ^= h << 16
		h ^= signed(i+2) << 18
		h += h >> 11
	case 2:
		h += pair(i)
		h ^= h << 11
		h += h >> 17
	case 1:
		h += signed(i)
		h ^= h << 10
		h += h >> 1
	}
	h ^= h << 3
	h += h >> 5
	h ^= h << 4
	h += h >> 17
	h ^= h << 25
	h += h >> 6
	return h
}
