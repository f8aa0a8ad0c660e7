// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// What the kernel can do is tried in a namespace that is thrown away: version
// numbers say little, since distributions leave features out and carry some
// back. Each answer is kept. Without the right to try, the answer is no.

// HasTCX tells whether programs can be attached by tcx links (Linux 6.6).
func HasTCX() bool { return hasTCX() }

var hasTCX = sync.OnceValue(func() bool {
	return netns.Try(func(ns *netns.NS) error {
		if err := rlimit.RemoveMemlock(); err != nil {
			return err
		}
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
		})
		if err != nil {
			return err
		}
		defer prog.Close()
		return ns.Do(func() error {
			// The loopback device is number 1 in every namespace.
			l, err := link.AttachTCX(link.TCXOptions{Interface: 1, Program: prog, Attach: ebpf.AttachTCXIngress})
			if err != nil {
				return err
			}
			return l.Close()
		})
	})
})

// HasVLANFiltering tells whether bridges can filter VLANs.
func HasVLANFiltering() bool { return hasVLANFiltering() }

var hasVLANFiltering = sync.OnceValue(func() bool {
	return netns.Try(func(ns *netns.NS) error {
		h, err := ns.Handle()
		if err != nil {
			return err
		}
		on := true
		br := &netlink.Bridge{LinkAttrs: netns.Named("br0"), VlanFiltering: &on}
		if err := h.LinkAdd(br); err != nil {
			return err
		}
		// A kernel without it may take the request and do nothing.
		text, err := ns.ReadSys("class/net/br0/bridge/vlan_filtering")
		if err == nil && text != "1" {
			err = netdev.ErrUnsupported
		}
		return err
	})
})

// Has8021q tells whether VLAN sub-interfaces can be made.
func Has8021q() bool { return has8021q() }

var has8021q = sync.OnceValue(func() bool {
	return netns.Try(func(ns *netns.NS) error {
		h, err := ns.Handle()
		if err != nil {
			return err
		}
		a, err := netns.AddVeth(h, "a", "b")
		if err != nil {
			return err
		}
		attrs := netns.Named("a.10")
		attrs.ParentIndex = a.Index
		return h.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: 10})
	})
})
