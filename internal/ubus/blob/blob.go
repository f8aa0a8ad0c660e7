// SPDX-License-Identifier: Apache-2.0

// Package blob reads and writes libubox's attributes, the bytes under both
// blobmsg and the ubus protocol.
//
// An attribute is a 32-bit big-endian word and a payload. The word holds, from
// the top: the extended bit, 7 bits of id, 24 bits of length. The length counts
// the word itself but not the padding: the next attribute starts at a multiple
// of 4, the bytes between are zero when written and ignored when read.
package blob

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
)

const (
	// HeaderLen is the length of an attribute's word.
	HeaderLen = 4
	// MaxLen is the largest length that an attribute's word can hold.
	MaxLen = 1<<24 - 1

	idMask      = 0x7f
	extendedBit = 1 << 31
)

// ErrTooLong tells of an attribute that its 24-bit length cannot describe.
var ErrTooLong = errors.New("attribute longer than 16 MiB")

// Attr is one attribute. Its payload shares memory with what it was read from.
type Attr struct {
	ID       uint8
	Extended bool
	Payload  []byte
}

// Padded rounds a length up to the multiple of 4 at which the next attribute
// starts.
func Padded(n int) int { return (n + 3) &^ 3 }

// Word splits an attribute's first four bytes; length counts them.
func Word(b []byte) (id uint8, extended bool, length int) {
	w := binary.BigEndian.Uint32(b)
	return uint8(w>>24) & idMask, w&extendedBit != 0, int(w & MaxLen)
}

// All walks a list of attributes. As in libubox the list ends without an error
// at the first attribute that does not fit: a shorter length than its own word
// or one that, padded, reaches beyond the end.
func All(list []byte) iter.Seq[Attr] {
	return func(yield func(Attr) bool) {
		for len(list) >= HeaderLen {
			id, extended, length := Word(list)
			padded := Padded(length)
			if length < HeaderLen || padded > len(list) {
				return
			}
			if !yield(Attr{id, extended, list[HeaderLen:length:length]}) {
				return
			}
			list = list[padded:]
		}
	}
}

// Begin opens an attribute whose payload the caller then appends. The mark goes
// to End.
func Begin(dst []byte, id uint8, extended bool) (out []byte, mark int) {
	w := uint32(id&idMask) << 24
	if extended {
		w |= extendedBit
	}
	return binary.BigEndian.AppendUint32(dst, w), len(dst)
}

// End closes the attribute that was opened at mark: it writes the length and
// pads.
func End(dst []byte, mark int) ([]byte, error) {
	n := len(dst) - mark
	if n > MaxLen {
		return dst, fmt.Errorf("%w (%d bytes)", ErrTooLong, n)
	}
	w := binary.BigEndian.Uint32(dst[mark:])
	binary.BigEndian.PutUint32(dst[mark:], w|uint32(n))
	// Relative to the attribute: the buffer may hold a message header before
	// it whose length is no multiple of 4.
	for range Padded(n) - n {
		dst = append(dst, 0)
	}
	return dst, nil
}

// Append appends an attribute with the payload given. A payload over MaxLen
// panics: whoever builds one must have measured it before.
func Append(dst []byte, id uint8, payload []byte) []byte {
	dst, mark := Begin(dst, id, false)
	return end(append(dst, payload...), mark)
}

// AppendString appends an attribute that holds a string and its NUL.
func AppendString(dst []byte, id uint8, s string) []byte {
	dst, mark := Begin(dst, id, false)
	return end(append(append(dst, s...), 0), mark)
}

// AppendUint32 appends an attribute that holds a 32-bit number.
func AppendUint32(dst []byte, id uint8, v uint32) []byte {
	dst, mark := Begin(dst, id, false)
	return end(binary.BigEndian.AppendUint32(dst, v), mark)
}

// AppendBool appends an attribute of one byte, 0 or 1.
func AppendBool(dst []byte, id uint8, v bool) []byte {
	dst, mark := Begin(dst, id, false)
	b := byte(0)
	if v {
		b = 1
	}
	return end(append(dst, b), mark)
}

func end(dst []byte, mark int) []byte {
	dst, err := End(dst, mark)
	if err != nil {
		panic(err)
	}
	return dst
}

// CString is the text up to the first NUL, as every C program reads it, and
// whether there was a NUL at all.
func CString(b []byte) (s string, ended bool) {
	for i, c := range b {
		if c == 0 {
			return string(b[:i]), true
		}
	}
	return string(b), false
}
