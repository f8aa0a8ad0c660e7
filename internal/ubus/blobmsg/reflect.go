// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/jsonfields"
	"github.com/xdpl2/xdpl2/internal/ubus/blob"
)

// ErrUnsupported tells of a Go value that blobmsg has no type for.
var ErrUnsupported = errors.New("no blobmsg type for it")

var (
	tableType = reflect.TypeFor[Table]()
	arrayType = reflect.TypeFor[Array]()
)

// settle follows pointers and interfaces to a value; it is not valid where one
// is nil.
func settle(v reflect.Value) (reflect.Value, error) {
	for range MaxDepth {
		switch v.Kind() {
		case reflect.Pointer:
			if v.Type().Implements(jsonfields.TextMarshaler) && !v.IsNil() {
				return v, nil
			}
			v = v.Elem()
		case reflect.Interface:
			v = v.Elem()
		default:
			return v, nil
		}
	}
	return v, ErrTooDeep
}

// appendFields writes the inside of a map or a struct.
func appendFields(dst []byte, v reflect.Value) ([]byte, error) {
	v, err := settle(v)
	switch {
	case err != nil || !v.IsValid():
		return dst, err
	case v.Type() == tableType:
		return appendTable(dst, v.Interface().(Table), 1)
	case v.Kind() == reflect.Map && !v.Type().Implements(jsonfields.TextMarshaler):
		return appendMap(dst, v, 1)
	case v.Kind() == reflect.Struct && !v.Type().Implements(jsonfields.TextMarshaler):
		return appendStruct(dst, v, 1)
	}
	return dst, fmt.Errorf("%w: %v is no table", ErrUnsupported, v.Type())
}

// appendReflected writes a value that appendValue does not know.
func appendReflected(dst []byte, name string, v reflect.Value, depth int) ([]byte, error) {
	v, err := settle(v)
	if err != nil {
		return dst, err
	}
	if !v.IsValid() {
		return appendValue(dst, name, nil, depth)
	}
	t := v.Type()
	if t == tableType || t == arrayType {
		return appendValue(dst, name, v.Interface(), depth)
	}
	if t.Implements(jsonfields.TextMarshaler) && v.CanInterface() {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return dst, fmt.Errorf("write %v as text: %w", t, err)
		}
		return appendValue(dst, name, string(text), depth)
	}
	switch v.Kind() {
	case reflect.Bool:
		return appendValue(dst, name, v.Bool(), depth)
	case reflect.String:
		return appendValue(dst, name, v.String(), depth)
	case reflect.Float32, reflect.Float64:
		return appendValue(dst, name, v.Float(), depth)
	case reflect.Int:
		if n := v.Int(); n < math.MinInt32 || n > math.MaxInt32 {
			return appendValue(dst, name, n, depth)
		}
		return appendValue(dst, name, int32(v.Int()), depth)
	case reflect.Int8, reflect.Int32:
		return appendValue(dst, name, int32(v.Int()), depth)
	case reflect.Int16:
		return appendValue(dst, name, int16(v.Int()), depth)
	case reflect.Int64:
		return appendValue(dst, name, v.Int(), depth)
	case reflect.Uint8, reflect.Uint16:
		return appendValue(dst, name, int32(v.Uint()), depth)
	case reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return appendValue(dst, name, int64(min(v.Uint(), math.MaxInt64)), depth)
	case reflect.Slice, reflect.Array:
		return appendNested(dst, Arr, name, v, depth, appendList)
	case reflect.Map:
		return appendNested(dst, Tab, name, v, depth, appendMap)
	case reflect.Struct:
		return appendNested(dst, Tab, name, v, depth, appendStruct)
	}
	return dst, fmt.Errorf("%q: %w: %v", name, ErrUnsupported, t)
}

func appendNested(dst []byte, t Type, name string, v reflect.Value, depth int,
	inside func([]byte, reflect.Value, int) ([]byte, error)) ([]byte, error) {
	dst, mark, err := begin(dst, t, name)
	if err != nil {
		return dst, err
	}
	if dst, err = inside(dst, v, depth+1); err != nil {
		return dst, err
	}
	return blob.End(dst, mark)
}

func appendList(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, ErrTooDeep
	}
	var err error
	for i := range v.Len() {
		if dst, err = appendReflected(dst, "", v.Index(i), depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func appendMap(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, ErrTooDeep
	}
	if v.Type().Key().Kind() != reflect.String {
		return dst, fmt.Errorf("%w: a map with keys that are no strings, %v", ErrUnsupported, v.Type())
	}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	var err error
	for _, k := range keys {
		if dst, err = appendReflected(dst, k.String(), v.MapIndex(k), depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func appendStruct(dst []byte, v reflect.Value, depth int) ([]byte, error) {
	if depth > MaxDepth {
		return dst, ErrTooDeep
	}
	for _, f := range jsonfields.Of(v.Type()) {
		fv, ok := f.Value(v)
		if !ok {
			continue
		}
		var err error
		if dst, err = appendReflected(dst, f.Name, fv, depth); err != nil {
			return dst, err
		}
	}
	return dst, nil
}
