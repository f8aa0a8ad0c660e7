// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// What the kernel can do is tried in a namespace that is thrown away: version
// numbers say little, since distributions leave features out and carry some
// back. Each answer is kept. Without the right to try, the answer is no.

// HasLiveFrames tells whether LiveFrames works.
func HasLiveFrames() bool { return hasLiveFrames() }

var hasLiveFrames = sync.OnceValue(func() bool {
	return netns.Try(func(ns *netns.NS) error {
		prog, err := loadXDP(asm.Instructions{asm.Mov.Imm(asm.R0, xdpDrop), asm.Return()})
		if err != nil {
			return err
		}
		defer prog.Close()
		return ns.Do(func() error {
			run := func(flags uint32) error {
				_, err := prog.Run(&ebpf.RunOptions{Data: make([]byte, ether.MinFrame), Repeat: 1, Flags: flags})
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

// HasThreadedNAPI tells whether a veth's reception can run in a kernel thread
// of its own, which the Rig needs (veth with GRO: Linux 5.13).
func HasThreadedNAPI() bool { return hasThreadedNAPI() }

var hasThreadedNAPI = sync.OnceValue(func() bool {
	return netns.Try(func(ns *netns.NS) error {
		h, err := ns.Handle()
		if err != nil {
			return err
		}
		name := uniqueName("xp")
		a, err := netns.AddVeth(h, name, "b")
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
