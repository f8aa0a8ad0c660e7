// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// Native XDP hands a frame from one driver to another. If the second one cannot
// send it, the frame is gone, and nobody is told. So a port gets native only if
// every port that its frames can leave by can transmit. Many drivers can only
// while they have a program themselves (their rings for it are made then). So
// the ports that may get native get a program first that passes everything,
// while the engine that they have goes on; then the kernel is asked what they
// can do, and what is not good enough is taken back.

// native is what is known of a port and native XDP.
type native struct {
	// warm is a program in the driver that passes everything: it makes the
	// driver able to transmit, and becomes the port's own.
	warm *datapath.Attachment
	why  string // why the port does not get native; empty: it may
	// bare is what the kernel told of the driver when it had no program of
	// ours, known whether it told anything.
	bare  netdev.XDPFeatures
	known bool
	// failed is why native did not work when it was tried, as long as what the
	// key is made of is the same.
	failed, key string
	// foreign: somebody else's program was in the way.
	foreign bool
}

// outs are the ports that frames of p can leave by.
func (c *Controller) outs(p *port) []*port {
	var outs []*port
	for _, out := range c.ordered() {
		if out != p && out.set && (c.config.Main.Mode != config.ModePort || out.device == p.section.Target) {
			outs = append(outs, out)
		}
	}
	return outs
}

// arrangeNative finds out which ports get native XDP, and puts a program into
// their drivers that passes everything until reconcileProgram gives them their
// own.
func (c *Controller) arrangeNative() {
	var able []*port
	for _, p := range c.ordered() {
		c.readXDP(p)
	}
	for _, p := range c.ordered() {
		p.native.why = c.whyNotTryNative(p)
		if p.native.why == "" {
			p.native.why = c.warmUp(p)
		}
		if p.native.why == "" {
			able = append(able, p)
		} else {
			c.cool(p)
		}
	}
	// Who loses its program may lose its way out with it.
	for again := true; again; {
		again = false
		able = slices.DeleteFunc(able, func(p *port) bool {
			if p.native.why = c.whyNotOut(p, able); p.native.why == "" {
				return false
			}
			c.rememberFailure(p, p.native.why)
			c.leaveNative(p)
			again = true
			return true
		})
	}
}

// readXDP asks what a port's driver can do while it has no program of ours.
func (c *Controller) readXDP(p *port) {
	if !p.set || p.hasNative() {
		return
	}
	features, err := c.xdpOf(p.ifindex)
	p.native.bare, p.native.known = features, err == nil
}

// xdpOf asks the kernel what a driver can do at the moment.
func (c *Controller) xdpOf(ifindex int) (netdev.XDPFeatures, error) {
	if c.opts.NoXDPFeatures {
		return 0, netdev.ErrUnsupported
	}
	return netdev.XDP(ifindex)
}

// watchXDP follows changes of what drivers can do, until the context ends. The
// channel is nil where the kernel tells nothing.
func (c *Controller) watchXDP(ctx context.Context) <-chan int {
	if c.opts.NoXDPFeatures {
		return nil
	}
	w, err := netdev.WatchXDP()
	if err != nil {
		if !errors.Is(err, netdev.ErrUnsupported) {
			c.log.Warn("changes of what drivers can do are not noticed", "error", err)
		}
		return nil
	}
	told := make(chan int)
	go func() {
		err := w.Run(ctx, func(ifindex int) {
			select {
			case told <- ifindex:
			case <-ctx.Done():
			}
		})
		if err != nil {
			c.log.Warn("changes of what drivers can do are no longer noticed", "error", err)
		}
	}()
	return told
}

// hasNative reports whether the port's driver has a program of ours.
func (p *port) hasNative() bool {
	return p.native.warm != nil || p.isNative()
}

// whyNotTryNative says why native is not even tried at a port, or "".
func (c *Controller) whyNotTryNative(p *port) string {
	if p.section == nil || p.state != api.Accelerating {
		return "the port is not accelerated"
	}
	if asked := c.config.EngineOf(p.section); asked != config.EngineAuto && asked != config.EngineNative {
		p.native.failed = "" // who asks for native again has it tried again
		return fmt.Sprintf("option engine asks for %s", asked)
	}
	if c.captures > 0 {
		return capturing
	}
	f := c.factsOf(p)
	if why := f.whyNotXDP(config.EngineNative); why != "" {
		return why
	}
	if f.asked == config.EngineAuto {
		for _, q := range append([]*port{p}, c.outs(p)...) {
			if l := c.links[q.ifindex]; isVirtual(l) {
				return fmt.Sprintf("%s is virtual (%s): native is not sure to get through there", l.Name, l.Kind)
			}
		}
	}
	const receives = netdev.XDPBasic | netdev.XDPRedirect
	if p.native.known && p.native.bare&receives != receives {
		return c.noDriverXDP(p)
	}
	if p.native.foreign && c.links[p.ifindex].XDP == 0 {
		p.native.failed, p.native.foreign = "", false
	}
	if p.native.failed != "" && p.native.key == c.nativeKey(p) {
		return p.native.failed
	}
	p.native.failed = ""
	return ""
}

func (c *Controller) noDriverXDP(p *port) string {
	return fmt.Sprintf("%s takes no XDP program in its driver (%s)", p.device, driverOf(p.device))
}

func driverOf(device string) string {
	driver, err := netdev.Driver(device)
	if err != nil || driver == "" {
		return "unknown"
	}
	return driver
}

// warmUp puts a program into the port's driver that passes everything, if there
// is none of ours yet. It returns why that cannot be done.
func (c *Controller) warmUp(p *port) (why string) {
	if p.hasNative() {
		return ""
	}
	program, err := c.programOf(p)
	if err != nil {
		return err.Error()
	}
	// Both kinds of XDP at once the kernel does not allow.
	if p.attachment != nil && p.attachment.Engine() == datapath.EngineGeneric {
		if err := c.bridgeOver(p, program); err != nil {
			return err.Error()
		}
	}
	err = c.prepareXDP(p)
	if err == nil {
		p.native.warm, err = c.dp.Attach(datapath.EngineNative, p.ifindex,
			datapath.Program{Slot: p.slot, Watch: true, VLANs: c.vlanAware(), VLANAD: c.vlanAD()})
	}
	if err == nil {
		c.log.Debug("the driver has an XDP program that passes everything", "device", p.device)
		return ""
	}
	why = err.Error()
	if errors.Is(err, datapath.ErrNoDriverXDP) {
		why = c.noDriverXDP(p)
	}
	c.rememberFailure(p, why)
	p.native.foreign = errors.Is(err, datapath.ErrForeignProgram)
	return why
}

// cool takes the program away that passes everything.
func (c *Controller) cool(p *port) {
	if p.native.warm == nil {
		return
	}
	if err := p.native.warm.Detach(); err != nil {
		c.log.Error("program not detached", "device", p.device, "error", err)
	}
	p.native.warm = nil
	if p.attachment == nil || !p.prepares(p.attachment.Engine()) {
		c.restoreFeatures(p)
	}
}

// leaveNative takes what a port has in its driver away, its own program only
// when another one is at work.
func (c *Controller) leaveNative(p *port) {
	c.cool(p)
	if !p.hasNative() {
		return
	}
	program, err := c.programOf(p)
	if err == nil {
		err = c.bridgeOver(p, program)
	}
	if err != nil { // the bridge takes over
		c.detach(p)
	}
}

// whyNotOut says which port that p's frames can leave by cannot send what
// native XDP hands to it, or "". able are the ports that have a program in
// their drivers.
func (c *Controller) whyNotOut(p *port, able []*port) string {
	for _, out := range c.outs(p) {
		features, err := c.xdpOf(out.ifindex)
		if errors.Is(err, netdev.ErrNoDevice) {
			continue // nothing leaves there any more; the mirror will tell
		}
		// A kernel that does not tell: a driver that takes programs most
		// probably transmits, too, while it has one. What it does is watched.
		cannot := err != nil && !slices.Contains(able, out)
		if err == nil {
			cannot = features&netdev.XDPTransmit == 0
		}
		if cannot {
			return fmt.Sprintf("%s could not send what native XDP redirects there (%s)", out.device, driverOf(out.device))
		}
	}
	return ""
}

// rememberFailure keeps a port from trying native again before anything has
// changed that matters to it: a driver may restart with each try.
func (c *Controller) rememberFailure(p *port, why string) {
	p.native.failed, p.native.key = why, c.nativeKey(p)
}

// nativeKey is what decides whether native works at a port, apart from what
// whyNotTryNative looks at anyway.
func (c *Controller) nativeKey(p *port) string {
	var key strings.Builder
	fmt.Fprintf(&key, "%s %s", c.config.EngineOf(p.section), c.config.Main.Mode)
	for _, q := range append(c.outs(p), p) {
		engine := ""
		if q.section != nil {
			engine = c.config.EngineOf(q.section)
		}
		fmt.Fprintf(&key, "; %d %d %v %d %s", q.ifindex, q.native.bare, q.native.known, c.links[q.ifindex].MTU, engine)
	}
	return key.String()
}

// featuresTold reports whether a device's XDP features matter and are other
// ones than those that the engines were chosen by. 0 stands for all devices.
func (c *Controller) featuresTold(ifindex int) bool {
	for _, p := range c.ports {
		if !p.set || ifindex != 0 && p.ifindex != ifindex {
			continue
		}
		if features, err := c.xdpOf(p.ifindex); err == nil && (p.hasNative() || features != p.native.bare) {
			return true
		}
	}
	return false
}
