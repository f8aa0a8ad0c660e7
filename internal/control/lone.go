// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// A wire that is in no bridge (topology replace, mode port) has nothing behind
// it: what the program leaves to the stack goes no further than the box. So an
// engine that would have to leave everything is not used there, and where the
// frames must be left, the ports stay in their bridge.

// lone reports whether a port is one end of such a wire.
func (c *Controller) lone(p *port) bool {
	return c.config.Main.Topology == config.TopologyReplace && c.config.Main.Mode == config.ModePort &&
		c.replaced.taken[p.ifindex] != nil
}

var errBrokenWire = errors.New("the wire would carry nothing")

// brokenWire says why a lone wire with the engine that was just attached would
// carry nothing.
func (c *Controller) brokenWire(p *port, engine datapath.Engine) error {
	if !c.lone(p) || engine == datapath.EngineTC {
		return nil
	}
	target := c.ports[p.section.Target]
	if p.live.Flags&datapath.PortHidesTags == 0 || target.live.Flags&datapath.PortLosesTags == 0 {
		return nil
	}
	why := fmt.Sprintf("%s may keep VLAN tags outside the frames, and %s would send them without", p.device, target.device)
	c.replaced.noXDP[p.ifindex] = why
	return fmt.Errorf("%w: %s", errBrokenWire, why)
}

// filteredWire says which filter would see everything that arrives at a device,
// if it became one end of a lone wire.
func (c *Controller) filteredWire(l bridge.Link) string {
	if c.config.Main.Mode != config.ModePort || c.config.Main.BypassFilters {
		return ""
	}
	l.Master = 0
	if found := c.filtersAt(l); len(found) > 0 {
		return filterReason(found)
	}
	return ""
}
