// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"
	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// box is what the demo found on the machine.
type box struct {
	daemon    string   // path of the program
	missing   []string // what the demo cannot do without
	ipv6      bool
	live      bool   // frames that the kernel makes itself
	noCompare string // why the comparison is left out
	machine   results.Machine
}

// checkBox looks for everything at once, so that what is missing is told in
// one go. What the kernel can do is tried, not concluded from its version.
func checkBox(daemon string) *box {
	b := &box{machine: results.ThisMachine()}
	var err error
	if b.daemon, err = findDaemon(daemon); err != nil {
		b.lack("the daemon's program: %v (make builds it; --xdpl2 names it)", err)
	}
	if os.Geteuid() != 0 {
		b.lack("root: network namespaces and BPF need it; run it with sudo")
		return b
	}
	if err := netns.Supported(); err != nil {
		b.lack("network namespaces (CONFIG_NET_NS, CAP_SYS_ADMIN): %v", err)
		return b
	}
	for _, need := range []struct {
		what string
		try  func(*lab.NS) error
	}{
		{"Linux bridges (CONFIG_BRIDGE, module bridge)", tryLink(&netlink.Bridge{LinkAttrs: named("try0")})},
		{"pairs of virtual Ethernet devices (CONFIG_VETH, module veth)", tryVeth},
		{"BPF programs (CONFIG_BPF_SYSCALL, Linux 5.10 or later)", tryBPF},
	} {
		if err := inTrial(need.try); err != nil {
			b.lack("a kernel with %s: %v", need.what, err)
		}
	}
	b.ipv6 = inTrial(func(ns *lab.NS) error {
		off, err := ns.Sysctl("net/ipv6/conf/all/disable_ipv6")
		if err == nil && off != "0" {
			err = errors.New("switched off")
		}
		return err
	}) == nil
	b.live = rig.HasLiveFrames()
	b.noCompare = whyNoCompare()
	return b
}

func (b *box) lack(format string, args ...any) {
	b.missing = append(b.missing, fmt.Sprintf(format, args...))
}

// whyNoCompare tells why the measuring rig cannot work here, "" if it can.
func whyNoCompare() string {
	if err := rig.Unsupported(); err != nil {
		return err.Error()
	}
	// The rig's sink is a tap device.
	tun, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return fmt.Sprintf("no tap devices (CONFIG_TUN, module tun): %v", err)
	}
	tun.Close()
	return ""
}

// inTrial runs f on a namespace that is thrown away.
func inTrial(f func(*lab.NS) error) error {
	ns, err := lab.NewNS("trial")
	if err != nil {
		return err
	}
	defer ns.Close()
	return f(ns)
}

func named(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

func tryLink(link netlink.Link) func(*lab.NS) error {
	return func(ns *lab.NS) error {
		h, err := ns.Handle()
		if err != nil {
			return err
		}
		return h.LinkAdd(link)
	}
}

func tryVeth(ns *lab.NS) error {
	veth := netlink.NewVeth(named("try0"))
	veth.PeerName = "try1"
	return tryLink(veth)(ns)
}

// tryBPF loads the smallest programs of both kinds that xdpl2 uses.
func tryBPF(*lab.NS) error {
	// Kernels before 5.11 count programs against a tiny limit.
	if err := rlimit.RemoveMemlock(); err != nil {
		return err
	}
	for _, kind := range []ebpf.ProgramType{ebpf.XDP, ebpf.SchedCLS} {
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: kind, License: "Dual BSD/GPL",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		})
		if err != nil {
			return fmt.Errorf("load a program of type %s: %w", kind, err)
		}
		prog.Close()
	}
	return nil
}
