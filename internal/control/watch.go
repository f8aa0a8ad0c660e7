// SPDX-License-Identifier: Apache-2.0

package control

import (
	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// A station that moves to a port which is not accelerated, a wireless one, say,
// would be sent to its old port until the kernel has told of the move and the
// daemon has heard it. The bridge itself changes its mind with the station's
// first frame. So those ports have a program, too: it redirects nothing, and
// removes from the fast path who is heard there.

// members are the devices that are in the bridge and nowhere in the
// configuration.
func (c *Controller) members() []string {
	if !c.watches() {
		return nil
	}
	br, ok := c.links.byName(c.bridgeName())
	var names []string
	for _, l := range c.links {
		if ok && l.Master == br.Index && l.Port != nil {
			names = append(names, l.Name)
		}
	}
	return names
}

// watches reports whether stations can move at all.
func (c *Controller) watches() bool {
	return c.config.Main.Enabled && c.config.Main.Mode == config.ModeMAC
}

// reconcileWatch puts the watching program where frames of the bridge come in
// and no other program of ours sees all of them.
func (c *Controller) reconcileWatch(p *port) {
	l := c.links[p.ifindex]
	br, ok := c.links.byName(c.bridgeName())
	switch {
	case p.ifindex == 0 || !ok || !c.watches() || l.Master != br.Index || l.Port == nil || p.failed():
		c.unwatch(p)
		if p.attachment == nil && p.state != api.Off { // what is switched off may be switched on again
			c.giveBack(p)
		}
		return
	case p.attachment != nil && (p.attachment.Engine() == datapath.EngineTC || !c.blind(p)):
		c.unwatch(p)
		return
	}
	if err := c.watch(p, l); err != nil && p.unwatched != err.Error() {
		p.unwatched = err.Error()
		c.log.Info("a station that moves here is followed when the kernel tells of it, not at once", "device", p.device, "error", err)
	}
}

// failed reports whether the kernel has just refused to work with the device.
func (p *port) failed() bool { return p.section != nil && p.state == api.Failed }

func (c *Controller) watch(p *port, l bridge.Link) error {
	if p.attachment == nil {
		if err := c.setVLANs(p, l); err != nil {
			return err
		}
		live := livePort(c.links, l)
		if live != p.live {
			if err := c.dp.SetPort(p.slot, live); err != nil {
				return err
			}
			p.live = live
		}
	}
	program := datapath.Program{Slot: p.slot, Watch: true, VLANs: c.vlanAware(), VLANAD: c.vlanAD()}
	if p.watcher != nil {
		return p.watcher.Update(program)
	}
	if !p.taken {
		p.taken = true
		if err := c.takeForTC(p); err != nil {
			return err
		}
	}
	a, err := c.dp.Attach(datapath.EngineTC, p.ifindex, program)
	if err != nil {
		return err
	}
	p.watcher, p.unwatched = a, ""
	c.log.Debug("watching for stations that move", "device", p.device, "hook", a.Hook())
	return nil
}

func (c *Controller) unwatch(p *port) {
	if p.watcher == nil {
		return
	}
	if err := p.watcher.Detach(); err != nil {
		c.log.Error("program not detached", "device", p.device, "error", err)
	}
	p.watcher = nil
	if p.attachment == nil {
		c.empty(p)
	}
}
