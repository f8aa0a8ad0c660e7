// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/rlimit"

	"github.com/xdpl2/xdpl2/internal/netns"
)

// ErrNoLiveFrames says that the kernel cannot run XDP programs on frames of
// its own making that really leave (BPF_F_TEST_XDP_LIVE_FRAMES, Linux 5.18).
var ErrNoLiveFrames = errors.New("kernel has no live frames")

// liveFramesFlag is BPF_F_TEST_XDP_LIVE_FRAMES.
const liveFramesFlag = 1 << 1

// LiveOptions describe the frames of a generator.
type LiveOptions struct {
	Frame []byte // without check sequence, at most 3400 bytes
	// SpreadDst and SpreadSrc are the numbers of different destination and
	// source MAC addresses: powers of two up to 65536. The lowest 16 bits of
	// Frame's address, which must leave room for it, are drawn at random for
	// each frame. 0 and 1 leave the address as it is.
	SpreadDst, SpreadSrc int
}

// LiveFrames is a generator that makes the kernel itself send a frame again
// and again: about a million a second on one core. The receiving end of the
// veth gets them as roomy sk_buffs, with 256 bytes of headroom.
type LiveFrames struct {
	ns    *netns.NS
	prog  *ebpf.Program
	frame []byte
}

// NewLiveFrames prepares a generator that sends on a veth of the namespace. The
// other end must have GRO on, or an XDP program.
func NewLiveFrames(ns *netns.NS, dev string, o LiveOptions) (*LiveFrames, error) {
	if !HasLiveFrames() {
		return nil, ErrNoLiveFrames
	}
	link, err := ns.Link(dev)
	if err != nil {
		return nil, err
	}
	if len(o.Frame) < 14 || len(o.Frame) > 3400 {
		return nil, fmt.Errorf("live frames: %d bytes: expected 14 to 3400", len(o.Frame))
	}
	for _, n := range []int{o.SpreadDst, o.SpreadSrc} {
		if n < 0 || n > 1<<16 || n&(n-1) != 0 {
			return nil, fmt.Errorf("live frames: %d addresses: expected a power of two up to 65536", n)
		}
	}
	prog, err := loadXDP(liveProgram(link.Attrs().Index, o))
	if err != nil {
		return nil, fmt.Errorf("live frames: %w", err)
	}
	g := &LiveFrames{ns: ns, prog: prog, frame: append([]byte(nil), o.Frame...)}
	ns.Track(g)
	return g, nil
}

// liveProgram writes the start of the frame anew and redirects it. The kernel
// uses the pages again and again as their receivers left them: without the
// writing, a tag that some program pushed would stay in the later frames.
func liveProgram(index int, o LiveOptions) asm.Instructions {
	n := min(len(o.Frame), 64) &^ 1
	insns := asm.Instructions{
		asm.LoadMem(asm.R6, asm.R1, 0, asm.Word), // data
		asm.LoadMem(asm.R7, asm.R1, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R2, asm.R6),
		asm.Add.Imm(asm.R2, int32(n)),
		asm.JGT.Reg(asm.R2, asm.R7, "drop"),
	}
	for i := 0; i < n; {
		if n-i >= 8 {
			insns = append(insns,
				asm.LoadImm(asm.R1, int64(binary.NativeEndian.Uint64(o.Frame[i:])), asm.DWord),
				asm.StoreMem(asm.R6, int16(i), asm.R1, asm.DWord))
			i += 8
			continue
		}
		insns = append(insns,
			asm.Mov.Imm(asm.R1, int32(binary.NativeEndian.Uint16(o.Frame[i:]))),
			asm.StoreMem(asm.R6, int16(i), asm.R1, asm.Half))
		i += 2
	}
	for _, spread := range []struct{ offset, n int }{{4, o.SpreadDst}, {10, o.SpreadSrc}} {
		if spread.n <= 1 {
			continue
		}
		base := binary.BigEndian.Uint16(o.Frame[spread.offset:])
		insns = append(insns,
			asm.FnGetPrandomU32.Call(),
			asm.And.Imm(asm.R0, int32(spread.n-1)),
			asm.Add.Imm(asm.R0, int32(base)),
			asm.HostTo(asm.BE, asm.R0, asm.Half),
			asm.StoreMem(asm.R6, int16(spread.offset), asm.R0, asm.Half))
	}
	return append(insns,
		asm.Mov.Imm(asm.R1, int32(index)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
		asm.Mov.Imm(asm.R0, xdpDrop).WithSymbol("drop"),
		asm.Return())
}

const xdpDrop = 1

func loadXDP(insns asm.Instructions) (*ebpf.Program, error) {
	// Kernels before 5.11 count programs against a tiny limit.
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("raise memory limit: %w", err)
	}
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "rig_live", Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: insns,
	})
	if err != nil {
		return nil, fmt.Errorf("load program: %w", err)
	}
	return prog, nil
}

// Send makes the kernel send n frames and returns when it is done. A call
// costs some 20 ms besides the frames, so measurements send 100,000 or more
// at once. Frames that the receiving end has no room for are dropped there.
func (g *LiveFrames) Send(n int) error {
	const most = 1 << 20 // bounds how long one call cannot be interrupted
	for n > 0 {
		batch := min(n, most)
		err := g.ns.Do(func() error {
			// The kernel looks the device up in the thread's namespace.
			_, err := g.prog.Run(&ebpf.RunOptions{Data: g.frame, Repeat: uint32(batch), Flags: liveFramesFlag})
			return err
		})
		runtime.KeepAlive(g)
		if err != nil {
			return fmt.Errorf("send %d live frames: %w", batch, err)
		}
		n -= batch
	}
	return nil
}

// Close unloads the generator.
func (g *LiveFrames) Close() error {
	g.ns.Untrack(g)
	return g.prog.Close()
}
