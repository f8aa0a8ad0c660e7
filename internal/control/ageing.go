// SPDX-License-Identifier: Apache-2.0

package control

import (
	"runtime/debug"
	"time"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// The bridge forgets a station that it has not heard for its ageing time, and
// it does not hear what the fast path carries. So the data path marks who
// sends, and the control plane looks at the marks and tells the bridge, once
// in a quarter of the ageing time. Who is silent ages as ever.

const (
	ageCheckMost  = 10 * time.Second
	ageCheckLeast = time.Second
)

// manyWritten is after how many written stations the memory that this took is
// given back to the system: the runtime would keep it for a while, and a router
// has little.
const manyWritten = 4096

type ageing struct {
	ticker   *time.Ticker
	interval time.Duration
	written  int // stations since memory was given back
}

func (a *ageing) start()                  { a.interval = ageCheckMost; a.ticker = time.NewTicker(a.interval) }
func (a *ageing) stop()                   { a.ticker.Stop() }
func (a *ageing) ticks() <-chan time.Time { return a.ticker.C }

// adjust sets how often marks are read, for a bridge's ageing time.
func (a *ageing) adjust(ageingTime time.Duration) {
	interval := min(max(ageingTime/8, ageCheckLeast), ageCheckMost)
	if interval != a.interval {
		a.interval = interval
		a.ticker.Reset(interval)
	}
}

// age reads the marks and refreshes what needs it.
func (c *Controller) age() {
	if c.replaced.unaddressed {
		c.reconcile()
	}
	if c.ageing.written >= manyWritten {
		c.ageing.written = 0
		go debug.FreeOSMemory()
	}
	br, ok := c.links.byName(c.bridgeName())
	if !ok || br.Bridge == nil || len(c.stations) == 0 {
		return
	}
	ended := c.dp.NextEpoch()
	at := thisMoment()
	present := make(map[datapath.StationKey]struct{}, len(c.stations))
	var due []datapath.StationKey
	c.dp.Stations(func(key datapath.StationKey, s datapath.Station) bool {
		present[key] = struct{}{}
		have := c.stations[key]
		if have == nil { // half a word: see datapath's table, on machines of 32 bits
			c.dp.DeleteStation(key)
			return true
		}
		if s.Seen != ended || s.Slot != have.Slot {
			return true
		}
		have.seen = at
		if have.ages && br.Bridge.AgeingTime > 0 && have.refreshed.since() >= br.Bridge.AgeingTime/4 {
			due = append(due, key)
		}
		return true
	})
	for _, key := range due {
		c.refresh(key, br.Index)
	}
	c.heal(present, br.Index)
	c.retryOverflow(br.Index)
}

// refresh tells the bridge that a station is alive. It looks at the map again
// first: if the station has moved meanwhile, the data path has removed it, and
// the bridge must not be told its old port.
func (c *Controller) refresh(key datapath.StationKey, br int) {
	have := c.stations[key]
	if s, ok := c.dp.Station(key); !ok || s.Slot != have.Slot {
		return
	}
	k := bridge.Key{Bridge: br, MAC: key.MAC, VLAN: key.VLAN}
	if err := c.mirror.Refresh(k, int(have.ifindex)); err != nil {
		c.log.Warn("station not refreshed", "error", err)
		return
	}
	have.refreshed = thisMoment()
	// If it moved between the question and the answer, the bridge has been told
	// an old port after the new one. What it does not know it floods.
	if s, ok := c.dp.Station(key); !ok || s.Slot != have.Slot {
		if err := c.mirror.Forget(k, int(have.ifindex)); err != nil {
			c.log.Warn("station that moved not forgotten", "error", err)
		}
	}
}

// heal writes stations again that the data path removed as moved although the
// bridge then did not move them (a filter dropped the frame, say): those that
// were missing at two checks in a row.
func (c *Controller) heal(present map[datapath.StationKey]struct{}, br int) {
	for key, have := range c.stations {
		_, ok := present[key]
		if ok || !have.missing {
			have.missing = !ok
			continue
		}
		c.writeStation(key, br)
	}
}
