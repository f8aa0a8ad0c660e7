// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"fmt"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
)

// SessionKey is an argument that uhttpd adds to every call from a browser. It
// is allowed for every method.
const SessionKey = "ubus_rpc_session"

// Arg is an argument that a method takes, as `ubus -v list` shows it. Of the
// types only String, Int32 (Integer), Bool (Boolean), Arr and Tab have names
// there; Null stands for any type.
type Arg struct {
	Name     string
	Type     blobmsg.Type
	Required bool
}

// check holds arguments against the method's declaration. It returns them with
// the declared types: what is narrower than declared is widened, since in JSON
// a small number is an int32 whatever is meant.
//
// A libubus server would take an argument of the wrong type as missing and not
// see one that it does not know. That a typing mistake changes the meaning of a
// call without a word helps nobody, so both are refused. null is the same as
// missing.
func (m *Method) check(args blobmsg.Table) (blobmsg.Table, error) {
	out := make(blobmsg.Table, 0, len(args))
	for _, f := range args {
		a := m.arg(f.Name)
		switch {
		case a == nil:
			if !m.AnyArgs && f.Name != SessionKey {
				return nil, fmt.Errorf("unknown argument %q: %w", f.Name, StatusInvalidArgument)
			}
		case f.Value == nil && a.Type != blobmsg.Null:
			continue
		default:
			v, ok := widen(f.Value, a.Type)
			if !ok {
				return nil, fmt.Errorf("argument %q is no %v: %w", f.Name, a.Type, StatusInvalidArgument)
			}
			f.Value = v
		}
		out = append(out, f)
	}
	for i := range m.Args {
		if a := &m.Args[i]; a.Required {
			if _, ok := out.Get(a.Name); !ok {
				return nil, fmt.Errorf("argument %q is missing: %w", a.Name, StatusInvalidArgument)
			}
		}
	}
	return out, nil
}

func (m *Method) arg(name string) *Arg {
	for i := range m.Args {
		if m.Args[i].Name == name {
			return &m.Args[i]
		}
	}
	return nil
}

// widen makes a value one of a type that can hold it.
func widen(v any, t blobmsg.Type) (any, bool) {
	if have, _ := blobmsg.TypeOf(v); t == blobmsg.Null || have == t {
		return v, true
	}
	var n int64
	switch v := v.(type) {
	case int16:
		n = int64(v)
	case int32:
		n = int64(v)
	case int64:
		n = v
	default:
		return nil, false
	}
	switch _, wide := v.(int64); {
	case t == blobmsg.Int64:
		return n, true
	case t == blobmsg.Double:
		return float64(n), true
	case t == blobmsg.Int32 && !wide:
		return int32(n), true
	}
	return nil, false
}

// signature is the methods' declaration on the wire: a table per method with a
// type per argument.
func signature(methods []Method) ([]byte, error) {
	var t blobmsg.Table
	for i := range methods {
		args := blobmsg.Table{}
		for _, a := range methods[i].Args {
			args = append(args, blobmsg.Field{Name: a.Name, Value: int32(a.Type)})
		}
		t = append(t, blobmsg.Field{Name: methods[i].Name, Value: args})
	}
	return blobmsg.Encode(t)
}

// methodsOf reads a signature. What it does not understand it leaves out.
func methodsOf(signature []byte) []Method {
	t, err := blobmsg.Decode(signature)
	if err != nil {
		return nil
	}
	var methods []Method
	for _, f := range t {
		args, ok := f.Value.(blobmsg.Table)
		if !ok {
			continue
		}
		m := Method{Name: f.Name}
		for _, a := range args {
			if n, ok := a.Value.(int32); ok {
				m.Args = append(m.Args, Arg{Name: a.Name, Type: blobmsg.Type(n)})
			}
		}
		methods = append(methods, m)
	}
	return methods
}
