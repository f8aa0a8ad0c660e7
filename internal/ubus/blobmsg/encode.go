// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"sync"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

// Encode writes a list of values: what a Table holds, or what a map with string
// keys (sorted) or a struct holds, or a pointer to one. nil is an empty list.
// Struct fields are named, left out and taken in from embedded structs as
// encoding/json does it, in the order of their declaration.
//
// Widths do not change with the value where that matters to a reader: int64,
// uint32 and uint64 are always int64 (a uint64 beyond is cut to the largest),
// smaller integers int32, int16 alone is int16. Only int is int32 where it fits
// and else int64, as for numbers in JSON. What implements
// encoding.TextMarshaler is a string.
func Encode(v any) ([]byte, error) {
	// Most of the time would go into growing the buffer of a large reply.
	scratch := buffers.Get().(*[]byte)
	list, err := Append((*scratch)[:0], v)
	out := bytes.Clone(list)
	if cap(list) <= maxKept {
		*scratch = list
		buffers.Put(scratch)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// maxKept is the largest buffer that is kept: one for the largest message.
const maxKept = 2 << 20

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Append is Encode to the end of a buffer.
func Append(dst []byte, v any) ([]byte, error) {
	if t, ok := v.(Table); ok {
		return appendTable(dst, t, 1)
	}
	return appendFields(dst, reflect.ValueOf(v))
}

// Marshal makes a table of what Encode takes.
func Marshal(v any) (Table, error) {
	if t, ok := v.(Table); ok {
		return t, nil
	}
	list, err := Encode(v)
	if err != nil {
		return nil, err
	}
	return Decode(list)
}

func appendTable(dst []byte, t Table, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, ErrTooDeep
	}
	var err error
	for i := range t {
		if dst, err = appendValue(dst, t[i].Name, t[i].Value, depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func appendArray(dst []byte, a Array, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, ErrTooDeep
	}
	var err error
	for _, v := range a {
		if dst, err = appendValue(dst, "", v, depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// appendValue writes a value of a container at that depth.
func appendValue(dst []byte, name string, v any, depth int) ([]byte, error) {
	t, ok := TypeOf(v)
	if !ok {
		return appendReflected(dst, name, reflect.ValueOf(v), depth)
	}
	dst, mark, err := begin(dst, t, name)
	if err != nil {
		return dst, err
	}
	switch v := v.(type) {
	case Array:
		dst, err = appendArray(dst, v, depth+1)
	case Table:
		dst, err = appendTable(dst, v, depth+1)
	case string:
		dst = append(append(dst, cut(v)...), 0)
	case int64:
		dst = binary.BigEndian.AppendUint64(dst, uint64(v))
	case int32:
		dst = binary.BigEndian.AppendUint32(dst, uint32(v))
	case int16:
		dst = binary.BigEndian.AppendUint16(dst, uint16(v))
	case bool:
		b := byte(0)
		if v {
			b = 1
		}
		dst = append(dst, b)
	case float64:
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v))
	}
	if err != nil {
		return dst, err
	}
	return blob.End(dst, mark)
}

// TypeOf is the type that a decoded value has on the wire.
func TypeOf(v any) (t Type, ok bool) {
	switch v.(type) {
	case nil:
		return Null, true
	case Array:
		return Arr, true
	case Table:
		return Tab, true
	case string:
		return String, true
	case int64:
		return Int64, true
	case int32:
		return Int32, true
	case int16:
		return Int16, true
	case bool:
		return Bool, true
	case float64:
		return Double, true
	}
	return 0, false
}
