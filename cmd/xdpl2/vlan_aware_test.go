// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// vlanTables is what the ports of these tests are in.
var vlanTables = map[int][]lab.PortVLAN{
	1: {{VID: 10, PVID: true, Untagged: true}, {VID: 20}, {VID: 30}},
	2: {{VID: 20, PVID: true, Untagged: true}, {VID: 10}, {VID: 30}},
	3: {{VID: 10, PVID: true, Untagged: true}, {VID: 20, Untagged: true}},
}

// prio is a PCP of 5 with DEI set.
const prio = 5<<13 | 1<<12

func index(t testing.TB, l *lab.Lab, number int) int {
	t.Helper()
	p, err := l.Port(number)
	must(t, err)
	i, err := l.Index(p)
	must(t, err)
	return i
}

// vlanBox is a box with a VLAN-aware bridge; the daemon is not started.
func vlanBox(t *testing.T, w way, tpid uint16) *box {
	t.Helper()
	l := lab.ForTest(t, lab.Options{NoIPv6: true, NoTxVLAN: true, Bridge: lab.BridgeOptions{VLANFiltering: true}})
	if tpid == unix.ETH_P_8021AD {
		br, err := l.Router.Link(lab.BridgeName)
		must(t, err)
		must(t, l.Router.ChangeBridge(br.Attrs().Index, lab.BridgeChange{VLANProtocol: tpid}))
	}
	for number, table := range vlanTables {
		must(t, l.Router.DelPortVLANs(index(t, l, number), false, lab.PortVLAN{VID: 1}))
		must(t, l.Router.AddPortVLANs(index(t, l, number), false, table...))
	}
	return newBox(t, l, confOf(w.engine))
}

// announce has hosts send a broadcast in each VLAN of their port.
func (b *box) announce(tpid uint16, hosts ...*lab.Host) {
	b.t.Helper()
	for _, h := range hosts {
		s, err := h.Sender()
		must(b.t, err)
		hello := ether.ARPRequest(h.MAC, h.IP4, lab.RouterIP4)
		for _, v := range vlanTables[h.Port().Number] {
			must(b.t, s.Send(ether.Tag(hello, tpid, v.VID)))
		}
		must(b.t, s.Close())
	}
}

func (b *box) waitStationIn(h *lab.Host, vid uint16, device string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("station %s in VLAN %d behind %q", h.MAC, vid, device), func() bool {
		list, err := b.client().Stations(testContext(b.t), api.StationQuery{VLAN: int(vid)})
		must(b.t, err)
		for _, s := range list.Stations {
			if s.MAC == h.MAC.String() {
				return s.Port == device
			}
		}
		return device == ""
	})
}

// TestVLANAwareBridge: frames leave with the tag that the bridge gives them.
// The expectations are first tried on the bridge alone.
func TestVLANAwareBridge(t *testing.T) {
	if !lab.HasVLANFiltering() {
		t.Skip("needs bridge VLAN filtering (CONFIG_BRIDGE_VLAN_FILTERING)")
	}
	for _, kind := range []struct {
		name        string
		tpid, other uint16
	}{{"802.1Q", unix.ETH_P_8021Q, unix.ETH_P_8021AD}, {"802.1ad", unix.ETH_P_8021AD, unix.ETH_P_8021Q}} {
		for _, w := range ways(t) {
			t.Run(kind.name+"/"+w.name, func(t *testing.T) {
				b := vlanBox(t, w, kind.tpid)
				hosts := b.lab.Hosts
				tag := func(f []byte, tci uint16) []byte { return ether.Tag(f, kind.tpid, tci) }
				forward := func(accelerated bool) {
					b.announce(kind.tpid, hosts...)
					if accelerated {
						for _, h := range hosts {
							for _, v := range vlanTables[h.Port().Number] {
								b.waitStationIn(h, v.VID, h.Port().Name)
							}
						}
					}
					for _, c := range []struct {
						name     string
						from, to int
						change   func(plain []byte) (sent, arrives []byte) // arrives nil: not at all
					}{
						{"keep untagged", 1, 3, func(f []byte) ([]byte, []byte) { return f, f }},
						{"push", 1, 2, func(f []byte) ([]byte, []byte) { return f, tag(f, 10) }},
						{"push the other way", 2, 1, func(f []byte) ([]byte, []byte) { return f, tag(f, 20) }},
						{"pop", 1, 2, func(f []byte) ([]byte, []byte) { return tag(f, prio|20), f }},
						{"pop where it is not the PVID", 1, 3, func(f []byte) ([]byte, []byte) { return tag(f, 20), f }},
						{"keep tagged", 1, 2, func(f []byte) ([]byte, []byte) { return tag(f, prio|30), tag(f, prio|30) }},
						{"a priority tag gets a VLAN", 1, 2, func(f []byte) ([]byte, []byte) { return tag(f, prio), tag(f, prio|10) }},
						{"a priority tag goes", 1, 3, func(f []byte) ([]byte, []byte) { return tag(f, prio), f }},
						{"two tags", 1, 2, func(f []byte) ([]byte, []byte) { return tag(tag(f, 7), 30), tag(tag(f, 7), 30) }},
						{"the outer of two goes", 1, 2, func(f []byte) ([]byte, []byte) { return tag(tag(f, 7), 20), tag(f, 7) }},
						{"a tag of the other kind", 1, 2, func(f []byte) ([]byte, []byte) {
							f = ether.Tag(f, kind.other, 20)
							return f, tag(f, 10)
						}},
						{"not a member", 1, 3, func(f []byte) ([]byte, []byte) { return tag(f, 30), nil }},
						{"no such VLAN", 1, 3, func(f []byte) ([]byte, []byte) { return tag(f, 40), nil }},
					} {
						from, to := hosts[c.from-1], hosts[c.to-1]
						sent, want := c.change(ether.UDP(lab.Between(from, to)))
						got, err := to.Capture()
						must(t, err)
						s, err := from.Sender()
						must(t, err)
						const frames = 10
						before := uint64(0)
						if accelerated {
							before = b.count(from.Port().Name, "redirected")
						}
						for range frames {
							must(t, s.Send(sent))
						}
						// Frames of one flow stay in order: when the last has come, all have.
						last := ether.UDP(lab.Between(from, to))
						last[len(last)-1] ^= 0xff
						last, lastWant := lastFrame(c.from, c.to, last, tag)
						must(t, s.Send(last))
						if _, err := got.Expect(testContext(t), lab.Equal(lastWant)); err != nil {
							t.Fatalf("%s: the frame behind: %v", c.name, err)
						}
						arrived := got.Count(func(f []byte) bool { return lab.From(from.MAC)(f) && lab.To(to.MAC)(f) })
						if want == nil {
							if arrived > 0 {
								t.Errorf("%s: %d frames arrived", c.name, arrived)
							}
						} else if n := got.Count(lab.Equal(want)); n != frames || arrived != frames {
							t.Errorf("%s: %d of %d frames arrived, %d as they should: % x", c.name, arrived, frames, n, got.Drain())
						}
						if accelerated && want != nil {
							if n := b.count(from.Port().Name, "redirected") - before; n != frames+1 {
								t.Errorf("%s: %d of %d frames redirected", c.name, n, frames+1)
							}
						}
						must(t, s.Close())
						must(t, got.Close())
					}
				}
				forward(false)
				b.start(append([]string{"--trust-tags"}, w.args...)...)
				forward(true)
			})
		}
	}
}

// lastFrame is one that surely arrives: in VLAN 10 to eth3, in VLAN 20 between
// eth1 and eth2.
func lastFrame(from, to int, plain []byte, tag func([]byte, uint16) []byte) (sent, arrives []byte) {
	switch {
	case to == 3:
		return plain, plain
	case from == 1:
		return tag(plain, 20), plain
	}
	return plain, tag(plain, 20)
}

// TestVLANChanges: what changes in the VLANs of a bridge is followed, and no
// frame takes a way that it no longer has.
func TestVLANChanges(t *testing.T) {
	if !lab.HasVLANFiltering() {
		t.Skip("needs bridge VLAN filtering (CONFIG_BRIDGE_VLAN_FILTERING)")
	}
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			b := vlanBox(t, w, unix.ETH_P_8021Q)
			b.start(append([]string{"--trust-tags"}, w.args...)...)
			h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
			router, eth1, eth2 := b.lab.Router, index(t, b.lab, 1), index(t, b.lab, 2)
			b.announce(unix.ETH_P_8021Q, h1, h2)
			for _, vid := range []uint16{10, 20, 30} {
				b.waitStationIn(h1, vid, "eth1")
				b.waitStationIn(h2, vid, "eth2")
			}
			plain := ether.UDP(lab.Between(h1, h2))
			s, err := h1.Sender()
			must(t, err)
			got, err := h2.Capture()
			must(t, err)
			// becomes sends a frame until it gets a verdict, then checks what comes out.
			becomes := func(what string, sent []byte, verdict string, arrives []byte) {
				t.Helper()
				before := b.count("eth1", verdict)
				b.wait(what, func() bool {
					must(t, s.Send(sent))
					return b.count("eth1", verdict) > before
				})
				// What was sent arrives in order, so all of it has when this has.
				settle := func(mark byte) {
					t.Helper()
					last := bytes.Clone(plain)
					last[len(last)-1] ^= mark
					last = ether.Tag(last, unix.ETH_P_8021Q, 30)
					must(t, s.Send(last))
					_, err := got.Expect(testContext(t), lab.Equal(last))
					must(t, err)
				}
				settle(1)
				got.Drain()
				for range 5 {
					must(t, s.Send(sent))
				}
				settle(2)
				all := got.Count(func(f []byte) bool { return lab.From(h1.MAC)(f) && lab.To(h2.MAC)(f) })
				switch {
				case arrives == nil && all > 0:
					t.Errorf("%s: %d frames arrived", what, all)
				case arrives != nil && (got.Count(lab.Equal(arrives)) != 5 || all != 5):
					t.Errorf("%s: %d frames arrived, %d as they should", what, all, got.Count(lab.Equal(arrives)))
				}
			}
			in20 := ether.Tag(plain, unix.ETH_P_8021Q, 20)
			becomes("forwarded in VLAN 20", in20, "redirected", plain)
			must(t, router.AddPortVLANs(eth2, false, lab.PortVLAN{VID: 20}))
			must(t, router.AddPortVLANs(eth2, false, lab.PortVLAN{VID: 10, PVID: true, Untagged: true}))
			b.wait("VLAN 20 to leave tagged", func() bool { must(t, s.Send(in20)); return got.Count(lab.Equal(in20)) > 0 })
			becomes("tagged now", in20, "redirected", in20)
			becomes("the new PVID", plain, "redirected", plain)
			must(t, router.SetPortVLANState(eth2, 20, lab.PortBlocking))
			becomes("blocked where it leaves", in20, "pass_blocked", nil)
			must(t, router.SetPortVLANState(eth2, 20, lab.PortForwarding))
			becomes("forwarding again", in20, "redirected", in20)
			must(t, router.SetPortVLANState(eth1, 20, lab.PortBlocking))
			becomes("blocked where it comes in", in20, "pass_blocked", nil)
			must(t, router.SetPortVLANState(eth1, 20, lab.PortForwarding))
			becomes("forwarding again", in20, "redirected", in20)
			must(t, router.DelPortVLANs(eth1, false, lab.PortVLAN{VID: 20}))
			becomes("no member", in20, "pass_vlan", nil)
			must(t, router.AddPortVLANs(eth1, false, lab.PortVLAN{VID: 20}))
			b.announce(unix.ETH_P_8021Q, h1)
			becomes("a member again", in20, "redirected", in20)
			// A host that roams in one VLAN stays where it is in the others.
			third := b.lab.Hosts[2]
			s3, err := third.Sender()
			must(t, err)
			must(t, s3.Send(ether.ARPRequest(h2.MAC, h2.IP4, lab.RouterIP4))) // VLAN 10
			b.waitStationIn(h2, 10, "eth3")
			b.waitStationIn(h2, 20, "eth2")
			// Without VLAN filtering, and with it again.
			br, err := router.Link(lab.BridgeName)
			must(t, err)
			off, on := false, true
			must(t, router.ChangeBridge(br.Attrs().Index, lab.BridgeChange{VLANFiltering: &off}))
			b.announce(unix.ETH_P_8021Q, h1, h2)
			b.waitStationIn(h2, 0, "eth2")
			becomes("any tag when VLANs are not filtered", ether.Tag(plain, unix.ETH_P_8021Q, 99), "redirected", ether.Tag(plain, unix.ETH_P_8021Q, 99))
			must(t, router.ChangeBridge(br.Attrs().Index, lab.BridgeChange{VLANFiltering: &on}))
			b.announce(unix.ETH_P_8021Q, h1, h2)
			b.waitStationIn(h2, 20, "eth2")
			becomes("VLAN 99 when they are again", ether.Tag(plain, unix.ETH_P_8021Q, 99), "pass_vlan", nil)
			becomes("VLAN 20 when they are again", in20, "redirected", in20)
		})
	}
}

// TestHiddenTagsAndVLANs: where a tag may be hidden from XDP, a VLAN-aware
// bridge's frames are all passed, and status says why.
func TestHiddenTagsAndVLANs(t *testing.T) {
	if !lab.HasVLANFiltering() {
		t.Skip("needs bridge VLAN filtering (CONFIG_BRIDGE_VLAN_FILTERING)")
	}
	b := vlanBox(t, way{engine: "generic"}, unix.ETH_P_8021Q)
	b.start()
	h1, h3 := b.lab.Hosts[0], b.lab.Hosts[2]
	if p := b.portStatus("eth1"); p.State != api.NotAccelerated {
		t.Errorf("status %+v", p)
	} else {
		contains(t, p.Reason, "may keep VLAN tags beside the frame")
		contains(t, p.Reason, "engine tc is needed")
	}
	b.announce(unix.ETH_P_8021Q, h1, h3)
	b.waitStationIn(h3, 10, "eth3")
	s, err := h1.Sender()
	must(t, err)
	got, err := h3.Capture()
	must(t, err)
	frame := ether.UDP(lab.Between(h1, h3))
	must(t, s.Send(frame))
	if _, err := got.Expect(testContext(t), lab.Equal(frame)); err != nil {
		t.Error(err)
	}
	if b.count("eth1", "pass_vlan") == 0 || b.count("eth1", "redirected") > 0 {
		t.Errorf("%d frames passed for their VLAN, %d redirected", b.count("eth1", "pass_vlan"), b.count("eth1", "redirected"))
	}
	b.configure(confOf("tc"))
	reload(b)
	b.waitStationIn(h1, 10, "eth1")
	before := b.count("eth1", "redirected")
	must(t, s.Send(frame))
	if _, err := got.Expect(testContext(t), lab.Equal(frame)); err != nil {
		t.Error(err)
	}
	if b.count("eth1", "redirected") == before {
		t.Error("with tc nothing is redirected")
	}
}
