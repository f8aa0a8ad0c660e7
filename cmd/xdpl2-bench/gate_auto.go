// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/rig"
)

// Auto may need some seconds of a load to find the engine for it. A trial of
// another engine shows as the engine going to and fro.
const (
	// autoPatience is how long a load is sent to auto at most before it is
	// measured.
	autoPatience = 25 * time.Second
	// autoStart is within which auto begins to try another engine, if it does
	// with this load. Long frames are left to what is safe.
	autoStart     = 5 * time.Second
	autoStartLong = 1500 * time.Millisecond
	autoLong      = 600
	// autoStill is how long the engine stays the same when a trial is over.
	autoStill = 2 * time.Second
)

// trail is which engines auto used for a load.
type trail struct {
	settled time.Duration    // until the engine stayed the same
	slices  map[string]int   // measured, by engine
	frames  map[string]int64 // that it forwarded before
}

// words tells it in a sentence.
func (t *trail) words() string {
	var parts []string
	for engine, n := range t.slices {
		parts = append(parts, fmt.Sprintf("%s in %d slices", engine, n))
	}
	slices.Sort(parts)
	return fmt.Sprintf("%s, %.1f s after the load began", strings.Join(parts, " and "), t.settled.Seconds())
}

// settleAuto sends a load until auto stays with an engine.
func (b *bench) settleAuto(load rig.Load, patience time.Duration) (*trail, error) {
	t := &trail{slices: map[string]int{}}
	begin := autoStart
	if load.Length > autoLong {
		begin = autoStartLong
	}
	start := time.Now()
	engine, err := b.present()
	if err != nil {
		return nil, err
	}
	tried, still := false, start
	for time.Since(start) < patience {
		if _, err := b.rig.Slice(b.ctx, load, rig.MaxSlice); err != nil {
			return nil, err
		}
		now, err := b.present()
		if err != nil {
			return nil, err
		}
		if now != engine {
			engine, tried, still = now, true, time.Now()
		}
		if tried && time.Since(still) > autoStill || !tried && time.Since(start) > begin {
			break
		}
	}
	if tried {
		t.settled = still.Sub(start)
	}
	return t, nil
}

// present is the engine in use at the ingress.
func (b *bench) present() (string, error) {
	status, err := b.daemon.client.Status(b.ctx)
	if err != nil {
		return "", err
	}
	for _, p := range status.Ports {
		if p.Device == b.rig.Ingress {
			return p.Engine, nil
		}
	}
	return "", fmt.Errorf("the daemon does not know %s", b.rig.Ingress)
}

// autoSlice measures one slice of auto as it is now, after some of the load
// that warms the caches as it does for the others.
func (b *bench) autoSlice(load rig.Load, t *trail) (float64, error) {
	v := b.variant(auto, auto)
	one, err := b.rig.Compare(b.ctx, load, []rig.Variant{v}, rig.CompareOptions{Rounds: 1, Slice: slice})
	if err != nil {
		return 0, err
	}
	engine, err := b.present()
	if err != nil {
		return 0, err
	}
	t.slices[engine]++
	costs, err := one.Cost(auto)
	return costs.Median, err
}
