// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"time"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// station is what was written to the data path, and since when it is silent.
// There may be many: its fields are small.
type station struct {
	datapath.Station
	source    source
	ages      bool  // the bridge forgets it unless it is refreshed
	missing   bool  // was not in the table at the last check
	ifindex   int32 // the port, for refreshing
	seen      moment
	refreshed moment
}

// source is who says where a station is.
type source uint8

const (
	sourceBridge source = iota
	sourceStatic
	sourceLocal
)

func (s source) String() string { return [...]string{"bridge", "static", "local"}[s] }

// moment is a time in nanoseconds since the process began; 0 is never. Unlike
// the clock on the wall it does not jump.
type moment int64

var processBegan = time.Now()

func thisMoment() moment { return moment(time.Since(processBegan)) + 1 }

func (m moment) since() time.Duration { return time.Duration(thisMoment() - m) }

// followStations applies changed entries of the bridge's database. They are
// written even if nothing seems new: the data path may have removed the
// station meanwhile, because it moved.
func (c *Controller) followStations(changes []bridge.Change) {
	br, ok := c.links.byName(c.bridgeName())
	if !ok {
		return
	}
	for _, ch := range changes {
		if ch.Key.Bridge == br.Index {
			c.writeStation(datapath.StationKey{MAC: ch.Key.MAC, VLAN: ch.Key.VLAN}, br.Index)
		}
	}
}

// syncStations makes all stations what they should be.
func (c *Controller) syncStations() {
	br, _ := c.links.byName(c.bridgeName())
	for key := range c.overflow {
		delete(c.overflow, key)
	}
	// What has to go first: it makes room.
	for key := range c.stations {
		if _, ok := c.desiredStation(key, br.Index); !ok {
			c.deleteStation(key)
		}
	}
	for k := range c.fdb {
		if k.Bridge != br.Index || br.Index == 0 {
			continue
		}
		key := datapath.StationKey{MAC: k.MAC, VLAN: k.VLAN}
		want, ok := c.desiredStation(key, br.Index)
		if have := c.stations[key]; ok && (have == nil || !have.same(want)) {
			c.putStation(key, want)
		}
	}
	for key, want := range c.replaced.local {
		if have := c.stations[key]; have == nil || !have.same(want) {
			c.putStation(key, want)
		}
	}
	for _, s := range c.config.Stations {
		key := datapath.StationKey{MAC: s.MAC, VLAN: c.vlanOf(s)}
		if want, ok := c.desiredStation(key, br.Index); ok && c.stations[key] == nil {
			c.putStation(key, want)
		}
	}
}

func (s *station) same(o station) bool {
	return s.Slot == o.Slot && s.Local == o.Local && s.Stay == o.Stay && s.source == o.source && s.ifindex == o.ifindex && s.ages == o.ages
}

func (c *Controller) writeStation(key datapath.StationKey, br int) {
	if want, ok := c.desiredStation(key, br); ok {
		c.putStation(key, want)
	} else {
		c.deleteStation(key)
	}
}

// desiredStation is where the fast path should send an address: where the
// bridge does, or where the configuration says if the bridge knows nothing.
func (c *Controller) desiredStation(key datapath.StationKey, br int) (station, bool) {
	if want, ok := c.replaced.local[key]; ok {
		return want, true
	}
	// A bridge that is not VLAN-aware looks up VLAN 0 alone, and one that is
	// everything but that. (The kernel keeps entries for the day when it changes.)
	if br == 0 || !c.config.Main.Enabled || c.vlanAware() != (key.VLAN != 0) {
		return station{}, false
	}
	if e, ok := c.fdb[bridge.Key{Bridge: br, MAC: key.MAC, VLAN: key.VLAN}]; ok {
		s, ok := stationOf(c.config.Main.Mode, e, c.slotOf)
		source := sourceBridge
		if s.Local {
			source = sourceLocal
		}
		return station{Station: s, source: source, ifindex: int32(e.Port), ages: !e.Static && !e.Local}, ok
	}
	for _, s := range c.config.Stations {
		if s.MAC == key.MAC && c.vlanOf(s) == key.VLAN {
			p := c.ports[s.Port]
			if p == nil || !p.set {
				return station{}, false
			}
			return station{Station: datapath.Station{Slot: p.slot, Stay: true}, source: sourceStatic, ifindex: int32(p.ifindex)}, true
		}
	}
	return station{}, false
}

// vlanOf is the VLAN of a static station. In a VLAN-aware bridge one without
// is in that of its port's untagged frames.
func (c *Controller) vlanOf(s config.Station) uint16 {
	if s.VLAN == 0 && c.vlanAware() {
		if p := c.ports[s.Port]; p != nil && p.set {
			return p.live.PVID
		}
	}
	return s.VLAN
}

// slotOf finds the slot that stands for a device.
func (c *Controller) slotOf(ifindex int) (uint32, bool) {
	for _, p := range c.ports {
		if p.set && p.ifindex == ifindex {
			return p.slot, true
		}
	}
	return 0, false
}

func (c *Controller) putStation(key datapath.StationKey, want station) {
	if have := c.stations[key]; have != nil && have.ifindex == want.ifindex {
		want.seen, want.refreshed = have.seen, have.refreshed
	}
	if want.refreshed == 0 {
		want.refreshed = thisMoment()
	}
	var err error
	if !c.inPlace(key, want.Station) {
		// What the configuration says needs no asking, nor do the box's own
		// addresses: these attract frames to the bridge.
		written := want.Station
		written.Unsure = want.source == sourceBridge
		if err = c.dp.PutStation(key, written); err == nil && written.Unsure {
			c.unsure.add(key)
		}
	}
	switch {
	case errors.Is(err, datapath.ErrStationsFull):
		if len(c.overflow) == 0 {
			c.log.Warn("more stations than fit: the bridge carries the others", "option", "max_stations", "value", c.config.Main.MaxStations)
		}
		c.overflow[key] = struct{}{}
		return
	case err != nil:
		c.log.Error("station not written", "station", key.String(), "error", err)
		return
	}
	delete(c.overflow, key)
	c.ageing.written++
	before := c.stations[key]
	c.stations[key] = &want
	c.tellStation(key, before, &want)
}

// retryOverflow writes stations that did not fit, as far as there is room now.
func (c *Controller) retryOverflow(br int) {
	for key := range c.overflow {
		c.writeStation(key, br)
		if _, full := c.overflow[key]; full {
			return
		}
	}
}

func (c *Controller) deleteStation(key datapath.StationKey) {
	delete(c.overflow, key)
	delete(c.unsure.keys, key)
	c.dp.DeleteStation(key)
	before := c.stations[key]
	delete(c.stations, key)
	c.tellStation(key, before, nil)
}
