// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf/link"

	"github.com/xdpl2/xdpl2/internal/rig"
)

// In the second way a program takes the step once more and then manyTimes more:
// a few ns once would be lost in what a frame costs. The first time in a frame
// is measured by itself, since other work has been in the caches before.
const (
	oneTime   = 1
	manyTimes = 8
)

// framed is what a step costs under real frames.
type framed struct {
	step   Step
	deltas []float64 // ns for each step after the first, a value for each round
	first  []float64 // ns for the first in a frame
}

// underFrames measures steps in the attached program (generic XDP) while frames
// go through it, by the run time of the thread that forwards.
func underFrames(ctx context.Context, steps []Step, rounds int, done func(*framed)) error {
	meter, err := rig.New(ctx, rig.Options{})
	if err != nil {
		return err
	}
	defer meter.Close()
	out, err := meter.Router.Link(meter.Egress)
	if err != nil {
		return err
	}
	for _, s := range steps {
		f, err := frameCell(ctx, meter, uint32(out.Attrs().Index), s, rounds)
		if err != nil {
			return fmt.Errorf("%s under frames: %w", s.Name, err)
		}
		done(f)
	}
	return nil
}

func frameCell(ctx context.Context, meter *rig.Rig, egress uint32, s Step, rounds int) (f *framed, err error) {
	b, err := openBench(meter.Router, egress, s.Stations)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	b.prepare(s)
	b.knobs.Redirect = egress
	if err := b.set(0); err != nil {
		return nil, err
	}
	in, err := meter.Router.Link(meter.Ingress)
	if err != nil {
		return nil, err
	}
	var attached link.Link
	err = meter.Router.Do(func() error {
		attached, err = link.AttachXDP(link.XDPOptions{Program: b.program(s), Interface: in.Attrs().Index, Flags: link.XDPGenericMode})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	defer func() { err = errors.Join(err, attached.Close()) }()
	before, err := b.done()
	if err != nil {
		return nil, err
	}
	compared, err := meter.Compare(ctx, rig.Load{Input: rig.Roomy, Length: 60}, []rig.Variant{
		{Name: "none", Enter: func() error { return b.set(0) }},
		{Name: "one", Enter: func() error { return b.set(oneTime) }},
		{Name: "many", Enter: func() error { return b.set(oneTime + manyTimes) }},
	}, rig.CompareOptions{Rounds: rounds, Slice: 40 * time.Millisecond, Seed: 1})
	if err != nil {
		return nil, err
	}
	after, err := b.done()
	if err != nil {
		return nil, err
	}
	if steps, right := after.Steps-before.Steps, after.Right-before.Right; steps == 0 || steps != right {
		return nil, fmt.Errorf("%d of %d steps did what they should", right, steps)
	}
	f = &framed{step: s}
	for _, round := range compared.Rounds {
		none, one, many := perFrame(round[0]), perFrame(round[1]), perFrame(round[2])
		f.first = append(f.first, one-none)
		f.deltas = append(f.deltas, (many-one)/manyTimes)
	}
	return f, nil
}

func perFrame(samples []rig.Sample) float64 {
	var ns []float64
	for _, s := range samples {
		ns = append(ns, s.NsPerFrame)
	}
	return rig.Mean(ns)
}
