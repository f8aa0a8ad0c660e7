// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

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
