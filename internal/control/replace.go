// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/topology"
)

// Topology replace: the ports leave their bridge. In mode port they are in
// none, in mode mac in a bridge of xdpl2's own, which does for them what the
// fast path does not. What is changed is in the journal first; who changes it
// again while xdpl2 runs is right, and is left alone until the next reload.

// replaced is what topology replace has changed, and why it has not changed
// the rest.
type replaced struct {
	own      *topology.Own // nil: there is none
	ownIndex int
	taken    map[int]*takenDevice // by ifindex
	left     map[int]string       // devices to leave alone until the next reload, and why
	why      map[string]string    // why a device is not taken, by its name
	local    map[datapath.StationKey]station
	noXDP    map[int]string // why a lone wire cannot use XDP, by ifindex
	// unaddressed: all ports of a bridge were taken, since it had no address by
	// which the box could be reached. It may get one.
	unaddressed bool
	// since when devices are in no bridge, which may be about to get them.
	nobodys map[int]time.Time
	// when devices were given back. What the mirror tells of them may be older.
	returned map[int]time.Time
}

// mirrorLag is more than the mirror ever takes to tell of a change.
const mirrorLag = 2 * time.Second

// joinGrace is how long a device that is in no bridge is left there before it
// is taken. Whoever puts it into a bridge does so when it appears, and that is
// when xdpl2 hears of it, too.
const joinGrace = 2 * time.Second

// takenDevice is a device that xdpl2 has moved.
type takenDevice struct {
	device string
	before *topology.Snapshot
	place  topology.Place
	into   string // the name of place.Bridge
	// elsewhere says where somebody else has moved it since; empty: it is
	// where it should be.
	elsewhere string
}

// bridgeName is the bridge that decides where frames go, and that the mirror
// is asked about; empty if there is none.
func (c *Controller) bridgeName() string {
	switch main := &c.config.Main; {
	case main.Topology != config.TopologyReplace:
		return main.Bridge
	case main.Mode == config.ModeMAC && c.replaced.own != nil:
		return c.replaced.own.Name
	}
	return ""
}

// whyNotHere is whyNot for the topology in force.
func (c *Controller) whyNotHere(l bridge.Link) string {
	if c.config.Main.Topology != config.TopologyReplace {
		return whyNot(c.links, l, c.bridgeName())
	}
	t := c.replaced.taken[l.Index]
	switch {
	case t == nil:
		if why := c.replaced.why[l.Name]; why != "" {
			return why
		}
		return fmt.Sprintf("%s has not been taken out of its bridge", l.Name)
	case t.elsewhere != "":
		return fmt.Sprintf("somebody has moved %s %s; xdpl2 leaves it there (xdpl2 reload takes it again)", l.Name, t.elsewhere)
	case c.config.Main.Mode == config.ModeMAC:
		return whyNot(c.links, l, c.bridgeName())
	}
	return c.links.switchReason(l)
}

// arrange has every device where the configuration wants it.
func (c *Controller) arrange() {
	r := &c.replaced
	if r.taken == nil {
		r.taken, r.left, r.nobodys = map[int]*takenDevice{}, map[int]string{}, map[int]time.Time{}
		r.noXDP, r.returned = map[int]string{}, map[int]time.Time{}
	}
	// What cannot be taken is left, and may have others be left: a wire needs
	// both of its ends.
	for again := true; again; {
		r.why = map[string]string{}
		c.lookAround()
		want := c.wanted()
		c.returnDevices(func(index int) bool { _, ok := want[index]; return !ok })
		again = len(want) > 0 && !c.moveDevices(want)
	}
	// Not before the last device has left it.
	if r.own != nil && (len(r.taken) == 0 || c.config.Main.Mode != config.ModeMAC) {
		c.removeOwn()
	}
	c.lookAround()
	c.listLocal()
}

// returnIdle gives those devices back that are in no bridge and whose program
// could not be attached: the bridge at least carries their frames. It reports
// whether there were any.
func (c *Controller) returnIdle() bool {
	if c.config.Main.Topology != config.TopologyReplace || c.config.Main.Mode != config.ModePort {
		return false
	}
	found := false
	for _, p := range c.ports {
		if p.section == nil || p.attachment != nil || c.replaced.taken[p.ifindex] == nil {
			continue
		}
		if target := c.ports[p.section.Target]; p.set && target != nil && target.set {
			c.replaced.left[p.ifindex] = p.reason
			c.returnDevices(func(index int) bool { return index == p.ifindex })
			found = true
		}
	}
	return found
}

// moveDevices brings devices to their places. It reports whether all went well.
func (c *Controller) moveDevices(want map[int]topology.Place) bool {
	r := &c.replaced
	indexes := make([]int, 0, len(want))
	for index := range want {
		indexes = append(indexes, index)
	}
	slices.Sort(indexes)
	elsewhere := func(index int) bool { t := r.taken[index]; return t != nil && t.elsewhere != "" }
	indexes = slices.DeleteFunc(indexes, elsewhere)
	if len(indexes) == 0 {
		return true
	}
	if c.config.Main.Mode == config.ModeMAC {
		if err := c.makeOwn(); err != nil {
			c.log.Error("no bridge for the ports", "error", err)
			for _, index := range indexes {
				r.left[index] = err.Error()
			}
			return false
		}
	}
	taken := func(index int) bool { return r.taken[index] != nil }
	fresh := slices.DeleteFunc(slices.Clone(indexes), taken)
	if br, ok := c.links.byName(c.config.Main.Bridge); ok && len(fresh) > 0 {
		if err := topology.KeepMAC(br.Index, fresh...); err != nil {
			c.log.Warn("the bridge's address may change", "bridge", br.Name, "error", err)
		}
	}
	good := true
	for _, index := range indexes {
		place := want[index]
		if c.config.Main.Mode == config.ModeMAC {
			place.Bridge = r.ownIndex
		}
		if t := r.taken[index]; t != nil && t.place == place {
			continue
		}
		err := c.take(index, place)
		for try := 0; errors.Is(err, topology.ErrMoved) && try < 10; try++ {
			c.forget(movedDevice(index))
			delete(r.taken, index)
			err = c.take(index, place)
		}
		if errors.Is(err, topology.ErrPartly) {
			c.log.Warn("port not quite as it was in its bridge", "device", c.links[index].Name, "error", err)
			continue
		}
		if err != nil {
			c.log.Error("port not taken", "device", c.links[index].Name, "error", err)
			r.left[index] = err.Error()
			c.returnDevices(func(other int) bool { return other == index })
			good = false
		}
	}
	return good
}

// take moves a device, and remembers where it was if xdpl2 has not moved it
// before.
func (c *Controller) take(index int, place topology.Place) error {
	r := &c.replaced
	t := r.taken[index]
	if t == nil {
		name := c.links[index].Name
		before := c.journal.before(index)
		if before == nil {
			var err error
			if before, err = topology.Take(index); err != nil {
				return err
			}
			if err := c.journal.record(journalEntry{Device: name, Ifindex: index, Change: deviceMoved, Before: before}); err != nil {
				return err
			}
		}
		t = &takenDevice{device: name, before: before}
		r.taken[index] = t
	}
	t.place, t.into = place, c.bridgeName()
	err := t.before.Move(place)
	if err == nil || errors.Is(err, topology.ErrPartly) {
		c.log.Info("port taken", "device", t.device, "from", t.before.Bridge, "to", c.bridgeName())
	}
	return err
}

// returnDevices gives devices back to where they were.
func (c *Controller) returnDevices(match func(ifindex int) bool) {
	err := c.journal.restore(func(e journalEntry) bool {
		return e.Change == deviceMoved && c.replaced.taken[e.Ifindex] != nil && match(e.Ifindex)
	})
	if err != nil {
		c.log.Error("port not quite restored", "error", err)
	}
	for index, t := range c.replaced.taken {
		if !match(index) {
			continue
		}
		delete(c.replaced.taken, index)
		c.replaced.returned[index] = time.Now()
		c.log.Info("port given back", "device", t.device, "to", t.before.Bridge)
		if l, err := bridge.Read(index); err == nil {
			c.setLink(l)
		}
	}
}

// makeOwn makes xdpl2's own bridge if there is none.
func (c *Controller) makeOwn() error {
	r := &c.replaced
	if r.own != nil {
		return nil
	}
	own, err := topology.PlanOwn()
	if err != nil {
		return err
	}
	if err := c.journal.record(journalEntry{Device: own.Name, Change: bridgeAdded, Own: own}); err != nil {
		return err
	}
	index, err := own.Create(c.config.Main.Bridge)
	if err != nil && !errors.Is(err, topology.ErrPartly) {
		return errors.Join(err, c.journal.restore(ofOwn))
	}
	if err != nil {
		c.log.Warn("bridge not quite like the one that the ports come from", "bridge", own.Name, "like", c.config.Main.Bridge, "error", err)
	}
	r.own, r.ownIndex = own, index
	c.log.Info("bridge made", "bridge", own.Name, "like", c.config.Main.Bridge)
	return nil
}

func (c *Controller) removeOwn() {
	r := &c.replaced
	if err := c.journal.restore(ofOwn); err != nil {
		c.log.Error("bridge not removed", "bridge", r.own.Name, "error", err)
	}
	c.dropLink(r.ownIndex)
	r.own, r.ownIndex = nil, 0
}

// lookAround brings what the mirror has told up to date for the devices that
// xdpl2 has moved, since it tells of that later, and finds those that somebody
// else has moved.
func (c *Controller) lookAround() {
	r := &c.replaced
	if r.own != nil {
		if _, known := c.links[r.ownIndex]; !known {
			if l, err := bridge.Read(r.ownIndex); err == nil {
				c.setLink(l)
			} else if errors.Is(err, bridge.ErrGone) {
				c.log.Warn("somebody has removed the bridge", "bridge", r.own.Name)
				c.forget(ofOwn)
				r.own, r.ownIndex = nil, 0
			}
		}
	}
	for index, when := range r.returned {
		if l, err := bridge.Read(index); err == nil && l.Master != c.links[index].Master {
			c.setLink(l)
		}
		if time.Since(when) > mirrorLag {
			delete(r.returned, index)
		}
	}
	for index, t := range r.taken {
		if t.place == unplaced {
			continue
		}
		if l, ok := c.links[index]; ok && l.Master == t.place.Bridge {
			t.elsewhere = ""
			continue
		}
		l, err := bridge.Read(index)
		if errors.Is(err, bridge.ErrGone) {
			delete(r.taken, index)
			c.dropLink(index)
			c.forget(movedDevice(index))
			continue
		}
		if err != nil {
			c.log.Warn("port not looked at", "device", t.device, "error", err)
			continue
		}
		c.setLink(l)
		if l.Master != t.place.Bridge {
			c.movedByOthers(t, l)
		}
	}
}

// movedByOthers takes note of a device that somebody else has moved.
func (c *Controller) movedByOthers(t *takenDevice, l bridge.Link) {
	r := &c.replaced
	master := c.links[l.Master]
	if l.Master != 0 && master.Name == "" { // made just now
		master, _ = bridge.Read(l.Master)
	}
	where := "out of " + t.into
	if l.Master != 0 {
		where = "into " + master.Name
	}
	switch {
	case l.Master != 0 && t.before.Bridge == master.Name:
		// Where it was: then there is nothing left to undo.
		where = "back into " + master.Name
		r.left[l.Index] = fmt.Sprintf("somebody has moved %s %s; xdpl2 leaves it there (xdpl2 reload takes it again)", l.Name, where)
	case l.Master != 0 && t.before.Bridge == "" && master.Name == c.config.Main.Bridge:
		// It was plugged in, and taken before its bridge had it. It is taken
		// again, with what it is there.
		where = ""
	default:
		if t.elsewhere != where {
			c.log.Warn("somebody has moved a port; it is left there", "device", l.Name, "where", where)
		}
		t.elsewhere = where
		return
	}
	if where != "" {
		c.log.Warn("somebody has moved a port; it is left there", "device", l.Name, "where", where)
	}
	if err := t.before.Unwatch(); err != nil && !errors.Is(err, topology.ErrGone) {
		c.log.Error("port not quite restored", "device", l.Name, "error", err)
	}
	delete(r.taken, l.Index)
	c.forget(movedDevice(l.Index))
}

// setLink and dropLink change what is known of a device. Others may be reading
// the list, so it is a new one each time.
func (c *Controller) setLink(l bridge.Link) {
	// VLANs are read apart, by the mirror; a port takes its own along.
	if l.VLANs == nil && l.Port != nil {
		l.VLANs = c.links[l.Index].VLANs
	}
	c.links = maps.Clone(c.links)
	c.links[l.Index] = l
}

func (c *Controller) dropLink(ifindex int) {
	c.links = maps.Clone(c.links)
	delete(c.links, ifindex)
}

func (c *Controller) forget(match func(journalEntry) bool) {
	if err := c.journal.forget(match); err != nil {
		c.log.Error("journal not written", "error", err)
	}
}

// stillJoining reports whether a device is in no bridge since a moment only.
// It is looked at again afterwards.
func (c *Controller) stillJoining(l bridge.Link) bool {
	since, seen := c.replaced.nobodys[l.Index]
	if l.Master != 0 {
		delete(c.replaced.nobodys, l.Index)
		return false
	}
	if !seen {
		since = time.Now()
		c.replaced.nobodys[l.Index] = since
		time.AfterFunc(joinGrace, func() {
			select {
			case c.calls <- c.reconcile:
			case <-c.ended:
			}
		})
	}
	return time.Since(since) < joinGrace
}

// unplaced is where no device is: it has to be moved, wherever it is.
var unplaced = topology.Place{Bridge: -1}

// arrangeAnew has the next arrange take what was left alone: somebody has
// asked for it.
func (c *Controller) arrangeAnew() {
	r := &c.replaced
	clear(r.left)
	clear(r.noXDP)
	for _, t := range r.taken {
		if t.elsewhere != "" {
			t.elsewhere, t.place = "", unplaced
		}
	}
}
