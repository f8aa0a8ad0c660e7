// SPDX-License-Identifier: Apache-2.0

// Package parity compares a bridge with xdpl2 to the same bridge without it:
// random but repeatable scenarios are played to both, and what left each port,
// what reached the box itself and what the bridge knows afterwards must be the
// same, byte for byte.
//
// A scenario follows from its seed (Generate). A Bench has two boxes in network
// namespaces of their own and plays scenarios to both (Bench.Play); what differs
// comes back as a Report, which Minimise makes shorter.
//
// In mode port, frames go to a wire's target whatever the bridge knows. That is
// by design, and not filtered away: package parity has a written model of a
// wire (Layout.Wired). The bridge without xdpl2 gets only those frames that the
// model leaves to the bridge, and the others are expected at the target.
package parity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// PortCount is how many ports each box has: eth1 and so on. All are members of
// the bridge; at most MaxManaged of them are xdpl2's.
const (
	PortCount  = 7
	MaxManaged = 5
)

// portName returns the device of a port, which is counted from 0 here.
func portName(i int) string { return fmt.Sprintf("eth%d", i+1) }

// Box is how a bridge and its ports are configured.
type Box struct {
	VLANAware bool
	Protocol  uint16 // of a VLAN-aware bridge's own tags
	Ageing    uint32 // hundredths of a second; 0: the bridge learns nothing
	Self      []VLAN // those of the bridge device
	Ports     [PortCount]Port
}

// Port is how one port is configured. The zero value of each flag is the
// kernel's default.
type Port struct {
	State                                          lab.PortState
	Isolated, Hairpin, NoLearning, Locked, NoFlood bool
	// NoTxVLAN: the device does not insert VLAN tags by itself.
	NoTxVLAN bool
	MTU      int
	VLANs    []VLAN
}

// VLAN is a membership.
type VLAN struct {
	lab.PortVLAN
	State lab.PortState // of this VLAN on the port
}

// defaultVLANs is what a new port has.
func defaultVLANs() []VLAN {
	return []VLAN{{lab.PortVLAN{VID: 1, PVID: true, Untagged: true}, lab.PortForwarding}}
}

// NewBox returns the configuration of a fresh bridge.
func NewBox() Box {
	b := Box{Protocol: ether.TypeVLAN, Ageing: 30000, Self: defaultVLANs()}
	for i := range b.Ports {
		b.Ports[i] = Port{State: lab.PortForwarding, MTU: 1500, VLANs: defaultVLANs()}
	}
	return b
}

func (b Box) clone() Box {
	b.Self = slices.Clone(b.Self)
	for i := range b.Ports {
		b.Ports[i].VLANs = slices.Clone(b.Ports[i].VLANs)
	}
	return b
}

var stateNames = [...]string{"disabled", "listening", "learning", "forwarding", "blocking"}

// String tells what differs from a fresh bridge, a line each.
func (b Box) String() string {
	var out strings.Builder
	fresh := NewBox()
	if b.VLANAware {
		fmt.Fprintf(&out, "  bridge: VLAN-aware, protocol %#04x, own VLANs%s\n", b.Protocol, vlanText(b.Self))
	}
	if b.Ageing != fresh.Ageing {
		fmt.Fprintf(&out, "  bridge: ageing time %d.%02d s\n", b.Ageing/100, b.Ageing%100)
	}
	for i, p := range b.Ports {
		var words []string
		word := func(on bool, text string) {
			if on {
				words = append(words, text)
			}
		}
		word(p.State != lab.PortForwarding, stateNames[p.State])
		word(p.Isolated, "isolated")
		word(p.Hairpin, "hairpin")
		word(p.NoLearning, "learning off")
		word(p.Locked, "locked")
		word(p.NoFlood, "flood off")
		word(p.NoTxVLAN, "inserts no tags")
		word(p.MTU != 1500, fmt.Sprintf("MTU %d", p.MTU))
		word(b.VLANAware, "VLANs"+vlanText(p.VLANs))
		if len(words) > 0 {
			fmt.Fprintf(&out, "  %s: %s\n", portName(i), strings.Join(words, ", "))
		}
	}
	return out.String()
}

func vlanText(vlans []VLAN) string {
	var out strings.Builder
	for _, v := range vlans {
		fmt.Fprintf(&out, " %d", v.VID)
		if v.PVID {
			out.WriteString(" PVID")
		}
		if v.Untagged {
			out.WriteString(" untagged")
		}
		if v.State != lab.PortForwarding {
			out.WriteString(" " + stateNames[v.State])
		}
		out.WriteString(";")
	}
	if len(vlans) == 0 {
		return " none"
	}
	return strings.TrimSuffix(out.String(), ";")
}
