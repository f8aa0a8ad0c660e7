// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

// Format writes a list of values as the text that every ubus program prints,
// byte for byte: on one line, or indented with tabs. It is not always JSON: a
// malformed value leaves a gap, one without a name in a table has no key, nan
// and inf print as such. For JSON, marshal a Table.
func Format(list []byte, indent bool) []byte {
	f := formatter{indent: indent}
	f.list(list, false, 1)
	return f.out
}

// String is Format on one line.
func (t Table) String() string {
	list, err := Encode(t)
	if err != nil {
		return fmt.Sprintf("{!%v}", err)
	}
	return string(Format(list, false))
}

type formatter struct {
	out    []byte
	indent bool
}

// maxTabs is where libubox stops to indent.
const maxTabs = 16

func (f *formatter) separator(level int) {
	if !f.indent {
		return
	}
	f.out = append(f.out, '\n')
	for range min(level, maxTabs) {
		f.out = append(f.out, '\t')
	}
}

func (f *formatter) list(list []byte, array bool, depth int) {
	open, end := byte('{'), byte('}')
	if array {
		open, end = '[', ']'
	}
	f.out = append(f.out, open)
	f.separator(depth)
	first := true
	for a, err := range All(list) {
		if !first {
			f.out = append(f.out, ',')
			f.separator(depth)
		}
		first = false
		if err == nil {
			f.element(a, array, depth)
		}
	}
	f.separator(depth - 1)
	f.out = append(f.out, end)
}

func (f *formatter) element(a Attr, array bool, depth int) {
	if !array && a.Name != "" {
		f.text(a.Name)
		f.out = append(f.out, ':')
		if f.indent {
			f.out = append(f.out, ' ')
		}
	}
	switch a.Type {
	case Arr, Tab:
		if depth >= MaxDepth {
			f.out = append(f.out, "null"...)
			return
		}
		f.list(a.Payload, a.Type == Arr, depth+1)
	case String:
		s, _ := blob.CString(a.Payload)
		f.text(s)
	case Bool:
		f.out = strconv.AppendBool(f.out, a.Payload[0] != 0)
	case Int16:
		f.out = strconv.AppendInt(f.out, int64(int16(binary.BigEndian.Uint16(a.Payload))), 10)
	case Int32:
		f.out = strconv.AppendInt(f.out, int64(int32(binary.BigEndian.Uint32(a.Payload))), 10)
	case Int64:
		f.out = strconv.AppendInt(f.out, int64(binary.BigEndian.Uint64(a.Payload)), 10)
	case Double:
		f.double(math.Float64frombits(binary.BigEndian.Uint64(a.Payload)))
	default:
		f.out = append(f.out, "null"...)
	}
}

// double is C's %lf.
func (f *formatter) double(v float64) {
	word := ""
	switch {
	case math.IsNaN(v):
		word = "nan"
	case math.IsInf(v, 0):
		word = "inf"
	default:
		f.out = strconv.AppendFloat(f.out, v, 'f', 6, 64)
		return
	}
	if math.Signbit(v) {
		f.out = append(f.out, '-')
	}
	f.out = append(f.out, word...)
}

// text quotes what libubox quotes and leaves all other bytes as they are, also
// those that are no UTF-8.
func (f *formatter) text(s string) {
	f.out = append(f.out, '"')
	for i := range len(s) {
		switch c := s[i]; c {
		case '\b':
			f.out = append(f.out, `\b`...)
		case '\n':
			f.out = append(f.out, `\n`...)
		case '\t':
			f.out = append(f.out, `\t`...)
		case '\r':
			f.out = append(f.out, `\r`...)
		case '"', '\\':
			f.out = append(f.out, '\\', c)
		default:
			if c < ' ' {
				f.out = fmt.Appendf(f.out, `\u%04x`, c)
				continue
			}
			f.out = append(f.out, c)
		}
	}
	f.out = append(f.out, '"')
}

// MarshalJSON writes a table as JSON, its fields in their order. What JSON has
// no number for (nan, inf) is null.
func (t Table) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, f := range t {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := json.Marshal(f.Name)
		if err != nil {
			return nil, err
		}
		value, err := marshalJSON(f.Value)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", f.Name, err)
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// MarshalJSON writes an array as JSON, as MarshalJSON of Table does.
func (a Array) MarshalJSON() ([]byte, error) {
	out := []byte{'['}
	for i, v := range a {
		if i > 0 {
			out = append(out, ',')
		}
		value, err := marshalJSON(v)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out = append(out, value...)
	}
	return append(out, ']'), nil
}

func marshalJSON(v any) ([]byte, error) {
	if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
		return []byte("null"), nil
	}
	return json.Marshal(v)
}
