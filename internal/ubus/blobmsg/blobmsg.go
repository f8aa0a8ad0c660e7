// SPDX-License-Identifier: Apache-2.0

// Package blobmsg turns Go values into libubox's blobmsg and back.
//
// A blobmsg value is an extended attribute (package blob) whose id is the
// value's type. Its payload is a 16-bit name length, the name, a NUL, padding
// to a multiple of 4, and the value:
//
//	null    nothing
//	array   values with empty names
//	table   values with names
//	string  its bytes and a NUL; what follows a NUL inside is lost
//	int64, int32, int16, int8  big-endian, signed; there is no unsigned type
//	bool    is int8, anything but 0 is true
//	double  IEEE 754, big-endian
//
// A message's arguments are the inside of a table: a list of values without an
// outer attribute of their own. Encode and Decode work on that list.
package blobmsg

import (
	"errors"
	"fmt"
)

// Type is a value's type on the wire. ubus method signatures carry it, too.
type Type uint8

// The types. Bool and Int8 are one.
const (
	Null   Type = 0
	Arr    Type = 1
	Tab    Type = 2
	String Type = 3
	Int64  Type = 4
	Int32  Type = 5
	Int16  Type = 6
	Bool   Type = 7
	Double Type = 8
)

// String is the type's name in libubox's words.
func (t Type) String() string {
	names := [...]string{"null", "array", "table", "string", "int64", "int32", "int16", "bool", "double"}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// MaxDepth is how deep tables and arrays may nest, the outermost table
// included. It is what json-c, and with it every ubus command line, accepts.
const MaxDepth = 32

// maxName is the longest name that the 16-bit length can describe.
const maxName = 1<<16 - 1

var (
	// ErrTooDeep tells of values that nest deeper than MaxDepth.
	ErrTooDeep = errors.New("nested too deeply")
	// ErrNameTooLong tells of a name over 65535 bytes.
	ErrNameTooLong = errors.New("name too long")
	// ErrMalformed tells of bytes that are no blobmsg.
	ErrMalformed = errors.New("malformed blobmsg")
)

// Field is one named value of a table.
type Field struct {
	Name  string
	Value any
}

// Table is an ordered list of named values. Decoded values are nil, bool,
// int16, int32, int64, float64, string, Array or Table; see Marshal for what
// else can be encoded.
type Table []Field

// Array is a list of values.
type Array []any

// Get returns the first value of that name, which is the one that libubox
// takes, too, when a name is given twice.
func (t Table) Get(name string) (value any, ok bool) {
	for i := range t {
		if t[i].Name == name {
			return t[i].Value, true
		}
	}
	return nil, false
}

// Text returns a string.
func (t Table) Text(name string) (s string, ok bool) {
	v, _ := t.Get(name)
	s, ok = v.(string)
	return s, ok
}

// Int returns an integer of any width.
func (t Table) Int(name string) (n int64, ok bool) {
	v, _ := t.Get(name)
	switch v := v.(type) {
	case int16:
		return int64(v), true
	case int32:
		return int64(v), true
	case int64:
		return v, true
	}
	return 0, false
}

// Bool returns a bool.
func (t Table) Bool(name string) (b, ok bool) {
	v, _ := t.Get(name)
	b, ok = v.(bool)
	return b, ok
}

// Float returns a double, or an integer as one: JSON writers do not keep them
// apart.
func (t Table) Float(name string) (f float64, ok bool) {
	v, _ := t.Get(name)
	if f, ok = v.(float64); ok {
		return f, true
	}
	n, ok := t.Int(name)
	return float64(n), ok
}

// Table returns a table.
func (t Table) Table(name string) (inner Table, ok bool) {
	v, _ := t.Get(name)
	inner, ok = v.(Table)
	return inner, ok
}

// Array returns an array.
func (t Table) Array(name string) (a Array, ok bool) {
	v, _ := t.Get(name)
	a, ok = v.(Array)
	return a, ok
}
