// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ether"
)

// A NIC can take a tag out of a frame and hand it on beside the data. Hosts do
// the same here: a frame that is sent with a mark gets the tag that the mark
// names, TPID and TCI, by a program at its device's egress.

// offsetMark is that of mark in struct __sk_buff.
const offsetMark = 8

func tagByMark() (*ebpf.Program, error) {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadMem(asm.R3, asm.R6, offsetMark, asm.Word),
			asm.JEq.Imm(asm.R3, 0, "out"),
			asm.Mov.Reg(asm.R2, asm.R3),
			asm.RSh.Imm(asm.R2, 16),
			asm.HostTo(asm.BE, asm.R2, asm.Half),
			asm.And.Imm(asm.R3, 0xffff),
			asm.FnSkbVlanPush.Call(),
			// Kernels before 6.3 take no immediate value for the context.
			asm.Mov.Imm(asm.R0, 0),
			asm.StoreMem(asm.R6, offsetMark, asm.R0, asm.Word),
			asm.Mov.Imm(asm.R0, -1).WithSymbol("out"),
			asm.Return(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("load the program that hides tags: %w", err)
	}
	return prog, nil
}

// hideTags prepares the hosts' devices.
func (s *side) hideTags() error {
	prog, err := tagByMark()
	if err != nil {
		return err
	}
	defer prog.Close() // the filters hold it
	h, err := s.outside.Handle()
	if err != nil {
		return err
	}
	for _, index := range s.ends {
		err := h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
		if err != nil {
			return fmt.Errorf("add a clsact qdisc outside: %w", err)
		}
		err = h.FilterAdd(&netlink.BpfFilter{
			FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
			Fd:          prog.FD(), Name: "tag by mark", DirectAction: true,
		})
		if err != nil {
			return fmt.Errorf("add the program that hides tags: %w", err)
		}
	}
	return nil
}

// mark makes the frames that follow carry a hidden tag; 0: none.
func (p *packets) mark(tag uint32) error {
	if p.marked == tag {
		return nil
	}
	if err := unix.SetsockoptInt(p.fd, unix.SOL_SOCKET, unix.SO_MARK, int(tag)); err != nil {
		return fmt.Errorf("mark frames: %w", err)
	}
	p.marked = tag
	return nil
}

// wire is the frame as it is on a cable, with its hidden tag.
func (f *Frame) wire() []byte {
	if f.Hidden == 0 {
		return f.Data
	}
	return ether.Tag(f.Data, uint16(f.Hidden>>16), uint16(f.Hidden))
}
