// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// LayoutRun is how many seeds in a row share a layout: a reload that attaches
// and detaches costs more than a whole scenario.
const LayoutRun = 16

// GenerateOptions say what scenarios may contain.
type GenerateOptions struct {
	// VLANAware: the kernel's bridges can filter VLANs; half of the scenarios
	// of mode mac do.
	VLANAware bool
	// Mode restricts scenarios to "mac" or "port".
	Mode string
	// HiddenTags: some tags travel beside the data, as NICs have it.
	HiddenTags bool
	// Mixed gives each port an engine of its own.
	Mixed bool
}

// Generate makes the scenario of a seed.
func Generate(seed uint64, o GenerateOptions) *Scenario {
	layout := newLayout(rand.New(rand.NewPCG(seed/LayoutRun, 0x78d912)), o)
	g := &generator{
		Rand: rand.New(rand.NewPCG(seed, 0x5eed)),
		s:    &Scenario{Seed: seed, Racing: seed%4 == 3, Layout: layout},
		box:  NewBox(), hides: o.HiddenTags,
	}
	g.box.VLANAware = o.VLANAware && !layout.PortMode && g.one(2)
	g.configure()
	g.s.Box = g.box.clone()
	g.populate()
	g.schedule()
	return g.s
}

func newLayout(r *rand.Rand, o GenerateOptions) Layout {
	l := Layout{PortMode: r.IntN(4) == 0}
	if o.Mode != "" {
		l.PortMode = o.Mode == "port"
	}
	ports := r.Perm(MaxManaged)[:2+r.IntN(MaxManaged-1)]
	for i, port := range ports {
		m := Managed{Port: port, PassLocal: true, PassGroup: true}
		if o.Mixed {
			m.Engine = []string{"generic", "tc", "auto"}[r.IntN(3)]
		}
		if l.PortMode {
			// Two-way wires, mostly; others lead anywhere, also to ports that
			// are not managed.
			partner := i ^ 1
			if partner < len(ports) && r.IntN(6) > 0 {
				m.Target = ports[partner]
			} else {
				m.Target = (port + 1 + r.IntN(PortCount-1)) % PortCount
			}
			switch r.IntN(4) {
			case 0:
				m.PassLocal = false
			case 1:
				m.PassGroup = false
			}
		}
		l.Managed = append(l.Managed, m)
	}
	return l
}

// generator makes one scenario. Its box and stations are as they are at the
// step that is made next.
type generator struct {
	*rand.Rand
	s         *Scenario
	box       Box
	stations  []station
	strangers [][6]byte // addresses that nobody has
	moved     *station  // that has just spoken from another port
	nextID    int
	hides     bool
	long      bool // frames are mostly about as long as ports allow
}

type station struct {
	mac  [6]byte
	port int // where it spoke last
	vlan uint16
}

// one is true once in n times.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *generator, from ...T) T { return from[g.IntN(len(from))] }

func (g *generator) configure() {
	// Most of what can be set keeps frames from being accelerated: some boxes
	// are plain, and in the others most ports.
	plain := g.one(3)
	// In some, frames are about as long as ports allow, and MTUs differ.
	g.long = g.one(5)
	b := &g.box
	if g.one(30) {
		b.Ageing = 0
	}
	if b.VLANAware {
		b.Protocol = pick(g, uint16(ether.TypeVLAN), ether.TypeVLAN, ether.TypeSVLAN)
		b.Self = g.memberships()
	}
	for i := range b.Ports {
		p := &b.Ports[i]
		if b.VLANAware {
			p.VLANs = g.memberships()
		}
		if g.long {
			p.MTU = pick(g, 1496, 1500, 1504, 2000)
		}
		if plain {
			continue
		}
		if g.one(8) {
			p.State = pick(g, lab.PortDisabled, lab.PortListening, lab.PortLearning)
		}
		p.Isolated = g.one(4)
		p.Hairpin = g.one(8)
		p.NoLearning = g.one(10)
		p.Locked = g.one(14)
		p.NoFlood = g.one(14)
		p.NoTxVLAN = g.one(14)
		if g.one(4) && !g.long {
			p.MTU = pick(g, 1280, 1400, 1496, 2000, 9000)
		}
	}
}

var vids = [...]uint16{1, 10, 20}

// memberships of a port: mostly an access port or a trunk, sometimes anything.
func (g *generator) memberships() []VLAN {
	var all []VLAN
	pvid := vids[g.IntN(len(vids))]
	for _, vid := range vids {
		v := VLAN{lab.PortVLAN{VID: vid}, lab.PortForwarding}
		switch {
		case vid == pvid:
			v.PVID, v.Untagged = !g.one(8), !g.one(8)
		case g.one(3):
			continue
		default:
			v.Untagged = g.one(8)
		}
		if g.one(12) {
			v.State = pick(g, lab.PortListening, lab.PortLearning)
		}
		all = append(all, v)
	}
	return all
}

// populate invents the stations and static entries.
func (g *generator) populate() {
	mac := func(kind, i int) [6]byte {
		return [6]byte{0x02, byte(kind), byte(g.s.Seed >> 16), byte(g.s.Seed >> 8), byte(g.s.Seed), byte(i)}
	}
	for i := range 4 + g.IntN(5) {
		g.stations = append(g.stations, station{mac: mac(0x10, i), port: g.anyPort()})
	}
	// Two are always behind managed ports, where something can be accelerated.
	m := g.s.Layout.Managed
	g.stations[0].port, g.stations[1].port = m[0].Port, m[1].Port
	for i := range g.stations {
		st := &g.stations[i]
		st.vlan = g.vlanAt(st.port)
	}
	for i := range 2 {
		g.strangers = append(g.strangers, mac(0x20, i))
	}
	for range g.IntN(4) {
		if g.one(2) {
			continue
		}
		e := Entry{MAC: g.someone(), Port: g.IntN(PortCount), Static: true}
		switch g.IntN(4) {
		case 0:
			e.Sticky = true
		case 1:
			e.Local = true
		}
		if g.box.VLANAware {
			e.VLAN = g.vlanAt(e.Port)
		}
		if g.box.VLANAware && e.VLAN == 0 || g.hasEntry(e) {
			continue
		}
		g.s.FDB = append(g.s.FDB, e)
	}
}

func (g *generator) hasEntry(e Entry) bool {
	for _, o := range g.s.FDB {
		if o.MAC == e.MAC {
			return true
		}
	}
	return false
}

// anyPort is a port of the bridge, more often than not a managed one.
func (g *generator) anyPort() int {
	if g.one(2) {
		return pick(g, g.s.Layout.Managed...).Port
	}
	return g.IntN(PortCount)
}

// someone is any address that frames may have.
func (g *generator) someone() [6]byte {
	if g.one(5) {
		return pick(g, g.strangers...)
	}
	return pick(g, g.stations...).mac
}

// vlanAt is a VLAN in which a port takes frames; 0 if there is none, or if the
// bridge knows no VLANs.
func (g *generator) vlanAt(port int) uint16 {
	vlans := g.box.Ports[port].VLANs
	if !g.box.VLANAware || len(vlans) == 0 {
		return 0
	}
	return vlans[g.IntN(len(vlans))].VID
}

func (g *generator) schedule() {
	for i := range g.stations {
		g.hello(i)
	}
	g.settle()
	for range 2 + g.IntN(4) {
		for range 4 + g.IntN(8) {
			g.frame()
		}
		if g.s.Racing {
			continue
		}
		if !g.one(3) {
			g.change()
		}
		g.settle()
	}
}

func (g *generator) settle() { g.s.Steps = append(g.s.Steps, Step{Settle: true}) }

func (g *generator) change() {
	c := g.newChange()
	if c.Mutate != nil {
		c.Mutate(&g.box)
	}
	g.s.Steps = append(g.s.Steps, Step{Change: c})
}

func (g *generator) newChange() *Change {
	port := g.IntN(PortCount)
	name := portName(port)
	set := func(what string, f func(*Port)) *Change {
		return &Change{What: name + " " + what, Mutate: func(b *Box) { f(&b.Ports[port]) }}
	}
	old := g.box.Ports[port]
	n := 10
	if g.box.VLANAware {
		n = 13
	}
	switch g.IntN(n) {
	case 0, 1:
		state := lab.PortForwarding
		if old.State == lab.PortForwarding {
			state = pick(g, lab.PortDisabled, lab.PortListening, lab.PortLearning)
		}
		return set(stateNames[state], func(p *Port) { p.State = state })
	case 2:
		return set(fmt.Sprintf("isolated %v", !old.Isolated), func(p *Port) { p.Isolated = !old.Isolated })
	case 3:
		return set(fmt.Sprintf("hairpin %v", !old.Hairpin), func(p *Port) { p.Hairpin = !old.Hairpin })
	case 4:
		return set(fmt.Sprintf("learning %v", old.NoLearning), func(p *Port) { p.NoLearning = !old.NoLearning })
	case 5:
		return set(fmt.Sprintf("locked %v", !old.Locked), func(p *Port) { p.Locked = !old.Locked })
	case 6:
		mtu := pick(g, 1280, 1400, 1500, 2000)
		return set(fmt.Sprintf("MTU %d", mtu), func(p *Port) { p.MTU = mtu })
	case 7:
		if g.one(2) {
			return &Change{What: "flush all", Event: func(s *side) error { return s.flush() }}
		}
		return &Change{What: "flush " + name, Event: func(s *side) error { return s.flushPort(port) }}
	case 8:
		st := pick(g, g.stations...)
		e := Entry{MAC: st.mac, Port: st.port, VLAN: st.vlan}
		return &Change{What: fmt.Sprintf("delete entry %s", e), Event: func(s *side) error { return s.delEntry(e) }}
	case 9:
		// Without an ageing time the kernel removes others when it likes.
		static := g.one(2) || g.box.Ageing == 0
		e := Entry{MAC: g.someone(), Port: port, VLAN: g.vlanAt(port), Static: static}
		e.Sticky = e.Static && g.one(3)
		return &Change{What: fmt.Sprintf("add entry %s", e), Event: func(s *side) error { return s.putEntry(e) }}
	case 10, 11:
		vlans := g.memberships()
		return set("VLANs"+vlanText(vlans), func(p *Port) { p.VLANs = vlans })
	default:
		vlans := g.memberships()
		return &Change{What: "the bridge's own VLANs" + vlanText(vlans), Mutate: func(b *Box) { b.Self = vlans }}
	}
}

// hello lets a station be learned.
func (g *generator) hello(i int) {
	st := g.stations[i]
	dst := [6]byte(ether.Broadcast)
	if g.one(3) {
		dst = pick(g, g.strangers...)
	}
	g.add(st.port, "hello", g.inVLAN(st.port, st.vlan, g.plain(dst, st.mac, 60)))
}

// localAddress is an address of the box: the bridge's or a port's.
func (g *generator) localAddress() [6]byte {
	if g.one(2) {
		return [6]byte(lab.RouterMAC)
	}
	return [6]byte(portMAC(g.IntN(PortCount)))
}

func portMAC(port int) net.HardwareAddr {
	return net.HardwareAddr{0x02, 0, 0, 0, 0, byte(port + 1)}
}
