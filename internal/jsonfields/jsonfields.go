// SPDX-License-Identifier: Apache-2.0

// Package jsonfields tells under which names encoding/json writes the fields of
// a struct, for encoders of other formats that are to say the same: blobmsg,
// D-Bus.
package jsonfields

import (
	"encoding"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Field is one field that is written.
type Field struct {
	Name                string
	index               []int
	omitEmpty, omitZero bool
}

// Value is the field's value in a struct. ok is false if it is left out.
func (f *Field) Value(v reflect.Value) (value reflect.Value, ok bool) {
	for i, n := range f.index {
		if i > 0 && v.Kind() == reflect.Pointer {
			if v.IsNil() { // an embedded struct that is not there
				return v, false
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v, !(f.omitEmpty && isEmpty(v) || f.omitZero && v.IsZero())
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

var cache sync.Map // reflect.Type -> []Field

// Of lists the fields of a struct type in the order of their declaration.
func Of(t reflect.Type) []Field {
	if f, ok := cache.Load(t); ok {
		return f.([]Field)
	}
	// Of two fields with one name the less embedded one counts; among equals
	// the first, where encoding/json would drop both.
	var out []Field
	for _, f := range collect(t, nil, map[reflect.Type]bool{}) {
		i := slices.IndexFunc(out, func(o Field) bool { return o.Name == f.Name })
		switch {
		case i < 0:
			out = append(out, f)
		case len(f.index) < len(out[i].index):
			out = append(slices.Delete(out, i, i+1), f)
		}
	}
	cache.Store(t, out)
	return out
}

// TextMarshaler is the type of what is written as text.
var TextMarshaler = reflect.TypeFor[encoding.TextMarshaler]()

func collect(t reflect.Type, path []int, within map[reflect.Type]bool) []Field {
	if within[t] {
		return nil
	}
	within[t] = true
	defer delete(within, t)
	var out []Field
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
		if f.Anonymous && tag == "" && inner.Kind() == reflect.Struct && !f.Type.Implements(TextMarshaler) {
			out = append(out, collect(inner, index, within)...)
			continue
		}
		if !f.IsExported() {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		has := func(o string) bool { return slices.Contains(strings.Split(options, ","), o) }
		out = append(out, Field{tag, index, has("omitempty"), has("omitzero")})
	}
	return out
}
