// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"runtime"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// roaming is a station that speaks from two ports in turn, as fast as frames
// can be sent, while others talk to it. The kernel tells of each move, and the
// daemon is always some moves behind.
func roaming(moves int) *Scenario {
	sc := &Scenario{Racing: true, Box: NewBox(), Layout: Layout{Managed: []Managed{{Port: 0}, {Port: 1}, {Port: 2}}}}
	g := &generator{s: sc, box: sc.Box}
	here, there := [6]byte{2, 0x10, 0, 0, 0, 1}, [6]byte{2, 0x10, 0, 0, 0, 2}
	g.add(0, "hello", g.plain([6]byte(ether.Broadcast), here, 60))
	g.add(2, "hello", g.plain([6]byte(ether.Broadcast), there, 60))
	g.settle()
	for i := range moves {
		g.add(i%2, "moved", g.plain(there, here, 60))
		for range 1 + i%3 {
			g.add(2, "to the one that moves", g.plain(here, there, 60))
		}
	}
	return sc
}

// TestRoamingFast: no frame to the port that a station has left, however many
// moves the daemon has not heard of yet.
func TestRoamingFast(t *testing.T) {
	netns.Require(t)
	if inGuest && runtime.NumCPU() > 1 {
		t.Skip("not for guests with two emulated CPUs: the host may stop the one that carries a frame for longer than a station waits to be confirmed")
	}
	for i, engine := range []string{"generic", "tc"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := optionsOf(engine)
			o.CPU = i
			b := newBench(t, o)
			plays := 20
			if inGuest {
				plays = 2
			}
			wrong := 0
			for range plays {
				r, err := b.Play(context.Background(), roaming(500))
				if err != nil {
					t.Fatal(err)
				}
				if wrong += len(r.Differences); len(r.Differences) > 0 {
					t.Logf("%d differences, the first: %s", len(r.Differences), r.Differences[0])
				}
			}
			if wrong > 0 {
				t.Errorf("%d differences in %d scenarios of 500 moves", wrong, plays)
			}
			verdicts, err := b.Verdicts(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if verdicts["redirected"] == 0 || verdicts["pass_moved_source"] == 0 {
				t.Errorf("nothing was accelerated, or nobody moved: %v", verdicts)
			}
		})
	}
}
