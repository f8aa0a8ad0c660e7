// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/hex"
	"net"
	"net/netip"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// Group traffic is the bridge's: these tests send what a home network has of
// it through accelerated ports, while unicast goes past the bridge.

// querier has the bridge ask who is in which group, and believe the answers
// soon: without a querier it floods.
func querier(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, s := range [][2]string{
		{"multicast_query_response_interval", "20"}, // hundredths of a second
		{"multicast_querier", "1"},
	} {
		must(t, l.Router.WriteSys("class/net/"+lab.BridgeName+"/bridge/"+s[0], s[1]))
	}
}

// inMDB reports whether the bridge knows that somebody behind a port is in a
// group.
func inMDB(t *testing.T, l *lab.Lab, group netip.Addr, device string) bool {
	t.Helper()
	const mdbaEntry, mdbaEntryInfo, entryLen = 1, 1, 28 // MDBA_MDB, struct br_mdb_entry
	found := false
	must(t, l.Router.Do(func() error {
		dev, err := netlink.LinkByName(device)
		if err != nil {
			return err
		}
		msgs, err := netdev.Dump(func() ([][]byte, error) {
			req := nl.NewNetlinkRequest(unix.RTM_GETMDB, unix.NLM_F_DUMP)
			req.AddRawData([]byte{unix.AF_BRIDGE, 7: 0})            // struct br_port_msg
			return req.Execute(unix.NETLINK_ROUTE, unix.RTM_GETMDB) // not RTM_NEWMDB, in a dump
		})
		if err != nil {
			return err
		}
		for _, msg := range msgs {
			for _, list := range nested(t, msg[8:], mdbaEntry) {
				for _, entry := range nested(t, list, mdbaEntry) {
					for _, info := range nested(t, entry, mdbaEntryInfo) {
						index := int(nl.NativeEndian().Uint32(info))
						if len(info) >= entryLen && index == dev.Attrs().Index && bytes.HasPrefix(info[8:], group.AsSlice()) {
							found = true
						}
					}
				}
			}
		}
		return nil
	}))
	return found
}

func nested(t *testing.T, data []byte, kind uint16) [][]byte {
	t.Helper()
	attrs, err := nl.ParseRouteAttr(data)
	must(t, err)
	var values [][]byte
	for _, a := range attrs {
		if a.Attr.Type&^unix.NLA_F_NESTED == kind {
			values = append(values, a.Value)
		}
	}
	return values
}

// join has a host's kernel join a group, with the reports that belong to it,
// until the returned function is called.
func join(t *testing.T, h *lab.Host, group netip.Addr) (leave func()) {
	t.Helper()
	fd := -1
	must(t, h.NS.Do(func() error {
		dev, err := netlink.LinkByName(h.Dev())
		if err != nil {
			return err
		}
		index := dev.Attrs().Index
		if group.Is4() {
			if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			return unix.SetsockoptIPMreqn(fd, unix.IPPROTO_IP, unix.IP_ADD_MEMBERSHIP, &unix.IPMreqn{Multiaddr: group.As4(), Ifindex: int32(index)})
		}
		if fd, err = unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return err
		}
		return unix.SetsockoptIPv6Mreq(fd, unix.IPPROTO_IPV6, unix.IPV6_JOIN_GROUP, &unix.IPv6Mreq{Multiaddr: group.As16(), Interface: uint32(index)})
	}))
	left := false
	leave = func() {
		if !left {
			left = true
			unix.Close(fd)
		}
	}
	t.Cleanup(leave)
	return leave
}

func groupMAC(group netip.Addr) net.HardwareAddr {
	if group.Is4() {
		a := group.As4()
		return net.HardwareAddr{0x01, 0, 0x5e, a[1] & 0x7f, a[2], a[3]}
	}
	a := group.As16()
	return net.HardwareAddr{0x33, 0x33, a[12], a[13], a[14], a[15]}
}

// TestSnooping: with IGMP and MLD snooping a stream goes to its subscribers
// alone, whoever comes and goes, while unicast is accelerated beside it.
func TestSnooping(t *testing.T) {
	for _, c := range []struct {
		name  string
		group netip.Addr
	}{{"igmp", netip.MustParseAddr("239.1.2.3")}, {"mld", netip.MustParseAddr("ff15::1:2:3")}} {
		t.Run(c.name, func(t *testing.T) {
			forEachWay(t, lab.Options{Bridge: lab.BridgeOptions{MulticastSnooping: true}}, func(t *testing.T, w way, b *box) {
				h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
				b.learn(h1, h2, h3)
				querier(t, b.lab)
				from := h1.IP4
				if c.group.Is6() {
					from = h1.IP6
				}
				stream := ether.UDP(ether.UDPSpec{Dst: groupMAC(c.group), Src: h1.MAC, DstIP: c.group, SrcIP: from, DstPort: 5004, SrcPort: 5004})
				unicast := [2][]byte{ether.UDP(lab.Between(h1, h2)), ether.UDP(lab.Between(h1, h3))}
				sender, err := h1.Sender()
				must(t, err)
				at := [2]*lab.Capture{}
				for i, h := range []*lab.Host{h2, h3} {
					at[i], err = h.Capture()
					must(t, err)
				}
				ctx := testContext(t)
				// round sends the stream, and after it a unicast frame to each:
				// what has not come before that is not coming. Frames that XDP
				// sends may overtake what the bridge has, so the last one is a
				// broadcast.
				round := func() (got [2]int) {
					t.Helper()
					for _, c := range at {
						c.Drain()
					}
					for range 20 {
						must(t, sender.Send(stream))
						must(t, sender.Send(unicast[0]))
						must(t, sender.Send(unicast[1]))
					}
					last := ether.ARPRequest(h1.MAC, h1.IP4, netip.MustParseAddr("192.168.77.98"))
					must(t, sender.Send(last))
					for i, c := range at {
						if _, err := c.Expect(ctx, lab.Equal(last)); err != nil {
							t.Fatal(err)
						}
						got[i] = c.Count(lab.Equal(stream))
						if n := c.Count(lab.Equal(unicast[i])); n != 20 {
							t.Errorf("%d of 20 unicast frames arrived", n)
						}
					}
					return got
				}
				// Nobody has joined: the bridge goes from flooding to sending to
				// nobody once its own query has been out for a while.
				b.wait("the bridge to believe its own query", func() bool { return round() == [2]int{0, 0} })

				leave := join(t, h2, c.group)
				b.wait("the bridge to know the subscriber", func() bool { return inMDB(t, b.lab, c.group, "eth2") })
				if got := round(); got != [2]int{20, 0} {
					t.Errorf("h2 has joined: of 20 frames %v arrived at h2 and h3", got)
				}
				join(t, h3, c.group)
				b.wait("the bridge to know the second subscriber", func() bool { return inMDB(t, b.lab, c.group, "eth3") })
				if got := round(); got != [2]int{20, 20} {
					t.Errorf("both have joined: of 20 frames %v arrived at h2 and h3", got)
				}
				must(t, b.lab.Router.WriteSys("class/net/eth2/brport/multicast_fast_leave", "1"))
				leave()
				b.wait("the bridge to forget the subscriber", func() bool { return !inMDB(t, b.lab, c.group, "eth2") })
				if got := round(); got != [2]int{0, 20} {
					t.Errorf("h2 has left: of 20 frames %v arrived at h2 and h3", got)
				}
				if n := b.count("eth1", "redirected"); n < 100 {
					t.Errorf("only %d unicast frames were redirected", n)
				}
			})
		})
	}
}

// TestGroupProtocols: what home networks announce and ask for by broadcast and
// multicast reaches everybody once and unchanged, and the answers find back.
func TestGroupProtocols(t *testing.T) {
	// A bridge that snoops and has no querier, as OpenWrt sets up br-lan with
	// igmp_snooping.
	forEachWay(t, lab.Options{Bridge: lab.BridgeOptions{MulticastSnooping: true}, NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		udp := func(src, dst *lab.Host, group string, port, from uint16, payload string) []byte {
			data, err := hex.DecodeString(payload)
			must(t, err)
			s := ether.UDPSpec{Src: src.MAC, DstPort: port, SrcPort: from, Payload: data, Length: 300}
			switch {
			case dst != nil && group == "6":
				s.Dst, s.DstIP, s.SrcIP = dst.MAC, ether.LinkLocal(dst.MAC), ether.LinkLocal(src.MAC)
			case dst != nil:
				s.Dst, s.DstIP, s.SrcIP = dst.MAC, dst.IP4, src.IP4
			case group == "255.255.255.255":
				s.Dst, s.DstIP, s.SrcIP = ether.Broadcast, netip.MustParseAddr(group), netip.IPv4Unspecified()
			default:
				s.DstIP = netip.MustParseAddr(group)
				s.Dst, s.SrcIP = groupMAC(s.DstIP), src.IP4
				if s.DstIP.Is6() {
					s.SrcIP = ether.LinkLocal(src.MAC)
				}
			}
			return ether.UDP(s)
		}
		const dnsQuery = "000000000001000000000000" + "085f7365727669636573075f646e732d7364045f756470056c6f63616c00000c0001"
		for _, c := range []struct {
			name   string
			asks   []byte // from h1
			answer []byte // from h2 to h1; nil: by multicast, too
		}{
			{"ARP", ether.ARPRequest(h1.MAC, h1.IP4, h2.IP4), ether.ARPReply(h1.MAC, h2.MAC, h1.IP4, h2.IP4)},
			{"DHCPv4 discover and unicast offer", udp(h1, nil, "255.255.255.255", 67, 68, "01010600"+"deadbeef"), udp(h2, h1, "", 68, 67, "02010600"+"deadbeef")},
			{"DHCPv4 discover and broadcast offer", udp(h1, nil, "255.255.255.255", 67, 68, "01010600"+"deadbeef00008000"), nil},
			{"DHCPv6 solicit and advertise", udp(h1, nil, "ff02::1:2", 547, 546, "01abcdef"), udp(h2, h1, "6", 546, 547, "02abcdef")},
			{"mDNS", udp(h1, nil, "224.0.0.251", 5353, 5353, dnsQuery), nil},
			{"mDNS, unicast answer", udp(h1, nil, "224.0.0.251", 5353, 5353, dnsQuery), udp(h2, h1, "", 5353, 5353, dnsQuery)},
			{"mDNS over IPv6", udp(h1, nil, "ff02::fb", 5353, 5353, dnsQuery), nil},
			{"SSDP", udp(h1, nil, "239.255.255.250", 1900, 40001, "4d2d534541524348"), udp(h2, h1, "", 40001, 1900, "48545450")},
			{"neighbour solicitation", ether.NeighborSolicitation(h1.MAC, ether.LinkLocal(h1.MAC), ether.LinkLocal(h2.MAC)), nil},
			{"router advertisement", ether.RouterAdvertisement(h1.MAC, netip.MustParseAddr("2001:db8::")), nil},
		} {
			t.Run(c.name, func(t *testing.T) {
				// A fresh capture for each: none that an earlier case sent.
				at := map[*lab.Host]*lab.Capture{}
				for _, h := range []*lab.Host{h1, h2, h3} {
					got, err := h.Capture()
					must(t, err)
					defer got.Close()
					at[h] = got
				}
				send := func(h *lab.Host, frame []byte) {
					s, err := h.Sender()
					must(t, err)
					defer s.Close()
					must(t, s.Send(frame))
				}
				once := func(h *lab.Host, frame []byte) {
					t.Helper()
					if _, err := at[h].Expect(testContext(t), lab.Equal(frame)); err != nil {
						t.Fatalf("at %s: %v", h.Name, err)
					}
					if n := at[h].Count(lab.Equal(frame)); n > 0 {
						t.Errorf("at %s: %d more", h.Name, n)
					}
				}
				group, fast := b.count("eth1", "pass_group"), b.count("eth2", "redirected")
				send(h1, c.asks)
				once(h2, c.asks)
				once(h3, c.asks)
				if b.count("eth1", "pass_group") == group {
					t.Error("the bridge has not carried the question")
				}
				if c.answer == nil {
					reply := bytes.Clone(c.asks)
					copy(reply[6:12], h2.MAC)
					send(h2, reply)
					once(h1, reply)
					once(h3, reply)
					return
				}
				send(h2, c.answer)
				once(h1, c.answer)
				if c.name != "ARP" && b.count("eth2", "redirected") == fast {
					t.Error("the answer, a unicast frame, was not accelerated")
				}
				if n := at[h3].Count(lab.Equal(c.answer)); n > 0 {
					t.Error("the answer reached h3")
				}
			})
		}
	})
}

// TestRouterAdvertisement: hosts behind accelerated ports configure themselves
// from a router behind another one, and find each other with the addresses.
func TestRouterAdvertisement(t *testing.T) {
	forEachWay(t, lab.Options{Bridge: lab.BridgeOptions{MulticastSnooping: true}}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		for _, h := range []*lab.Host{h2, h3} {
			must(t, h.NS.SetSysctl("net/ipv6/conf/"+h.Dev()+"/accept_ra", "1"))
		}
		prefix := netip.MustParseAddr("2001:db8:77::")
		sender, err := h1.Sender()
		must(t, err)
		must(t, sender.Send(ether.RouterAdvertisement(h1.MAC, prefix)))
		addresses := map[*lab.Host]netip.Addr{}
		for _, h := range []*lab.Host{h2, h3} {
			b.wait(h.Name+" to have an address of the prefix", func() bool {
				handle, err := h.NS.Handle()
				must(t, err)
				dev, err := h.NS.Link(h.Dev())
				must(t, err)
				all, err := handle.AddrList(dev, netlink.FAMILY_V6)
				must(t, err)
				for _, a := range all {
					ip, _ := netip.AddrFromSlice(a.IP)
					if netip.PrefixFrom(prefix, 64).Contains(ip) {
						addresses[h] = ip
						return true
					}
				}
				return false
			})
		}
		// With neighbour solicitations of their kernels.
		ping6(t, h2.NS, addresses[h3])
	})
}
