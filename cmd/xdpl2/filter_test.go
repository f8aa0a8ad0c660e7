// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/lab/nft"
	"github.com/xdpl2/xdpl2/internal/netns"
)

func newChain(t *testing.T, ns *lab.NS, o nft.ChainOptions) *nft.Chain {
	t.Helper()
	c, err := nft.NewChain(ns, o)
	if err != nil {
		t.Skipf("needs nftables, family %v (%v)", o.Family, err)
	}
	return c
}

// waitFiltered waits until a port is left to the bridge for a reason with this
// in it; until it is accelerated if part is empty.
func (b *box) waitFiltered(device, part string) {
	b.t.Helper()
	b.wait("filter "+part, func() bool {
		p := b.portStatus(device)
		if part == "" {
			return p.State == api.Accelerating
		}
		return p.State == api.NotAccelerated && strings.Contains(p.Reason, part)
	})
}

// sendUntil sends frames until cond holds.
func (b *box) sendUntil(s *netns.Sender, frame []byte, what string, cond func() bool) {
	b.t.Helper()
	b.wait(what, func() bool {
		must(b.t, s.Send(frame))
		return cond()
	})
}

// none fails if any of the frames that were sent before reaches a host: a
// broadcast that is sent after them, and that no test's rule drops, shows that
// nothing is under way any more.
func (b *box) none(s *netns.Sender, from *lab.Host, at *lab.Capture, frame []byte) {
	b.t.Helper()
	marker := ether.ARPRequest(from.MAC, from.IP4, netip.AddrFrom4([4]byte{192, 168, 77, byte(100 + at.Seen()%100)}))
	must(b.t, s.Send(marker))
	if _, err := at.Expect(testContext(b.t), lab.Equal(marker)); err != nil {
		b.t.Fatal(err)
	}
	if n := at.Count(lab.Equal(frame)); n > 0 {
		b.t.Errorf("%d frames stepped around the rule", n)
	}
}

// TestFirewallIsNotSteppedAround has the user's own rule drop frames to a
// station that the fast path has carried: from the moment when xdpl2 knows of
// the rule, none gets past it.
func TestFirewallIsNotSteppedAround(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		b.learn(h1, h2, b.lab.Hosts[2])
		chain := newChain(t, b.lab.Router, nft.ChainOptions{Family: nft.Bridge, Table: "fw4bridge", Chain: "forward", Hook: nft.Forward})
		ctx := testContext(t)
		sender, err := h1.Sender()
		must(t, err)
		at2, err := h2.Capture()
		must(t, err)
		dropped := ether.UDP(lab.Between(h1, h2))
		// A chain without rules is no filter.
		b.sendUntil(sender, dropped, "frames to be redirected", func() bool { return b.count("eth1", "redirected") > 10 })

		must(t, chain.DropTo(h2.MAC))
		for _, port := range []string{"eth1", "eth2", "eth3"} {
			b.waitFiltered(port, "nftables table bridge fw4bridge has rules in chain forward")
		}
		// What was under way may still arrive, and comes before this.
		last := ether.ARPRequest(h1.MAC, h1.IP4, netip.MustParseAddr("192.168.77.99"))
		must(t, sender.Send(last))
		_, err = at2.Expect(ctx, lab.Equal(last))
		must(t, err)
		at2.Drain()
		before := b.count("eth1", "redirected")
		for range 100 {
			must(t, sender.Send(dropped))
		}
		b.none(sender, h1, at2, dropped)
		if n := b.count("eth1", "redirected"); n != before {
			t.Errorf("%d frames were redirected", n-before)
		}
		if n := b.count("eth1", "pass_filtered"); n < 100 {
			t.Errorf("only %d frames were passed as filtered", n)
		}
		out, _, _ := b.cli("status")
		for _, part := range []string{"accelerating 0 of 3", "nftables table bridge fw4bridge has rules", "nft list table bridge fw4bridge", "bypass_filters"} {
			if !strings.Contains(out, part) {
				t.Errorf("status lacks %q:\n%s", part, out)
			}
		}

		// The user may want it all the same, and status keeps saying so.
		b.configure(confOf(w.engine, "option bypass_filters '1'"))
		if _, errs, code := b.cli("reload"); code != 0 {
			t.Fatalf("reload: %s", errs)
		}
		b.waitFiltered("eth1", "")
		must(t, sender.Send(dropped))
		_, err = at2.Expect(ctx, lab.Equal(dropped))
		must(t, err)
		if out, _, _ := b.cli("status"); !strings.Contains(out, "FILTER BYPASSED (option bypass_filters): nftables table bridge fw4bridge") {
			t.Errorf("status does not say what is bypassed:\n%s", out)
		}
		b.configure(confOf(w.engine))
		if _, errs, code := b.cli("reload"); code != 0 {
			t.Fatalf("reload: %s", errs)
		}
		b.waitFiltered("eth1", "fw4bridge")

		must(t, chain.Delete())
		b.waitFiltered("eth1", "")
		before = b.count("eth1", "redirected")
		b.sendUntil(sender, dropped, "frames to be redirected again", func() bool { return b.count("eth1", "redirected") > before })
	})
}

// TestFilterBeforeTheDaemon: a rule that was there first is known before the
// first frame is accelerated.
func TestFilterBeforeTheDaemon(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	chain := newChain(t, l.Router, nft.ChainOptions{Family: nft.Bridge, Table: "fw", Chain: "pre", Hook: nft.Prerouting})
	must(t, chain.Accept())
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b := newBox(t, l, confOf("tc"))
	b.ping(h1.NS, h2) // the bridge knows them before the daemon does
	b.start()
	b.ping(h1.NS, h2)
	if n := b.count("eth1", "redirected"); n > 0 {
		t.Errorf("%d frames were redirected", n)
	}
	if p := b.portStatus("eth1"); p.State != api.NotAccelerated || !strings.Contains(p.Reason, "table bridge fw") {
		t.Errorf("%+v", p)
	}
}

// TestFilterOfOnePort: a netdev chain sees what arrives at its device, and
// nothing else stops.
func TestFilterOfOnePort(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		b.learn(h1, h2)
		chain := newChain(t, b.lab.Router, nft.ChainOptions{Family: nft.Netdev, Table: "edge", Chain: "in", Hook: nft.Ingress, Device: "eth1"})
		must(t, chain.DropTo(h2.MAC))
		b.waitFiltered("eth1", "nftables table netdev edge has rules in chain in at the ingress of eth1")
		if p := b.portStatus("eth2"); p.State != api.Accelerating {
			t.Errorf("eth2: %+v", p)
		}
		to2, err := h1.Sender()
		must(t, err)
		to1, err := h2.Sender()
		must(t, err)
		at1, err := h1.Capture()
		must(t, err)
		at2, err := h2.Capture()
		must(t, err)
		there, back := ether.UDP(lab.Between(h1, h2)), ether.UDP(lab.Between(h2, h1))
		for range 100 {
			must(t, to2.Send(there))
			must(t, to1.Send(back))
		}
		for range 100 {
			if _, err := at1.Expect(testContext(t), lab.Equal(back)); err != nil {
				t.Fatal(err)
			}
		}
		b.none(to2, h1, at2, there)
		if n := b.count("eth1", "pass_filtered"); n < 100 {
			t.Errorf("only %d frames were passed as filtered", n)
		}
		if n := b.count("eth2", "redirected"); n < 100 {
			t.Errorf("only %d frames of eth2 were redirected", n)
		}
	})
}

// TestTCFilterOnPort: somebody's tc filter at a port's ingress sees its frames,
// and is found as it comes and goes.
func TestTCFilterOnPort(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		b.learn(b.lab.Hosts[0], b.lab.Hosts[1])
		h, err := b.lab.Router.Handle()
		must(t, err)
		eth1, err := h.LinkByName("eth1")
		must(t, err)
		index := eth1.Attrs().Index
		// Before 6.6 the daemon has one there already.
		err = h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
		if err != nil && err != unix.EEXIST {
			t.Fatal(err)
		}
		attrs := netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Priority: 9, Protocol: unix.ETH_P_ALL}
		if err := h.FilterAdd(&netlink.U32{FilterAttrs: attrs, ClassId: netlink.MakeHandle(1, 1)}); err != nil {
			t.Skipf("needs tc filters of kind u32 (%v)", err)
		}
		b.waitFiltered("eth1", "there is a tc filter (u32) at the ingress of eth1")
		if p := b.portStatus("eth2"); p.State != api.Accelerating {
			t.Errorf("eth2: %+v", p)
		}
		must(t, h.FilterDel(&netlink.GenericFilter{FilterAttrs: attrs, FilterType: "u32"}))
		b.waitFiltered("eth1", "")
	})
}

// TestFilterLatency measures how soon the data path knows of a rule: from the
// moment when the kernel has accepted it until the port's frames are passed.
func TestFilterLatency(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("tc"))
	b.start()
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b.learn(h1, h2)
	chain := newChain(t, l.Router, nft.ChainOptions{Family: nft.Bridge, Table: "fw", Chain: "forward", Hook: nft.Forward})
	client := b.client()
	ctx := testContext(t)
	events, err := client.Events(ctx)
	must(t, err)
	await := func(state string) {
		t.Helper()
		for e := range events {
			if e.Kind == api.EventPort && e.Device == "eth3" && e.State == state {
				return
			}
		}
		t.Fatal("the events ended")
	}
	var worst, sum time.Duration
	const rounds = 20 // 120 events: more at once would be told in part only
	for range rounds {
		began := time.Now()
		must(t, chain.DropTo(h2.MAC))
		await(api.NotAccelerated) // of the last port: told after the data path knows
		took := time.Since(began)
		worst, sum = max(worst, took), sum+took
		must(t, chain.Flush())
		await(api.Accelerating)
	}
	t.Logf("from before the rule's transaction to the event at a client: mean %v, worst %v of %d", sum/time.Duration(rounds), worst, rounds)
}
