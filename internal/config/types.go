// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// Type says which values an option takes.
type Type string

// The types of options.
const (
	Boolean Type = "boolean"
	Choice  Type = "choice"
	Number  Type = "number"
	Device  Type = "device"
	MAC     Type = "mac"
	Address Type = "address"
)

// Option declares one option of a section type: everything that the parser,
// the reference and the settings page need to know of it.
type Option struct {
	Section  string // section type
	Name     string
	Type     Type
	List     bool
	Required bool
	Default  string // for people; lists: what an absent list means
	Choices  []string
	Min, Max uint32
	Help     string
	// Ignored says why any other value than the default has no effect yet; it
	// is warned about.
	Ignored string
}

// Expected describes the values that the option takes, for error messages.
func (o *Option) Expected() string {
	switch o.Type {
	case Boolean:
		return "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)"
	case Choice:
		if len(o.Choices) != 1 {
			return "one of " + strings.Join(o.Choices, ", ")
		}
		return o.Choices[0]
	case Number:
		return fmt.Sprintf("a number from %d to %d", o.Min, o.Max)
	case Device:
		return "the name of a network device (at most 15 characters, no blank or slash)"
	case MAC:
		return "the address of one host, like 02:00:00:00:00:02"
	case Address:
		return "an IP address and a port, like 127.0.0.1:9420 or [::1]:9420"
	}
	return string(o.Type)
}

// isDefault reports whether a valid value means the same as the default.
func (o *Option) isDefault(value string) bool {
	if o.Type == Boolean {
		return booleans[value] == booleans[o.Default]
	}
	return value == o.Default
}

var booleans = map[string]bool{
	"1": true, "yes": true, "on": true, "true": true, "enabled": true,
	"0": false, "no": false, "off": false, "false": false, "disabled": false,
}

// parse turns a value into bool, string, uint32, [6]byte or netip.AddrPort.
func (o *Option) parse(value string) (any, bool) {
	switch o.Type {
	case Boolean:
		b, ok := booleans[value]
		return b, ok
	case Choice:
		for _, c := range o.Choices {
			if value == c {
				return value, true
			}
		}
	case Number:
		n, err := strconv.ParseUint(value, 10, 32)
		return uint32(n), err == nil && uint32(n) >= o.Min && uint32(n) <= o.Max
	case Device:
		ok := value != "" && len(value) <= 15 && value != "." && value != ".." &&
			!strings.ContainsAny(value, "/: \t\n\v\f\r")
		return value, ok
	case MAC:
		hw, err := net.ParseMAC(value)
		if err != nil || len(hw) != 6 || hw[0]&1 != 0 || [6]byte(hw) == [6]byte{} {
			return nil, false
		}
		return [6]byte(hw), true
	case Address:
		a, err := netip.ParseAddrPort(value)
		return a, err == nil && a.Port() != 0
	}
	return nil, false
}
