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
	autoStart     = 10 * time.Second
	autoStartLong = 1500 * time.Millisecond
	autoLong      = 600
	// autoStill is how long the engine stays the same when a trial is over.
	autoStill = 2 * time.Second
)

// trail is which engines auto used for a load.
type trail struct {
	settled time.Duration  // until the engine stayed the same; 0: it never changed
	seen    map[string]int // how often an engine was in use when it was looked at
}

func (t *trail) saw(engine string) {
	if t.seen == nil {
		t.seen = map[string]int{}
	}
	t.seen[engine]++
}

// words tells it in a few words.
func (t *trail) words() string {
	var parts []string
	all := 0
	for _, n := range t.seen {
		all += n
	}
	for engine, n := range t.seen {
		if n == all {
			parts = append(parts, engine)
			continue
		}
		parts = append(parts, fmt.Sprintf("%s %d%%", engine, 100*n/all))
	}
	slices.Sort(parts)
	text := "used " + strings.Join(parts, ", ")
	if t.settled > 0 {
		text += fmt.Sprintf(" after %.1f s of load", t.settled.Seconds())
	}
	return text
}

// settleAuto sends a load until auto stays with an engine.
func (b *bench) settleAuto(load rig.Load, patience time.Duration) (*trail, error) {
	t := &trail{}
	begin := autoStart
	if load.Length > autoLong {
		begin = autoStartLong
	}
	start := time.Now()
	engine, err := b.present(b.rig.Ingress)
	if err != nil {
		return nil, err
	}
	changed := start
	for time.Since(start) < patience {
		if _, err := b.rig.Slice(b.ctx, load, rig.MaxSlice); err != nil {
			return nil, err
		}
		now, err := b.present(b.rig.Ingress)
		if err != nil {
			return nil, err
		}
		if now != engine {
			engine, changed = now, time.Now()
		}
		// From tc it may still begin to try; what it has come to stays.
		enough := begin
		if engine != "tc" {
			enough = autoStill
		}
		if time.Since(changed) > enough {
			break
		}
	}
	t.settled = changed.Sub(start)
	return t, nil
}

// autoSlice measures one slice of auto as it is now, after some of the load
// that warms the caches as it does for the others.
func (b *bench) autoSlice(load rig.Load, t *trail) (float64, error) {
	v := b.variant(auto, auto)
	one, err := b.rig.Compare(b.ctx, load, []rig.Variant{v}, rig.CompareOptions{Rounds: 1, Slice: slice})
	if err != nil {
		return 0, err
	}
	engine, err := b.present(b.rig.Ingress)
	if err != nil {
		return 0, err
	}
	t.saw(engine)
	costs, err := one.Cost(auto)
	return costs.Median, err
}
