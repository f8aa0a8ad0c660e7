// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"encoding/binary"

	"github.com/xdpl2/xdpl2/internal/ether"
)

// Each frame carries its number: in its type, from typeBase on, or, where the
// type has to be another one, behind it after numberMark.
const (
	typeBase   = 0xa000
	numberMark = 0x7832
)

// number finds a frame's number, whatever tags are on it; -1 if there is none.
func number(data []byte) int {
	if len(data) < 14 {
		return -1
	}
	rest := data[12:]
	for len(rest) >= 4 && isTag(rest) {
		rest = rest[4:]
	}
	if len(rest) < 2 {
		return -1
	}
	if t := binary.BigEndian.Uint16(rest); t >= typeBase && t < typeBase+0x1000 {
		return int(t - typeBase)
	}
	if len(rest) >= 6 && binary.BigEndian.Uint16(rest[2:]) == numberMark {
		return int(binary.BigEndian.Uint16(rest[4:]))
	}
	return -1
}

// plain is a frame without a tag.
func (g *generator) plain(dst, src [6]byte, length int) []byte {
	return fill(dst, src, uint16(typeBase+g.nextID), length)
}

// typed is a frame of a given type.
func (g *generator) typed(dst, src [6]byte, etherType uint16, length int) []byte {
	f := fill(dst, src, etherType, max(length, 18))
	binary.BigEndian.PutUint16(f[14:], numberMark)
	binary.BigEndian.PutUint16(f[16:], uint16(g.nextID))
	return f
}

func fill(dst, src [6]byte, etherType uint16, length int) []byte {
	f := make([]byte, max(length, 14))
	copy(f, dst[:])
	copy(f[6:], src[:])
	binary.BigEndian.PutUint16(f[12:], etherType)
	for i := 14; i < len(f); i++ {
		f[i] = byte(i * 7)
	}
	return f
}

func (g *generator) add(port int, what string, data []byte) {
	f := &Frame{ID: g.nextID, Port: port, What: what, Data: data}
	// Some tags arrive beside the data.
	if len(data) >= 20 && isTag(data[12:]) && g.hides && g.one(3) {
		f.Hidden = binary.BigEndian.Uint32(data[12:])
		f.Data = append(data[:12:12], data[16:]...)
	}
	g.s.Steps = append(g.s.Steps, Step{Frame: f})
	g.nextID++
}

// inVLAN puts the tag on that a port expects of frames in a VLAN.
func (g *generator) inVLAN(port int, vid uint16, f []byte) []byte {
	if vid == 0 {
		return f
	}
	for _, v := range g.box.Ports[port].VLANs {
		if v.VID == vid && v.PVID && !g.one(4) {
			if g.one(6) { // a priority tag belongs to the PVID
				return ether.Tag(f, g.box.Protocol, g.priority())
			}
			return f
		}
	}
	return ether.Tag(f, g.box.Protocol, vid|g.priority())
}

// priority is PCP and DEI, mostly none.
func (g *generator) priority() uint16 {
	if g.one(2) {
		return 0
	}
	return uint16(g.IntN(16)) << 12
}

// frame adds a frame of any kind.
func (g *generator) frame() {
	// The first two are mostly where something can be accelerated.
	st := &g.stations[g.IntN(len(g.stations))]
	if g.one(3) {
		st = &g.stations[g.IntN(2)]
	}
	moved := g.one(12)
	if moved {
		g.move(st)
	}
	port := st.port
	to := pick(g, g.stations...)
	switch {
	case g.moved != nil && !moved && g.one(2):
		to = *g.moved // whose frames must not go to the old port
	case g.one(3):
		to = pick(g, g.stations[:2]...)
	}
	g.moved = nil
	if moved {
		g.moved = st
	}
	dst, length := to.mac, g.length()
	what := "unicast"
	var f []byte
	switch g.IntN(24) {
	case 0:
		what, f = "to nobody", g.plain(pick(g, g.strangers...), st.mac, length)
	case 1:
		what, f = "to the box", g.plain(g.localAddress(), st.mac, length)
	case 2, 3:
		group := pick(g, [6]byte(ether.Broadcast), [6]byte{0x01, 0, 0x5e, 0, 0, 0xfb}, [6]byte{0x33, 0x33, 0, 0, 0, 1})
		what, f = "group", g.plain(group, st.mac, length)
	case 4:
		group := [6]byte{0x01, 0x80, 0xc2, 0, 0, byte(g.IntN(18))}
		what, f = "control address", g.typed(group, st.mac, pick(g, controlTypes...), length)
	case 5:
		what, f = "control type", g.typed(dst, st.mac, pick(g, controlTypes...), length)
	case 6:
		src := pick(g, [6]byte{}, [6]byte(ether.Broadcast), [6]byte{0x01, 0, 0x5e, 1, 2, 3}, g.localAddress())
		what, f = "bad source", g.plain(dst, src, length)
	case 7:
		what, f = "runt", g.plain(dst, st.mac, 14+g.IntN(46))
	case 8:
		f = g.plain(dst, st.mac, length)
		what, f = "cut tag", append(f[:12:12], 0x81, 0x00, 0, 1, 2, 3, 4, 5, 6, 7)[:14+g.IntN(8)]
	case 9, 10, 11, 12:
		what, f = g.tagged(g.plain(dst, st.mac, length))
	case 13:
		// The same address twice at once, on another port.
		what, f = "spoofed", g.plain(dst, to.mac, length)
	default:
		f = g.plain(dst, st.mac, length)
	}
	if g.box.VLANAware && what != "cut tag" && !(len(f) > 14 && isTag(f[12:])) {
		f = g.inVLAN(port, st.vlan, f)
	}
	g.add(port, what, f)
}

var controlTypes = []uint16{ether.TypeEAPOL, ether.TypeLLDP, 0x8808, 0x8809, 0x88e3, 0x8902, 0x88b5}

// move lets a station speak from another port from now on.
func (g *generator) move(st *station) {
	st.port = g.anyPort()
	if g.box.VLANAware && g.one(2) {
		st.vlan = g.vlanAt(st.port)
	}
}

// length of a frame: often small, now and then about as long as some port
// allows.
func (g *generator) length() int {
	kind := g.IntN(5)
	if g.long && g.one(2) {
		kind = 4
	}
	switch kind {
	case 0, 1:
		return ether.MinFrame
	case 2, 3:
		return 60 + g.IntN(1455)
	}
	mtu := g.box.Ports[g.IntN(PortCount)].MTU
	if g.one(6) {
		mtu = 9000
	}
	return mtu + pick(g, 13, 14, 15, 18, 19, 22, 23)
}

// tagged puts tags on a frame that may mean nothing to the bridge.
func (g *generator) tagged(f []byte) (what string, out []byte) {
	vid := pick(g, uint16(1), 10, 20, 30, 4094, 4095)
	switch g.IntN(5) {
	case 0:
		return "priority tag", ether.Tag(f, ether.TypeVLAN, g.priority())
	case 1:
		return "802.1ad", ether.Tag(f, ether.TypeSVLAN, vid|g.priority())
	case 2:
		inner := ether.Tag(f, ether.TypeVLAN, pick(g, uint16(1), 10, 20)|g.priority())
		return "two tags", ether.Tag(inner, pick(g, uint16(ether.TypeVLAN), ether.TypeSVLAN), vid|g.priority())
	}
	return "802.1Q", ether.Tag(f, ether.TypeVLAN, vid|g.priority())
}
