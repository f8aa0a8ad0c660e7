// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/binary"
	"testing"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
)

// crowded is a controller with 16,384 stations behind two ports, and a loop
// that answers.
func crowded(b *testing.B) *Controller {
	c := &Controller{
		config: config.Default(), calls: make(chan func()), ended: make(chan struct{}), events: newEvents(),
		links:    links{2: bridge.Link{Index: 2, Name: "eth1"}, 3: bridge.Link{Index: 3, Name: "eth2"}},
		stations: map[datapath.StationKey]*station{},
	}
	for i := range 16384 {
		key := datapath.StationKey{}
		binary.BigEndian.PutUint32(key.MAC[2:], uint32(i)*2654435761)
		key.MAC[0] = 2
		c.stations[key] = &station{source: sourceBridge, ifindex: int32(2 + i%2), seen: thisMoment()}
	}
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case f := <-c.calls:
				f()
			case <-stop:
				return
			}
		}
	}()
	b.Cleanup(func() { close(stop) })
	return c
}

// BenchmarkStationsAnswer is a page of stations, made ready for ubus.
func BenchmarkStationsAnswer(b *testing.B) {
	c := crowded(b)
	for b.Loop() {
		list, err := c.Stations(b.Context(), api.StationQuery{VLAN: -1, Limit: api.PageSize})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := blobmsg.Encode(list); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStationsInLoop is the part of it that the loop is busy with.
func BenchmarkStationsInLoop(b *testing.B) {
	c := crowded(b)
	for b.Loop() {
		if _, err := c.findStations(api.StationQuery{VLAN: -1}); err != nil {
			b.Fatal(err)
		}
	}
}
