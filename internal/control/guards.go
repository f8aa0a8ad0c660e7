// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/filters"
)

// Where somebody wants to see frames, they are not accelerated: a user's
// firewall is not stepped around. Option bypass_filters says otherwise, and
// status then says what is bypassed.

// guards is what internal/filters has found, and how it goes on telling.
type guards struct {
	state   filters.State
	taken   []string // what Options.Taken was told
	updates chan filters.State
	ended   chan error
}

// watchFilters reads what there is and follows it until the context ends; then
// ended tells so. The first state is there when it returns, so that no frame
// is accelerated before it is known.
func (c *Controller) watchFilters(ctx context.Context) error {
	watcher, err := filters.Open(filters.Options{Own: datapath.TCProgram})
	if err != nil {
		return fmt.Errorf("look for filters: %w", err)
	}
	g := &c.guards
	g.updates, g.ended = make(chan filters.State), make(chan error, 1)
	c.followFilters(watcher.State())
	go func() {
		g.ended <- watcher.Run(ctx, func(s filters.State) {
			select {
			case g.updates <- s:
			case <-ctx.Done():
			}
		})
	}()
	return nil
}

// followFilters takes a new state; the caller reconciles.
func (c *Controller) followFilters(s filters.State) {
	before := c.guards.state
	c.guards.state = s
	for _, f := range s.Filters {
		if !slices.Contains(before.Filters, f) {
			c.log.Info("filter found", "filter", f.Text)
		}
	}
	for _, f := range before.Filters {
		if !slices.Contains(s.Filters, f) {
			c.log.Info("filter gone", "filter", f.Text)
		}
	}
}

// filtersAt returns the filters that see what arrives at a port. A port that is
// in no bridge has only its own.
func (c *Controller) filtersAt(l bridge.Link) []filters.Filter {
	return slices.DeleteFunc(c.guards.state.At(l.Name, c.links[l.Master].Name), func(f filters.Filter) bool {
		return f.Place == filters.Bridged && l.Master == 0
	})
}

// guardFlags is what the data path must know about filters and shapers of a
// port.
func (c *Controller) guardFlags(l bridge.Link) datapath.PortFlags {
	var flags datapath.PortFlags
	if c.guards.state.Shapers[l.Index] != "" {
		flags |= datapath.PortKeepsEgress
	}
	if c.config.Main.BypassFilters {
		return flags
	}
	for _, f := range c.guards.state.Behind(l.Name) {
		if f.Kind == filters.TC {
			flags |= datapath.PortKeepsEgress
		} else {
			flags |= datapath.PortFiltersEgress
		}
	}
	if len(c.filtersAt(l)) > 0 {
		flags |= datapath.PortFiltered
	}
	return flags
}

// nameFilters says of the ports that filters keep from being accelerated why
// that is so. Their programs stay: they pass everything, and count it.
func (c *Controller) nameFilters() {
	for _, p := range c.ports {
		if p.state != api.Accelerating || p.live.Flags&datapath.PortFiltered == 0 {
			continue
		}
		found := c.filtersAt(c.links[p.ifindex])
		if len(found) == 0 {
			continue // the data path is told next
		}
		p.state, p.reason = api.NotAccelerated, filterReason(found)
	}
}

func filterReason(found []filters.Filter) string {
	more := ""
	if n := len(found) - 1; n > 0 {
		more = fmt.Sprintf(" (and %d more)", n)
	}
	return fmt.Sprintf("%s%s: frames go through the bridge, so that it sees them; %s; option bypass_filters of section main accelerates regardless",
		found[0].Text, more, found[0].Remedy)
}

// pastEgress says what XDP would step around at the ports that frames of p can
// leave by, or "": XDP hands them to the driver, past qdiscs and filters. The
// tc engine does not.
func (c *Controller) pastEgress(p *port) string {
	for _, out := range c.outs(p) {
		if what := c.egressOf(out.device, out.ifindex); what != "" {
			return what
		}
	}
	return ""
}

// egressOf says what waits for frames at a port's way out, or "".
func (c *Controller) egressOf(device string, ifindex int) string {
	if kind := c.guards.state.Shapers[ifindex]; kind != "" {
		return fmt.Sprintf("%s has a shaping qdisc (%s), and XDP sends past it", device, kind)
	}
	if found := c.guards.state.Behind(device); len(found) > 0 && !c.config.Main.BypassFilters {
		return found[0].Text + ", and XDP sends past it"
	}
	return ""
}

// filterList is for status: every filter that concerns a port, or would.
func (c *Controller) filterList() []api.Filter {
	list := []api.Filter{}
	for _, f := range c.guards.state.Filters {
		out := api.Filter{Kind: f.Kind, Place: f.Place.String(), Text: f.Text, Remedy: f.Remedy,
			Bypassed: c.config.Main.BypassFilters, Ports: []string{}}
		for _, p := range c.ordered() {
			l := c.links[p.ifindex]
			if p.ifindex == 0 || !p.set {
				continue
			}
			if slices.Contains(c.filtersAt(l), f) || f.Place == filters.Leaving && f.Matches(p.device) {
				out.Ports = append(out.Ports, p.device)
			}
		}
		if len(out.Ports) > 0 {
			list = append(list, out)
		}
	}
	slices.SortStableFunc(list, func(a, b api.Filter) int { return strings.Compare(a.Place, b.Place) })
	return list
}

// bridgerProgram is in the name of the tc filters of bridger, which redirect
// as xdpl2 does.
const bridgerProgram = "bridger"

// tellTaken tells which ports are ours: those that are accelerated, and those
// that only bridger's filter keeps from being so.
func (c *Controller) tellTaken() {
	if c.opts.Taken == nil {
		return
	}
	var devices []string
	for _, p := range c.ordered() {
		if p.attachment == nil {
			continue
		}
		others := slices.DeleteFunc(c.filtersAt(c.links[p.ifindex]), func(f filters.Filter) bool {
			return f.Kind == filters.TC && strings.Contains(f.Text, bridgerProgram)
		})
		if p.state == api.Accelerating || len(others) == 0 {
			devices = append(devices, p.device)
		}
	}
	slices.Sort(devices)
	if !slices.Equal(devices, c.guards.taken) {
		c.guards.taken = devices
		c.opts.Taken(devices)
	}
}
