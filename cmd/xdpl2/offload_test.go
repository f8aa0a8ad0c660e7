// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/lab/nft"
)

// addWAN gives the router a device wan with a host behind it, in a network of
// its own, and the LAN's first host a route there.
func addWAN(t *testing.T, l *lab.Lab) (wan *lab.NS, address string) {
	t.Helper()
	wan, err := lab.NewNS("wan")
	must(t, err)
	t.Cleanup(func() { wan.Close() })
	router, err := l.Router.Handle()
	must(t, err)
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "wan"}, PeerName: "far", PeerNamespace: netlink.NsFd(wan.FD())}
	must(t, router.LinkAdd(veth))
	far, err := wan.Handle()
	must(t, err)
	up := func(h *netlink.Handle, name, address string) {
		dev, err := h.LinkByName(name)
		must(t, err)
		addr, err := netlink.ParseAddr(address)
		must(t, err)
		must(t, h.AddrAdd(dev, addr))
		must(t, h.LinkSetUp(dev))
	}
	up(router, "wan", "198.51.100.1/24")
	up(far, "far", "198.51.100.2/24")
	route := func(h *netlink.Handle, network, via string) {
		_, dst, err := net.ParseCIDR(network)
		must(t, err)
		must(t, h.RouteAdd(&netlink.Route{Dst: dst, Gw: net.ParseIP(via)}))
	}
	route(far, "192.168.77.0/24", "198.51.100.1")
	lan, err := l.Hosts[0].NS.Handle()
	must(t, err)
	route(lan, "198.51.100.0/24", lab.RouterIP4.String())
	must(t, l.Router.SetSysctl("net/ipv4/ip_forward", "1"))
	return wan, "198.51.100.2:0"
}

// TestFlowOffloading: the firewall's flowtable for routed traffic lies on the
// ports that xdpl2 accelerates. It is no filter, routed connections go through
// the box as before, and those between ports past it.
func TestFlowOffloading(t *testing.T) {
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{NoIPv6: true})
			wan, address := addWAN(t, l)
			ruled, err := nft.NewFlowtable(l.Router, "fw4", "eth1", "eth2", "wan")
			if err != nil {
				t.Skipf("needs flowtables of nftables (%v)", err)
			}
			if !ruled {
				t.Log("this kernel has the flowtable without the rule that fills it (module nft_flow_offload)")
			}
			b := newBox(t, l, confOf(w.engine))
			b.start(w.args...)
			for _, p := range b.status().Ports {
				if p.State != api.Accelerating {
					t.Errorf("%+v", p)
				}
			}
			h1, h2 := l.Hosts[0], l.Hosts[1]
			b.learn(h1, h2)
			server, err := wan.TCPServe(testContext(t), address)
			must(t, err)
			defer server.Close()
			size := int64(scaled(2 << 20))
			result, err := h1.NS.TCPSend(testContext(t), server.Addr(), lab.TCPOptions{Direction: lab.Both, Bytes: size})
			must(t, err)
			if result.Up != size || result.Down != size {
				t.Errorf("routed: %+v", result)
			}
			if n := b.count("eth1", "pass_local"); n < uint64(scaled(100)) {
				t.Errorf("only %d frames were passed to the box", n)
			}
			before := b.count("eth1", "redirected")
			transfer(t, h1, h2, false)
			if b.count("eth1", "redirected") == before {
				t.Error("nothing was redirected between the ports")
			}
		})
	}
}
