// SPDX-License-Identifier: Apache-2.0

// Package calibrate measures on the box itself what forwarding costs: by the
// bridge and by the product's own programs at each engine, between virtual
// devices in network namespaces of its own. It also keeps the table that comes
// of it, and has a process of its own measure for the daemon, which may not.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// Options of a calibration.
type Options struct {
	Budget time.Duration // for all of it
	// Progress is told of each turn; may be nil.
	Progress func(api.CalibrationProgress)
}

// The variants of a turn, in the order of the table. The last one is the bridge
// again: what differs between the two is noise.
const (
	bridge = "bridge"
	again  = "bridge again"
)

// bench is what one kind of work is measured on.
type bench interface {
	// compare has every variant measured twice, in a random order and then in
	// the opposite one, and returns their costs, in ns per frame or bit.
	compare(ctx context.Context, w work, seed uint64) (map[string]float64, error)
	variants() []string
	Close() error
}

// turns are the costs of a kind of work, by variant and turn.
type turns map[string][]float64

// Run measures. What cannot be measured here is in the answer's Missing; without
// anything that can, there are no rows.
func Run(ctx context.Context, o Options) (c *api.Calibration, err error) {
	begin := time.Now()
	deadline := begin.Add(o.Budget)
	tell := func(done, of int, text string) {
		if o.Progress != nil {
			o.Progress(api.CalibrationProgress{Done: done, Of: of, Text: text})
		}
	}
	// One at a time on a box, whoever asks. The name belongs to the network
	// namespace, and goes with the process.
	only, err := net.Listen("unix", "@xdpl2-calibrate")
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, api.ErrBusy
	} else if err != nil {
		return nil, fmt.Errorf("make sure that one measures at a time: %w", err)
	}
	defer only.Close()
	tell(0, 0, "looking at what this kernel can do")
	have := look()
	if have.namespaces != nil {
		return nil, fmt.Errorf("measuring needs network namespaces: %w", have.namespaces)
	}
	c = &api.Calibration{Time: begin.UTC().Truncate(time.Second), Kernel: Kernel(), Machine: Machine(),
		Rows: []api.CalibrationRow{}, Missing: have.missing()}
	works := have.works()
	if len(works) == 0 {
		return c, nil
	}
	m := &measurement{have: have, benches: map[string]bench{}}
	defer func() { err = errors.Join(err, m.close()) }()
	s := newSchedule(works)
	tell(0, 0, "setting up")
	begin = time.Now()
	if err := m.turn(ctx, s.items[0]); err != nil {
		return nil, err
	}
	// The first turn set everything up; from the second on it is known how fast
	// this box is.
	s.guess = time.Since(begin)
	s.items[0].took = 0
	s.items[0].done = 0
	for done := 0; ; done++ {
		left := time.Until(deadline)
		i := s.next(left)
		if i == nil {
			break
		}
		tell(done, done+max(s.remaining(left), 1), i.words())
		if err := m.turn(ctx, i); err != nil {
			return nil, err
		}
		s.guess = s.turn(s.items[0])
	}
	var left []work
	for _, i := range s.items {
		r := rows(i.work, i.costs)
		c.Rows = append(c.Rows, r...)
		if len(r) == 0 {
			left = append(left, i.work)
		}
	}
	slices.SortStableFunc(c.Rows, inOrder)
	c.Missing = append(c.Missing, tooLittle(left, o.Budget)...)
	return c, nil
}

// measurement is what is measured on.
type measurement struct {
	have    ability
	benches map[string]bench
	rounds  uint64
}

// turn measures one turn of a kind of work.
func (m *measurement) turn(ctx context.Context, i *item) error {
	b, err := m.bench(ctx, i.work)
	begin := time.Now() // setting up is paid once
	var costs map[string]float64
	if err == nil {
		costs, err = b.compare(ctx, i.work, m.rounds)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("measure %s: %w", i.words(), err)
	}
	m.rounds++
	i.done++
	i.took += time.Since(begin)
	for name, cost := range costs {
		i.costs[name] = append(i.costs[name], cost)
	}
	return nil
}

// bench returns what a kind of work is measured on, made when it is first
// needed.
func (m *measurement) bench(ctx context.Context, w work) (bench, error) {
	kind := w.bench()
	if b, ok := m.benches[kind]; ok {
		return b, nil
	}
	var b bench
	var err error
	if kind == workTCP {
		b, err = newStreamBench(ctx, m.have.engines())
	} else {
		b, err = newFrameBench(ctx, m.have.twoCores != nil, m.have.engines())
	}
	if err != nil {
		return nil, err
	}
	m.benches[kind] = b
	return b, nil
}

func (m *measurement) close() error {
	var errs []error
	for _, b := range m.benches {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// rows are what was measured of a kind of work; none if it was measured too
// seldom to say anything.
func rows(w work, t turns) []api.CalibrationRow {
	base := t[bridge]
	if len(base) < leastTurns {
		return nil
	}
	var out []api.CalibrationRow
	for _, name := range []string{bridge, "generic", "tc"} {
		of := name
		if name == bridge {
			of = again // against the bridge itself: the noise
		}
		ratios, err := rig.Ratios(base, t[of])
		if err != nil || len(ratios) == 0 {
			continue
		}
		ratio := rig.Bootstrap(ratios, 1)
		row := api.CalibrationRow{Work: w.kind, Size: w.size, Engine: name,
			Ratio: round(ratio.Median, 4), Low: round(ratio.Low, 4), High: round(ratio.High, 4)}
		cost := rig.Median(t[name])
		row.Rate = round(1e9/cost, 0)
		if w.kind != workTCP {
			row.Nanos = round(cost, 1)
		}
		out = append(out, row)
	}
	return out
}
