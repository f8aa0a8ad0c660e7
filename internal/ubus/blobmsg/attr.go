// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"encoding/binary"
	"fmt"
	"iter"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

// Attr is a value as it stands on the wire, not decoded. Its payload shares
// memory with what it was read from.
type Attr struct {
	Type    Type
	Name    string
	Payload []byte
	// Named is whether there is a name, be it one that starts with NUL.
	Named bool
}

// All walks a list of values without decoding them. A value that is malformed
// comes with an error; the walk goes on behind it. The list ends where package
// blob ends it.
func All(list []byte) iter.Seq2[Attr, error] {
	return func(yield func(Attr, error) bool) {
		for raw := range blob.All(list) {
			a, err := read(raw)
			if !yield(a, err) {
				return
			}
		}
	}
}

// read takes an attribute apart and checks what libubox checks before it looks
// at a value: the name's place, the type, the payload's length.
func read(raw blob.Attr) (Attr, error) {
	a := Attr{Type: Type(raw.ID), Payload: raw.Payload}
	if raw.Extended {
		if len(raw.Payload) < 2 {
			return a, fmt.Errorf("%w: no name header", ErrMalformed)
		}
		n := int(binary.BigEndian.Uint16(raw.Payload))
		header := headerLen(n)
		if header > len(raw.Payload) || raw.Payload[2+n] != 0 {
			return a, fmt.Errorf("%w: a name of %d bytes does not end inside", ErrMalformed, n)
		}
		a.Name, _ = blob.CString(raw.Payload[2 : 2+n])
		a.Named = n > 0
		a.Payload = raw.Payload[header:]
	}
	return a, a.check()
}

// headerLen is the length of what comes before the value.
func headerLen(name int) int { return blob.Padded(2 + name + 1) }

// check is whether the payload fits the type.
func (a Attr) check() error {
	want := 0
	switch a.Type {
	case Null, Arr, Tab:
		return nil
	case String:
		if n := len(a.Payload); n == 0 || a.Payload[n-1] != 0 {
			return fmt.Errorf("%w: string %q without NUL", ErrMalformed, a.Name)
		}
		return nil
	case Double:
		// libubox takes a longer one, and reads its first bytes.
		if len(a.Payload) < 8 {
			return fmt.Errorf("%w: double %q of %d bytes", ErrMalformed, a.Name, len(a.Payload))
		}
		return nil
	case Bool:
		want = 1
	case Int16:
		want = 2
	case Int32:
		want = 4
	case Int64:
		want = 8
	default:
		return fmt.Errorf("%w: %q is of the unknown type %d", ErrMalformed, a.Name, a.Type)
	}
	if len(a.Payload) != want {
		return fmt.Errorf("%w: %v %q of %d bytes", ErrMalformed, a.Type, a.Name, len(a.Payload))
	}
	return nil
}

// AppendRaw appends a value whose payload is encoded already.
func AppendRaw(dst []byte, t Type, name string, payload []byte) ([]byte, error) {
	dst, mark, err := begin(dst, t, name)
	if err != nil {
		return dst, err
	}
	return blob.End(append(dst, payload...), mark)
}

// begin opens a value and writes its name.
func begin(dst []byte, t Type, name string) (out []byte, mark int, err error) {
	name = cut(name)
	if len(name) > maxName {
		return dst, 0, fmt.Errorf("%w (%d bytes)", ErrNameTooLong, len(name))
	}
	dst, mark = blob.Begin(dst, uint8(t), true)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(name)))
	dst = append(dst, name...)
	for range headerLen(len(name)) - 2 - len(name) {
		dst = append(dst, 0)
	}
	return dst, mark, nil
}

// cut ends a string where C ends it.
func cut(s string) string {
	for i := range len(s) {
		if s[i] == 0 {
			return s[:i]
		}
	}
	return s
}
