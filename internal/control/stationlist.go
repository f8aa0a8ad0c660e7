// SPDX-License-Identifier: Apache-2.0

package control

import (
	"cmp"
	"context"
	"net"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// Stations implements api.Service. The loop only copies what matches, and
// numbers only: with many stations all the rest takes milliseconds.
func (c *Controller) Stations(ctx context.Context, q api.StationQuery) (*api.StationList, error) {
	var all foundStations
	var err error
	callErr := c.call(ctx, func() {
		c.confirmStations() // what is listed is in force
		all, err = c.findStations(q)
	})
	if callErr != nil {
		return nil, callErr
	}
	if err != nil {
		return nil, err
	}
	return all.answer(q), nil
}

// foundStations are stations as they were when they were asked for.
type foundStations struct {
	found  []foundStation
	links  links  // never changed: the mirror makes a new one each time
	bridge string // what the box's own addresses are behind
}

// foundStation is one of them, without a pointer, so that copying thousands is
// cheap.
type foundStation struct {
	order   uint64 // address and VLAN as one number
	seen    moment
	ifindex int32
	source  source
}

// findStations returns the stations of a port and VLAN, in no order.
func (c *Controller) findStations(q api.StationQuery) (foundStations, error) {
	all := foundStations{links: c.links, bridge: c.bridgeName()}
	if p := c.ports[q.Port]; q.Port != "" && (p == nil || p.member) {
		return all, &api.UnknownPortError{Port: q.Port}
	}
	all.found = make([]foundStation, 0, len(c.stations))
	for key, s := range c.stations {
		if _, unsure := c.unsure.keys[key]; unsure {
			continue // in a moment it is known
		}
		m := key.MAC
		f := foundStation{
			order: uint64(m[0])<<52 | uint64(m[1])<<44 | uint64(m[2])<<36 | uint64(m[3])<<28 |
				uint64(m[4])<<20 | uint64(m[5])<<12 | uint64(key.VLAN),
			ifindex: s.ifindex, source: s.source, seen: s.seen,
		}
		if (q.Port == "" || all.port(f) == q.Port) && (q.VLAN < 0 || int(key.VLAN) == q.VLAN) {
			all.found = append(all.found, f)
		}
	}
	return all, nil
}

func (f foundStation) key() datapath.StationKey {
	o := f.order
	return datapath.StationKey{
		MAC:  [6]byte{byte(o >> 52), byte(o >> 44), byte(o >> 36), byte(o >> 28), byte(o >> 20), byte(o >> 12)},
		VLAN: uint16(o & 0xfff),
	}
}

// port names the device that a station is behind.
func (all *foundStations) port(f foundStation) string {
	if f.source == sourceLocal && all.bridge != "" {
		return all.bridge // whatever port the address was taken from
	}
	return all.links[int(f.ifindex)].Name
}

// answer searches, sorts and cuts a page out of what was found.
func (all *foundStations) answer(q api.StationQuery) *api.StationList {
	if q.Search != "" {
		search := strings.ToLower(q.Search)
		all.found = slices.DeleteFunc(all.found, func(f foundStation) bool {
			return !strings.Contains(macOf(f.key()), search) && !strings.Contains(strings.ToLower(all.port(f)), search)
		})
	}
	slices.SortFunc(all.found, func(a, b foundStation) int { return cmp.Compare(a.order, b.order) })
	list := &api.StationList{Total: len(all.found), Stations: []api.Station{}}
	found := all.found[min(max(q.Offset, 0), len(all.found)):]
	if q.Limit > 0 {
		found = found[:min(q.Limit, len(found))]
	}
	for _, f := range found {
		key := f.key()
		out := api.Station{MAC: macOf(key), VLAN: int(key.VLAN), Port: all.port(f), Source: f.source.String(), Seen: -1}
		if f.seen != 0 {
			out.Seen = f.seen.since().Seconds()
		}
		list.Stations = append(list.Stations, out)
	}
	return list
}

func macOf(key datapath.StationKey) string { return net.HardwareAddr(key.MAC[:]).String() }
