// SPDX-License-Identifier: Apache-2.0

package netns

import "github.com/vishvananda/netlink"

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
