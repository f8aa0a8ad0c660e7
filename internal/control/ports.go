// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// port is a device that frames can leave by, and enter by if it has a section.
type port struct {
	device  string
	slot    uint32
	section *config.Port // nil: only a target of others, or a mere member of the bridge
	member  bool         // in the bridge, and nowhere in the configuration
	since   time.Time    // when its counters began

	ifindex    int  // 0: not there
	taken      bool // prepared for the tc engine
	set        bool // the slot stands for the device
	live       datapath.Port
	vlans      *bridge.VLANs // the table that the slot has; nil: none was set
	attachment *datapath.Attachment
	watcher    *datapath.Attachment // see watch.go
	unwatched  string               // why there is none
	preferred  *preference          // of auto's second step
	adaptive   *adaptivePort        // nil: that step does nothing here
	native     native

	state, reason string
	engines       map[string]string // why not, for those that were tried or ruled out
	told          toldPort
	engineChanges int
}

// reconcile makes ports and stations what configuration and mirror say. The
// order matters: a port is set before a station points to it, and stations are
// there before a program asks for them.
func (c *Controller) reconcile() {
	c.arrange()
	c.assignSlots()
	for _, p := range c.ordered() {
		c.reconcilePort(p)
	}
	c.syncStations()
	c.arrangeNative()
	for _, p := range c.ordered() {
		c.reconcileProgram(p)
	}
	for _, p := range c.ordered() {
		c.reconcileWatch(p)
	}
	if c.returnIdle() {
		c.reconcile()
		return
	}
	if br, ok := c.links.byName(c.bridgeName()); ok && br.Bridge != nil {
		c.ageing.adjust(br.Bridge.AgeingTime)
	}
	c.verifyNative()
	c.nameFilters()
	c.tellTaken()
	c.adaptPorts()
	c.tellPorts()
}

// ordered returns the ports in the configuration's order, targets last.
func (c *Controller) ordered() []*port {
	var all []*port
	for i := range c.config.Ports {
		if p := c.ports[c.config.Ports[i].Device]; p != nil {
			all = append(all, p)
		}
	}
	var targets []*port
	for _, p := range c.ports {
		if p.section == nil {
			targets = append(targets, p)
		}
	}
	slices.SortFunc(targets, func(a, b *port) int { return int(a.slot) - int(b.slot) })
	return append(all, targets...)
}

// assignSlots gives every configured device a slot and takes back those of
// devices that are no longer configured. A device keeps its slot, and with it
// its counters, while it is configured, present or not.
func (c *Controller) assignSlots() {
	wanted := map[string]*config.Port{}
	for i := range c.config.Ports {
		p := &c.config.Ports[i]
		wanted[p.Device] = p
	}
	if c.config.Main.Mode == config.ModePort {
		for _, p := range c.config.Ports {
			if _, ok := wanted[p.Target]; !ok && p.Target != "" {
				wanted[p.Target] = nil
			}
		}
	}
	members := map[string]bool{}
	for _, device := range c.members() {
		if _, ok := wanted[device]; !ok {
			wanted[device], members[device] = nil, true
		}
	}
	for device, p := range c.ports {
		if _, ok := wanted[device]; !ok {
			c.unwatch(p)
			c.detach(p)
			c.giveBack(p)
			c.clear(p)
			c.forgetAdapting(p)
			delete(c.ports, device)
		}
	}
	for device, section := range wanted {
		p := c.ports[device]
		if p == nil {
			slot, ok := c.freeSlot()
			if !ok && members[device] {
				continue // it is followed by what the kernel tells
			}
			if !ok {
				c.log.Error("too many ports", "device", device, "most", datapath.MaxPorts)
				continue
			}
			if err := c.dp.ResetCounters(slot); err != nil {
				c.log.Warn("counters begin with old numbers", "device", device, "error", err)
			}
			p = &port{device: device, slot: slot, since: time.Now()}
			c.ports[device] = p
		}
		p.section, p.member = section, members[device]
	}
}

func (c *Controller) freeSlot() (uint32, bool) {
	used := map[uint32]bool{}
	for _, p := range c.ports {
		used[p.slot] = true
	}
	for slot := range uint32(datapath.MaxPorts) {
		if !used[slot] {
			return slot, true
		}
	}
	return 0, false
}

// reconcilePort decides whether a port takes part, and tells the data path
// what it may do.
func (c *Controller) reconcilePort(p *port) {
	p.reason, p.engines = "", map[string]string{}
	l, present := c.links.byName(p.device)
	main := &c.config.Main
	switch {
	case p.member:
		p.state = api.Off
	case !main.Enabled:
		p.state, p.reason = api.Off, "xdpl2 is switched off (option enabled of section main)"
	case p.section != nil && !p.section.Enabled:
		p.state, p.reason = api.Off, "the port is switched off (option enabled of its section)"
	case !present:
		p.state, p.reason = api.Waiting, fmt.Sprintf("there is no device %s; it is taken when it appears", p.device)
	default:
		p.reason = c.whyNotHere(l)
		if p.reason == "" && !main.Wireless && netdev.Wireless(p.device) {
			p.reason = fmt.Sprintf("%s is wireless: stations there come and go, and isolation is the driver's (option wireless of section main allows it)", p.device)
		}
		p.state = api.Accelerating
		if p.reason != "" {
			p.state = api.NotAccelerated
		}
	}
	if p.ifindex != l.Index { // another device under the same name, or none
		c.unwatch(p)
		c.detach(p)
		c.giveBack(p)
		c.forgetAdapting(p)
		p.ifindex, p.preferred, p.native = l.Index, nil, native{}
	}
	if p.state != api.Accelerating {
		c.detach(p)
		c.clear(p)
		return
	}
	if p.section != nil && !p.taken {
		p.taken = true
		if err := c.takeForTC(p); err != nil {
			c.log.Warn("port not prepared for tc", "device", p.device, "error", err)
		}
	}
	live := livePort(c.links, l)
	tags, err := c.tagFlags(l)
	if err != nil {
		c.fail(p, err)
		return
	}
	live.Flags |= tags | c.guardFlags(l)
	if err := c.setVLANs(p, l); err != nil {
		c.fail(p, err)
		return
	}
	if p.set && p.live == live {
		return
	}
	if err := c.dp.SetPort(p.slot, live); err != nil {
		// The device may have gone meanwhile: the mirror will tell.
		c.fail(p, err)
		return
	}
	p.set, p.live = true, live
}

// vlanAware reports whether VLANs decide where frames may go.
func (c *Controller) vlanAware() bool {
	br, ok := c.links.byName(c.bridgeName())
	return ok && br.Bridge != nil && br.Bridge.VLANFiltering && c.config.Main.Mode == config.ModeMAC
}

// vlanAD reports whether a VLAN-aware bridge's tags are 802.1ad.
func (c *Controller) vlanAD() bool {
	br, _ := c.links.byName(c.bridgeName())
	return c.vlanAware() && br.Bridge.VLANAD
}

// setVLANs gives the data path a port's VLANs, before any program asks for them.
func (c *Controller) setVLANs(p *port, l bridge.Link) error {
	if !c.vlanAware() || l.VLANs == p.vlans {
		return nil
	}
	if err := c.dp.SetPortVLANs(p.slot, vlansOf(l.VLANs)); err != nil {
		return err
	}
	p.vlans = l.VLANs
	return nil
}

// giveBack undoes what was prepared on the device.
func (c *Controller) giveBack(p *port) {
	if !p.taken {
		return
	}
	p.taken = false
	if err := c.journal.restore(of(p.device)); err != nil {
		c.log.Error("port not given back", "device", p.device, "error", err)
	}
}

// takeForTC gives a port the qdisc that the tc engine needs before tcx,
// whichever engine it has first: a later change of engines must lose nothing.
func (c *Controller) takeForTC(p *port) error {
	if !c.dp.NeedsClsact() {
		return nil
	}
	has, err := datapath.HasClsact(p.ifindex)
	if err != nil || has {
		return err
	}
	if err := c.journal.record(journalEntry{Device: p.device, Ifindex: p.ifindex, Change: clsactAdded}); err != nil {
		return err
	}
	return datapath.AddClsact(p.ifindex)
}

func (c *Controller) fail(p *port, err error) {
	c.detach(p)
	c.clear(p)
	p.state, p.reason = api.Failed, err.Error()
	c.log.Warn("port not accelerated", "device", p.device, "error", err)
}

func (c *Controller) clear(p *port) {
	if p.set {
		c.empty(p)
	}
}

// empty makes the slot stand for nothing.
func (c *Controller) empty(p *port) {
	if err := c.dp.ClearPort(p.slot); err != nil {
		c.log.Error("port not cleared", "device", p.device, "error", err)
	}
	if p.vlans != nil { // whoever has the slot next may have none
		if err := c.dp.SetPortVLANs(p.slot, &datapath.VLANs{}); err != nil {
			c.log.Error("VLANs not cleared", "device", p.device, "error", err)
		}
		p.vlans = nil
	}
	p.set, p.live = false, datapath.Port{}
}

func (c *Controller) programOf(p *port) (datapath.Program, error) {
	program := datapath.Program{Slot: p.slot}
	if c.config.Main.Mode != config.ModePort {
		program.VLANs, program.VLANAD = c.vlanAware(), c.vlanAD()
		return program, nil
	}
	target := c.ports[p.section.Target]
	if target == nil || !target.set {
		reason := "it is not configured"
		if target != nil {
			reason = target.reason
		}
		return program, fmt.Errorf("target %s cannot be used: %s", p.section.Target, reason)
	}
	program.Mode, program.Target = datapath.ModePort, target.slot
	program.PassLocal, program.PassGroup = p.section.PassLocal, p.section.PassGroup
	return program, nil
}

// featuresChanged reports whether a device whose driver had something to tell
// now treats VLAN tags in another way.
func (c *Controller) featuresChanged(touched []int) bool {
	const both = datapath.PortHidesTags | datapath.PortLosesTags
	for _, ifindex := range touched {
		for _, p := range c.ports {
			if !p.set || p.ifindex != ifindex {
				continue
			}
			if tags, err := c.tagFlags(c.links[ifindex]); err == nil && tags != p.live.Flags&both {
				return true
			}
		}
	}
	return false
}

// detachAll leaves the devices as they were found.
func (c *Controller) detachAll() error {
	var err error
	for _, p := range c.ports {
		for _, a := range p.attachments() {
			err = errors.Join(err, a.Detach())
		}
		p.attachment, p.watcher, p.native.warm = nil, nil, nil
	}
	if c.journal != nil {
		err = errors.Join(err, c.journal.restore(everything))
	}
	return err
}

// attachments are all programs at the port's device.
func (p *port) attachments() []*datapath.Attachment {
	return slices.DeleteFunc([]*datapath.Attachment{p.attachment, p.watcher, p.native.warm},
		func(a *datapath.Attachment) bool { return a == nil })
}
