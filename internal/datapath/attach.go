// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"math"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Engine is where a program runs.
type Engine string

// The engines.
const (
	EngineNative  Engine = "native"  // XDP in the driver
	EngineGeneric Engine = "generic" // XDP on the sk_buff
	EngineTC      Engine = "tc"      // tcx, or a clsact filter before 6.6
)

// ErrForeignProgram is returned when somebody else's program has the hook.
var ErrForeignProgram = errors.New("another XDP program is attached to the device")

// ErrNoDriverXDP is returned when a device's driver takes no XDP programs, or
// not as the device is set up.
var ErrNoDriverXDP = errors.New("the driver takes no XDP program")

// Attachment is a program at a device's hook.
type Attachment struct {
	d       *Datapath
	engine  Engine
	ifindex int
	hook    hook
	program Program
}

// hook is one way to hold a program at a device.
type hook interface {
	update(*ebpf.Program) error // replaces the program; no frame sees none
	detach() error
	name() string
	outlives() bool // stays when the process dies
}

// Attach loads a program for a port and attaches it to the device. The
// device's frames are judged by it from then on, so the port should be set
// (SetPort) before.
func (d *Datapath) Attach(engine Engine, ifindex int, p Program) (*Attachment, error) {
	a := &Attachment{d: d, engine: engine, ifindex: ifindex}
	var err error
	switch engine {
	case EngineNative:
		err = a.attachXDP(p, link.XDPDriverMode, "xdp native")
	case EngineGeneric:
		err = a.attachXDP(p, link.XDPGenericMode, "xdp generic")
	case EngineTC:
		err = a.attachTC(p)
	default:
		err = fmt.Errorf("unknown engine %q", engine)
	}
	if err != nil {
		return nil, fmt.Errorf("attach %s to ifindex %d: %w", engine, ifindex, err)
	}
	return a, nil
}

func (a *Attachment) attachXDP(p Program, flags link.XDPAttachFlags, name string) error {
	prog, err := a.d.load(a.engine, p)
	if err != nil {
		return err
	}
	defer prog.Close() // the link holds it
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: a.ifindex, Flags: flags})
	switch {
	case errors.Is(err, unix.EBUSY) || errors.Is(err, unix.EEXIST):
		return fmt.Errorf("%w: %w", ErrForeignProgram, err)
	case errors.Is(err, unix.EOPNOTSUPP) && flags == link.XDPDriverMode:
		return fmt.Errorf("%w: %w", ErrNoDriverXDP, err)
	case err != nil:
		return err
	}
	a.hook, a.program = linkHook{l, name}, p
	return nil
}

func (a *Attachment) attachTC(p Program) error {
	if a.d.noTCX {
		return a.attachClsact(p)
	}
	prog, err := a.d.load(a.engine, p)
	if err != nil {
		return err
	}
	defer prog.Close()
	// First in line: what stays for programs behind is what is passed.
	l, err := link.AttachTCX(link.TCXOptions{
		Program: prog, Interface: a.ifindex, Attach: ebpf.AttachTCXIngress, Anchor: link.Head(),
	})
	if err != nil {
		return err
	}
	a.hook, a.program = linkHook{l, "tcx"}, p
	return nil
}

func (a *Attachment) attachClsact(p Program) error {
	if err := AddClsact(a.ifindex); err != nil {
		return err
	}
	p.lease = true
	if err := a.d.startLease(); err != nil {
		return err
	}
	prog, err := a.d.load(a.engine, p)
	if err != nil {
		return err
	}
	defer prog.Close()
	h, err := attachClsact(a.ifindex, prog)
	if err != nil {
		return err
	}
	a.hook, a.program = h, p
	return nil
}

// haveTCX reports whether the kernel knows tcx links (6.6). Asked for a device
// that cannot exist, such a kernel says that there is none.
func haveTCX(prog *ebpf.Program) bool {
	l, err := link.AttachTCX(link.TCXOptions{Program: prog, Interface: math.MaxInt32, Attach: ebpf.AttachTCXIngress})
	if err == nil {
		l.Close()
		return true
	}
	return errors.Is(err, unix.ENODEV)
}

// Update loads a program with other constants and puts it in the place of the
// present one; each frame is judged by one of the two.
func (a *Attachment) Update(p Program) error {
	p.lease = a.hook.outlives()
	if p == a.program {
		return nil
	}
	return a.replace(p)
}

// Reload replaces the program by one that is the same but for the maps, which
// the data path may have replaced.
func (a *Attachment) Reload() error { return a.replace(a.program) }

func (a *Attachment) replace(p Program) error {
	prog, err := a.d.load(a.engine, p)
	if err != nil {
		return err
	}
	defer prog.Close()
	if err := a.hook.update(prog); err != nil {
		return fmt.Errorf("replace the program of ifindex %d: %w", a.ifindex, err)
	}
	a.program = p
	return nil
}

// Detach takes the program away. A device that is gone took it along.
func (a *Attachment) Detach() error {
	if err := a.hook.detach(); err != nil {
		return fmt.Errorf("detach from ifindex %d: %w", a.ifindex, err)
	}
	return nil
}

// Engine returns the engine that the port runs on.
func (a *Attachment) Engine() Engine { return a.engine }

// Hook names the kernel's hook: "xdp native", "xdp generic", "tcx" or "clsact".
func (a *Attachment) Hook() string { return a.hook.name() }

// Ifindex returns the device that the program is attached to.
func (a *Attachment) Ifindex() int { return a.ifindex }

// linkHook holds a program by a bpf_link: the kernel detaches it when the
// process ends, however it ends.
type linkHook struct {
	link.Link
	kind string
}

func (h linkHook) update(p *ebpf.Program) error { return h.Link.Update(p) }
func (h linkHook) detach() error                { return h.Link.Close() }
func (h linkHook) name() string                 { return h.kind }
func (h linkHook) outlives() bool               { return false }
