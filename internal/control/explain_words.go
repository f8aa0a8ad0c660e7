// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// words says what becomes of the frame and why, and what can be done about it
// where something can.
func (ask *inquiry) words(d datapath.Decision) string {
	src, dst, dev := macText(ask.src), macText(ask.dst), ask.device
	back := "the bridge handles the frame"
	if ask.bridge == "" {
		back = "the box's own stack gets the frame, and nobody else"
	}
	switch d.Verdict {
	case datapath.Redirected:
		return ask.redirectedWords(d)
	case datapath.PassDisabled:
		return fmt.Sprintf("%s is switched off in the fast path: %s.", dev, back)
	case datapath.PassLocal:
		return fmt.Sprintf("%s is an address of the box itself, so the box gets the frame.", dst)
	case datapath.PassGroup:
		if ask.isWire() && ask.bridge == "" {
			return fmt.Sprintf("%s is a broadcast or multicast address, which this wire passes to the box (list pass): %s.", dst, back)
		}
		return fmt.Sprintf("%s is a broadcast or multicast address: %s and floods it as ever, IGMP and MLD snooping included.", dst, back)
	case datapath.PassControl:
		return fmt.Sprintf("%s is an address of link control (STP, LLDP, LACP, 802.1X, pause), which is between neighbours: %s.", dst, back)
	case datapath.PassUnknownSource:
		return ask.unknownSourceWords()
	case datapath.PassMovedSource:
		return fmt.Sprintf("%s sends from %s, but is known behind %s: the bridge gets this frame and moves it, and the next frames take the fast path.",
			src, dev, ask.behind(ask.src))
	case datapath.PassUnknownDestination:
		return ask.unknownDestinationWords()
	case datapath.PassSamePort:
		return fmt.Sprintf("%s is behind %s too, where the frame came from: %s, and drops it unless the port is set to hairpin.", dst, dev, back)
	case datapath.PassBlocked:
		return ask.blockedWords(d, back)
	case datapath.PassIsolated:
		return fmt.Sprintf("%s and %s are both isolated ports, and no frame goes from one to the other: the bridge drops it.", dev, ask.ports[d.Slot])
	case datapath.PassVLAN:
		return ask.vlanWords(d, back)
	case datapath.PassMTU:
		return fmt.Sprintf("it is longer than %s can send: %s.", ask.ports[d.Slot], back)
	case datapath.PassFiltered:
		if ask.port.reason != "" {
			return fmt.Sprintf("a filter wants to see the frame, so %s: %s.", back, ask.port.reason)
		}
		return fmt.Sprintf("a filter on the bridge wants to see the frame, so %s (option bypass_filters of section main).", back)
	case datapath.PassMalformed:
		return fmt.Sprintf("%s is no address that a frame can come from: %s, and drops it.", src, back)
	case datapath.RedirectFailed:
		return fmt.Sprintf("it would leave by %s, which is not there: %s.", ask.ports[d.Slot], back)
	}
	return fmt.Sprintf("%s: %s.", d.Verdict.Words(), back)
}

func (ask *inquiry) redirectedWords(d datapath.Decision) string {
	from := fmt.Sprintf("a frame from %s to %s", macText(ask.src), macText(ask.dst))
	if ask.assumed {
		from = fmt.Sprintf("a frame to %s (from %s, say)", macText(ask.dst), macText(ask.src))
	}
	if ask.isWire() {
		from = "a frame"
	}
	in := ""
	if d.VLAN != 0 {
		in = fmt.Sprintf(" in VLAN %d", d.VLAN)
	}
	tag := map[datapath.TagChange]string{
		datapath.TagPop:  ", without its VLAN tag",
		datapath.TagPush: fmt.Sprintf(", with a tag for VLAN %d", d.TCI&0xfff),
		datapath.TagSet:  fmt.Sprintf(", with a tag for VLAN %d", d.TCI&0xfff),
	}[d.Tag]
	over := ""
	if ask.isWire() {
		over = " over the wire"
	}
	return fmt.Sprintf("%s that arrives at %s%s leaves%s by %s%s, sent by the fast path (engine %s); the bridge does not see it.",
		from, ask.device, in, over, ask.ports[d.Slot], tag, ask.engine)
}

// behind names where the bridge has an address.
func (ask *inquiry) behind(mac [6]byte) string {
	if e, ok := ask.fdb[mac]; ok {
		if e.Local {
			return "the box itself"
		}
		return ask.links[e.Port].Name
	}
	return "another port"
}

func (ask *inquiry) unknownSourceWords() string {
	src, l := macText(ask.src), ask.links[ask.port.ifindex]
	if ask.assumed {
		return fmt.Sprintf("no sender is known behind %s yet: the bridge learns one from its first frame, and those behind it take the fast path.", ask.device)
	}
	e, ok := ask.fdb[ask.src]
	switch {
	case ask.full[ask.src]:
		return fmt.Sprintf("%s did not fit into the fast path (option max_stations): the bridge handles the frame.", src)
	case ok && e.Port != l.Index:
		return fmt.Sprintf("%s is known behind %s, which xdpl2 does not manage: the bridge gets the frame and decides.", src, ask.behind(ask.src))
	case ok && e.Locked:
		return fmt.Sprintf("%s is not authorised on the locked port %s yet: the bridge decides.", src, ask.device)
	case l.Port != nil && (!l.Port.Learning || l.Port.Locked):
		return fmt.Sprintf("%s is not known, and %s does not learn: only static entries are accelerated there.", src, ask.device)
	}
	return fmt.Sprintf("%s is not known behind %s yet: the bridge learns it from this frame, and those behind it take the fast path.", src, ask.device)
}

func (ask *inquiry) unknownDestinationWords() string {
	dst := macText(ask.dst)
	in := ""
	if ask.aware {
		in = fmt.Sprintf(" in VLAN %d", ask.key())
	}
	e, ok := ask.fdb[ask.dst]
	switch {
	case ask.full[ask.dst]:
		return fmt.Sprintf("%s did not fit into the fast path (option max_stations): the bridge handles the frame.", dst)
	case !ok:
		return fmt.Sprintf("the bridge does not know %s%s and floods the frame; when %s answers, it is known, and what follows takes the fast path.", dst, in, dst)
	case e.Locked:
		return fmt.Sprintf("%s is not authorised on its locked port yet: the bridge decides.", dst)
	}
	return fmt.Sprintf("%s is behind %s, which is not accelerated: the bridge handles the frame. (A section of type port for %s would change that, if it can be accelerated.)",
		dst, ask.links[e.Port].Name, ask.links[e.Port].Name)
}

func (ask *inquiry) blockedWords(d datapath.Decision, back string) string {
	own := ask.links[ask.port.ifindex]
	switch why := notForwarding(own); {
	case why != "":
		return fmt.Sprintf("%s: %s.", why, back)
	case d.VLAN != 0 && d.Here&datapath.VLANForwards == 0:
		return fmt.Sprintf("VLAN %d is blocked on %s (its spanning tree state): %s.", d.VLAN, ask.device, back)
	}
	to, _ := ask.links.byName(ask.ports[d.Slot])
	if why := notForwarding(to); why != "" {
		return fmt.Sprintf("it would leave by %s, but %s: %s.", to.Name, why, back)
	}
	if d.VLAN != 0 {
		return fmt.Sprintf("it would leave by %s, where VLAN %d is blocked (its spanning tree state): %s.", to.Name, d.VLAN, back)
	}
	return fmt.Sprintf("%s or the port that it would leave by is not forwarding, or the bridge is down: %s.", ask.device, back)
}

func notForwarding(l bridge.Link) string {
	switch {
	case !l.Up:
		return l.Name + " is down"
	case l.Port != nil && l.Port.State == bridge.Disabled && !l.Carrier:
		return l.Name + " has no carrier"
	case l.Port != nil && l.Port.State != bridge.Forwarding:
		return fmt.Sprintf("%s is %s (spanning tree)", l.Name, l.Port.State)
	}
	return ""
}

func (ask *inquiry) vlanWords(d datapath.Decision, back string) string {
	dev := ask.device
	switch {
	case ask.aware && ask.engine != datapath.EngineTC && ask.port.live.Flags&datapath.PortHidesTags != 0:
		return fmt.Sprintf("%s may keep VLAN tags beside the frame, where XDP does not see them, so its VLAN is not known: %s. Engine tc sees them.", dev, back)
	case ask.port.live.Flags&datapath.PortPassTagged != 0 && ask.vlan != 0:
		return fmt.Sprintf("VLAN devices sit on %s, and tagged frames may be theirs: the kernel gets the frame.", dev)
	case !ask.aware:
		return fmt.Sprintf("a tag that XDP does not see would be lost on the way out of %s: %s. Engine tc sees such tags.", ask.ports[d.Slot], back)
	case d.VLAN == 0:
		return fmt.Sprintf("the frame has no VLAN tag, and %s has no PVID for such frames: the bridge drops it.", dev)
	case d.Here&datapath.VLANMember == 0:
		return fmt.Sprintf("%s is not in VLAN %d: the bridge drops the frame.", dev, d.VLAN)
	}
	return fmt.Sprintf("%s is behind %s, which is not in VLAN %d: the bridge drops the frame.", macText(ask.dst), ask.ports[d.Slot], d.VLAN)
}
