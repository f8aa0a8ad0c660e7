// SPDX-License-Identifier: Apache-2.0

package model

import (
	"slices"

	"github.com/xdpl2/xdpl2/internal/results"
)

// Split is equations 4 and 5 at a size: what all paths share, and what each
// pays besides.
type Split struct {
	Size int `json:"frame_bytes"`
	// Shared is the cost of receiving and dropping if that was measured. If
	// not, it is the cost of the cheapest path: the shared cost cannot be more
	// than that, and the differences can be known, not the parts.
	Shared Estimate `json:"shared_ns"`
	Parts  []Part   `json:"paths"`
}

// Part is what a path pays besides the shared cost: at least this much if the
// shared cost was not measured.
type Part struct {
	Engine string   `json:"engine"`
	Cost   Estimate `json:"cost_ns"`
	Diff   Estimate `json:"differential_ns"`
}

// split splits the costs at each size that all paths were measured at.
func (s *series) split() (all []Split, measured bool) {
	floor, paths := s.floor(), s.paths()
	for _, size := range s.sizes() {
		sp := Split{Size: size}
		var points []*point
		for _, e := range paths {
			if p := s.find(e, size); p != nil {
				points = append(points, p)
				sp.Parts = append(sp.Parts, Part{Engine: e, Cost: p.cost.Estimate()})
			}
		}
		if len(points) < len(paths) || len(points) == 0 {
			continue
		}
		shared := s.find(floor, size)
		if floor != "" && shared == nil {
			continue
		}
		if shared == nil {
			shared = slices.MinFunc(points, func(a, b *point) int {
				if a.cost.Mean < b.cost.Mean {
					return -1
				}
				return 1
			})
		}
		sp.Shared = shared.cost.Estimate()
		for i, p := range points {
			if p == shared { // the cheapest itself
				sp.Parts[i].Diff = exactly(0)
				continue
			}
			sp.Parts[i].Diff = difference(p.cost, shared.cost)
		}
		all = append(all, sp)
	}
	return all, floor != ""
}

// Contrast is how a path's line differs from the bridge's, fitted to the
// differences at the same sizes: what moves both costs alike cancels out.
type Contrast struct {
	Engine string `json:"engine"`
	// Fixed and PerByte are bridge minus engine: above zero the engine is
	// cheaper.
	Fixed   Estimate `json:"fixed_ns"`
	PerByte Estimate `json:"per_byte_ns"`
	// Even is the size at which both cost the same, none if the lines do not
	// meet above zero.
	Even *float64 `json:"even_bytes,omitempty"`
	// Of the gain between the smallest and the largest size.
	Shrink *Shrink `json:"shrink,omitempty"`
	line   *Line
}

// Shrink says where a gain goes between two sizes, by the fitted lines and
// the link.
type Shrink struct {
	From     int     `json:"from_bytes"`
	To       int     `json:"to_bytes"`
	Before   float64 `json:"gain_before"`
	After    float64 `json:"gain_after"`
	Dilution float64 `json:"by_dilution"` // the same difference in a larger cost
	PerByte  float64 `json:"by_per_byte_cost"`
	Link     float64 `json:"by_link"`
}

// contrast compares an engine to the bridge at the sizes that both were
// measured at.
func (s *series) contrast(engine string, overhead int) (*Contrast, error) {
	var x, bridge, other, diff []float64
	for _, p := range s.engines[engine] {
		if b := s.find(results.EngineBridge, p.size); b != nil {
			x = append(x, float64(p.size))
			bridge, other = append(bridge, b.cost.Mean), append(other, p.cost.Mean)
			diff = append(diff, b.cost.Mean-p.cost.Mean)
		}
	}
	d, err := FitLine(x, diff)
	if err != nil {
		return nil, err
	}
	c := &Contrast{Engine: engine, Fixed: d.A, PerByte: d.B, line: d}
	if at := -d.A.Value / d.B.Value; d.B.Value != 0 && at > 0 {
		c.Even = &at
	}
	lb, err := FitLine(x, bridge)
	if err != nil {
		return nil, err
	}
	lo, err := FitLine(x, other)
	if err != nil {
		return nil, err
	}
	c.Shrink = shrink(lb, lo, s.link, overhead)
	return c, nil
}

// shrink takes the gain apart: first both costs grow as the bridge's does, then
// the engine's grows as its own, then the link comes in.
func shrink(bridge, engine *Line, link float64, overhead int) *Shrink {
	from, to := bridge.From, bridge.To
	core := func(x, perByte float64) float64 {
		return bridge.At(x)/(engine.A.Value+perByte*x) - 1
	}
	s := &Shrink{From: int(from), To: int(to)}
	limit := linkRate(link, s.To, overhead)
	linked := min(1e9/engine.At(to), limit)/min(1e9/bridge.At(to), limit) - 1
	s.Before, s.After = core(from, engine.B.Value), linked
	// The two parts before are taken from where they start.
	alike := core(to, bridge.B.Value) - core(from, bridge.B.Value)
	own := core(to, engine.B.Value) - core(from, engine.B.Value)
	s.Dilution, s.PerByte, s.Link = -alike, -(own - alike), -(linked - core(to, engine.B.Value))
	return s
}

// Line is the line that was fitted to the differences.
func (c *Contrast) Line() *Line { return c.line }
