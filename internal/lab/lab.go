// SPDX-License-Identifier: Apache-2.0

// Package lab builds a small network inside namespaces of its own: a router
// with a kernel bridge and hosts behind its ports, and the traffic between
// them. Tests, the demo and the benchmarks run in it. It needs root, but no
// program besides this one, and nothing of it is visible outside.
package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/netns"
)

// BridgeName is the bridge of the lab router, named as on OpenWrt.
const BridgeName = "br-lan"

// Addresses of the router on its bridge.
var (
	RouterIP4 = netip.MustParseAddr("192.168.77.1")
	RouterIP6 = netip.MustParseAddr("fd77::1")
	// RouterMAC is the MAC address of the bridge itself.
	RouterMAC = net.HardwareAddr{0x02, 0, 0, 0, 0, 0xff}
)

// BridgeOptions are the settings of the router's bridge. Zero values mean
// what OpenWrt configures for br-lan.
type BridgeOptions struct {
	STP               bool          // run the spanning tree protocol; building takes 4 s then
	AgeingTime        time.Duration // of stations; 0 is the kernel's 300 s
	MulticastSnooping bool
	VLANFiltering     bool // see HasVLANFiltering
	// CallIPTables hands bridged frames to iptables, if the kernel has
	// br_netfilter. It is a cost for every frame, and off on OpenWrt.
	CallIPTables bool
}

// Options say what the lab consists of.
type Options struct {
	Hosts  int // hosts, each behind a port of its own; 0 means 3, at most 200
	Spares int // further bridge ports that no host is plugged into, at most 50
	Bridge BridgeOptions

	// Name makes the namespaces visible to `ip netns` as
	// xdpl2-PID-NAME-router and xdpl2-PID-NAME-hN. Empty keeps them anonymous.
	Name string

	// KeepOffloads leaves the hosts' checksum and segmentation offloads on.
	// By default they are off: a veth hands unfinished checksums and segments
	// of up to 64 KiB to its peer as they are, and a program that redirects
	// such a frame at the generic hook sends it on like that, while frames
	// from a real wire are always finished.
	KeepOffloads bool
	// NoTxVLAN turns the hosts' VLAN tag insertion off, so that a tag is
	// always in the frame's data when it leaves the host.
	NoTxVLAN bool
	// NoIPv6 turns IPv6 off on the hosts. With it they send nothing on their
	// own account: an IPv6 host announces its groups when its link comes up.
	NoIPv6 bool
	// MTU of a port and its host by the port's number, in bytes; 1500 for
	// those that are missing.
	MTU map[int]int
}

// Lab is the router and its hosts.
type Lab struct {
	Router *NS
	Hosts  []*Host // Hosts[0] is h1

	opts  Options
	shelf *NS // where the far ends of unplugged ports lie

	mu    sync.Mutex
	ports []*Port
	once  sync.Once
	err   error // of Close
}

// New builds a lab and waits until its ports forward.
func New(ctx context.Context, opts Options) (*Lab, error) {
	if opts.Hosts == 0 {
		opts.Hosts = 3
	}
	if opts.Hosts < 0 || opts.Hosts > 200 || opts.Spares < 0 || opts.Spares > 50 {
		return nil, fmt.Errorf("lab: %d hosts and %d spare ports: expected 1 to 200 hosts, up to 50 spares", opts.Hosts, opts.Spares)
	}
	l := &Lab{opts: opts}
	if err := l.build(ctx); err != nil {
		l.Close()
		return nil, fmt.Errorf("build lab: %w", err)
	}
	return l, nil
}

func (l *Lab) build(ctx context.Context) error {
	var err error
	if l.Router, err = l.newNS("router"); err != nil {
		return err
	}
	if l.shelf, err = NewNS("shelf"); err != nil {
		return err
	}
	if err := l.addBridge(); err != nil {
		return err
	}
	for i := 1; i <= l.opts.Hosts; i++ {
		port, err := l.addPort(i)
		if err != nil {
			return err
		}
		host, err := l.newHost(i)
		if err != nil {
			return err
		}
		l.Hosts = append(l.Hosts, host)
		if err := host.plug(port, "eth0"); err != nil {
			return err
		}
	}
	for i := range l.opts.Spares {
		if _, err := l.addPort(l.opts.Hosts + 1 + i); err != nil {
			return err
		}
	}
	for _, h := range l.Hosts {
		if err := l.WaitForwarding(ctx, h.port); err != nil {
			return err
		}
	}
	return l.Router.WaitAddresses(ctx, BridgeName)
}

func (l *Lab) newNS(label string) (*NS, error) {
	if l.opts.Name == "" {
		return NewNS(label)
	}
	return wrap(netns.NewNamed(l.opts.Name + "-" + label))
}

// addBridge makes br-lan with the router's addresses.
func (l *Lab) addBridge() error {
	h, err := l.Router.Handle()
	if err != nil {
		return err
	}
	o := l.opts.Bridge
	br := &netlink.Bridge{MulticastSnooping: &o.MulticastSnooping}
	br.LinkAttrs = netlink.NewLinkAttrs()
	br.Name = BridgeName
	br.HardwareAddr = RouterMAC
	if o.AgeingTime > 0 {
		ticks := uint32(o.AgeingTime / (10 * time.Millisecond)) // USER_HZ
		br.AgeingTime = &ticks
	}
	if o.VLANFiltering {
		br.VlanFiltering = &o.VLANFiltering
	}
	if err := h.LinkAdd(br); err != nil {
		return fmt.Errorf("create bridge: %w", err)
	}
	if o.STP {
		// The shortest delay that the kernel allows while STP runs, and what
		// OpenWrt sets; a port forwards after two of them.
		if err := l.Router.WriteSys("class/net/"+BridgeName+"/bridge/forward_delay", "200"); err != nil {
			return err
		}
		if err := l.setSTP(true); err != nil {
			return err
		}
	}
	if err := l.Router.SetCallIPTables(o.CallIPTables); err != nil {
		return err
	}
	if err := addAddresses(h, br, RouterIP4, RouterIP6); err != nil {
		return err
	}
	if err := h.LinkSetUp(br); err != nil {
		return fmt.Errorf("set bridge up: %w", err)
	}
	return nil
}

// addAddresses gives a device its addresses in the lab's two networks.
func addAddresses(h *netlink.Handle, link netlink.Link, addrs ...netip.Addr) error {
	for _, a := range addrs {
		bits := 24
		if a.Is6() {
			bits = 64
		}
		if err := netns.AddAddress(h, link, netip.PrefixFrom(a, bits)); err != nil {
			return err
		}
	}
	return nil
}

// Close takes the lab down. Closing twice is fine.
func (l *Lab) Close() error {
	l.once.Do(func() {
		var errs []error
		for _, h := range l.Hosts {
			errs = append(errs, h.NS.Close())
		}
		for _, ns := range []*NS{l.shelf, l.Router} {
			if ns != nil {
				errs = append(errs, ns.Close())
			}
		}
		l.err = errors.Join(errs...)
	})
	return l.err
}
