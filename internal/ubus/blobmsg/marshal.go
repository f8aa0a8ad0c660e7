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
	"sync"
)

// ErrUnsupported tells of a Go value that blobmsg has no type for.
var ErrUnsupported = errors.New("no blobmsg type for it")

// Marshal makes a table of a Go value: a Table, nil (an empty table), a map
// with string keys (sorted), a struct, or a pointer to one. Struct fields are
// named, left out and taken in from embedded structs as encoding/json does it,
// in the order of their declaration.
//
// Widths do not change with the value where that matters to a reader: int64,
// uint32 and uint64 are always int64 (a uint64 beyond is cut to the largest),
// smaller integers int32. Only int is int32 where it fits and else int64, as
// for numbers in JSON. What implements encoding.TextMarshaler is a string.
func Marshal(v any) (Table, error) {
	switch v := v.(type) {
	case nil:
		return nil, nil
	case Table:
		return v, nil
	}
	n, err := normal(v, 1)
	if err != nil {
		return nil, err
	}
	switch n := n.(type) {
	case nil:
		return nil, nil
	case Table:
		return n, nil
	}
	return nil, fmt.Errorf("%w: %T is no table", ErrUnsupported, v)
}

// normal makes one of the values that appendValue knows.
func normal(v any, depth int) (any, error) {
	return normalize(reflect.ValueOf(v), depth)
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	tableType     = reflect.TypeFor[Table]()
	arrayType     = reflect.TypeFor[Array]()
)

func normalize(v reflect.Value, depth int) (any, error) {
	// Well over MaxDepth, because pointers and interfaces count, too; they have
	// to, since a pointer may lead back to itself.
	if depth > 4*MaxDepth {
		return nil, ErrTooDeep
	}
	if !v.IsValid() {
		return nil, nil
	}
	switch v.Type() {
	case tableType, arrayType:
		return v.Interface(), nil
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil, nil
		}
		if !v.Type().Implements(textMarshaler) || v.Kind() == reflect.Interface {
			return normalize(v.Elem(), depth+1)
		}
	}
	if v.Type().Implements(textMarshaler) && v.CanInterface() {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return nil, fmt.Errorf("write %v as text: %w", v.Type(), err)
		}
		return string(text), nil
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool(), nil
	case reflect.String:
		return v.String(), nil
	case reflect.Float32, reflect.Float64:
		return v.Float(), nil
	case reflect.Int:
		if n := v.Int(); n < math.MinInt32 || n > math.MaxInt32 {
			return n, nil
		}
		return int32(v.Int()), nil
	case reflect.Int8, reflect.Int32:
		return int32(v.Int()), nil
	case reflect.Int16:
		return int16(v.Int()), nil
	case reflect.Int64:
		return v.Int(), nil
	case reflect.Uint8, reflect.Uint16:
		return int32(v.Uint()), nil
	case reflect.Uint, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return int64(min(v.Uint(), math.MaxInt64)), nil
	case reflect.Slice, reflect.Array:
		return normalizeList(v, depth)
	case reflect.Map:
		return normalizeMap(v, depth)
	case reflect.Struct:
		return normalizeStruct(v, depth)
	}
	return nil, fmt.Errorf("%w: %v", ErrUnsupported, v.Type())
}

func normalizeList(v reflect.Value, depth int) (Array, error) {
	out := make(Array, 0, v.Len())
	for i := range v.Len() {
		e, err := normalize(v.Index(i), depth+1)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %w", i, err)
		}
		out = append(out, e)
	}
	return out, nil
}

func normalizeMap(v reflect.Value, depth int) (Table, error) {
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%w: a map with keys that are no strings, %v", ErrUnsupported, v.Type())
	}
	out := make(Table, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		e, err := normalize(it.Value(), depth+1)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", it.Key(), err)
		}
		out = append(out, Field{it.Key().String(), e})
	}
	slices.SortFunc(out, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func normalizeStruct(v reflect.Value, depth int) (Table, error) {
	fields := fieldsOf(v.Type())
	out := make(Table, 0, len(fields))
	for _, f := range fields {
		fv, ok := reach(v, f.index)
		if !ok || f.omitEmpty && isEmpty(fv) || f.omitZero && fv.IsZero() {
			continue
		}
		e, err := normalize(fv, depth+1)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		out = append(out, Field{f.name, e})
	}
	return out, nil
}

// reach follows a path through embedded structs. A nil pointer on the way ends
// it: its fields are left out.
func reach(v reflect.Value, index []int) (reflect.Value, bool) {
	for i, n := range index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() {
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v, true
}

// isEmpty is what encoding/json calls empty.
func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

// structField is one field that Marshal writes.
type structField struct {
	name                string
	index               []int
	omitEmpty, omitZero bool
}

var fieldCache sync.Map // reflect.Type -> []structField

func fieldsOf(t reflect.Type) []structField {
	if f, ok := fieldCache.Load(t); ok {
		return f.([]structField)
	}
	// Of two fields with one name the less embedded one counts; among equals
	// the first, where encoding/json would drop both.
	var out []structField
	for _, f := range collectFields(t, nil, map[reflect.Type]bool{}) {
		i := slices.IndexFunc(out, func(o structField) bool { return o.name == f.name })
		switch {
		case i < 0:
			out = append(out, f)
		case len(f.index) < len(out[i].index):
			out = append(slices.Delete(out, i, i+1), f)
		}
	}
	fieldCache.Store(t, out)
	return out
}

func collectFields(t reflect.Type, path []int, within map[reflect.Type]bool) []structField {
	if within[t] {
		return nil
	}
	within[t] = true
	defer delete(within, t)
	var out []structField
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(slices.Clone(path), i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == "-" && options == "" {
			continue
		}
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if f.Anonymous && tag == "" && inner.Kind() == reflect.Struct && !f.Type.Implements(textMarshaler) {
			out = append(out, collectFields(inner, index, within)...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		has := func(o string) bool { return slices.Contains(strings.Split(options, ","), o) }
		out = append(out, structField{tag, index, has("omitempty"), has("omitzero")})
	}
	return out
}
