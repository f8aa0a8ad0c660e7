// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/xdpl2/xdpl2/internal/rig"
)

// The variants that are compared, with the engine of each. The bridge is
// there twice: what its two differ by is the noise.
const (
	viaBridge = "bridge"
	again     = "bridge again"
)

var variants = []struct{ name, engine string }{
	{viaBridge, ""}, {"xdpl2 tc", "tc"}, {"xdpl2 generic", "generic"}, {again, ""},
}

// loads are what is sent, the most important first, with a weight: how often
// each is measured against the others. Sizes on the wire count the check
// sequence, which the kernel never sees.
var loads = []struct {
	name   string
	load   rig.Load
	weight int
}{
	{"64 B", rig.Load{Input: rig.Roomy, Length: 60}, 6},
	{"1518 B", rig.Load{Input: rig.Roomy, Length: 1514}, 5},
	{"64 B, tight", rig.Load{Input: rig.Tight, Length: 60}, 4},
}

// slice is how long a variant is measured at a time; shorter ones would be
// mostly the generator's start.
const slice = 30 * time.Millisecond

// bench measures what the daemon of the rig's router is switched to.
type bench struct {
	switcher
	rig *rig.Rig

	frames, carried uint64            // at the ingress, when the slice began
	shares          map[string]*share // by variant, of the present load
}

// share counts what a variant carried.
type share struct{ frames, redirected uint64 }

// compare is the second part: bridge and xdpl2 side by side.
func compare(ctx context.Context, r *report, have *box, dir string, p plan) error {
	meter, err := rig.New(ctx, rig.Options{})
	if err != nil {
		return err
	}
	defer r.cleanUp(meter.Close)
	b, err := newBench(ctx, have.daemon, filepath.Join(dir, "rig"), meter)
	if err != nil {
		return err
	}
	defer r.cleanUp(b.daemon.stop)
	r.beginCompare(have)
	var all []*measured
	for _, l := range loads {
		if l.load.Input == rig.Roomy && !have.live {
			r.leaveOut(l.name + ": the kernel cannot generate such frames (live frames, Linux 5.18)")
			continue
		}
		all = append(all, newMeasured(l.name, l.load, l.weight))
	}
	if p.short {
		all = all[:1]
	}
	// A turn that does not fit is not begun.
	for m := next(all); time.Until(p.compare) > m.took; m = next(all) {
		if err := b.round(m, uint64(m.rounds())); err != nil {
			return err
		}
		r.progress(all, m, time.Until(p.compare))
	}
	r.endCompare(all)
	return nil
}

// next is the load that has been measured least for its weight.
func next(all []*measured) *measured {
	return slices.MinFunc(all, func(a, b *measured) int {
		return a.rounds()*b.weight - b.rounds()*a.weight
	})
}

// round measures every variant twice with one load.
func (b *bench) round(m *measured, seed uint64) error {
	start := time.Now()
	b.shares = m.shares
	var list []rig.Variant
	for _, v := range variants {
		list = append(list, rig.Variant{
			Name:  v.name,
			Enter: func() error { return b.enter(v.engine) },
			Leave: func() error { return b.leave(v.name, v.engine) },
		})
	}
	c, err := b.rig.Compare(b.ctx, m.load, list, rig.CompareOptions{Rounds: 1, Slice: slice, Seed: seed})
	if err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	m.add(c)
	m.took = time.Since(start)
	return nil
}

// newBench starts a daemon in the rig's router, switched off.
func newBench(ctx context.Context, program, dir string, meter *rig.Rig) (*bench, error) {
	s, err := newSwitcher(ctx, program, dir, meter.Router, meter.Bridge, meter.Ingress, meter.Egress)
	if err != nil {
		return nil, err
	}
	return &bench{switcher: *s, rig: meter}, nil
}

// enter makes the router forward with an engine, or with the bridge alone.
func (b *bench) enter(engine string) error {
	if err := b.use(engine); err != nil {
		return err
	}
	var err error
	b.frames, b.carried, err = b.count()
	return err
}

// leave checks that the frames went the way that was to be measured: a number
// for another way would be worse than none.
func (b *bench) leave(name, engine string) error {
	frames, carried, err := b.count()
	if err != nil {
		return err
	}
	frames, carried = frames-b.frames, carried-b.carried
	s := b.shares[name]
	if s == nil {
		s = &share{}
		b.shares[name] = s
	}
	s.frames += frames
	s.redirected += carried
	if engine == "" && carried > 0 {
		return fmt.Errorf("%s redirected %d frames that the bridge was to forward", name, carried)
	}
	if engine != "" && float64(carried) < 0.95*float64(frames) {
		return fmt.Errorf("%s redirected %d of %d frames only", name, carried, frames)
	}
	return nil
}

// count returns how many frames the ingress got and the daemon's program
// redirected there.
func (b *bench) count() (frames, carried uint64, err error) {
	link, err := b.rig.Router.Link(b.rig.Ingress)
	if err != nil {
		return 0, 0, err
	}
	if s := link.Attrs().Statistics; s != nil {
		frames = s.RxPackets
	}
	counters, err := b.daemon.client.Counters(b.ctx, b.rig.Ingress)
	if err != nil {
		return 0, 0, err
	}
	for _, v := range counters[0].Verdicts {
		if v.Verdict == redirected {
			carried = v.Packets
		}
	}
	return frames, carried, nil
}
