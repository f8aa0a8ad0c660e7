// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

// Encode writes a table, or anything that Marshal makes one of, as a list of
// values. nil is an empty list.
func Encode(v any) ([]byte, error) { return Append(nil, v) }

// Append is Encode to the end of a buffer.
func Append(dst []byte, v any) ([]byte, error) {
	t, err := Marshal(v)
	if err != nil {
		return dst, err
	}
	return appendTable(dst, t, 1)
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

func appendValue(dst []byte, name string, v any, depth int) ([]byte, error) {
	t, ok := typeOf(v)
	if !ok {
		var err error
		if v, err = normal(v, depth); err != nil {
			return dst, fmt.Errorf("%q: %w", name, err)
		}
		t, _ = typeOf(v)
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
func TypeOf(v any) (t Type, ok bool) { return typeOf(v) }

func typeOf(v any) (Type, bool) {
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
