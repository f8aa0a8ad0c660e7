// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// series collects what belongs together: one kind of work, measured with
// several engines in the same rounds.
type series struct {
	cell    results.Cell // what all have in common
	base    string       // the engine to which the others are compared
	engines []string     // in the order of their coming
	samples map[string][]float64
	notes   map[string]string
}

func newSeries(base string, cell results.Cell) *series {
	return &series{cell: cell, base: base, samples: map[string][]float64{}, notes: map[string]string{}}
}

func (s *series) add(engine string, value float64) {
	if _, known := s.samples[engine]; !known {
		s.engines = append(s.engines, engine)
	}
	s.samples[engine] = append(s.samples[engine], value)
}

// addRound adds what a comparison of one round measured.
func (s *series) addRound(c *rig.Comparison) {
	for _, round := range c.Rounds {
		for i, name := range c.Variants {
			var ns []float64
			for _, sample := range round[i] {
				ns = append(ns, sample.NsPerFrame)
			}
			s.add(name, rig.Mean(ns))
		}
	}
}

// rounds is the number of rounds in which every engine was measured.
func (s *series) rounds() int {
	if len(s.engines) == 0 {
		return 0
	}
	least := len(s.samples[s.engines[0]])
	for _, e := range s.engines {
		least = min(least, len(s.samples[e]))
	}
	return least
}

// ratio compares an engine with the base, above 1 where it is better.
func (s *series) ratio(engine string) (rig.Interval, bool) {
	a, b := s.one(s.base), s.one(engine)
	if s.cell.Unit.MoreIsBetter() {
		a, b = b, a
	}
	return times(a, b)
}

func (s *series) one(engine string) *results.Cell {
	n := s.rounds()
	if len(s.samples[engine]) < n {
		return nil
	}
	c := s.cell
	c.Engine, c.Samples, c.Note = engine, slices.Clone(s.samples[engine][:n]), s.notes[engine]
	c.Summarize()
	return &c
}

// cells returns a cell for each engine; none before the first round.
func (s *series) cells() ([]results.Cell, error) {
	if s.rounds() == 0 {
		return nil, nil
	}
	base := s.one(s.base)
	var all []results.Cell
	for _, e := range s.engines {
		c := s.one(e)
		if base != nil && e != s.base {
			if err := c.SetRatio(base); err != nil {
				return nil, err
			}
		}
		all = append(all, *c)
	}
	return all, nil
}
