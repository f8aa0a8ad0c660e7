// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"log/slog"

	"github.com/cilium/ebpf"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// How a port gets its program and changes engines: what a device needs for an
// engine is there before the program, and the next program before the last one
// goes.

// reconcileProgram attaches what the port needs, replaces a program whose
// constants have changed, and changes engines without a gap.
func (c *Controller) reconcileProgram(p *port) {
	if p.state != api.Accelerating {
		return
	}
	if p.section == nil { // a target only
		c.detach(p)
		c.giveBack(p)
		return
	}
	program, err := c.programOf(p)
	if err != nil {
		c.detach(p)
		p.state, p.reason = api.NotAccelerated, err.Error()
		return
	}
	f := c.factsOf(p)
	all := c.visible(&f, candidates(f))
	var failed error
	for _, e := range all {
		if e.why != "" {
			continue
		}
		err := c.useEngine(p, e.engine, program)
		if err == nil {
			err = c.brokenWire(p, e.engine)
		}
		if err == nil {
			c.nameEngines(p, f, all)
			c.nameCapture(p)
			p.reason = f.warning(e.engine, p.engines)
			c.nameHiddenTags(p)
			return
		}
		p.engines[string(e.engine)] = err.Error()
		failed = errors.Join(failed, err)
		if string(e.engine) == f.asked && e.engine != datapath.EngineNative &&
			!errors.Is(err, ebpf.ErrNotSupported) && !errors.Is(err, errBrokenWire) {
			break
		}
	}
	c.detach(p)
	if errors.Is(failed, datapath.ErrForeignProgram) {
		p.state, p.reason = api.NotAccelerated, failed.Error()
		return
	}
	p.state, p.reason = api.Failed, failed.Error()
	c.log.Warn("port not accelerated", "device", p.device, "error", failed)
}

// useEngine makes the port run a program on an engine. The new program is at
// work before the old one goes: a frame in between is judged by both, and the
// first that redirects it has it. The two kinds of XDP cannot be there at once,
// so tc is at work between them.
func (c *Controller) useEngine(p *port, engine datapath.Engine, program datapath.Program) error {
	if p.attachment != nil && p.attachment.Engine() == engine {
		if !p.prepares(engine) { // there was a preference, and there is none now
			c.restoreFeatures(p)
		}
		return p.attachment.Update(program)
	}
	if p.attachment != nil && p.attachment.Engine() != datapath.EngineTC && engine != datapath.EngineTC {
		if err := c.bridgeOver(p, program); err != nil {
			// Without tc, the bridge is what lies between.
			c.log.Info("no tc between two XDP engines", "device", p.device, "error", err)
			c.release(p, true)
		}
	}
	a, err := c.attach(p, engine, program)
	if err != nil {
		return errors.Join(err, c.journal.restore(featuresOf(p.device)))
	}
	c.release(p, p.prepares(engine))
	p.attachment = a
	level := slog.LevelInfo
	if p.adaptive != nil && p.adaptive.step.Trying {
		level = slog.LevelDebug
	}
	c.log.Log(context.Background(), level, "accelerating", "device", p.device, "engine", engine, "hook", a.Hook())
	return nil
}

// bridgeOver has tc take a port over from an XDP engine, for a moment.
func (c *Controller) bridgeOver(p *port, program datapath.Program) error {
	a, err := c.attach(p, datapath.EngineTC, program)
	if err != nil {
		return err
	}
	c.release(p, true)
	p.attachment = a
	return nil
}

// attach puts a program at an engine's hook. Where a port was watched, that is
// the watching program's: there is one of ours at a clsact hook.
func (c *Controller) attach(p *port, engine datapath.Engine, program datapath.Program) (*datapath.Attachment, error) {
	if warm := p.native.warm; warm != nil && engine == datapath.EngineNative {
		p.native.warm = nil
		if err := warm.Update(program); err != nil {
			return nil, errors.Join(err, warm.Detach())
		}
		return warm, nil
	}
	if engine != datapath.EngineTC {
		if err := c.prepareXDP(p); err != nil {
			return nil, err
		}
	} else if a := p.watcher; a != nil {
		if err := a.Update(program); err != nil {
			return nil, err
		}
		p.watcher = nil
		return a, nil
	}
	return c.dp.Attach(engine, p.ifindex, program)
}

// prepareXDP has the device leave VLAN tags in the frames before a program that
// sees only those is attached, and writes down what the kernel will turn off.
func (c *Controller) prepareXDP(p *port) error {
	l := c.links[p.ifindex]
	if err := c.noteMerging(l); err != nil {
		return err
	}
	if err := c.keepTagsIn(l); err != nil {
		return err
	}
	tags, err := c.tagFlags(l)
	if err != nil {
		return err
	}
	const both = datapath.PortHidesTags | datapath.PortLosesTags
	live := p.live
	live.Flags = live.Flags&^both | tags
	if live == p.live {
		return nil
	}
	if err := c.dp.SetPort(p.slot, live); err != nil {
		return err
	}
	p.live = live
	return nil
}

func (c *Controller) detach(p *port) {
	c.cool(p)
	c.release(p, false)
}

// release takes the port's program away and undoes what it needed, unless the
// next program needs it too.
func (c *Controller) release(p *port, keepPrepared bool) {
	if p.attachment == nil {
		return
	}
	if err := p.attachment.Detach(); err != nil {
		c.log.Error("program not detached", "device", p.device, "error", err)
	}
	p.attachment = nil
	if !keepPrepared {
		c.restoreFeatures(p)
	}
}

// prepares reports whether the device stays as XDP needs it.
func (p *port) prepares(engine datapath.Engine) bool {
	return engine != datapath.EngineTC || p.preferred != nil
}

func (c *Controller) restoreFeatures(p *port) {
	if err := c.journal.restore(featuresOf(p.device)); err != nil {
		c.log.Error("device not restored", "device", p.device, "error", err)
	}
}
