// SPDX-License-Identifier: Apache-2.0

// Package filters finds what on this box wants to see frames on their way
// through the bridge: nftables, ebtables, iptables and arptables by way of
// br_netfilter, tc filters, and qdiscs that shape. It knows netlink and procfs,
// no BPF and no configuration, and it changes nothing.
//
// What cannot be read counts as a filter, with the reason: nobody's firewall
// is to be stepped around because of a doubt.
//
// Everything here acts in the network namespace of the calling thread.
package filters

import (
	"fmt"
	"slices"
	"strings"
)

// Place says which frames a filter sees.
type Place int

// The places of filters.
const (
	// Bridged is every frame that a bridge forwards.
	Bridged Place = iota
	// Arriving is every frame that arrives at a device.
	Arriving
	// Leaving is every frame that leaves by a device. XDP goes past all filters
	// there, tc past those of nftables: the kernel does not call them for what
	// tc has redirected at the ingress (nf_skip_egress).
	Leaving
)

// String names the place as it is told to programs.
func (p Place) String() string {
	return [...]string{"bridged", "arriving", "leaving"}[p]
}

// Filter is something that wants to see frames.
type Filter struct {
	// Kind is the tool: "nftables", "ebtables", "iptables", "ip6tables",
	// "arptables", "conntrack" or "tc".
	Kind  string
	Place Place
	// Device is the bridge (Bridged; empty: every bridge) or the device. A
	// name that ends with "*" stands for all that begin so.
	Device string
	// Text says what it is and where, in words that begin a sentence:
	// "nftables table bridge fw has rules in chain forward".
	Text string
	// Remedy is what can be done about it, as a command where there is one.
	Remedy string
}

// Matches tells whether the filter is about a device of this name.
func (f Filter) Matches(device string) bool {
	if prefix, ok := strings.CutSuffix(f.Device, "*"); ok {
		return strings.HasPrefix(device, prefix)
	}
	return f.Device == device
}

// State is what there is. A State is not changed once it has been handed out.
type State struct {
	Filters []Filter
	// Shapers are the devices whose qdiscs delay, drop or order what is sent,
	// by ifindex; the value is the qdisc's kind, such as "cake".
	Shapers map[int]string
}

// At returns the filters that see the frames that arrive at a port of a
// bridge and would be forwarded.
func (s State) At(port, bridge string) []Filter {
	return s.where(func(f Filter) bool {
		switch f.Place {
		case Bridged:
			return f.Device == "" || f.Device == bridge
		case Arriving:
			return f.Matches(port)
		}
		return false
	})
}

// Behind returns the filters that see the frames that leave by a port, later
// than the bridge.
func (s State) Behind(port string) []Filter {
	return s.where(func(f Filter) bool { return f.Place == Leaving && f.Matches(port) })
}

func (s State) where(want func(Filter) bool) []Filter {
	var found []Filter
	for _, f := range s.Filters {
		if want(f) {
			found = append(found, f)
		}
	}
	return found
}

// sorted puts filters into one order, whatever order the kernel tells them in.
func sorted(all []Filter) []Filter {
	slices.SortFunc(all, func(a, b Filter) int {
		if a.Place != b.Place {
			return int(a.Place - b.Place)
		}
		if d := strings.Compare(a.Device, b.Device); d != 0 {
			return d
		}
		return strings.Compare(a.Text, b.Text)
	})
	return slices.Compact(all)
}

// unreadable is the filter that stands for one that cannot be looked at.
func unreadable(kind string, err error) Filter {
	return Filter{Kind: kind, Place: Bridged,
		Text:   fmt.Sprintf("%s cannot be read (%v), so it may have rules", kind, err),
		Remedy: "see the error; the daemon needs root or CAP_NET_ADMIN"}
}
