// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// What follows from configuration and mirror, without an effect on either:
// the rules by which xdpl2 is the bridge's equal.

// links is all devices, by ifindex.
type links map[int]bridge.Link

func (ls links) byName(name string) (bridge.Link, bool) {
	for _, l := range ls {
		if l.Name == name {
			return l, true
		}
	}
	return bridge.Link{}, false
}

// hasVLANDevice reports whether a VLAN device sits on a port. The kernel gives
// tagged frames to it before the bridge sees them (__netif_receive_skb_core).
func (ls links) hasVLANDevice(port int) bool {
	for _, l := range ls {
		if l.Kind == "vlan" && l.Parent == port {
			return true
		}
	}
	return false
}

// whyNot returns the reason for which a port must be left to the bridge, in
// words for people, or "".
func whyNot(ls links, l bridge.Link, bridgeName string) string {
	br, ok := ls.byName(bridgeName)
	switch {
	case !ok || br.Kind != "bridge":
		return fmt.Sprintf("there is no bridge %s", bridgeName)
	case l.Kind == "bridge":
		return fmt.Sprintf("%s is itself a bridge", l.Name)
	case l.Master == 0:
		return fmt.Sprintf("%s is not a port of %s", l.Name, br.Name)
	case l.MasterKind != "" && l.MasterKind != "bridge":
		return fmt.Sprintf("%s is a member of a %s: frames belong to that", l.Name, l.MasterKind)
	case l.Master != br.Index:
		return fmt.Sprintf("%s is a port of %s, not of %s", l.Name, ls[l.Master].Name, br.Name)
	case br.Bridge != nil && br.Bridge.MST:
		return fmt.Sprintf("%s keeps STP states per spanning tree instance (mst_enabled), and the kernel does not tell of their changes", br.Name)
	case l.Port != nil && l.Port.Tunnel:
		return fmt.Sprintf("%s maps VLANs to tunnels (vlan_tunnel)", l.Name)
	}
	if name := ls.answersFor(br.Index); name != "" {
		return fmt.Sprintf("%s answers ARP or neighbour solicitations for stations behind %s (proxy_arp, neigh_suppress)", br.Name, name)
	}
	return ls.switchReason(l)
}

// answersFor names a port of a bridge for whose stations the bridge itself
// answers, or returns "". It may do so on every port.
func (ls links) answersFor(bridge int) string {
	for _, l := range ls {
		if l.Master == bridge && l.Port != nil && l.Port.Answers {
			return l.Name
		}
	}
	return ""
}

// switchReason returns why a device of a hardware switch is left alone, or "".
// The switch forwards between its own ports without the CPU; taking those
// frames to the CPU would undo that. On the conduit, the device between switch
// and CPU, frames carry the switch's own tag.
func (ls links) switchReason(l bridge.Link) string {
	for _, other := range ls {
		if other.Index == l.Index {
			continue
		}
		if l.Switch != "" && other.Switch == l.Switch && other.Master == l.Master {
			return fmt.Sprintf("%s and %s are ports of one hardware switch, which forwards between them itself", l.Name, other.Name)
		}
		if other.Kind == "dsa" && other.Parent == l.Index {
			return fmt.Sprintf("%s connects a hardware switch (%s is one of its ports): frames on it carry the switch's tag", l.Name, other.Name)
		}
	}
	return ""
}

// livePort is what the data path must know of a port.
func livePort(ls links, l bridge.Link) datapath.Port {
	const header, vlanTag = 14, 4
	p := datapath.Port{
		Ifindex: uint32(l.Index),
		Flags:   datapath.PortEnabled,
		// is_skb_forwardable: the bridge leaves room for a tag whether there
		// is one or not.
		MaxLen: uint32(l.MTU) + header + vlanTag,
	}
	if br := ls[l.Master]; l.Port != nil && l.Up && br.Up {
		if l.Port.State == bridge.Forwarding {
			p.Flags |= datapath.PortForwarding
		}
		if l.Port.Locked {
			p.Flags |= datapath.PortLocked
		}
		if l.Port.Isolated {
			p.Flags |= datapath.PortIsolated
		}
		if br.Bridge != nil && br.Bridge.VLANFiltering && l.VLANs != nil {
			p.PVID = l.VLANs.PVID
		}
	}
	if l.Port != nil && l.Port.Learning && mayLearn(l) {
		p.Flags |= datapath.PortLearns
	}
	// A wire that is in no bridge (topology replace, mode port).
	if l.Master == 0 && l.Up && l.Carrier {
		p.Flags |= datapath.PortForwarding
	}
	if ls.hasVLANDevice(l.Index) {
		p.Flags |= datapath.PortPassTagged
	}
	return p
}

// mayLearn reports whether the next frame that comes in teaches the bridge
// something. A port that has no carrier now has one when there is a frame, and
// the frame may be there before the kernel has told of it.
func mayLearn(l bridge.Link) bool {
	return !l.Up || !l.Carrier || l.Port.State == bridge.Forwarding || l.Port.State == bridge.Learning
}

// vlansOf is what the data path must know of a port's VLANs.
func vlansOf(table *bridge.VLANs) *datapath.VLANs {
	out := &datapath.VLANs{}
	if table == nil {
		return out
	}
	for vid, v := range table.By {
		if !v.Member() {
			continue
		}
		out[vid] = datapath.VLANMember
		if v.Untagged() {
			out[vid] |= datapath.VLANUntagged
		}
		switch v.State() {
		case bridge.Forwarding:
			out[vid] |= datapath.VLANForwards | datapath.VLANLearns
		case bridge.Learning:
			out[vid] |= datapath.VLANLearns
		}
	}
	return out
}

// stationOf is where the fast path sends an address of the bridge's database;
// false if that is the bridge's business. slotOf gives a port's slot.
func stationOf(mode string, e bridge.Entry, slotOf func(ifindex int) (uint32, bool)) (datapath.Station, bool) {
	if e.Local {
		return datapath.Station{Local: true, Stay: true}, true
	}
	slot, ok := slotOf(e.Port)
	if !ok || e.Locked || mode != config.ModeMAC {
		return datapath.Station{}, false
	}
	return datapath.Station{Slot: slot, Stay: e.Sticky}, true
}
