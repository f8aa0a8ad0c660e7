// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

func TestStationPages(t *testing.T) {
	key := func(last byte, vlan uint16) datapath.StationKey {
		return datapath.StationKey{MAC: [6]byte{0xfe, 0, 0, 0, 0, last}, VLAN: vlan}
	}
	c := &Controller{
		config: config.Default(),
		links:  links{2: bridge.Link{Index: 2, Name: "eth1"}, 3: bridge.Link{Index: 3, Name: "eth2"}},
		ports:  map[string]*port{"eth1": {}, "eth2": {}},
		stations: map[datapath.StationKey]*station{
			key(9, 0):    {source: sourceBridge, ifindex: 2, seen: thisMoment() - moment(time.Minute)},
			key(1, 4094): {source: sourceStatic, ifindex: 3},
			key(1, 10):   {source: sourceBridge, ifindex: 3},
			key(2, 0):    {source: sourceLocal, ifindex: 2, Station: datapath.Station{Local: true}},
		},
	}
	for name, tt := range map[string]struct {
		q     api.StationQuery
		total int
		want  []string
	}{
		"all": {api.StationQuery{VLAN: -1}, 4, []string{
			"fe:00:00:00:00:01 10 eth2 bridge", "fe:00:00:00:00:01 4094 eth2 static", "fe:00:00:00:00:02 0 br-lan local", "fe:00:00:00:00:09 0 eth1 bridge"}},
		"of a port":      {api.StationQuery{VLAN: -1, Port: "eth1"}, 1, []string{"fe:00:00:00:00:09 0 eth1 bridge"}},
		"of a VLAN":      {api.StationQuery{VLAN: 10}, 1, []string{"fe:00:00:00:00:01 10 eth2 bridge"}},
		"outside of any": {api.StationQuery{VLAN: 0, Limit: 1}, 2, []string{"fe:00:00:00:00:02 0 br-lan local"}},
		"a page":         {api.StationQuery{VLAN: -1, Limit: 1, Offset: 1}, 4, []string{"fe:00:00:00:00:01 4094 eth2 static"}},
		"past the end":   {api.StationQuery{VLAN: -1, Offset: 9}, 4, nil},
		"by address":     {api.StationQuery{VLAN: -1, Search: "0:09"}, 1, []string{"fe:00:00:00:00:09 0 eth1 bridge"}},
		"by port":        {api.StationQuery{VLAN: -1, Search: "BR-"}, 1, []string{"fe:00:00:00:00:02 0 br-lan local"}},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := c.findStations(tt.q)
			if err != nil {
				t.Fatal(err)
			}
			list := all.answer(tt.q)
			var got []string
			for _, s := range list.Stations {
				got = append(got, fmt.Sprintf("%s %d %s %s", s.MAC, s.VLAN, s.Port, s.Source))
				if (s.Seen < 0) != (s.MAC != "fe:00:00:00:00:09") || s.Seen > 0 && (s.Seen < 60 || s.Seen > 120) {
					t.Errorf("%s seen %v s ago", s.MAC, s.Seen)
				}
			}
			if list.Total != tt.total || !reflect.DeepEqual(got, tt.want) {
				t.Errorf("%d: %q\nwant %d: %q", list.Total, got, tt.total, tt.want)
			}
		})
	}
	if _, err := c.findStations(api.StationQuery{Port: "eth9"}); err == nil {
		t.Error("stations of a port that there is not")
	}
}
