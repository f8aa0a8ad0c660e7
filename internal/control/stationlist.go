// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bytes"
	"context"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// Stations implements api.Service. The loop only copies what matches; sorting
// and writing takes milliseconds with many stations, and is done outside.
func (c *Controller) Stations(ctx context.Context, q api.StationQuery) (*api.StationList, error) {
	var found []foundStation
	var err error
	callErr := c.call(ctx, func() { found, err = c.findStations(q) })
	if callErr != nil {
		return nil, callErr
	}
	if err != nil {
		return nil, err
	}
	if q.Search != "" {
		search := strings.ToLower(q.Search)
		found = slices.DeleteFunc(found, func(f foundStation) bool {
			return !strings.Contains(macOf(f.key), search) && !strings.Contains(strings.ToLower(f.port), search)
		})
	}
	slices.SortFunc(found, func(a, b foundStation) int {
		if d := bytes.Compare(a.key.MAC[:], b.key.MAC[:]); d != 0 {
			return d
		}
		return int(a.key.VLAN) - int(b.key.VLAN)
	})
	return stationPage(found, q), nil
}

// foundStation is a station as it was when it was asked for.
type foundStation struct {
	key    datapath.StationKey
	port   string
	source string
	seen   time.Time
}

// findStations returns the stations of a port and VLAN, in no order.
func (c *Controller) findStations(q api.StationQuery) ([]foundStation, error) {
	if q.Port != "" && c.ports[q.Port] == nil {
		return nil, &api.UnknownPortError{Port: q.Port}
	}
	found := make([]foundStation, 0, len(c.stations))
	for key, s := range c.stations {
		// The box's own addresses are behind the bridge itself, whatever port
		// they were taken from.
		port := c.bridgeName()
		if !s.Local {
			port = c.links[s.ifindex].Name
		}
		if (q.Port == "" || port == q.Port) && (q.VLAN < 0 || int(key.VLAN) == q.VLAN) {
			found = append(found, foundStation{key, port, s.source, s.seen})
		}
	}
	return found, nil
}

func stationPage(found []foundStation, q api.StationQuery) *api.StationList {
	list := &api.StationList{Total: len(found), Stations: []api.Station{}}
	found = found[min(max(q.Offset, 0), len(found)):]
	if q.Limit > 0 {
		found = found[:min(q.Limit, len(found))]
	}
	now := time.Now()
	for _, f := range found {
		out := api.Station{MAC: macOf(f.key), VLAN: int(f.key.VLAN), Port: f.port, Source: f.source, Seen: -1}
		if !f.seen.IsZero() {
			out.Seen = now.Sub(f.seen).Seconds()
		}
		list.Stations = append(list.Stations, out)
	}
	return list
}

func macOf(key datapath.StationKey) string { return net.HardwareAddr(key.MAC[:]).String() }
