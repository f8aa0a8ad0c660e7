// SPDX-License-Identifier: Apache-2.0

package api

import (
	"context"
	"fmt"
	"math"
	"strconv"
)

// Kind says what an argument is.
type Kind int

// The kinds of argument.
const (
	Text Kind = iota
	Integer
)

// Arg is an argument of a method.
type Arg struct {
	Name     string
	Kind     Kind
	Required bool
	Help     string
	// Min to Max are what an Integer may be, beside Absent, which is what it
	// is if it is not given.
	Min, Max, Absent int
	// Page is the most that this argument may ask for where a message has a
	// limit; 0: it has nothing to do with the size of the answer.
	Page int
}

// Method is one thing that can be asked or told. Every way in (control socket,
// ubus, D-Bus) offers exactly these, and every argument is checked here.
type Method struct {
	Name string
	Help string
	Args []Arg
	// Changes: it is no mere question.
	Changes bool

	call func(context.Context, Service, values) (any, error)
}

// Values are arguments by name: strings and int64s.
type Values map[string]any

// PageSize is how many entries of a list fit into one message of a bus.
const PageSize = 1000

const maxText = 256 // longer than any name or address

var methods = []Method{
	{
		Name: "status", Help: "how things are: on or off, share accelerated, state and reason of each port, configuration errors",
		call: func(ctx context.Context, s Service, _ values) (any, error) { return some(s.Status(ctx)) },
	}, {
		Name: "ports", Help: "what is known of each port: device, driver, link, engine, frames",
		call: func(ctx context.Context, s Service, _ values) (any, error) {
			ports, err := s.Ports(ctx)
			return some(&PortList{ports}, err)
		},
	}, {
		Name: "stations", Help: "the stations that the fast path knows, ordered by address, in pages",
		Args: []Arg{
			{Name: "port", Help: "only those behind this device"},
			{Name: "vlan", Kind: Integer, Max: 4094, Absent: -1, Help: "only those in this VLAN; 0: outside of any"},
			{Name: "search", Help: "only those with this in their address or their port's name"},
			{Name: "limit", Kind: Integer, Max: math.MaxInt32, Page: PageSize, Help: "at most so many; 0: as many as a message takes"},
			{Name: "offset", Kind: Integer, Max: math.MaxInt32, Help: "leave out so many at the beginning"},
		},
		call: func(ctx context.Context, s Service, v values) (any, error) {
			return some(s.Stations(ctx, StationQuery{Port: v.text("port"), Search: v.text("search"), VLAN: v.int("vlan"), Limit: v.int("limit"), Offset: v.int("offset")}))
		},
	}, {
		Name: "counters", Help: "what became of the frames that arrived, a reason for each that was passed to the bridge",
		Args: []Arg{{Name: "port", Help: "only of this device"}},
		call: func(ctx context.Context, s Service, v values) (any, error) {
			counters, err := s.Counters(ctx, v.text("port"))
			return some(&CounterList{counters}, err)
		},
	}, {
		Name: "explain", Help: "what would become of a frame now, and why, in words",
		Args: []Arg{
			{Name: "device", Required: true, Help: "where it arrives"},
			{Name: "source", Help: "the address that it comes from; without it a station that is known behind the device"},
			{Name: "destination", Required: true, Help: "the address that it goes to"},
			{Name: "vlan", Kind: Integer, Max: 4094, Help: "the VLAN of its tag; 0: untagged"},
		},
		call: func(ctx context.Context, s Service, v values) (any, error) {
			return some(s.Explain(ctx, ExplainQuery{Device: v.text("device"), Source: v.text("source"), Destination: v.text("destination"), VLAN: v.int("vlan")}))
		},
	}, {
		Name: "reload", Changes: true, Help: "reads the configuration again, staged changes included",
		call: func(ctx context.Context, s Service, _ values) (any, error) { return some(s.Reload(ctx)) },
	}, {
		Name: "calibrate", Changes: true, Help: "measures what forwarding costs on this box, by the bridge and by each engine",
		Args: []Arg{
			{Name: "seconds", Kind: Integer, Max: MaxCalibrationSeconds, Absent: DefaultCalibrationSeconds, Help: "about how long; 0: the table of the last time, without measuring"},
		},
		call: func(ctx context.Context, s Service, v values) (any, error) {
			return some(s.Calibrate(ctx, v.int("seconds")))
		},
	},
}

// Methods lists all methods. What it returns is not to be changed.
func Methods() []Method { return methods }

// MethodNamed finds a method; nil if there is none of that name.
func MethodNamed(name string) *Method {
	for i := range methods {
		if methods[i].Name == name {
			return &methods[i]
		}
	}
	return nil
}

// PortList is the answer to ports.
type PortList struct {
	Ports []Port `json:"ports"`
}

// CounterList is the answer to counters.
type CounterList struct {
	Counters []PortCounters `json:"counters"`
}

// some is nil if there is an error, not a pointer to nothing.
func some[T any](v *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}

// Call checks the arguments and calls the method. It returns a pointer to a
// struct, or an *ArgumentError, or what the service says.
func (m *Method) Call(ctx context.Context, s Service, args Values) (any, error) {
	v := values{}
	for i := range m.Args {
		a := &m.Args[i]
		if a.Kind == Integer {
			v[a.Name] = int64(a.Absent)
		}
		given, ok := args[a.Name]
		if !ok {
			if a.Required {
				return nil, &ArgumentError{Method: m.Name, Name: a.Name, Missing: true, Expected: a.expected()}
			}
			continue
		}
		if err := a.check(m.Name, given); err != nil {
			return nil, err
		}
		v[a.Name] = given
	}
	for name, given := range args {
		if _, ok := v[name]; !ok && m.arg(name) == nil {
			return nil, &ArgumentError{Method: m.Name, Name: name, Value: fmt.Sprint(given), Expected: "no such argument"}
		}
	}
	return m.call(ctx, s, v)
}

// CallPaged is Call where an answer has a limit: a list is cut to a page of it.
func (m *Method) CallPaged(ctx context.Context, s Service, args Values) (any, error) {
	for _, a := range m.Args {
		if a.Page == 0 {
			continue
		}
		n, ok := args[a.Name].(int64)
		if _, given := args[a.Name]; given && !ok {
			continue // Call refuses it
		}
		if n == 0 || n > int64(a.Page) {
			paged := Values{}
			for name, value := range args {
				paged[name] = value
			}
			paged[a.Name] = int64(a.Page)
			args = paged
		}
	}
	return m.Call(ctx, s, args)
}

func (m *Method) arg(name string) *Arg {
	for i := range m.Args {
		if m.Args[i].Name == name {
			return &m.Args[i]
		}
	}
	return nil
}

// Parse makes a value of text, for ways in that know nothing else.
func (a *Arg) Parse(method, text string) (any, error) {
	if a.Kind == Text {
		return text, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, &ArgumentError{Method: method, Name: a.Name, Value: text, Expected: a.expected()}
	}
	return n, nil
}

func (a *Arg) check(method string, given any) error {
	ok := false
	switch v := given.(type) {
	case string:
		ok = a.Kind == Text && len(v) <= maxText
	case int64:
		ok = a.Kind == Integer && (v >= int64(a.Min) && v <= int64(a.Max) || v == int64(a.Absent))
	}
	if !ok {
		return &ArgumentError{Method: method, Name: a.Name, Value: fmt.Sprint(given), Expected: a.expected()}
	}
	return nil
}

func (a *Arg) expected() string {
	if a.Kind == Text {
		return fmt.Sprintf("text of at most %d bytes: %s", maxText, a.Help)
	}
	return fmt.Sprintf("a number from %d to %d", a.Min, a.Max)
}

// values are checked arguments; an absent text is empty.
type values map[string]any

func (v values) text(name string) string { s, _ := v[name].(string); return s }
func (v values) int(name string) int     { n, _ := v[name].(int64); return int(n) }
