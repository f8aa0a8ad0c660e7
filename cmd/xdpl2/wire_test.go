// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// section is a port's section in mode port.
type section struct {
	device, target string
	pass           []string // nil: the default; "none" alone: nothing
}

// wireConf writes a configuration of mode port.
func wireConf(topology, engine string, sections ...section) string {
	text := fmt.Sprintf("config xdpl2 'main'\n\toption enabled '1'\n\toption mode 'port'\n\toption topology '%s'\n\toption engine '%s'\n", topology, engine)
	for _, s := range sections {
		text += fmt.Sprintf("\nconfig port\n\toption device '%s'\n\toption target '%s'\n", s.device, s.target)
		for _, p := range s.pass {
			text += fmt.Sprintf("\tlist pass '%s'\n", p)
		}
	}
	return text
}

// forEachWire runs a test in both topologies with every way of attaching.
func forEachWire(t *testing.T, opts lab.Options, sections []section, f func(t *testing.T, topology string, b *box)) {
	for _, topology := range []string{"coexist", "replace"} {
		for _, w := range ways(t) {
			t.Run(topology+"/"+w.name, func(t *testing.T) {
				l := lab.ForTest(t, opts)
				b := newBox(t, l, wireConf(topology, w.engine, sections...))
				b.start(w.args...)
				b.waitAccelerating()
				f(t, topology, b)
			})
		}
	}
}

// waitAccelerating waits until every configured port does.
func (b *box) waitAccelerating() {
	b.t.Helper()
	b.wait("all ports to accelerate", func() bool {
		for _, p := range b.status().Ports {
			if p.State != api.Accelerating {
				return false
			}
		}
		return true
	})
}

// pingsNot fails if a ping comes back.
func (b *box) pingsNot(from *lab.NS, to netip.Addr) {
	b.t.Helper()
	stats, err := from.Ping(testContext(b.t), to, lab.PingOptions{Count: 1, Timeout: time.Second / 2})
	must(b.t, err)
	if stats.Received > 0 {
		b.t.Errorf("ping from %s to %s: %d of %d came back", from, to, stats.Received, stats.Sent)
	}
}

var twoWay = []section{{device: "eth1", target: "eth2"}, {device: "eth2", target: "eth1"}}

// TestTwoWires: two wires at once, each end reaching the other and nobody else.
func TestTwoWires(t *testing.T) {
	sections := append([]section{{device: "eth3", target: "eth4"}, {device: "eth4", target: "eth3"}}, twoWay...)
	forEachWire(t, lab.Options{Hosts: 5}, sections, func(t *testing.T, topology string, b *box) {
		h := b.lab.Hosts
		b.ping(h[0].NS, h[1])
		ping6(t, h[3].NS, h[2].IP6)
		transfer(t, h[0], h[1], false)
		transfer(t, h[3], h[2], true)
		for _, port := range []string{"eth1", "eth2", "eth3", "eth4"} {
			if n := b.count(port, "redirected"); n < uint64(scaled(1000)) {
				t.Errorf("%s: only %d frames redirected", port, n)
			}
			if n := b.count(port, "redirect_failed"); n > 0 {
				t.Errorf("%s: %d redirects failed", port, n)
			}
		}
		if topology == "replace" {
			// Two networks of their own, and neither is the box's.
			b.pingsNot(h[0].NS, h[2].IP4)
			b.pingsNot(h[0].NS, h[4].IP4)
			b.pingsNot(h[0].NS, lab.RouterIP4)
		} else {
			// The default passes what is for the box, and the broadcasts that find it.
			b.ping(h[0].NS, nil)
		}
		b.ping(h[4].NS, nil)
	})
}

// TestWireCarriesEverything but control frames: groups, tags, and what nobody
// has asked for.
func TestWireCarriesEverything(t *testing.T) {
	local := []string{"local"} // in coexist the default passes groups to the bridge
	sections := []section{{"eth1", "eth2", local}, {"eth2", "eth1", local}}
	forEachWire(t, lab.Options{NoIPv6: true, NoTxVLAN: true}, sections, func(t *testing.T, topology string, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		ctx := testContext(t)
		sender, err := h1.Sender()
		must(t, err)
		got, err := h2.Capture()
		must(t, err)
		third, err := h3.Capture()
		must(t, err)
		// Link control stays on its link, on a wire as in a bridge. (Without STP
		// a bridge floods BPDUs, so none is sent in coexist.)
		control := [][]byte{ether.LLDP(h1.MAC), ether.EAPOL(h1.MAC)}
		if topology == "replace" {
			control = append(control, ether.BPDU(h1.MAC, 0x8000, 1))
		}
		for _, f := range control {
			must(t, sender.Send(f))
		}
		unknown := ether.UDP(lab.Between(h1, h2))
		copy(unknown, net.HardwareAddr{2, 0, 0, 0, 5, 5})
		plain := ether.UDP(lab.Between(h1, h2))
		for _, f := range [][]byte{
			ether.ARPRequest(h1.MAC, h1.IP4, netip.MustParseAddr("192.168.77.99")), unknown, plain,
			ether.Tag(plain, 0x8100, 0xe00a), ether.Tag(plain, 0x88a8, 20), ether.Tag(ether.Tag(plain, 0x8100, 10), 0x88a8, 20),
		} {
			must(t, sender.Send(f))
			if _, err := got.Expect(ctx, lab.Equal(f)); err != nil {
				t.Errorf("frame % x: %v", f[:22], err)
			}
		}
		if n := got.Count(func(f []byte) bool { return f[0] == 0x01 && f[1] == 0x80 }); n > 0 {
			t.Errorf("%d control frames were forwarded", n)
		}
		if n := b.count("eth1", "pass_control"); n != uint64(len(control)) {
			t.Errorf("%d control frames passed, want %d", n, len(control))
		}
		b.ping(h3.NS, nil) // a witness: what had been flooded would have come
		if n := third.Count(lab.From(h1.MAC)); n > 0 {
			t.Errorf("%d frames of the wire came out elsewhere", n)
		}
	})
}

// TestWireGSO leaves the hosts' offloads on: tc hands frames of 64 KiB with
// unfinished checksums on as they are.
func TestWireGSO(t *testing.T) {
	for _, topology := range []string{"coexist", "replace"} {
		t.Run(topology, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{KeepOffloads: true})
			b := newBox(t, l, wireConf(topology, "tc", twoWay...))
			b.start()
			b.waitAccelerating()
			transfer(t, l.Hosts[0], l.Hosts[1], false)
			transfer(t, l.Hosts[1], l.Hosts[0], true)
			if n := b.count("eth1", "redirected"); n < 100 {
				t.Errorf("only %d frames redirected", n)
			}
		})
	}
}

// TestOneWayWire: only eth1 has a target. What comes back goes the bridge's way
// in coexist, and no way in replace.
func TestOneWayWire(t *testing.T) {
	sections := []section{{device: "eth1", target: "eth2", pass: []string{"local"}}}
	forEachWire(t, lab.Options{NoIPv6: true}, sections, func(t *testing.T, topology string, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		ctx := testContext(t)
		there, err := h1.Sender()
		must(t, err)
		back, err := h2.Sender()
		must(t, err)
		at1, err := h1.Capture()
		must(t, err)
		at2, err := h2.Capture()
		must(t, err)
		must(t, there.Send(ether.UDP(lab.Between(h1, h2))))
		if _, err := at2.Expect(ctx, lab.From(h1.MAC)); err != nil {
			t.Error(err)
		}
		if n := b.count("eth1", "redirected"); n == 0 {
			t.Error("nothing was redirected")
		}
		must(t, back.Send(ether.UDP(lab.Between(h2, h1))))
		if topology == "coexist" {
			if _, err := at1.Expect(ctx, lab.From(h2.MAC)); err != nil {
				t.Error(err)
			}
			b.ping(h2.NS, h3)
			return
		}
		b.ping(h3.NS, nil)
		b.pingsNot(h2.NS, h3.IP4)
		if n := at1.Count(lab.From(h2.MAC)); n > 0 {
			t.Errorf("%d frames went the wrong way", n)
		}
	})
}

// TestWirePassesToTheBox: with pass local and group the box can be reached over
// a wire: by its bridge's address in coexist, by the port's own in replace.
func TestWirePassesToTheBox(t *testing.T) {
	both := []string{"local", "group"}
	sections := []section{{"eth1", "eth2", both}, {"eth2", "eth1", both}}
	forEachWire(t, lab.Options{NoIPv6: true}, sections, func(t *testing.T, topology string, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		box := lab.RouterIP4
		if topology == "replace" {
			handle, err := b.lab.Router.Handle()
			must(t, err)
			dev, err := b.lab.Router.Link("eth1")
			must(t, err)
			box = netip.MustParseAddr("192.168.78.1")
			must(t, handle.AddrAdd(dev, &netlink.Addr{IPNet: &net.IPNet{IP: box.AsSlice(), Mask: net.CIDRMask(24, 32)}}))
			handle, err = h1.NS.Handle()
			must(t, err)
			dev, err = h1.NS.Link(h1.Dev())
			must(t, err)
			must(t, handle.AddrAdd(dev, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 168, 78, 2).To4(), Mask: net.CIDRMask(24, 32)}}))
		}
		stats, err := h1.Ping(testContext(t), box, lab.PingOptions{Count: 3, Timeout: 5 * time.Second})
		must(t, err)
		if stats.Lost() > 0 {
			t.Errorf("the box does not answer: %d of %d lost", stats.Lost(), stats.Sent)
		}
		if b.count("eth1", "pass_local") == 0 || b.count("eth1", "pass_group") == 0 {
			t.Errorf("passed: %d local, %d group", b.count("eth1", "pass_local"), b.count("eth1", "pass_group"))
		}
		// The wire goes on beside it, for what is not a broadcast.
		sender, err := h1.Sender()
		must(t, err)
		got, err := h2.Capture()
		must(t, err)
		must(t, sender.Send(ether.UDP(lab.Between(h1, h2))))
		if _, err := got.Expect(testContext(t), lab.From(h1.MAC)); err != nil {
			t.Error(err)
		}
	})
}

// TestUnequalWire: a wire from a port of jumbo frames to one of 1500 bytes and
// a tenth of the speed. What fits arrives, what does not is named.
func TestUnequalWire(t *testing.T) {
	opts := lab.Options{NoIPv6: true, MTU: map[int]int{1: 9000}}
	forEachWire(t, opts, twoWay, func(t *testing.T, topology string, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		handle, err := b.lab.Router.Handle()
		must(t, err)
		dev, err := b.lab.Router.Link("eth2")
		must(t, err)
		must(t, handle.QdiscReplace(&netlink.Tbf{
			QdiscAttrs: netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
			Rate:       12_500_000, Limit: 300_000, Buffer: 30_000,
		}))
		if topology == "replace" {
			// XDP would step around the shaper, and behind this wire there is no
			// bridge that the frames could be left to.
			b.wait("tc on eth1", func() bool { return b.portStatus("eth1").Engine == "tc" })
		}
		ctx := testContext(t)
		sender, err := h1.Sender()
		must(t, err)
		got, err := h2.Capture()
		must(t, err)
		spec := lab.Between(h1, h2)
		spec.Length = 4000
		long := ether.UDP(spec)
		spec.Length = 1514
		fits := ether.UDP(spec)
		verdict := "pass_mtu"
		if b.portStatus("eth1").Engine == "generic" { // which leaves all frames to the shaper
			verdict = "pass_filtered"
		}
		b.wait("long frames to be passed", func() bool {
			must(t, sender.Send(long))
			return b.count("eth1", verdict) > 0
		})
		must(t, sender.Send(fits))
		if _, err := got.Expect(ctx, lab.Equal(fits)); err != nil {
			t.Error(err)
		}
		if n := got.Count(func(f []byte) bool { return len(f) > 1518 }); n > 0 {
			t.Errorf("%d frames left that are too long", n)
		}
		// TCP finds its own speed. The hosts must agree on a size first: no
		// bridge or wire tells them that less fits.
		hostHandle, err := h1.NS.Handle()
		must(t, err)
		hostDev, err := h1.NS.Link(h1.Dev())
		must(t, err)
		must(t, hostHandle.LinkSetMTU(hostDev, 1500))
		transfer(t, h1, h2, false)
	})
}

// TestFilteredWire: what somebody's filter would see is left to the bridge, and
// the ports with it. When the filter goes they are taken.
func TestFilteredWire(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	h, err := l.Router.Handle()
	must(t, err)
	eth1, err := h.LinkByName("eth1")
	must(t, err)
	index := eth1.Attrs().Index
	must(t, h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}))
	attrs := netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 9, Protocol: unix.ETH_P_ALL}
	if err := h.FilterAdd(&netlink.U32{FilterAttrs: attrs, ClassId: netlink.MakeHandle(1, 1)}); err != nil {
		t.Skipf("needs tc filters of kind u32 (%v)", err)
	}
	b := newBox(t, l, wireConf("replace", "auto", twoWay...))
	b.start()
	b.waitFiltered("eth1", "there is a tc filter (u32) at the ingress of eth1")
	b.waitFiltered("eth2", "target eth1 cannot be used")
	if master(t, l, "eth1") != lab.BridgeName || master(t, l, "eth2") != lab.BridgeName {
		t.Error("the ports were taken all the same")
	}
	b.ping(l.Hosts[0].NS, l.Hosts[1])
	must(t, h.FilterDel(&netlink.GenericFilter{FilterAttrs: attrs, FilterType: "u32"}))
	b.waitFiltered("eth1", "")
	b.waitAccelerating()
	if master(t, l, "eth1") != "" {
		t.Error("eth1 was not taken")
	}
	b.ping(l.Hosts[0].NS, l.Hosts[1])
	// One that comes later has the ports given back.
	must(t, h.FilterAdd(&netlink.U32{FilterAttrs: attrs, ClassId: netlink.MakeHandle(1, 1)}))
	b.waitFiltered("eth1", "there is a tc filter (u32) at the ingress of eth1")
	b.wait("the ports to be given back", func() bool {
		return master(t, l, "eth1") == lab.BridgeName && master(t, l, "eth2") == lab.BridgeName
	})
	b.ping(l.Hosts[0].NS, l.Hosts[1])
}
