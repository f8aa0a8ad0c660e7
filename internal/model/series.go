// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/xdpl2/xdpl2/internal/results"
)

// The kinds of work that the model knows.
const (
	workForward = "forward" // frames through the laboratory's rig
	workWire    = "wire"    // frames through a box between two ports
	workRTT     = "rtt"     // round trips, one frame each way
	workLatency = "latency"
	workOffered = "offered" // what the sender sent
)

// Sample is a mean over runs.
type Sample struct {
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
	N    int     `json:"n"`
}

// SampleOf is a cell's.
func SampleOf(c *results.Cell) Sample { return Sample{c.Mean, c.SD, c.N} }

// Estimate returns the mean with the interval of the runs' scatter.
func (s Sample) Estimate() Estimate {
	if s.N < 2 {
		return exactly(s.Mean)
	}
	n := float64(s.N)
	return around(s.Mean, tFactor(n-1)*s.SD/math.Sqrt(n))
}

// Quotient returns a/b with the interval of both scatters (Welch).
func Quotient(a, b Sample) Estimate {
	if a.N < 2 || b.N < 2 || a.Mean <= 0 || b.Mean <= 0 {
		return exactly(a.Mean / b.Mean)
	}
	va := math.Pow(a.SD/a.Mean, 2) / float64(a.N)
	vb := math.Pow(b.SD/b.Mean, 2) / float64(b.N)
	return around(math.Log(a.Mean/b.Mean), welch(va, vb, a.N, b.N)).apply(math.Exp)
}

// difference returns a-b with the interval of both scatters (Welch).
func difference(a, b Sample) Estimate {
	if a.N < 2 || b.N < 2 {
		return exactly(a.Mean - b.Mean)
	}
	return around(a.Mean-b.Mean, welch(a.SD*a.SD/float64(a.N), b.SD*b.SD/float64(b.N), a.N, b.N))
}

// welch is the half width of the interval of a difference whose sides have
// these variances of their means.
func welch(va, vb float64, na, nb int) float64 {
	if va+vb == 0 {
		return 0
	}
	freedom := (va + vb) * (va + vb) / (va*va/float64(na-1) + vb*vb/float64(nb-1))
	return tFactor(freedom) * math.Sqrt(va+vb)
}

// point is what a path was measured to do at a size.
type point struct {
	size  int
	cost  Sample // ns per frame on the forwarding core
	rate  Sample // frames/s that were forwarded; 0 if only the cost was measured
	cpu   *float64
	loss  *float64
	sent  *Sample
	rtt   *Sample
	ratio *results.Ratio
}

// series is what was measured under the same conditions: engines by sizes.
type series struct {
	work, input     string
	flows, stations int
	link            float64
	engines         map[string][]point // in order of size
	order           []string           // engines as the file has them, the bridge first
	notes           []string
}

// linkBound is the share of the link from which on the link counts as the
// bound of a rate whose core was not seen to be.
const linkBound = 0.97

// collect sorts a file's cells into series.
func collect(f *results.File, overhead int) ([]*series, error) {
	var all []*series
	for i := range f.Cells {
		c := &f.Cells[i]
		if c.Work != workForward && c.Work != workWire || c.Size == 0 {
			continue
		}
		p, note := pointOf(f, c, overhead)
		at := slices.IndexFunc(all, func(s *series) bool { return s.holds(c) })
		if at < 0 {
			at = len(all)
			all = append(all, &series{
				work: c.Work, input: c.Input, flows: c.Flows, stations: c.Stations, link: c.Link, engines: map[string][]point{},
			})
		}
		s := all[at]
		if note != "" {
			s.notes = append(s.notes, note)
		}
		if p == nil {
			continue
		}
		if _, known := s.engines[c.Engine]; !known {
			s.order = append(s.order, c.Engine)
		}
		s.engines[c.Engine] = append(s.engines[c.Engine], *p)
	}
	for _, s := range all {
		for _, points := range s.engines {
			slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.size, b.size) })
			for i := 1; i < len(points); i++ {
				if points[i].size == points[i-1].size {
					return nil, fmt.Errorf("%s, %d bytes: both a rate and a cost: the model takes one", s.name(), points[i].size)
				}
			}
		}
		slices.SortStableFunc(s.order, func(a, b string) int {
			return cmp.Compare(boolInt(a != results.EngineBridge), boolInt(b != results.EngineBridge))
		})
	}
	return all, nil
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (s *series) holds(c *results.Cell) bool {
	return s.work == c.Work && s.input == c.Input && s.flows == c.Flows && s.stations == c.Stations && s.link == c.Link
}

// name tells the conditions in words.
func (s *series) name() string {
	text := s.work
	if s.input != "" && s.input != s.work {
		text += ", " + s.input
	}
	if s.flows > 0 {
		text += fmt.Sprintf(", %d flows", s.flows)
	}
	if s.stations > 0 {
		text += fmt.Sprintf(", %d stations", s.stations)
	}
	if s.link > 0 {
		text += ", " + Rate(s.link)
	}
	return text
}

// pointOf reads a cell. A rate says what a frame costs only where the core was
// the bound, or where it was seen how busy the core was; other cells give no
// point, but a note.
func pointOf(f *results.File, c *results.Cell, overhead int) (*point, string) {
	p := &point{size: c.Size, cpu: c.CPU, loss: c.Loss, ratio: c.Ratio}
	p.sent, p.rtt = sampleOf(f, c, workOffered), sampleOf(f, c, workRTT)
	if p.rtt == nil {
		p.rtt = sampleOf(f, c, workLatency)
	}
	switch c.Unit {
	case results.NsPerFrame:
		p.cost = SampleOf(c)
	case results.FramesPerS:
		p.rate = SampleOf(c)
	case results.BitsPerS:
		bits := 8 * float64(c.Size)
		p.rate = Sample{c.Mean / bits, c.SD / bits, c.N}
	default:
		return nil, fmt.Sprintf("%s at %d bytes is in %s: left out, the model takes ns/frame, frames/s and bit/s", c.Engine, c.Size, c.Unit)
	}
	if p.rate.N > 0 {
		if p.rate.Mean <= 0 {
			return nil, fmt.Sprintf("%s at %d bytes forwarded nothing: left out", c.Engine, c.Size)
		}
		busy := 1.0
		switch {
		case c.CPU != nil:
			busy = *c.CPU
		case c.Link > 0 && p.rate.Mean > linkBound*linkRate(c.Link, c.Size, overhead):
			return nil, fmt.Sprintf("%s at %d bytes filled the link, and how busy the core was is not in the file: its cost is not known", c.Engine, c.Size)
		}
		cost := 1e9 * busy / p.rate.Mean
		p.cost = Sample{cost, cost * p.rate.SD / p.rate.Mean, p.rate.N}
	}
	if p.cost.Mean <= 0 {
		return nil, fmt.Sprintf("%s at %d bytes cost nothing: left out", c.Engine, c.Size)
	}
	return p, ""
}

// sampleOf finds other work under a cell's conditions.
func sampleOf(f *results.File, c *results.Cell, work string) *Sample {
	for i := range f.Cells {
		o := &f.Cells[i]
		if o.Work == work && o.Size == c.Size && o.Engine == c.Engine && o.Input == c.Input && o.Link == c.Link &&
			o.Flows == c.Flows && o.Stations == c.Stations {
			sample := SampleOf(o)
			return &sample
		}
	}
	return nil
}

// find returns an engine's point at a size, nil if there is none.
func (s *series) find(engine string, size int) *point {
	for i := range s.engines[engine] {
		if s.engines[engine][i].size == size {
			return &s.engines[engine][i]
		}
	}
	return nil
}

// sizes are all that some engine was measured at.
func (s *series) sizes() []int {
	var all []int
	for _, points := range s.engines {
		for _, p := range points {
			all = append(all, p.size)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// line fits an engine's costs.
func (s *series) line(engine string) (*Line, error) {
	var x, y []float64
	for _, p := range s.engines[engine] {
		x, y = append(x, float64(p.size)), append(y, p.cost.Mean)
	}
	return FitLine(x, y)
}

// gain is how many times the bridge's rate an engine has while the core is the
// bound, 1 for the same: paired where the file has pairs.
func (s *series) gain(engine string, size int) (Estimate, bool) {
	base, p := s.find(results.EngineBridge, size), s.find(engine, size)
	if base == nil || p == nil {
		return Estimate{}, false
	}
	if r := p.ratio; r != nil && r.Of == results.EngineBridge {
		if r.N < 2 {
			return exactly(r.Value), true
		}
		return Estimate{r.Value, r.Low, r.High}, true
	}
	if p.rate.N > 0 && base.rate.N > 0 {
		return Quotient(p.rate, base.rate), true
	}
	return Quotient(base.cost, p.cost), true
}

// floor names the engine that receives and drops, "" if none was measured. Of
// two the one with the earlier hook counts: what comes before it all share.
func (s *series) floor() string {
	for _, name := range []string{results.EngineDropXDP, results.EngineDropTC} {
		if len(s.engines[name]) > 0 {
			return name
		}
	}
	return ""
}

// paths are the engines that forward, the bridge first, without the bridge's
// second run.
func (s *series) paths() []string {
	var all []string
	for _, e := range s.order {
		if e != results.EngineDropXDP && e != results.EngineDropTC && e != results.EngineAgain {
			all = append(all, e)
		}
	}
	return all
}
