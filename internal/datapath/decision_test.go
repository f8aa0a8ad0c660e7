// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// The world of these tests: slot 0 is the port that frames arrive at; a is
// behind it, b behind slot 1, c behind slot 2, box is the router itself. Every
// slot stands for the loopback device, since BPF_PROG_TEST_RUN redirects
// nothing; the answers map tells the slots apart.
const (
	in, out1, out2, absent = 0, 1, 2, 5
	loopback               = 1
	mtu1500                = 1500 + 14 + 4
)

var (
	a       = mac("02:00:00:00:00:0a")
	b       = mac("02:00:00:00:00:0b")
	c       = mac("02:00:00:00:00:0c")
	box     = mac("02:00:00:00:00:01")
	lost    = mac("02:00:00:00:00:0d") // behind a slot whose device is gone
	sticky  = mac("02:00:00:00:00:0e") // static, behind slot 1
	unknown = mac("02:00:00:00:00:99")
	zero    = mac("00:00:00:00:00:00")
	bcast   = mac("ff:ff:ff:ff:ff:ff")
	mcast   = mac("01:00:5e:00:00:fb")
	mcast6  = mac("33:33:00:00:00:01")
)

func mac(s string) [6]byte {
	hw, err := net.ParseMAC(s)
	if err != nil {
		panic(err)
	}
	return [6]byte(hw)
}

const usual = PortEnabled | PortForwarding | PortLearns

func needBPF(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loading BPF programs needs root")
	}
}

// world returns a data path with the ports and stations above.
func world(t testing.TB) *Datapath {
	t.Helper()
	needBPF(t)
	d, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	populate(t, d)
	return d
}

// populate makes the world what it was.
func populate(t testing.TB, d *Datapath) {
	t.Helper()
	d.Stations(func(k StationKey, _ Station) bool { d.DeleteStation(k); return true })
	must(t, d.ResetCounters(in))
	for _, slot := range []uint32{in, out1, out2} {
		must(t, d.SetPort(slot, Port{Ifindex: loopback, Flags: usual, MaxLen: mtu1500}))
	}
	for mac, s := range map[[6]byte]Station{
		a: {Slot: in}, b: {Slot: out1}, c: {Slot: out2}, lost: {Slot: absent},
		box: {Slot: in, Local: true}, sticky: {Slot: out1, Stay: true},
	} {
		must(t, d.PutStation(StationKey{MAC: mac}, s))
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// frame is dst, src, type and as much payload as makes length bytes.
func frame(dst, src [6]byte, proto uint16, length int) []byte {
	f := make([]byte, max(length, 14))
	copy(f, dst[:])
	copy(f[6:], src[:])
	binary.BigEndian.PutUint16(f[12:], proto)
	for i := 14; i < len(f); i++ {
		f[i] = byte(i)
	}
	return f[:length]
}

// tag inserts a VLAN tag after the addresses.
func tag(tpid, tci uint16, f []byte) []byte {
	t := binary.BigEndian.AppendUint16(bytes.Clone(f[:12]), tpid)
	t = binary.BigEndian.AppendUint16(t, tci)
	return append(t, f[12:]...)
}

func setPort(slot uint32, flags PortFlags, maxLen uint32) func(testing.TB, *Datapath) {
	return func(t testing.TB, d *Datapath) {
		must(t, d.SetPort(slot, Port{Ifindex: loopback, Flags: flags, MaxLen: maxLen}))
	}
}

func all(fs ...func(testing.TB, *Datapath)) func(testing.TB, *Datapath) {
	return func(t testing.TB, d *Datapath) {
		for _, f := range fs {
			f(t, d)
		}
	}
}

const (
	ip4  = 0x0800
	ip6  = 0x86dd
	arp  = 0x0806
	qTag = 0x8100
	adTg = 0x88a8
)

var (
	macMode  = Program{Slot: in, Mode: ModeMAC}
	wire     = Program{Slot: in, Mode: ModePort, Target: out1}
	wireKeep = Program{Slot: in, Mode: ModePort, Target: out1, PassLocal: true, PassGroup: true}
)

type decisionCase struct {
	name    string
	program Program
	change  func(testing.TB, *Datapath) // to the world
	frame   []byte
	want    Verdict
	slot    uint32                      // where a redirected frame goes
	after   func(testing.TB, *Datapath) // what must hold then
	// A case that can happen at one of the hooks only.
	xdpOnly, tcOnly bool
	context         *skbContext
}

// skbContext is the part of struct __sk_buff that BPF_PROG_TEST_RUN accepts
// and the program reads.
type skbContext struct {
	_       [164]byte
	GSOSegs uint32
	_       [8]byte
	GSOSize uint32
	_       [12]byte
}

func known(mac [6]byte, want bool) func(testing.TB, *Datapath) {
	return func(t testing.TB, d *Datapath) {
		t.Helper()
		_, ok := d.Station(StationKey{MAC: mac})
		if ok != want {
			t.Errorf("station %s known: %v, want %v", net.HardwareAddr(mac[:]), ok, want)
		}
	}
}

func seen(mac [6]byte, want uint32) func(testing.TB, *Datapath) {
	return func(t testing.TB, d *Datapath) {
		t.Helper()
		s, _ := d.Station(StationKey{MAC: mac})
		if s.Seen != want {
			t.Errorf("station %s seen in epoch %d, want %d", net.HardwareAddr(mac[:]), s.Seen, want)
		}
	}
}

func decisionCases() []decisionCase {
	cases := []decisionCase{
		// Mode mac, the way through.
		{name: "IPv4 to a known station", program: macMode, frame: frame(b, a, ip4, 64), want: Redirected, slot: out1, after: seen(a, 1)},
		{name: "to a station on the third port", program: macMode, frame: frame(c, a, ip4, 64), want: Redirected, slot: out2},
		{name: "IPv6", program: macMode, frame: frame(b, a, ip6, 90), want: Redirected, slot: out1},
		{name: "unicast ARP", program: macMode, frame: frame(b, a, arp, 60), want: Redirected, slot: out1},
		{name: "802.3 with LLC", program: macMode, frame: frame(b, a, 0x0026, 60), want: Redirected, slot: out1},
		{name: "unknown type", program: macMode, frame: frame(b, a, 0x9999, 60), want: Redirected, slot: out1},
		{name: "type just above the control types", program: macMode, frame: frame(b, a, 0x8903, 60), want: Redirected, slot: out1},
		{name: "PPPoE session", program: macMode, frame: frame(b, a, 0x8864, 60), want: Redirected, slot: out1},
		{name: "header alone", program: macMode, frame: frame(b, a, 0x9999, 14), want: Redirected, slot: out1},
		{name: "tagged", program: macMode, frame: tag(qTag, 10, frame(b, a, ip4, 64)), want: Redirected, slot: out1},
		{name: "tagged with priority", program: macMode, frame: tag(qTag, 0xe00a, frame(b, a, ip4, 64)), want: Redirected, slot: out1},
		{name: "priority tag", program: macMode, frame: tag(qTag, 0xa000, frame(b, a, ip4, 64)), want: Redirected, slot: out1},
		{name: "802.1ad", program: macMode, frame: tag(adTg, 10, frame(b, a, ip4, 64)), want: Redirected, slot: out1},
		{name: "double-tagged", program: macMode, frame: tag(adTg, 20, tag(qTag, 10, frame(b, a, ip4, 64))), want: Redirected, slot: out1},

		// Mode mac, destinations.
		{name: "to the box", program: macMode, frame: frame(box, a, ip4, 64), want: PassLocal},
		{name: "to the box, from a stranger", program: macMode, frame: frame(box, unknown, ip4, 64), want: PassLocal},
		{name: "to a stranger", program: macMode, frame: frame(unknown, a, ip4, 64), want: PassUnknownDestination},
		{name: "hairpin", program: macMode, frame: frame(a, a, ip4, 64), want: PassSamePort},
		{name: "broadcast", program: macMode, frame: frame(bcast, a, arp, 60), want: PassGroup, after: seen(a, 1)},
		{name: "broadcast from a stranger", program: macMode, frame: frame(bcast, unknown, arp, 60), want: PassGroup},
		{name: "IPv4 multicast", program: macMode, frame: frame(mcast, a, ip4, 64), want: PassGroup},
		{name: "IPv6 multicast", program: macMode, frame: frame(mcast6, a, ip6, 86), want: PassGroup},
		{name: "tagged broadcast", program: macMode, frame: tag(qTag, 10, frame(bcast, a, arp, 60)), want: PassGroup},
		{name: "group just above the reserved ones", program: macMode, frame: frame(mac("01:80:c2:00:00:10"), a, ip4, 64), want: PassGroup},
		{name: "vendor group that looks reserved", program: macMode, frame: frame(mac("01:80:c3:00:00:00"), a, ip4, 64), want: PassGroup},
		{name: "device gone", program: macMode, frame: frame(lost, a, ip4, 64), want: RedirectFailed, slot: absent},

		// Mode mac, sources.
		{name: "from a stranger", program: macMode, frame: frame(b, unknown, ip4, 64), want: PassUnknownSource},
		{name: "from a group address", program: macMode, frame: frame(b, mcast, ip4, 64), want: PassMalformed},
		{name: "from nobody", program: macMode, frame: frame(b, zero, ip4, 64), want: PassMalformed},
		{name: "a station that moved here", program: macMode, frame: frame(b, c, ip4, 64), want: PassMovedSource, after: known(c, false)},
		{name: "moved, and says so with a broadcast", program: macMode, frame: frame(bcast, c, arp, 60), want: PassMovedSource, after: known(c, false)},
		{name: "moved, and talks to the box", program: macMode, frame: frame(box, c, ip4, 64), want: PassMovedSource, after: known(c, false)},
		{name: "moved, destination unknown", program: macMode, frame: frame(unknown, c, ip4, 64), want: PassMovedSource, after: known(c, false)},
		{name: "static stations do not move", program: macMode, frame: frame(b, sticky, ip4, 64), want: PassMovedSource, after: known(sticky, true)},
		{name: "the box's address from outside", program: macMode, frame: frame(b, box, ip4, 64), want: PassMovedSource, after: known(box, true)},
		{name: "moved to a port that does not learn", program: macMode, change: setPort(in, usual&^PortLearns, mtu1500),
			frame: frame(b, c, ip4, 64), want: PassMovedSource, after: known(c, true)},
		{name: "moved to a port that only learns", program: macMode, change: setPort(in, usual&^PortForwarding, mtu1500),
			frame: frame(b, c, ip4, 64), want: PassMovedSource, after: known(c, false)},

		// The port's own state.
		{name: "port switched off", program: macMode, change: setPort(in, usual&^PortEnabled, mtu1500), frame: frame(b, a, ip4, 64), want: PassDisabled},
		{name: "slot never set", program: Program{Slot: 9}, change: func(t testing.TB, d *Datapath) { must(t, d.ResetCounters(9)) }, frame: frame(b, unknown, ip4, 64), want: PassDisabled},
		{name: "ingress blocked", program: macMode, change: setPort(in, usual&^PortForwarding, mtu1500), frame: frame(b, a, ip4, 64), want: PassBlocked},
		{name: "broadcast into a blocked port", program: macMode, change: setPort(in, usual&^PortForwarding, mtu1500), frame: frame(bcast, a, arp, 60), want: PassBlocked},
		{name: "egress blocked", program: macMode, change: setPort(out1, usual&^PortForwarding, mtu1500), frame: frame(b, a, ip4, 64), want: PassBlocked},
		{name: "filters", program: macMode, change: setPort(in, usual|PortFiltered, mtu1500), frame: frame(b, a, ip4, 64), want: PassFiltered},
		{name: "XDP past a shaper", program: macMode, change: setPort(out1, usual|PortKeepsEgress, mtu1500), frame: frame(b, a, ip4, 64), want: PassFiltered, xdpOnly: true},
		{name: "XDP past a shaper, wire", program: wire, change: setPort(out1, usual|PortKeepsEgress, mtu1500), frame: frame(b, a, ip4, 64), want: PassFiltered, xdpOnly: true},
		{name: "tc into a shaper", program: macMode, change: setPort(out1, usual|PortKeepsEgress, mtu1500), frame: frame(b, a, ip4, 64), want: Redirected, slot: out1, tcOnly: true},
		{name: "past an egress chain", program: macMode, change: setPort(out1, usual|PortFiltersEgress, mtu1500), frame: frame(b, a, ip4, 64), want: PassFiltered},
		{name: "past an egress chain, wire", program: wire, change: setPort(out1, usual|PortFiltersEgress, mtu1500), frame: frame(b, a, ip4, 64), want: PassFiltered},
		{name: "from a port with a shaper", program: macMode, change: setPort(in, usual|PortKeepsEgress, mtu1500), frame: frame(b, a, ip4, 64), want: Redirected, slot: out1},
		{name: "VLAN-aware bridge", program: macMode, change: setPort(in, usual|PortVLAN, mtu1500), frame: frame(b, a, ip4, 64), want: PassVLAN},
		{name: "VLAN device on the port, tagged", program: macMode, change: setPort(in, usual|PortPassTagged, mtu1500), frame: tag(qTag, 10, frame(b, a, ip4, 64)), want: PassVLAN},
		{name: "VLAN device on the port, 802.1ad", program: macMode, change: setPort(in, usual|PortPassTagged, mtu1500), frame: tag(adTg, 10, frame(b, a, ip4, 64)), want: PassVLAN},
		{name: "VLAN device on the port, untagged", program: macMode, change: setPort(in, usual|PortPassTagged, mtu1500), frame: frame(b, a, ip4, 64), want: Redirected, slot: out1},
		{name: "isolated to isolated", program: macMode, change: all(setPort(in, usual|PortIsolated, mtu1500), setPort(out1, usual|PortIsolated, mtu1500)),
			frame: frame(b, a, ip4, 64), want: PassIsolated},
		{name: "isolated to open", program: macMode, change: setPort(in, usual|PortIsolated, mtu1500), frame: frame(b, a, ip4, 64), want: Redirected, slot: out1},
		{name: "open to isolated", program: macMode, change: setPort(out1, usual|PortIsolated, mtu1500), frame: frame(b, a, ip4, 64), want: Redirected, slot: out1},

		// A tag that the NIC took out is visible to tc alone.
		{name: "tag may be hidden and lost", program: macMode, change: all(setPort(in, usual|PortHidesTags, mtu1500), setPort(out1, usual|PortLosesTags, mtu1500)),
			frame: frame(b, a, ip4, 64), want: PassVLAN, xdpOnly: true},
		{name: "tag may be outside, tc keeps it", program: macMode, change: all(setPort(in, usual|PortHidesTags, mtu1500), setPort(out1, usual|PortLosesTags, mtu1500)),
			frame: frame(b, a, ip4, 64), want: Redirected, slot: out1, tcOnly: true},
		{name: "tag may be hidden and is kept", program: macMode, change: setPort(in, usual|PortHidesTags, mtu1500), frame: frame(b, a, ip4, 64), want: Redirected, slot: out1},
		{name: "tag cannot be hidden", program: macMode, change: setPort(out1, usual|PortLosesTags, mtu1500), frame: frame(b, a, ip4, 64), want: Redirected, slot: out1},
		{name: "tag may be hidden, VLAN device on the port", program: macMode, change: setPort(in, usual|PortHidesTags|PortPassTagged, mtu1500),
			frame: frame(b, a, ip4, 64), want: PassVLAN, xdpOnly: true},
		{name: "no tag, VLAN device on the port", program: macMode, change: setPort(in, usual|PortHidesTags|PortPassTagged, mtu1500),
			frame: frame(b, a, ip4, 64), want: Redirected, slot: out1, tcOnly: true},
		{name: "wire: tag may be hidden and lost", program: wire, change: all(setPort(in, usual|PortHidesTags, mtu1500), setPort(out1, usual|PortLosesTags, mtu1500)),
			frame: frame(b, a, ip4, 64), want: PassVLAN, xdpOnly: true},

		// Length: the bridge forwards up to MTU + 14 + 4.
		{name: "full frame", program: macMode, frame: frame(b, a, ip4, 1514), want: Redirected, slot: out1},
		{name: "as long as the bridge allows", program: macMode, frame: frame(b, a, ip4, mtu1500), want: Redirected, slot: out1},
		{name: "one byte more", program: macMode, frame: frame(b, a, ip4, mtu1500+1), want: PassMTU},
		{name: "small MTU, fits", program: macMode, change: setPort(out1, usual, 594), frame: frame(b, a, ip4, 594), want: Redirected, slot: out1},
		{name: "small MTU, one byte more", program: macMode, change: setPort(out1, usual, 594), frame: frame(b, a, ip4, 595), want: PassMTU},
		{name: "GSO frame over the MTU", program: macMode, frame: frame(b, a, ip4, 3000), want: Redirected, slot: out1, tcOnly: true, context: &skbContext{GSOSegs: 3, GSOSize: 1000}},

		// Mode port.
		{name: "wire: known or not", program: wire, frame: frame(unknown, zeroth(unknown), ip4, 64), want: Redirected, slot: out1},
		{name: "wire: broadcast", program: wire, frame: frame(bcast, a, arp, 60), want: Redirected, slot: out1},
		{name: "wire: multicast", program: wire, frame: frame(mcast6, a, ip6, 86), want: Redirected, slot: out1},
		{name: "wire: to the box", program: wire, frame: frame(box, a, ip4, 64), want: Redirected, slot: out1},
		{name: "wire: tagged", program: wire, frame: tag(qTag, 10, frame(b, a, ip4, 64)), want: Redirected, slot: out1},
		{name: "wire: VLAN device on the port", program: wire, change: setPort(in, usual|PortPassTagged, mtu1500), frame: tag(qTag, 10, frame(b, a, ip4, 64)), want: PassVLAN},
		{name: "wire: BPDU", program: wire, frame: frame(mac("01:80:c2:00:00:00"), a, 0x0026, 60), want: PassControl},
		{name: "wire: from a group address", program: wire, frame: frame(b, mcast, ip4, 64), want: PassMalformed},
		{name: "wire: too long", program: wire, frame: frame(b, a, ip4, mtu1500+1), want: PassMTU},
		{name: "wire: source may be anywhere", program: wire, frame: frame(b, c, ip4, 64), want: Redirected, slot: out1, after: known(c, true)},
		{name: "wire: target blocked", program: wire, change: setPort(out1, usual&^PortForwarding, mtu1500), frame: frame(b, a, ip4, 64), want: PassBlocked},
		{name: "wire: ingress blocked", program: wire, change: setPort(in, usual&^PortForwarding, mtu1500), frame: frame(b, a, ip4, 64), want: PassBlocked},
		{name: "wire: switched off", program: wire, change: setPort(in, 0, mtu1500), frame: frame(b, a, ip4, 64), want: PassDisabled},
		{name: "wire: to itself", program: Program{Slot: in, Mode: ModePort, Target: in}, frame: frame(b, a, ip4, 64), want: PassSamePort},
		{name: "wire: target gone", program: Program{Slot: in, Mode: ModePort, Target: absent}, frame: frame(b, a, ip4, 64), want: RedirectFailed, slot: absent},
		{name: "wire that keeps: to the box", program: wireKeep, frame: frame(box, a, ip4, 64), want: PassLocal},
		{name: "wire that keeps: broadcast", program: wireKeep, frame: frame(bcast, a, arp, 60), want: PassGroup},
		{name: "wire that keeps: to a station", program: wireKeep, frame: frame(c, a, ip4, 64), want: Redirected, slot: out1},

		// A lease that was never given has run out.
		{name: "lease ran out", program: Program{Slot: in, lease: true}, frame: frame(b, a, ip4, 64), want: PassDisabled},
	}
	for _, proto := range []uint16{0x8808, 0x8809, 0x888e, 0x88cc, 0x88e3, 0x8902} {
		cases = append(cases, decisionCase{name: fmt.Sprintf("control type %#x", proto), program: macMode, frame: frame(b, a, proto, 60), want: PassControl})
	}
	for last := range byte(16) {
		dst := mac("01:80:c2:00:00:00")
		dst[5] = last
		cases = append(cases, decisionCase{name: fmt.Sprintf("reserved group %02x", last), program: macMode, frame: frame(dst, a, 0x0026, 60), want: PassControl})
	}
	// For tc the kernel itself refuses to run over IP without a whole IP header.
	// Tags are taken out before tc, and behind XDP: there a tag that is cut off
	// ends with the bridge alone, too.
	const unassigned, shortestTagged = 0x9999, 20
	for length := 14; length <= 60; length++ {
		cases = append(cases,
			decisionCase{name: fmt.Sprintf("cut to %d bytes", length), program: macMode, frame: frame(b, a, unassigned, length), want: Redirected, slot: out1},
			decisionCase{name: fmt.Sprintf("tagged, cut to %d bytes", length), program: macMode, frame: tag(qTag, 10, frame(b, a, ip4, 64))[:length], want: Redirected, slot: out1,
				tcOnly: length < shortestTagged})
		if length < shortestTagged {
			for _, p := range []Program{macMode, wire} {
				cases = append(cases, decisionCase{name: fmt.Sprintf("tag cut off at %d bytes", length), program: p, frame: tag(adTg, 10, frame(b, a, ip4, 64))[:length], want: PassMalformed, xdpOnly: true})
			}
		}
	}
	watch := macMode
	watch.Watch = true
	for _, c := range []decisionCase{
		{name: "watched: a station that moved here", frame: frame(b, c, ip4, 64), want: PassMovedSource, after: known(c, false)},
		{name: "watched: a broadcast of one", frame: frame(bcast, c, arp, 64), want: PassMovedSource, after: known(c, false)},
		{name: "watched: a static station", frame: frame(b, sticky, ip4, 64), want: PassMovedSource, after: known(sticky, true)},
		{name: "watched: the port does not learn", change: setPort(in, PortForwarding, mtu1500), frame: frame(b, c, ip4, 64), want: PassMovedSource, after: known(c, true)},
		{name: "watched: somebody new", frame: frame(b, unknown, ip4, 64), want: PassDisabled},
		{name: "watched: nothing is redirected", frame: frame(b, a, ip4, 64), want: PassDisabled},
	} {
		c.program = watch
		cases = append(cases, c)
	}
	return cases
}

// zeroth is another unknown unicast address.
func zeroth(m [6]byte) [6]byte { m[5] = 0x98; return m }

func TestDecision(t *testing.T) { runDecisions(t, decisionCases()) }

// runDecisions runs each case with both programs.
func runDecisions(t *testing.T, cases []decisionCase) {
	t.Helper()
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		t.Run(string(engine), func(t *testing.T) {
			d := world(t)
			programs := map[Program]*ebpf.Program{}
			for _, c := range cases {
				if engine == EngineGeneric && c.tcOnly || engine == EngineTC && c.xdpOnly {
					continue
				}
				prog := programs[c.program]
				if prog == nil {
					prog = traced(t, d, engine, c.program)
					programs[c.program] = prog
				}
				t.Run(c.name, func(t *testing.T) {
					populate(t, d)
					if c.change != nil {
						c.change(t, d)
					}
					c.run(t, d, engine, prog)
				})
			}
		})
	}
}

func traced(t *testing.T, d *Datapath, engine Engine, p Program) *ebpf.Program {
	t.Helper()
	p.trace = true
	prog, err := d.load(engine, p)
	must(t, err)
	t.Cleanup(func() { prog.Close() })
	return prog
}

func (c decisionCase) run(t *testing.T, d *Datapath, engine Engine, prog *ebpf.Program) {
	var context any
	if c.context != nil {
		context = c.context
	}
	got, action, err := d.runLoaded(prog, c.frame, context)
	must(t, err)
	if got.Verdict != c.want || got.Slot != c.slot && (c.want == Redirected || c.want == RedirectFailed) {
		t.Errorf("got %s to slot %d, want %s to slot %d", got.Verdict, got.Slot, c.want, c.slot)
	}
	wantAction := uint32(2) // XDP_PASS
	switch {
	case engine == EngineTC && c.want == Redirected:
		wantAction = 7 // TC_ACT_REDIRECT
	case engine == EngineTC:
		wantAction = ^uint32(0) // TC_ACT_UNSPEC
	case c.want == Redirected:
		wantAction = 4 // XDP_REDIRECT
	}
	if action != wantAction {
		t.Errorf("action %d, want %d", int32(action), int32(wantAction))
	}
	counted, err := d.Counters(c.program.Slot)
	must(t, err)
	packets := uint64(1)
	if c.context != nil {
		packets = uint64(c.context.GSOSegs)
	}
	var want Counters
	if !c.program.Watch {
		want[c.want] = Counter{packets, uint64(len(c.frame))}
	}
	if counted != want {
		t.Errorf("counted %v, want %v", counted, want)
	}
	if c.after != nil {
		c.after(t, d)
	}
}

// Newer kernels do not give a program less than an Ethernet header; 5.10 gives
// XDP whatever there is. Either way such a frame is nobody's to redirect.
func TestFramesWithoutHeader(t *testing.T) {
	d := world(t)
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		accepted := 0
		for length := range 14 {
			got, err := d.run(engine, macMode, frame(b, a, ip4, 14)[:length], nil)
			if err != nil {
				if !errors.Is(err, unix.EINVAL) {
					t.Errorf("%s: %d bytes: %v", engine, length, err)
				}
				continue
			}
			accepted++
			if got.Verdict != PassMalformed {
				t.Errorf("%s: a frame of %d bytes: %s, want %s", engine, length, got.Verdict, PassMalformed)
			}
		}
		t.Logf("%s: this kernel runs programs over %d of 14 lengths below a header", engine, accepted)
	}
}

func TestExplainChangesNothing(t *testing.T) {
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		d := world(t)
		got, err := d.Explain(engine, macMode, frame(b, c, ip4, 64))
		must(t, err)
		if got.Verdict != PassMovedSource {
			t.Errorf("%s: got %s", engine, got.Verdict)
		}
		known(c, true)(t, d)
		if got, err = d.Explain(engine, macMode, frame(b, a, ip4, 64)); err != nil || got != (Decision{Verdict: Redirected, Slot: out1}) {
			t.Errorf("%s: got %v, %v", engine, got, err)
		}
		seen(a, 0)(t, d)
		counted, err := d.Counters(in)
		must(t, err)
		if counted != (Counters{}) {
			t.Errorf("%s: counted %v", engine, counted)
		}
	}
}

func TestLeaseIsRenewed(t *testing.T) {
	d := world(t)
	must(t, d.startLease())
	p := macMode
	p.lease = true
	got, err := d.run(EngineTC, p, frame(b, a, ip4, 64), nil)
	must(t, err)
	if got.Verdict != Redirected {
		t.Fatalf("with a fresh lease: %s", got.Verdict)
	}
	// As if the daemon had been away for longer than the lease.
	d.live.data.State.LeaseRenewed -= d.live.data.State.LeaseLength + 1
	if got, err = d.run(EngineTC, p, frame(b, a, ip4, 64), nil); err != nil || got.Verdict != PassDisabled {
		t.Fatalf("with an old lease: %s, %v", got.Verdict, err)
	}
	must(t, d.renewLease())
	if got, err = d.run(EngineTC, p, frame(b, a, ip4, 64), nil); err != nil || got.Verdict != Redirected {
		t.Fatalf("after a renewal: %s, %v", got.Verdict, err)
	}
}

func TestStationMapFull(t *testing.T) {
	needBPF(t)
	d, err := Open(Options{MaxStations: 4})
	must(t, err)
	t.Cleanup(func() { d.Close() })
	for i := range byte(4) {
		must(t, d.PutStation(StationKey{MAC: [6]byte{2, 0, 0, 0, 0, i}}, Station{Slot: 1}))
	}
	if err := d.PutStation(StationKey{MAC: [6]byte{2, 0, 0, 0, 1, 0}}, Station{}); !errors.Is(err, ErrStationsFull) {
		t.Errorf("a fifth station: %v, want ErrStationsFull", err)
	}
	n := 0
	d.Stations(func(_ StationKey, s Station) bool { n++; return s.Slot == 1 })
	if n != 4 {
		t.Errorf("read %d stations, want 4", n)
	}
}

func TestEpochs(t *testing.T) {
	d := world(t)
	run := func() {
		if _, err := d.run(EngineTC, macMode, frame(b, a, ip4, 64), nil); err != nil {
			t.Fatal(err)
		}
	}
	run()
	ended := d.NextEpoch()
	seen(a, ended)(t, d)
	run()
	seen(a, ended+1)(t, d)
}

func TestVerdictNames(t *testing.T) {
	for v := range Verdict(NumVerdicts) {
		if v.String() == "" || v.Words() == "" {
			t.Errorf("verdict %d has no name or words", v)
		}
	}
}

func TestUnknownEngine(t *testing.T) {
	d := world(t)
	if _, err := d.Attach("quick", loopback, macMode); err == nil {
		t.Error("an unknown engine was attached")
	}
}

func TestAttachToNothing(t *testing.T) {
	d := world(t)
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		if _, err := d.Attach(engine, 1<<30, macMode); !errors.Is(err, unix.ENODEV) && !errors.Is(err, unix.EINVAL) {
			t.Errorf("%s: %v, want ENODEV", engine, err)
		}
	}
}

func BenchmarkDecision(b *testing.B) {
	d := world(b)
	f := frame(mac("02:00:00:00:00:0b"), a, ip4, 64)
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		b.Run(string(engine), func(b *testing.B) {
			prog, err := d.load(engine, macMode)
			must(b, err)
			defer prog.Close()
			_, perRun, err := prog.Benchmark(f, b.N, b.ResetTimer)
			must(b, err)
			b.ReportMetric(float64(perRun.Nanoseconds()), "ns/frame")
		})
	}
}
