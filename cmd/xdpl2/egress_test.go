// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/api"
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
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
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
		there, aside := lab.UDP(lab.Between(h1, h2)), lab.UDP(lab.Between(h1, h3))
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
		if w.engine == "generic" && slow < frames || w.engine == "tc" && (fast < frames || slow > 0) {
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

// TestEgressChainIsNotSteppedAround: the kernel calls an egress chain for what
// tc redirects, as for what the bridge sends, and not for what XDP does.
func TestEgressChainIsNotSteppedAround(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		chain := newChain(t, b.lab.Router, nft.ChainOptions{Family: nft.Netdev, Table: "edge", Chain: "out", Hook: nft.Egress, Device: "eth2"})
		must(t, chain.DropTo(h2.MAC))
		b.wait("the chain to be noticed", func() bool { return len(b.status().Filters) == 1 })
		f := b.status().Filters[0]
		if f.Place != api.FilterLeaving || len(f.Ports) != 1 || f.Ports[0] != "eth2" {
			t.Errorf("%+v", f)
		}
		sender, err := h1.Sender()
		must(t, err)
		at2, err := h2.Capture()
		must(t, err)
		at3, err := h3.Capture()
		must(t, err)
		there, after := lab.UDP(lab.Between(h1, h2)), lab.UDP(lab.Between(h1, h3))
		redirected := b.count("eth1", "redirected")
		for range 100 {
			must(t, sender.Send(there))
		}
		must(t, sender.Send(after))
		if _, err := at3.Expect(testContext(t), lab.Equal(after)); err != nil {
			t.Fatal(err)
		}
		if n := at2.Count(lab.Equal(there)); n > 0 {
			t.Errorf("%d frames stepped around the rule", n)
		}
		fast := b.count("eth1", "redirected") - redirected
		if w.engine == "generic" && fast > 1 || w.engine == "tc" && fast < 101 {
			t.Errorf("engine %s: %d frames redirected", w.engine, fast)
		}
		must(t, chain.Delete())
		b.sendUntil(sender, there, "frames to arrive again", func() bool { return at2.Count(lab.Equal(there)) > 0 })
	})
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
