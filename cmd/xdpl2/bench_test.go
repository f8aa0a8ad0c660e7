// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/rig"
)

var benchMAC atomic.Uint32

// BenchmarkStationFollowed measures how long after the bridge has a new
// station the fast path has it: the time from before the request that adds it
// until the daemon tells of it. Asking takes part of that.
func BenchmarkStationFollowed(b *testing.B) {
	for _, others := range []int{0, 3000} {
		b.Run(fmt.Sprintf("beside %d", others), func(b *testing.B) {
			l := lab.ForTest(b, lab.Options{NoIPv6: true})
			box := newBox(b, l, confOf("tc"))
			box.start()
			h, err := l.Router.Handle()
			must(b, err)
			dev, err := l.Router.Link("eth2")
			must(b, err)
			add := func() string {
				n := benchMAC.Add(1)
				mac := net.HardwareAddr{2, 0xbe, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}
				must(b, h.NeighSet(&netlink.Neigh{LinkIndex: dev.Attrs().Index, Family: unix.AF_BRIDGE,
					Flags: netlink.NTF_MASTER, State: netlink.NUD_REACHABLE, HardwareAddr: mac}))
				return mac.String()
			}
			total := func() int {
				list, err := box.client().Stations(testContext(b), api.StationQuery{Port: "eth2", VLAN: -1, Limit: 1})
				must(b, err)
				return list.Total
			}
			for range others {
				add()
			}
			for total() < others {
			}
			var times []float64
			b.ResetTimer()
			for i := range b.N {
				began := time.Now()
				add()
				for total() <= others+i {
				}
				times = append(times, float64(time.Since(began).Microseconds())/1000)
			}
			b.ReportMetric(rig.Percentile(times, 0.5), "ms-median")
			b.ReportMetric(rig.Percentile(times, 0.99), "ms-p99")
		})
	}
}
