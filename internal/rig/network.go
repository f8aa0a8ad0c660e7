// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// NetworkOptions say what a network consists of.
type NetworkOptions struct {
	Hosts int  // behind ports of the bridge; 0 means 2, at most 8
	WAN   bool // with a network behind a port of its own, which the router routes to
}

// Network is a router with hosts, for what the hosts notice: how fast TCP is,
// how long answers take. All that the router does runs in kernel threads on
// one core, all that the hosts do on another, so the router's share of the
// work is known exactly. What arrives at it are frames of at most 1514 bytes
// with finished checksums, as from a wire, and the ports have GRO.
type Network struct {
	Router *netns.NS
	Bridge string
	Ports  []string // of the bridge, one for each host
	Hosts  []*Host
	Far    *Host // in the other network; nil without WAN

	wan      string
	threads  []int // of the router
	endpoint int   // the hosts' CPU
}

// Host is a host of a Network.
type Host struct {
	NS  *netns.NS
	Dev string
	MAC net.HardwareAddr
	IP  netip.Addr
}

var (
	routerIP = netip.MustParseAddr("192.168.77.1")
	wanIP    = netip.MustParseAddr("198.51.100.1")
	farIP    = netip.MustParseAddr("198.51.100.2")
)

// NewNetwork builds a network. Close takes it down.
func NewNetwork(ctx context.Context, o NetworkOptions) (*Network, error) {
	if o.Hosts == 0 {
		o.Hosts = 2
	}
	if o.Hosts < 1 || o.Hosts > 8 {
		return nil, fmt.Errorf("network with %d hosts: expected 1 to 8", o.Hosts)
	}
	if err := Unsupported(); err != nil {
		return nil, fmt.Errorf("network: %w", err)
	}
	n := &Network{Bridge: bridgeName}
	if err := n.build(ctx, o); err != nil {
		return nil, errors.Join(fmt.Errorf("build network: %w", err), n.Close())
	}
	return n, nil
}

func (n *Network) build(ctx context.Context, o NetworkOptions) error {
	cpus, err := allowedCPUs()
	if err != nil {
		return err
	}
	router := cpus[0]
	n.endpoint = cpus[1]
	if n.Router, err = netns.NewQuiet("net-router"); err != nil {
		return err
	}
	h, err := n.Router.Handle()
	if err != nil {
		return err
	}
	if err := AddBridge(h, n.Bridge); err != nil {
		return err
	}
	br, err := n.Router.Link(n.Bridge)
	if err != nil {
		return err
	}
	if err := n.Router.SetCallIPTables(false); err != nil {
		return err
	}
	for i := range o.Hosts {
		host := &Host{Dev: rigSourceDev, MAC: net.HardwareAddr{0x02, 0, 0, 0, 0x01, byte(1 + i)},
			IP: netip.AddrFrom4([4]byte{192, 168, 77, byte(11 + i)})}
		port := uniqueName("xp")
		n.Hosts = append(n.Hosts, host)
		n.Ports = append(n.Ports, port)
		if err := n.connect(host, port, router); err != nil {
			return err
		}
		link, err := n.Router.Link(port)
		if err != nil {
			return err
		}
		if err := h.LinkSetMaster(link, br); err != nil {
			return fmt.Errorf("add %s to the bridge: %w", port, err)
		}
	}
	for _, port := range n.Ports {
		if err := WaitForwarding(ctx, n.Router, port); err != nil {
			return err
		}
	}
	if !o.WAN {
		return nil
	}
	return n.addWAN(router)
}

// addWAN makes the other network, and the router route.
func (n *Network) addWAN(cpu int) error {
	n.Far = &Host{Dev: rigSourceDev, MAC: net.HardwareAddr{0x02, 0, 0, 0, 0x02, 1}, IP: farIP}
	n.wan = uniqueName("xw")
	if err := n.connect(n.Far, n.wan, cpu); err != nil {
		return err
	}
	if err := addAddress(n.Router, n.Bridge, routerIP); err != nil {
		return err
	}
	if err := addAddress(n.Router, n.wan, wanIP); err != nil {
		return err
	}
	if err := n.Router.SetSysctl("net/ipv4/ip_forward", "1"); err != nil {
		return err
	}
	for _, host := range n.Hosts {
		if err := addRoute(host.NS, farIP, routerIP); err != nil {
			return err
		}
		if err := addRoute(n.Far.NS, host.IP, wanIP); err != nil {
			return err
		}
	}
	return nil
}

// WaitForwarding waits until a bridge port forwards.
func WaitForwarding(ctx context.Context, ns *netns.NS, dev string) error {
	return ns.WaitUntil(ctx, dev+" forwarding", func() (bool, error) {
		text, err := ns.ReadSys("class/net/" + dev + "/brport/state")
		return text == forwarding, err
	})
}

// connect makes a host and the cable between it and a port of the router.
func (n *Network) connect(host *Host, port string, cpu int) error {
	var err error
	if host.NS, err = netns.NewQuiet("net-host"); err != nil {
		return err
	}
	h, err := n.Router.Handle()
	if err != nil {
		return err
	}
	veth := netlink.NewVeth(netns.Named(port))
	// The host's end has a name that no other rig's thread has, too.
	veth.PeerName = uniqueName("xh")
	host.Dev = veth.PeerName
	veth.PeerNamespace = netlink.NsFd(host.NS.FD())
	veth.PeerHardwareAddr = host.MAC
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("create port %s: %w", port, err)
	}
	far, err := host.NS.Handle()
	if err != nil {
		return err
	}
	end, err := host.NS.Link(host.Dev)
	if err != nil {
		return err
	}
	// As frames are on a wire.
	err = host.NS.Do(func() error {
		return errors.Join(netdev.SetFeature(host.Dev, netdev.TSO, false), netdev.SetFeature(host.Dev, netdev.TxChecksum, false))
	})
	if err != nil {
		return err
	}
	if err := errors.Join(h.LinkSetUp(veth), far.LinkSetUp(end)); err != nil {
		return fmt.Errorf("set %s up: %w", port, err)
	}
	if err := addAddress(host.NS, host.Dev, host.IP); err != nil {
		return err
	}
	thread, err := pinnedNAPI(n.Router, port, cpu)
	if err != nil {
		return err
	}
	n.threads = append(n.threads, thread)
	_, err = pinnedNAPI(host.NS, host.Dev, n.endpoint)
	return err
}

// pinnedNAPI moves the reception of a device into a thread on one CPU. It gets
// the best of the ordinary priorities: a real-time one would be throttled
// after a second of full load.
func pinnedNAPI(ns *netns.NS, dev string, cpu int) (thread int, err error) {
	if thread, err = threadNAPI(ns, dev); err != nil {
		return 0, err
	}
	if err := Pin(thread, cpu); err != nil {
		return 0, err
	}
	if err := unix.Setpriority(unix.PRIO_PROCESS, thread, -20); err != nil {
		return 0, fmt.Errorf("raise priority: %w", err)
	}
	return thread, nil
}

func addAddress(ns *netns.NS, dev string, ip netip.Addr) error {
	h, err := ns.Handle()
	if err != nil {
		return err
	}
	link, err := ns.Link(dev)
	if err != nil {
		return err
	}
	return netns.AddAddress(h, link, netip.PrefixFrom(ip, 24))
}

// addRoute sends what goes to the network of an address by a router.
func addRoute(ns *netns.NS, to, via netip.Addr) error {
	h, err := ns.Handle()
	if err != nil {
		return err
	}
	dst := &net.IPNet{IP: to.AsSlice(), Mask: net.CIDRMask(32, 32)}
	if err := h.RouteAdd(&netlink.Route{Dst: dst, Gw: via.AsSlice()}); err != nil {
		return fmt.Errorf("add a route to %s: %w", to, err)
	}
	return nil
}

// ForwardingTime returns how long the router's threads have run so far.
func (n *Network) ForwardingTime() (time.Duration, error) {
	var sum time.Duration
	for _, thread := range n.threads {
		run, err := runTime(thread)
		if err != nil {
			return 0, err
		}
		sum += run
	}
	return sum, nil
}

// PinEndpoint puts the calling thread, which must be locked to its goroutine,
// on the hosts' core.
func (n *Network) PinEndpoint() error { return Pin(0, n.endpoint) }

// SentToFar returns how many packets the router sent to the other network, and
// their bytes. What GRO put together counts as one.
func (n *Network) SentToFar() (packets, bytes uint64, err error) {
	link, err := n.Router.Link(n.wan)
	if err != nil {
		return 0, 0, err
	}
	s := link.Attrs().Statistics
	if s == nil {
		return 0, 0, errors.New("no statistics of the router's far port")
	}
	return s.TxPackets, s.TxBytes, nil
}

// Close takes the network down. Closing twice is fine.
func (n *Network) Close() error {
	var errs []error
	hosts := n.Hosts
	if n.Far != nil {
		hosts = append(hosts[:len(hosts):len(hosts)], n.Far)
	}
	for _, host := range hosts {
		if host.NS != nil {
			errs = append(errs, host.NS.Close())
		}
	}
	if n.Router != nil {
		errs = append(errs, n.Router.Close())
	}
	return errors.Join(errs...)
}
