// SPDX-License-Identifier: Apache-2.0

// Package model explains what forwarding costs, and predicts it where it was
// not measured, by the equations of "Generic XDP Under Embedded SoC
// Constraints":
//
//	(1) R_link(L) = B / 8L          what the link carries
//	(2) R_cpu(L)  = f / C(L)        what the core carries
//	(3) R(L) <= min(R_link, R_cpu)
//	(4) C_bridge  = C_share + C_diff of the bridge
//	(5) C_generic = C_share + C_diff of generic XDP
//	(6) the difference of the rates follows from that of the costs
//
// Costs are times (C/f) in ns, so that no clock rate need be known. Each
// path's cost is fitted as a line, C(L) = a + b*L.
package model

import (
	"errors"
	"fmt"
	"slices"

	"github.com/xdpl2/xdpl2/internal/results"
)

// Options say what to predict, and how.
type Options struct {
	Sizes []int     // predict at these sizes; empty: at those measured
	Links []float64 // and at these link rates, in bit/s; empty: at the one measured
	// Overhead is how many bytes a frame takes on the wire besides its own.
	Overhead int
}

// Analysis is what the model says of a file.
type Analysis struct {
	Source     string   `json:"source"`
	Command    string   `json:"command"`
	Confidence float64  `json:"confidence"`
	Overhead   int      `json:"wire_overhead_bytes"`
	Series     []Series `json:"series"`
	Remarks    []Remark `json:"remarks,omitempty"` // on a text that belongs to the numbers
	LeftOut    []string `json:"left_out,omitempty"`
}

// Series is what the model says of what was measured under the same conditions.
type Series struct {
	Name           string       `json:"name"`
	Work           string       `json:"work"`
	Input          string       `json:"input,omitempty"`
	Link           float64      `json:"link_bit_per_s,omitempty"`
	Paths          []Path       `json:"paths"`
	Contrasts      []Contrast   `json:"contrasts"`
	SharedMeasured bool         `json:"shared_measured"`
	Split          []Split      `json:"split"`
	Bounds         []Bound      `json:"bounds"`
	Hypotheses     []Hypothesis `json:"hypotheses"`
	Crossovers     []Crossover  `json:"crossovers,omitempty"`
	Predictions    []Prediction `json:"predictions"`
	Findings       []string     `json:"findings"`
	Notes          []string     `json:"notes,omitempty"`
}

// Path is an engine's fitted cost.
type Path struct {
	Engine string `json:"engine"`
	Line   *Line  `json:"line"`
	// RunSD is how much a cost scatters between runs (the mean over the sizes),
	// to be compared with the line's residual.
	RunSD float64 `json:"run_sd_ns"`
}

// Crossover is from which size on a link is the bound.
type Crossover struct {
	Engine string   `json:"engine"`
	Link   float64  `json:"link_bit_per_s"`
	Size   *float64 `json:"frame_bytes"` // none: at no size
}

// Analyze applies the model to a file.
func Analyze(f *results.File, o Options) (*Analysis, error) {
	collected, err := collect(f, o.Overhead)
	if err != nil {
		return nil, err
	}
	a := &Analysis{Source: f.Meta.Source, Command: f.Meta.Command, Confidence: Confidence, Overhead: o.Overhead, Series: []Series{}}
	for _, s := range collected {
		out, err := s.analyze(o)
		if err != nil {
			a.LeftOut = append(a.LeftOut, fmt.Sprintf("%s: %v", s.name(), err))
			continue
		}
		a.Series = append(a.Series, *out)
	}
	if len(a.Series) == 0 {
		if len(a.LeftOut) == 0 {
			return nil, errors.New("no cells that the model can use: expected work \"forward\" or \"wire\" with frame_bytes, in ns/frame, frames/s or bit/s")
		}
		return nil, fmt.Errorf("nothing that the model can use: %s", a.LeftOut[0])
	}
	if f.Meta.Source == PaperSource {
		a.Remarks = remarks(&a.Series[0])
	}
	return a, nil
}

func (s *series) analyze(o Options) (*Series, error) {
	out := &Series{
		Name: s.name(), Work: s.work, Input: s.input, Link: s.link, Notes: s.notes,
		Contrasts: []Contrast{}, Split: []Split{}, Bounds: []Bound{}, Hypotheses: []Hypothesis{}, Predictions: []Prediction{},
	}
	lines := map[string]*Line{}
	var last error
	for _, e := range append(s.paths(), s.floors()...) {
		line, err := s.line(e)
		if err != nil {
			last = fmt.Errorf("%s: %w", e, err)
			out.Notes = append(out.Notes, last.Error())
			continue
		}
		lines[e] = line
		out.Paths = append(out.Paths, Path{Engine: e, Line: line, RunSD: s.scatter(e)})
	}
	if len(lines) == 0 {
		return nil, last
	}
	for _, e := range s.paths() {
		s.addBounds(out, e, lines[e], o.Overhead)
	}
	if split, measured := s.split(); len(split) > 0 {
		out.Split, out.SharedMeasured = split, measured
	}
	if lines[results.EngineBridge] == nil {
		out.Notes = append(out.Notes, "the bridge was not measured at enough sizes: no gains, and no hypotheses")
	} else {
		for _, e := range s.paths() {
			if e == results.EngineBridge || lines[e] == nil {
				continue
			}
			c, err := s.contrast(e, o.Overhead)
			if err != nil {
				out.Notes = append(out.Notes, fmt.Sprintf("%s beside the bridge: %v", e, err))
			} else {
				out.Contrasts = append(out.Contrasts, *c)
			}
			out.Hypotheses = append(out.Hypotheses, s.hypotheses(e, o.Overhead, c)...)
		}
		s.predict(out, lines, o)
	}
	out.Findings = findings(out)
	return out, nil
}

// floors are the engines that receive and drop.
func (s *series) floors() []string {
	if f := s.floor(); f != "" {
		return []string{f}
	}
	return nil
}

// scatter is the mean of the runs' standard deviations.
func (s *series) scatter(engine string) float64 {
	sum := 0.0
	for _, p := range s.engines[engine] {
		sum += p.cost.SD
	}
	return sum / float64(len(s.engines[engine]))
}

func (s *series) addBounds(out *Series, engine string, line *Line, overhead int) {
	for _, p := range s.engines[engine] {
		b := bound(engine, p.size, p.cost.Estimate(), s.link, overhead)
		b.CPU = p.cpu
		if p.sent != nil {
			b.Offered = &p.sent.Mean
		}
		if line != nil {
			fitted := line.At(float64(p.size))
			b.Fitted = &fitted
		}
		if times, ok := s.gain(engine, p.size); ok && engine != results.EngineBridge {
			gain := times.apply(func(v float64) float64 { return v - 1 })
			b.Gain = &gain
		}
		out.Bounds = append(out.Bounds, b)
	}
}

func (s *series) predict(out *Series, lines map[string]*Line, o Options) {
	sizes, links := slices.Clone(o.Sizes), slices.Clone(o.Links)
	if len(sizes) == 0 {
		sizes = s.sizes()
	}
	if len(links) == 0 {
		links = []float64{s.link}
	}
	slices.Sort(sizes)
	slices.Sort(links)
	sizes, links = slices.Compact(sizes), slices.Compact(links)
	bridge := lines[results.EngineBridge]
	for _, e := range s.paths() {
		if lines[e] == nil {
			continue
		}
		p := newPredictor(bridge, lines[e])
		for _, link := range links {
			if link > 0 {
				c := Crossover{Engine: e, Link: link}
				if size, ok := lines[e].Crossover(link, o.Overhead); ok {
					c.Size = &size
				}
				out.Crossovers = append(out.Crossovers, c)
			}
			for _, size := range sizes {
				out.Predictions = append(out.Predictions, p.at(e, size, link, o.Overhead))
			}
		}
	}
}
