// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

// Decode reads a list of values. Unlike libubox, which skips a malformed value
// wherever it finds one, it refuses the list as a whole: half of the arguments
// are not the arguments.
func Decode(list []byte) (Table, error) {
	return decodeTable(list, 1)
}

func decodeTable(list []byte, depth int) (Table, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	t := Table{}
	for a, err := range All(list) {
		if err != nil {
			return nil, err
		}
		v, err := a.decode(depth)
		if err != nil {
			return nil, err
		}
		t = append(t, Field{a.Name, v})
	}
	return t, nil
}

func decodeArray(list []byte, depth int) (Array, error) {
	if depth > MaxDepth {
		return nil, ErrTooDeep
	}
	out := Array{}
	for a, err := range All(list) {
		if err != nil {
			return nil, err
		}
		v, err := a.decode(depth)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// decode reads a value that has been checked.
func (a Attr) decode(depth int) (any, error) {
	switch a.Type {
	case Null:
		return nil, nil
	case Arr:
		return decodeArray(a.Payload, depth+1)
	case Tab:
		return decodeTable(a.Payload, depth+1)
	case String:
		s, _ := blob.CString(a.Payload)
		return s, nil
	case Int64:
		return int64(binary.BigEndian.Uint64(a.Payload)), nil
	case Int32:
		return int32(binary.BigEndian.Uint32(a.Payload)), nil
	case Int16:
		return int16(binary.BigEndian.Uint16(a.Payload)), nil
	case Bool:
		return a.Payload[0] != 0, nil
	case Double:
		return math.Float64frombits(binary.BigEndian.Uint64(a.Payload)), nil
	}
	return nil, fmt.Errorf("%w: %v", ErrMalformed, a.Type)
}

// Unmarshal stores a table in a Go value by encoding/json's rules and tags.
func Unmarshal(t Table, into any) error {
	text, err := t.MarshalJSON()
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("store a table: %w", err)
	}
	return nil
}
