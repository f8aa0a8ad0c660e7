// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"

	"github.com/xdpl2/xdpl2/internal/netns"
)

// bare is the least that forwards at a hook: programs that redirect whatever
// comes to one device, without looking. What xdpl2's programs cost more than
// these is what deciding costs.
type bare struct {
	router   *netns.NS
	ingress  int
	target   *ebpf.Map // with the egress in it
	xdp, tc  *ebpf.Program
	attached link.Link
}

const xdpPass = 2

// newBare loads the programs. Each uses the same helper as xdpl2's.
func newBare(router *netns.NS, ingress, egress string) (*bare, error) {
	in, err := router.Link(ingress)
	if err != nil {
		return nil, err
	}
	out, err := router.Link(egress)
	if err != nil {
		return nil, err
	}
	b := &bare{router: router, ingress: in.Attrs().Index}
	// The map takes devices of the namespace in which it is filled.
	err = router.Do(func() error {
		var err error
		b.target, err = ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.DevMap, KeySize: 4, ValueSize: 4, MaxEntries: 1})
		if err != nil {
			return err
		}
		return b.target.Put(uint32(0), uint32(out.Attrs().Index))
	})
	if err == nil {
		b.xdp, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Dual BSD/GPL", Instructions: asm.Instructions{
			asm.LoadMapPtr(asm.R1, b.target.FD()),
			asm.Mov.Imm(asm.R2, 0),
			asm.Mov.Imm(asm.R3, xdpPass),
			asm.FnRedirectMap.Call(),
			asm.Return(),
		}})
	}
	if err == nil {
		b.tc, err = ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "Dual BSD/GPL", Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R1, int32(out.Attrs().Index)),
			asm.Mov.Imm(asm.R2, 0),
			asm.FnRedirect.Call(),
			asm.Return(),
		}})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("load a bare redirect: %w", err), b.Close())
	}
	return b, nil
}

// attach attaches the bare program of an engine.
func (b *bare) attach(engine string) error {
	err := b.router.Do(func() error {
		var err error
		switch engine {
		case "generic":
			b.attached, err = link.AttachXDP(link.XDPOptions{Program: b.xdp, Interface: b.ingress, Flags: link.XDPGenericMode})
		case "tc":
			b.attached, err = link.AttachTCX(link.TCXOptions{Program: b.tc, Interface: b.ingress, Attach: ebpf.AttachTCXIngress})
		default:
			err = fmt.Errorf("no bare redirect for engine %q", engine)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("attach a bare redirect: %w", err)
	}
	return nil
}

func (b *bare) detach() error {
	if b.attached == nil {
		return nil
	}
	err := b.attached.Close()
	b.attached = nil
	return err
}

// Close unloads everything.
func (b *bare) Close() error {
	errs := []error{b.detach()}
	for _, p := range []*ebpf.Program{b.xdp, b.tc} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if b.target != nil {
		errs = append(errs, b.target.Close())
	}
	return errors.Join(errs...)
}
