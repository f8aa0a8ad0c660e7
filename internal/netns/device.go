// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// Try runs f in a new namespace and tells whether it went well.
func Try(f func(*NS) error) bool {
	ns, err := New("probe")
	if err != nil {
		return false
	}
	defer ns.Close()
	return f(ns) == nil
}

// Named returns the attributes of a device to make, with the library's defaults.
func Named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

// AddVeth makes a pair with both ends in the same namespace.
func AddVeth(h *netlink.Handle, name, peer string) (*netlink.Veth, error) {
	veth := netlink.NewVeth(Named(name))
	veth.PeerName = peer
	if err := h.LinkAdd(veth); err != nil {
		return nil, err
	}
	return veth, nil
}

// NewQuiet makes a namespace in which nobody speaks on his own account.
func NewQuiet(label string) (*NS, error) {
	ns, err := New(label)
	if err != nil {
		return nil, err
	}
	if err := ns.DisableIPv6(); err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	return ns, nil
}

// DisableIPv6 switches IPv6 off on all devices, also those that come. It is fine
// where there is none.
func (ns *NS) DisableIPv6() error {
	for _, conf := range []string{"all", "default"} {
		err := ns.SetSysctl("net/ipv6/conf/"+conf+"/disable_ipv6", "1")
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// AddAddress gives a device an address in its network.
func AddAddress(h *netlink.Handle, link netlink.Link, a netip.Prefix) error {
	ip := a.Addr()
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip.AsSlice(), Mask: net.CIDRMask(a.Bits(), ip.BitLen())}}
	if err := h.AddrAdd(link, addr); err != nil {
		return fmt.Errorf("add address %s to %s: %w", a, link.Attrs().Name, err)
	}
	return nil
}
