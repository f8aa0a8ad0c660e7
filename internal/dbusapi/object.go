// SPDX-License-Identifier: Apache-2.0

package dbusapi

import (
	"context"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/xdpl2/xdpl2/internal/api"
)

// What the D-Bus library asks of an object: which interfaces it has, which
// methods those have, what they take.

type object struct {
	s   api.Service
	ctx context.Context // ends with the connection
}

// LookupObject implements dbus.Handler.
func (o *object) LookupObject(path dbus.ObjectPath) (dbus.ServerObject, bool) {
	switch {
	case path == Path:
		return o, true
	case path == "/" || strings.HasPrefix(string(Path), string(path)+"/"):
		return way(path), true
	}
	return nil, false
}

// LookupInterface implements dbus.ServerObject. A call need not name one.
func (o *object) LookupInterface(name string) (dbus.Interface, bool) {
	switch name {
	case Interface:
		return methods{o.method}, true
	case propertiesInterface:
		return methods{o.properties}, true
	case introspectable:
		return methods{introspect(introspection)}, true
	case "":
		return methods{func(name string) *method {
			for _, find := range []func(string) *method{o.method, o.properties, introspect(introspection)} {
				if m := find(name); m != nil {
					return m
				}
			}
			return nil
		}}, true
	}
	return nil, false
}

// way is a path on the way to the object: it can be looked at.
type way dbus.ObjectPath

// LookupInterface implements dbus.ServerObject.
func (w way) LookupInterface(name string) (dbus.Interface, bool) {
	rest := strings.TrimPrefix(strings.TrimPrefix(string(Path), string(w)), "/")
	next, _, _ := strings.Cut(rest, "/")
	return methods{introspect(`<node><node name="` + next + `"/></node>`)}, name == introspectable || name == ""
}

func introspect(text string) func(string) *method {
	return func(name string) *method {
		if name != "Introspect" {
			return nil
		}
		return &method{call: func([]any) ([]any, error) { return []any{text}, nil }}
	}
}

// methods finds a method by its name.
type methods struct{ find func(string) *method }

// LookupMethod implements dbus.Interface.
func (m methods) LookupMethod(name string) (dbus.Method, bool) {
	found := m.find(name)
	return found, found != nil
}

// method takes arguments of exactly the types of in.
type method struct {
	in   []any
	call func([]any) ([]any, error)
}

// DecodeArguments implements dbus.ArgumentDecoder. The library's own way turns
// a number into a text without a word.
func (m *method) DecodeArguments(_ *dbus.Conn, _ string, _ *dbus.Message, body []any) ([]any, error) {
	got, want := dbus.SignatureOf(body...), dbus.SignatureOf(m.in...)
	if got != want {
		return nil, dbus.NewError(errorNames[api.FailedUsage], []any{fmt.Sprintf("arguments of type (%s), expected (%s)", got, want)})
	}
	return body, nil
}

// NumArguments, NumReturns, ArgumentValue, ReturnValue and Call implement
// dbus.Method.
func (m *method) NumArguments() int               { return len(m.in) }
func (m *method) NumReturns() int                 { return 1 }
func (m *method) ArgumentValue(i int) any         { return m.in[i] }
func (m *method) ReturnValue(int) any             { return dict{} }
func (m *method) Call(args ...any) ([]any, error) { return m.call(args) }

// method finds one of package api's.
func (o *object) method(name string) *method {
	var m *api.Method
	for i := range api.Methods() {
		if camel(api.Methods()[i].Name) == name {
			m = &api.Methods()[i]
		}
	}
	if m == nil {
		return nil
	}
	out := &method{}
	for _, a := range m.Args {
		if a.Kind == api.Integer {
			out.in = append(out.in, int32(0))
		} else {
			out.in = append(out.in, "")
		}
	}
	out.call = func(in []any) ([]any, error) {
		args := api.Values{}
		for i, a := range m.Args {
			switch v := in[i].(type) {
			case string:
				if v != "" { // as good as not given
					args[a.Name] = v
				}
			case int32:
				args[a.Name] = int64(v)
			}
		}
		result, err := m.CallPaged(o.ctx, o.s, args)
		if err != nil {
			return nil, errorOf(err)
		}
		return []any{dictOf(result)}, nil
	}
	return out
}

var errorNames = map[string]string{
	api.FailedUsage: "org.freedesktop.DBus.Error.InvalidArgs", api.FailedUnknownPort: Name + ".Error.UnknownPort",
	api.FailedConfig: Name + ".Error.Config", api.FailedOther: Name + ".Error.Failed",
	api.FailedBusy: Name + ".Error.Busy", api.FailedNoData: Name + ".Error.NoData",
}

func errorOf(err error) *dbus.Error {
	f := api.FailureOf(err)
	return dbus.NewError(errorNames[f.Kind], []any{f.Text})
}

// camel makes a D-Bus name of one of api's: config_errors is ConfigErrors.
func camel(name string) string {
	var out strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		out.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return out.String()
}
