// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/topology"
)

// wanted is which devices topology replace wants to have, and where. Why the
// others are not among them is in replaced.why. What is taken already stays so
// while the configuration wants it: a wire whose other end is unplugged does
// not fall back into the bridge.
func (c *Controller) wanted() map[int]topology.Place {
	main := &c.config.Main
	if !main.Enabled || main.Topology != config.TopologyReplace {
		return nil
	}
	w := wanting{c: c, addresses: c.boxAddresses()}
	want := map[int]topology.Place{}
	for i := range c.config.Ports {
		p := &c.config.Ports[i]
		if !p.Enabled {
			continue
		}
		own, ok := w.device(p.Device, p)
		if main.Mode == config.ModeMAC {
			if ok {
				want[own] = topology.Place{}
			}
			continue
		}
		section := c.sectionOf(p.Target)
		target, there := w.device(p.Target, section)
		if section != nil && !section.Enabled && c.replaced.taken[target] == nil {
			there, c.replaced.why[p.Target] = false, "the port is switched off (option enabled of its section)"
		}
		if !ok || !there {
			if ok {
				c.replaced.why[p.Device] = fmt.Sprintf("target %s cannot be used: %s", p.Target, c.replaced.why[p.Target])
			}
			// What is taken stays if the other is only absent.
			for index, other := range map[int]int{own: target, target: own} {
				if c.replaced.taken[index] != nil && other == 0 {
					want[index] = topology.Place{Promisc: want[index].Promisc || index == own}
				}
			}
			continue
		}
		want[own] = topology.Place{Promisc: true}
		if _, has := want[target]; !has {
			want[target] = topology.Place{}
		}
	}
	w.keepReachable(want)
	return want
}

func (c *Controller) sectionOf(device string) *config.Port {
	for i := range c.config.Ports {
		if p := &c.config.Ports[i]; p.Device == device {
			return p
		}
	}
	return nil
}

// wanting is one look at what can be taken.
type wanting struct {
	c         *Controller
	addresses map[int][]netip.Addr
}

func (c *Controller) boxAddresses() map[int][]netip.Addr {
	addresses, err := topology.BoxAddresses()
	if err != nil {
		c.log.Error("the box's addresses are not known", "error", err)
	}
	return addresses
}

// device returns the ifindex of a device that is taken or can be. section is
// its own, nil if frames that arrive there are none of xdpl2's business.
func (w *wanting) device(name string, section *config.Port) (ifindex int, ok bool) {
	l, ok := w.c.links.byName(name)
	if !ok {
		w.c.replaced.why[name] = fmt.Sprintf("there is no device %s", name)
		return 0, false
	}
	why := ""
	if w.c.replaced.taken[l.Index] == nil {
		why = w.whyNotTake(l, section)
	}
	if why == "" && section != nil && section.Enabled {
		why = w.c.filteredWire(l)
	}
	if why != "" {
		w.c.replaced.why[name] = why
	}
	return l.Index, why == ""
}

func (w *wanting) whyNotTake(l bridge.Link, section *config.Port) string {
	c := w.c
	main := &c.config.Main
	left, isLeft := c.replaced.left[l.Index]
	switch {
	case isLeft:
		return left
	case l.Kind == "bridge":
		return fmt.Sprintf("%s is itself a bridge", l.Name)
	case l.MasterKind != "" && l.MasterKind != "bridge":
		return fmt.Sprintf("%s is a member of a %s: frames belong to that", l.Name, l.MasterKind)
	case l.Master != 0 && c.links[l.Master].Name != main.Bridge:
		return fmt.Sprintf("%s is a port of %s, not of %s", l.Name, c.links[l.Master].Name, main.Bridge)
	case !main.Wireless && netdev.Wireless(l.Name):
		return fmt.Sprintf("%s is wireless: stations there come and go, and isolation is the driver's (option wireless of section main allows it)", l.Name)
	}
	if reason := c.links.switchReason(l); reason != "" {
		return reason
	}
	if c.stillJoining(l) {
		return fmt.Sprintf("%s is in no bridge yet; it is taken in a moment", l.Name)
	}
	// On a wire that leaves the box its share, or that only ends here, an
	// address goes on working.
	keeps := main.Mode == config.ModePort && (section == nil || !section.Enabled || section.PassLocal && section.PassGroup)
	if has := w.reachable(l.Index); len(has) > 0 && !keeps && !main.Force {
		return fmt.Sprintf("%s has the box's address %s, which could not be reached any more (option force '1' of section main takes it all the same)", l.Name, has[0])
	}
	return ""
}

// reachable lists the box's addresses on a device and on those that sit on it.
func (w *wanting) reachable(ifindex int) []netip.Addr {
	all := slices.Clone(w.addresses[ifindex])
	for _, l := range w.c.links {
		if l.Parent == ifindex {
			all = append(all, w.addresses[l.Index]...)
		}
	}
	slices.SortFunc(all, netip.Addr.Compare)
	return all
}

// keepReachable takes those devices off the list that are the last ports of
// the bridge by which the box is reached. What is taken already stays taken,
// unless the bridge had no address then: it may only have waited for one.
func (w *wanting) keepReachable(want map[int]topology.Place) {
	c := w.c
	r := &c.replaced
	waiting := r.unaddressed
	r.unaddressed = false
	br, ok := c.links.byName(c.config.Main.Bridge)
	if !ok {
		return
	}
	var last []string
	isLast := map[int]bool{}
	kept, carrier, news := 0, false, false
	for _, l := range c.links {
		t := r.taken[l.Index]
		_, wants := want[l.Index]
		switch {
		case wants && (l.Master == br.Index || t != nil && t.before.Bridge == br.Name):
			last, isLast[l.Index] = append(last, l.Name), true
			news = news || t == nil
		case l.Master == br.Index && l.Up:
			kept++
			carrier = carrier || l.Carrier
		}
	}
	if len(last) == 0 {
		return
	}
	addresses := w.reachable(br.Index)
	slices.Sort(last)
	switch {
	case kept == 0 && len(addresses) == 0:
		r.unaddressed = true
	case kept == 0 && !c.config.Main.Force && (news || waiting):
		verb := "is the last port"
		if len(last) > 1 {
			verb = "are the last ports"
		}
		reason := fmt.Sprintf("%s %s of %s, which has the box's address %s: it could not be reached any more (option force '1' of section main takes all ports all the same)",
			strings.Join(last, " and "), verb, br.Name, addresses[0])
		for index := range isLast {
			if r.taken[index] == nil || waiting {
				delete(want, index)
				r.why[c.links[index].Name] = reason
			}
		}
		w.dropHalfWires(want)
	case !carrier && news && len(addresses) > 0:
		c.log.Warn("no port that the box keeps has a link: it cannot be reached at present", "bridge", br.Name, "taken", strings.Join(last, " "))
	}
}

// dropHalfWires takes devices off the list whose other end is not on it, and
// that are not taken already.
func (w *wanting) dropHalfWires(want map[int]topology.Place) {
	c := w.c
	if c.config.Main.Mode != config.ModePort {
		return
	}
	ends := map[int]bool{}
	for _, p := range c.config.Ports {
		from, _ := c.links.byName(p.Device)
		to, _ := c.links.byName(p.Target)
		_, wantFrom := want[from.Index]
		_, wantTo := want[to.Index]
		if wantFrom && wantTo {
			ends[from.Index], ends[to.Index] = true, true
		}
	}
	maps.DeleteFunc(want, func(index int, _ topology.Place) bool {
		if ends[index] || c.replaced.taken[index] != nil {
			return false // the other end may only be absent
		}
		c.replaced.why[c.links[index].Name] = "the other end of its wire cannot be taken"
		return true
	})
}

// listLocal lists the addresses of devices that are outside any bridge, and
// that no bridge therefore tells.
func (c *Controller) listLocal() {
	r := &c.replaced
	r.local = map[datapath.StationKey]station{}
	if c.config.Main.Topology != config.TopologyReplace || c.config.Main.Mode != config.ModePort {
		return
	}
	add := func(l bridge.Link) {
		r.local[datapath.StationKey{MAC: l.MAC}] = station{
			Station: datapath.Station{Local: true, Stay: true}, source: sourceLocal, ifindex: int32(l.Index),
		}
	}
	for index := range r.taken {
		add(c.links[index])
		for _, l := range c.links {
			if l.Parent == index {
				add(l)
			}
		}
	}
}
