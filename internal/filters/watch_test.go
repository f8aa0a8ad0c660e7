// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/lab/nft"
)

// follower keeps what a watcher in a lab's router tells.
type follower struct {
	t      *testing.T
	ns     *lab.NS
	states chan State
	state  State
}

func follow(t *testing.T) *follower {
	t.Helper()
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true})
	f := &follower{t: t, ns: l.Router, states: make(chan State, 1024)}
	ctx, cancel := context.WithCancel(context.Background())
	opened, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- l.Router.Do(func() error {
			w, err := Open(Options{Own: "xdpl2_tc"})
			if err == nil {
				f.state = w.State()
			}
			opened <- err
			if err != nil {
				return nil
			}
			return w.Run(ctx, func(s State) { f.states <- s })
		})
	}()
	must(t, <-opened)
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits until the state is as wanted.
func (f *follower) until(what string, cond func(State) bool) {
	f.t.Helper()
	deadline := time.After(20 * time.Second)
	for !cond(f.state) {
		select {
		case f.state = <-f.states:
		case <-deadline:
			f.t.Fatalf("waited in vain for %s: %+v", what, f.state)
		}
	}
}

// filtered waits until one filter is about a port of the bridge, and checks
// its words; none if part is empty.
func (f *follower) filtered(port, part string) {
	f.t.Helper()
	f.until("filter "+part, func(s State) bool {
		at := s.At(port, lab.BridgeName)
		if part == "" {
			return len(at) == 0
		}
		return len(at) > 0 && strings.Contains(at[0].Text, part)
	})
}

// still checks that the state has not changed for something that is told
// later than what must not change it.
func (f *follower) still(port string) {
	f.t.Helper()
	if at := f.state.At(port, lab.BridgeName); len(at) > 0 {
		f.t.Errorf("%s is filtered: %+v", port, at)
	}
}

func newChain(t *testing.T, ns *lab.NS, o nft.ChainOptions) *nft.Chain {
	t.Helper()
	c, err := nft.NewChain(ns, o)
	if err != nil {
		t.Skipf("needs nftables, family %v (%v)", o.Family, err)
	}
	return c
}

func TestNFTBridge(t *testing.T) {
	f := follow(t)
	f.still("eth1")
	for _, c := range []struct {
		name string
		hook int
		seen bool
	}{{"prerouting", nft.Prerouting, true}, {"forward", nft.Forward, true}, {"postrouting", nft.Postrouting, true}} {
		chain := newChain(t, f.ns, nft.ChainOptions{Family: nft.Bridge, Table: "fw", Chain: c.name, Hook: c.hook})
		// A set's elements are no rules, and neither is a chain that is empty.
		must(t, chain.AddSetElement("names", []byte{192, 0, 2, 1}))
		f.still("eth1")
		must(t, chain.Accept())
		f.filtered("eth1", "nftables table bridge fw has rules in chain "+c.name)
		f.filtered("eth2", "nftables table bridge fw has rules in chain "+c.name)
		must(t, chain.Accept())
		must(t, chain.Flush())
		f.filtered("eth1", "")
		must(t, chain.Accept())
		f.filtered("eth1", c.name)
		must(t, chain.Delete())
		f.filtered("eth1", "")
	}
	chain := newChain(t, f.ns, nft.ChainOptions{Family: nft.Bridge, Table: "fw", Chain: "forward", Hook: nft.Forward, Drop: true})
	f.filtered("eth1", "drops in chain forward by its policy")
	must(t, chain.Delete())
	f.filtered("eth1", "")
}

// TestNFTNotSeen has chains that forwarded frames never meet; a last one that
// they do meet comes after them, and is the first to be told.
func TestNFTNotSeen(t *testing.T) {
	f := follow(t)
	for _, o := range []nft.ChainOptions{
		{Family: nft.Bridge, Table: "in", Chain: "input", Hook: nft.Input},
		{Family: nft.Bridge, Table: "out", Chain: "output", Hook: nft.Output},
		{Family: nft.Inet, Table: "fw4", Chain: "forward", Hook: nft.Forward}, // br_netfilter is off in the lab
		{Family: nft.Netdev, Table: "bridge", Chain: "ingress", Hook: nft.Ingress, Device: lab.BridgeName},
	} {
		if o.Family == nft.Bridge && haveModule("nf_conntrack_bridge") {
			continue // then they may have connections tracked
		}
		must(t, newChain(t, f.ns, o).Accept())
	}
	last := newChain(t, f.ns, nft.ChainOptions{Family: nft.Netdev, Table: "t", Chain: "c", Hook: nft.Ingress, Device: "eth2"})
	must(t, last.Accept())
	f.filtered("eth2", "nftables table netdev t has rules in chain c at the ingress of eth2")
	f.still("eth1")
	must(t, last.Delete())
	f.filtered("eth2", "")
	f.still("eth1")
}

func TestNFTEgress(t *testing.T) {
	f := follow(t)
	c := newChain(t, f.ns, nft.ChainOptions{Family: nft.Netdev, Table: "t", Chain: "out", Hook: nft.Egress, Device: "eth1"})
	must(t, c.Accept())
	f.until("a filter on the way out", func(s State) bool { return len(s.Behind("eth1")) == 1 })
	if got, want := f.state.Behind("eth1")[0].Text, "nftables table netdev t has rules in chain out at the egress of eth1"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	f.still("eth1")
	if found := f.state.Behind("eth2"); len(found) > 0 {
		t.Errorf("eth2: %+v", found)
	}
	must(t, c.Delete())
	f.until("no filter", func(s State) bool { return len(s.Filters) == 0 })
}

func TestNFTInetIngress(t *testing.T) {
	f := follow(t)
	c := newChain(t, f.ns, nft.ChainOptions{Family: nft.Inet, Table: "t", Chain: "in", Hook: nft.InetIngress, Device: "eth1"})
	must(t, c.Accept())
	f.filtered("eth1", "nftables table inet t has rules in chain in at the ingress of eth1")
	f.still("eth2")
}

// callIPTables switches br_netfilter, for all bridges.
func (f *follower) callIPTables(key, value string) {
	f.t.Helper()
	if err := f.ns.SetSysctl("net/bridge/bridge-nf-call-"+key, value); err != nil {
		f.t.Skipf("needs br_netfilter (%v)", err)
	}
}

func TestBridgeNetfilter(t *testing.T) {
	f := follow(t)
	f.callIPTables("iptables", "0")
	fw := newChain(t, f.ns, nft.ChainOptions{Family: nft.Inet, Table: "fw4", Chain: "forward", Hook: nft.Forward})
	must(t, fw.Accept())
	f.callIPTables("iptables", "1") // no word from the kernel: polled
	f.filtered("eth1", "nftables table inet fw4 has rules in chain forward, and br_netfilter hands it the frames of all bridges")
	if at := f.state.At("eth1", lab.BridgeName); !strings.Contains(at[0].Remedy, "bridge-nf-call-iptables=0") {
		t.Errorf("remedy %q", at[0].Remedy)
	}
	must(t, fw.Flush())
	f.filtered("eth1", "")
	must(t, fw.Accept())
	f.filtered("eth1", "fw4")
	f.callIPTables("iptables", "0")
	f.filtered("eth1", "")
	// The bridge's own setting is told.
	must(t, f.ns.WriteSys("class/net/"+lab.BridgeName+"/bridge/nf_call_iptables", "1"))
	f.filtered("eth1", "and br_netfilter hands it the frames of "+lab.BridgeName)
	if at := f.state.At("eth1", "other"); len(at) > 0 {
		t.Errorf("another bridge: %+v", at)
	}
	must(t, f.ns.WriteSys("class/net/"+lab.BridgeName+"/bridge/nf_call_iptables", "0"))
	f.filtered("eth1", "")
}

func TestTCFilters(t *testing.T) {
	f := follow(t)
	h, err := f.ns.Handle()
	must(t, err)
	eth1, err := h.LinkByName("eth1")
	must(t, err)
	clsact := &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: eth1.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}
	must(t, h.QdiscAdd(clsact))
	for _, c := range []struct {
		parent uint32
		seen   func() []Filter
		want   string
	}{
		{clsactIngress, func() []Filter { return f.state.At("eth1", lab.BridgeName) }, "there is a tc filter (u32) at the ingress of eth1"},
		{clsactEgress, func() []Filter { return f.state.Behind("eth1") }, "there is a tc filter (u32) at the egress of eth1"},
	} {
		filter := &netlink.U32{FilterAttrs: netlink.FilterAttrs{LinkIndex: eth1.Attrs().Index, Parent: c.parent, Priority: 7, Protocol: unix.ETH_P_ALL}, ClassId: netlink.MakeHandle(1, 1)}
		if err := h.FilterAdd(filter); err != nil {
			t.Skipf("needs tc filters of kind u32 (%v)", err)
		}
		f.until(c.want, func(State) bool { return len(c.seen()) == 1 && c.seen()[0].Text == c.want })
		if len(f.state.Filters) != 1 {
			t.Errorf("%+v", f.state.Filters)
		}
		must(t, h.FilterDel(&netlink.GenericFilter{FilterAttrs: netlink.FilterAttrs{LinkIndex: eth1.Attrs().Index, Parent: c.parent, Priority: 7, Protocol: unix.ETH_P_ALL}, FilterType: "u32"}))
		f.until("no filter", func(s State) bool { return len(s.Filters) == 0 })
	}
}

func TestShapers(t *testing.T) {
	f := follow(t)
	h, err := f.ns.Handle()
	must(t, err)
	eth1, err := h.LinkByName("eth1")
	must(t, err)
	index := eth1.Attrs().Index
	attrs := netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	for _, q := range []struct {
		qdisc  netlink.Qdisc
		shapes bool
	}{
		{&netlink.Tbf{QdiscAttrs: attrs, Rate: 1e6, Limit: 1e5, Buffer: 1e4}, true},
		{netlink.NewHtb(attrs), true},
		{netlink.NewFqCodel(attrs), false},
		{netlink.NewNetem(attrs, netlink.NetemQdiscAttrs{Latency: 1000}), true},
		{&netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "cake"}, false}, // without a rate
		{&netlink.GenericQdisc{QdiscAttrs: attrs, QdiscType: "pfifo"}, false},
	} {
		t.Run(q.qdisc.Type(), func(t *testing.T) {
			f.t = t
			if err := h.QdiscAdd(q.qdisc); err != nil {
				t.Skipf("needs the qdisc %s (%v)", q.qdisc.Type(), err)
			}
			want := ""
			if q.shapes {
				want = q.qdisc.Type()
			} else { // told after it
				eth2, err := h.LinkByName("eth2")
				must(t, err)
				tbf := &netlink.Tbf{QdiscAttrs: attrs, Rate: 1e6, Limit: 1e5, Buffer: 1e4}
				tbf.LinkIndex = eth2.Attrs().Index
				must(t, h.QdiscAdd(tbf))
				f.until("the other port's shaper", func(s State) bool { return s.Shapers[tbf.LinkIndex] != "" })
				must(t, h.QdiscDel(tbf))
				f.until("no other shaper", func(s State) bool { return s.Shapers[tbf.LinkIndex] == "" })
			}
			f.until("shaper", func(s State) bool { return s.Shapers[index] == want })
			must(t, h.QdiscDel(q.qdisc))
			f.until("no shaper", func(s State) bool { return len(s.Shapers) == 0 })
		})
	}
}
