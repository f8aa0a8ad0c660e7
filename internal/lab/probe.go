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
)

// What the kernel can do is tried in a namespace that is thrown away: version
// numbers say little, since distributions leave features out and carry some
// back. Each answer is kept. Without the right to try, the answer is no.

// HasTCX tells whether programs can be attached by tcx links (Linux 6.6).
func HasTCX() bool { return hasTCX() }

var hasTCX = sync.OnceValue(func() bool {
	return try(func(ns *NS) error {
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

// HasLiveFrames tells whether LiveFrames works.
func HasLiveFrames() bool { return hasLiveFrames() }

var hasLiveFrames = sync.OnceValue(func() bool {
	return try(func(ns *NS) error {
		prog, err := loadXDP(asm.Instructions{asm.Mov.Imm(asm.R0, xdpDrop), asm.Return()})
		if err != nil {
			return err
		}
		defer prog.Close()
		return ns.Do(func() error {
			run := func(flags uint32) error {
				_, err := prog.Run(&ebpf.RunOptions{Data: make([]byte, MinFrame), Repeat: 1, Flags: flags})
				return err
			}
			if err := run(liveFramesFlag); err != nil {
				return err
			}
			// Kernels before 5.18 run the program, ignore all flags and send
			// nothing. Those that know this one refuse unknown ones.
			if run(liveFramesFlag|1<<31) == nil {
				return ErrNoLiveFrames
			}
			return nil
		})
	})
})

// HasVLANFiltering tells whether bridges can filter VLANs.
func HasVLANFiltering() bool { return hasVLANFiltering() }

var hasVLANFiltering = sync.OnceValue(func() bool {
	return try(func(ns *NS) error {
		h, err := ns.Handle()
		if err != nil {
			return err
		}
		on := true
		br := &netlink.Bridge{LinkAttrs: named("br0"), VlanFiltering: &on}
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
	return try(func(ns *NS) error {
		h, err := ns.Handle()
		if err != nil {
			return err
		}
		a, err := addVeth(h, "a", "b")
		if err != nil {
			return err
		}
		attrs := named("a.10")
		attrs.ParentIndex = a.Index
		return h.LinkAdd(&netlink.Vlan{LinkAttrs: attrs, VlanId: 10})
	})
})

// HasThreadedNAPI tells whether a veth's reception can run in a kernel thread
// of its own, which the Rig needs (veth with GRO: Linux 5.13).
func HasThreadedNAPI() bool { return hasThreadedNAPI() }

var hasThreadedNAPI = sync.OnceValue(func() bool {
	return try(func(ns *NS) error {
		h, err := ns.Handle()
		if err != nil {
			return err
		}
		name := uniqueName("xp")
		a, err := addVeth(h, name, "b")
		if err != nil {
			return err
		}
		if err := h.LinkSetUp(a); err != nil {
			return err
		}
		_, err = threadNAPI(ns, name)
		return err
	})
})

// try runs f in a new namespace and tells whether it went well.
func try(f func(*NS) error) bool {
	ns, err := NewNS("probe")
	if err != nil {
		return false
	}
	defer ns.Close()
	return f(ns) == nil
}

func named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

// addVeth makes a pair with both ends in the same namespace.
func addVeth(h *netlink.Handle, name, peer string) (*netlink.Veth, error) {
	veth := netlink.NewVeth(named(name))
	veth.PeerName = peer
	if err := h.LinkAdd(veth); err != nil {
		return nil, err
	}
	return veth, nil
}
