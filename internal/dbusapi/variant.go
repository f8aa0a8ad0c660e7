// SPDX-License-Identifier: Apache-2.0

package dbusapi

import (
	"encoding"
	"fmt"
	"reflect"

	"github.com/godbus/dbus/v5"

	"github.com/xdpl2/xdpl2/internal/jsonfields"
)

// dict is how D-Bus carries a struct that may grow: a{sv}.
type dict = map[string]dbus.Variant

// dictOf makes a dictionary of a struct, or of a pointer to one, with the keys
// of its JSON. Integers keep no width of their own: signed ones are x, unsigned
// ones t.
func dictOf(v any) dict {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	return structOf(value)
}

func structOf(v reflect.Value) dict {
	out := dict{}
	for _, f := range jsonfields.Of(v.Type()) {
		if fv, ok := f.Value(v); ok {
			out[f.Name] = dbus.MakeVariant(plain(fv))
		}
	}
	return out
}

// plain makes a value that D-Bus has a type for.
func plain(v reflect.Value) any {
	if v.Type().Implements(jsonfields.TextMarshaler) {
		text, err := v.Interface().(encoding.TextMarshaler).MarshalText()
		if err != nil {
			return "" // a time that no calendar has
		}
		return string(text)
	}
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	case reflect.Struct:
		return structOf(v)
	case reflect.Pointer:
		if v.IsNil() {
			return dict{}
		}
		return plain(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Struct {
			list := make([]dict, v.Len())
			for i := range list {
				list[i] = structOf(v.Index(i))
			}
			return list
		}
		list := make([]string, v.Len())
		for i := range list {
			list[i] = fmt.Sprint(v.Index(i).Interface())
		}
		return list
	case reflect.Map:
		table := map[string]string{}
		for _, key := range v.MapKeys() {
			table[fmt.Sprint(key.Interface())] = fmt.Sprint(v.MapIndex(key).Interface())
		}
		return table
	}
	return fmt.Sprint(v.Interface())
}
