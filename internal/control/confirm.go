// SPDX-License-Identifier: Apache-2.0

package control

import (
	"time"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// What the kernel told is a moment old when it is written to the data path. If
// the station has moved meanwhile, it would be written where it no longer is,
// and frames would go there until the kernel's next message has been read: the
// data path removes a station that moves, but only one that it has. So a station
// is written as unsure, which attracts no frames but goes when it moves, then the
// kernel is asked again, and only if it still says the same and the data path
// still has it, the station counts.

// confirmAfter is how long a station stays unsure. A frame that the data path
// has judged may not have reached the bridge yet, which answers for it; that
// takes a microsecond, or as long as an interrupt in between.
const confirmAfter = time.Millisecond

// unsure is the stations that wait to be confirmed.
type unsure struct {
	keys  map[datapath.StationKey]struct{}
	timer *time.Timer // runs while there are keys
}

func newUnsure() unsure {
	u := unsure{keys: map[datapath.StationKey]struct{}{}, timer: time.NewTimer(time.Hour)}
	u.timer.Stop()
	return u
}

func (u *unsure) add(key datapath.StationKey) {
	if len(u.keys) == 0 {
		u.timer.Reset(confirmAfter)
	}
	u.keys[key] = struct{}{}
}

// manyUnsure is from how many stations on one list costs less than single
// questions.
const manyUnsure = 64

// confirmStations makes those sure that were written since it was called last.
func (c *Controller) confirmStations() {
	if len(c.unsure.keys) == 0 {
		return
	}
	br, _ := c.links.byName(c.bridgeName())
	lookup, err := c.lookupFor(len(c.unsure.keys))
	if err != nil {
		c.log.Error("stations cannot be confirmed: the bridge carries them", "stations", len(c.unsure.keys), "error", err)
	}
	for key := range c.unsure.keys {
		delete(c.unsure.keys, key)
		have := c.stations[key]
		if have == nil || lookup == nil {
			continue
		}
		now, ok, err := lookup(bridge.Key{Bridge: br.Index, MAC: key.MAC, VLAN: key.VLAN})
		if err != nil {
			c.log.Error("station not confirmed: the bridge carries it", "station", key.String(), "error", err)
			continue
		}
		if !ok {
			continue // gone; the kernel's message is on its way
		}
		want, ok := stationOf(c.config.Main.Mode, now, c.slotOf)
		if !ok || want.Slot != have.Slot || want.Stay != have.Stay {
			continue // moved; likewise
		}
		c.dp.ConfirmStation(key, have.Station)
	}
}

// lookupFor returns the cheapest way to ask for n entries.
func (c *Controller) lookupFor(n int) (func(bridge.Key) (bridge.Entry, bool, error), error) {
	if n < manyUnsure {
		return c.mirror.Lookup, nil
	}
	all, err := c.mirror.Entries()
	if err != nil {
		return nil, err
	}
	return func(k bridge.Key) (bridge.Entry, bool, error) {
		e, ok := all[k]
		return e, ok, nil
	}, nil
}

// inPlace reports whether the data path has a station as it should be, so that
// nothing needs to be written.
func (c *Controller) inPlace(key datapath.StationKey, want datapath.Station) bool {
	is, ok := c.dp.Station(key)
	return ok && !is.Unsure && is.Slot == want.Slot && is.Local == want.Local && is.Stay == want.Stay
}
