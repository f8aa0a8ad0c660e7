// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/lab/nft"
)

// shape gives a device a token bucket that lets test traffic through.
func shape(t *testing.T, ns *lab.NS, device string) (qdisc netlink.Qdisc, remove func()) {
	t.Helper()
	h, err := ns.Handle()
	must(t, err)
	dev, err := h.LinkByName(device)
	must(t, err)
	q := &netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate: 10e6, Limit: 1e6, Buffer: 1e6}
	if err := h.QdiscAdd(q); err != nil {
		t.Skipf("needs the qdisc tbf (%v)", err)
	}
	return q, func() { must(t, h.QdiscDel(q)) }
}

// shaped returns how many frames a device's shaper has sent.
func shaped(t *testing.T, ns *lab.NS, q netlink.Qdisc) uint32 {
	t.Helper()
	h, err := ns.Handle()
	must(t, err)
	dev, err := h.LinkByIndex(q.Attrs().LinkIndex)
	must(t, err)
	all, err := h.QdiscList(dev)
	must(t, err)
	for _, have := range all {
		if have.Type() == q.Type() && have.Attrs().Statistics != nil && have.Attrs().Statistics.Basic != nil {
			return have.Attrs().Statistics.Basic.Packets
		}
	}
	t.Fatalf("no statistics of the qdisc among %v", all)
	return 0
}

// TestShaperIsNotSteppedAround: whatever the engine, a port's shaper gets all
// that leaves there; with tc they are accelerated all the same.
func TestShaperIsNotSteppedAround(t *testing.T) {
	forNativeToo(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		qdisc, remove := shape(t, b.lab.Router, "eth2")
		b.wait("the shaper to be noticed", func() bool {
			ports, err := b.client().Ports(testContext(t))
			must(t, err)
			return ports[1].Shaper == "tbf"
		})
		sender, err := h1.Sender()
		must(t, err)
		at2, err := h2.Capture()
		must(t, err)
		there, aside := ether.UDP(lab.Between(h1, h2)), ether.UDP(lab.Between(h1, h3))
		before, redirected, filtered := shaped(t, b.lab.Router, qdisc), b.count("eth1", "redirected"), b.count("eth1", "pass_filtered")
		const frames = 100
		for range frames {
			must(t, sender.Send(there))
		}
		for range frames {
			if _, err := at2.Expect(testContext(t), lab.Equal(there)); err != nil {
				t.Fatal(err)
			}
		}
		if n := shaped(t, b.lab.Router, qdisc) - before; n < frames {
			t.Errorf("the shaper saw %d of %d frames", n, frames)
		}
		fast, slow := b.count("eth1", "redirected")-redirected, b.count("eth1", "pass_filtered")-filtered
		if w.engine != "tc" && slow < frames || w.engine == "tc" && (fast < frames || slow > 0) {
			t.Errorf("engine %s: %d redirected, %d passed as filtered", w.engine, fast, slow)
		}
		// Other ports have nothing to do with it.
		redirected = b.count("eth1", "redirected")
		b.sendUntil(sender, aside, "frames to eth3 to be redirected", func() bool { return b.count("eth1", "redirected") > redirected })
		remove()
		redirected = b.count("eth1", "redirected")
		b.sendUntil(sender, there, "frames to eth2 to be redirected again", func() bool { return b.count("eth1", "redirected") > redirected })
	})
}

// TestEgressChainIsNotSteppedAround: the kernel calls an egress chain neither
// for what XDP redirects nor, from 5.16 on, for what tc does at the ingress, so
// frames that it would see are the bridge's with every engine.
func TestEgressChainIsNotSteppedAround(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		chain := newChain(t, b.lab.Router, nft.ChainOptions{Family: nft.Netdev, Table: "edge", Chain: "out", Hook: nft.Egress, Device: "eth2"})
		must(t, chain.DropTo(h2.MAC))
		b.waitLeaving("nftables table netdev edge has rules in chain out at the egress of eth2")
		b.dropsLeaving(h1, h2, h3, false)
		must(t, chain.Delete())
		b.wait("no filter", func() bool { return len(b.status().Filters) == 0 })
		b.redirectsAgain(h1, h2)
	})
}

// waitLeaving waits for a filter at the way out of eth2.
func (b *box) waitLeaving(text string) {
	b.t.Helper()
	b.wait(text, func() bool {
		all := b.status().Filters
		return len(all) == 1 && all[0].Place == api.FilterLeaving && all[0].Text == text && len(all[0].Ports) == 1 && all[0].Ports[0] == "eth2"
	})
}

// dropsLeaving sends frames from h1 to h2, where a filter at eth2's way out
// drops them, and checks whether they were accelerated on their way to it, and
// that those to h3 are.
func (b *box) dropsLeaving(h1, h2, h3 *lab.Host, fast bool) {
	b.t.Helper()
	sender, err := h1.Sender()
	must(b.t, err)
	at2, err := h2.Capture()
	must(b.t, err)
	there, aside := ether.UDP(lab.Between(h1, h2)), ether.UDP(lab.Between(h1, h3))
	redirected, filtered := b.count("eth1", "redirected"), b.count("eth1", "pass_filtered")
	for range 100 {
		must(b.t, sender.Send(there))
	}
	b.none(sender, h1, at2, there)
	redirected, filtered = b.count("eth1", "redirected")-redirected, b.count("eth1", "pass_filtered")-filtered
	if fast && (redirected < 100 || filtered > 0) || !fast && (redirected > 0 || filtered < 100) {
		b.t.Errorf("%d frames redirected, %d passed as filtered, fast %v", redirected, filtered, fast)
	}
	redirected = b.count("eth1", "redirected")
	b.sendUntil(sender, aside, "frames to h3 to be redirected", func() bool { return b.count("eth1", "redirected") > redirected })
}

// redirectsAgain waits until frames from h1 to h2 are accelerated and arrive.
func (b *box) redirectsAgain(h1, h2 *lab.Host) {
	b.t.Helper()
	sender, err := h1.Sender()
	must(b.t, err)
	at2, err := h2.Capture()
	must(b.t, err)
	frame, redirected := ether.UDP(lab.Between(h1, h2)), b.count("eth1", "redirected")
	b.sendUntil(sender, frame, "frames to h2 to be redirected", func() bool { return b.count("eth1", "redirected") > redirected })
	if _, err := at2.Expect(testContext(b.t), lab.Equal(frame)); err != nil {
		b.t.Fatal(err)
	}
}

// TestTCEgressFilterIsNotSteppedAround: the kernel calls a tc filter at the way
// out for what tc redirects, and not for what XDP does.
func TestTCEgressFilterIsNotSteppedAround(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		remove := dropUnicastLeaving(t, b.lab.Router, "eth2")
		b.waitLeaving("there is a tc filter (bpf drop) at the egress of eth2")
		b.dropsLeaving(h1, h2, h3, w.engine == "tc")
		remove()
		b.wait("no filter", func() bool { return len(b.status().Filters) == 0 })
		b.redirectsAgain(h1, h2)
	})
}

// dropUnicastLeaving adds a tc filter that drops what is no broadcast or
// multicast.
func dropUnicastLeaving(t *testing.T, ns *lab.NS, device string) (remove func()) {
	t.Helper()
	const unspec, shot = -1, 2
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.LoadAbs(0, asm.Byte),
		asm.And.Imm(asm.R0, 1),
		asm.JNE.Imm(asm.R0, 0, "group"),
		asm.Mov.Imm(asm.R0, shot),
		asm.Return(),
		asm.Mov.Imm(asm.R0, unspec).WithSymbol("group"),
		asm.Return(),
	}})
	must(t, err)
	t.Cleanup(func() { prog.Close() })
	h, err := ns.Handle()
	must(t, err)
	dev, err := h.LinkByName(device)
	must(t, err)
	index := dev.Attrs().Index
	err = h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
	if err != nil && err != unix.EEXIST {
		t.Fatal(err)
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
		Fd:          prog.FD(), Name: "drop", DirectAction: true,
	}
	must(t, h.FilterAdd(filter))
	return func() { must(t, h.FilterDel(filter)) }
}

// TestAutoRulesXDPOutForShaper: engine auto says why generic is out of the
// question.
func TestAutoRulesXDPOutForShaper(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	_, remove := shape(t, l.Router, "eth2")
	b := newBox(t, l, confOf("auto"))
	b.start()
	for port, want := range map[string]bool{"eth1": true, "eth2": false, "eth3": true} {
		p := b.portStatus(port)
		why := p.Engines["generic"]
		if p.Engine != "tc" || strings.Contains(why, "eth2 has a shaping qdisc (tbf)") != want {
			t.Errorf("%s: engine %s, generic: %s", port, p.Engine, why)
		}
	}
	remove()
	b.wait("generic to be possible again", func() bool {
		return !strings.Contains(b.portStatus("eth1").Engines["generic"], "shaping")
	})
}
