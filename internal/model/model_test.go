// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/results"
)

var paperSizes = []int{64, 128, 256, 512, 1024, 1280, 1514}

func analyze(t *testing.T, f *results.File, o Options) *Analysis {
	t.Helper()
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	a, err := Analyze(f, o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPaper holds what Table 4 says, computed by hand from its numbers.
func TestPaper(t *testing.T) {
	a := analyze(t, Paper(), Options{})
	if len(a.Series) != 1 || len(a.LeftOut) != 0 {
		t.Fatalf("%d series, left out: %v", len(a.Series), a.LeftOut)
	}
	s := &a.Series[0]
	for engine, want := range map[string][2]float64{"bridge": {5936.5, 0.999}, "generic": {5257.4, 1.358}} {
		if l := s.path(engine).Line; !near(l.A.Value, want[0], 0.1) || !near(l.B.Value, want[1], 0.001) {
			t.Errorf("%s: a %v, b %v, want %v", engine, l.A, l.B, want)
		}
	}
	if len(s.Contrasts) != 1 {
		t.Fatalf("contrasts %+v", s.Contrasts)
	}
	c := s.Contrasts[0]
	if !near(c.PerByte.Value, -0.359, 0.001) || !c.PerByte.Below(0) || !near(c.Fixed.Value, 679.1, 0.1) || !c.Fixed.Above(0) {
		t.Errorf("bridge - generic: %+v a byte, %+v", c.PerByte, c.Fixed)
	}
	if sh := c.Shrink; sh.Link != 0 || sh.PerByte < 2*sh.Dilution || !near(sh.Dilution+sh.PerByte, sh.Before-sh.After, 1e-9) {
		t.Errorf("the gain shrinks by %+v", sh)
	}
	if len(s.Bounds) != 14 || s.SharedMeasured {
		t.Errorf("%d bounds, shared measured: %v", len(s.Bounds), s.SharedMeasured)
	}
	for _, b := range s.Bounds {
		if b.Regime != CoreBound {
			t.Errorf("%s at %d B: %s is the bound", b.Engine, b.Size, b.Regime)
		}
		if b.Engine == "generic" && b.Size == 1514 && (!near(b.Bits/1e9, 1.737, 0.001) || !near(*b.Used, 0.695, 0.001) || !near(*b.Link, 206407, 1)) {
			t.Errorf("1514 B: %v Gb/s, %v of the link, R_link %v", b.Bits/1e9, *b.Used, *b.Link)
		}
	}
	want := map[string]Verdict{"H1": Supported, "H2": NotTested, "H3": NotSeen}
	for _, h := range s.Hypotheses {
		if h.Verdict != want[h.Name] || len(h.Evidence) == 0 {
			t.Errorf("%s is %s by %q, want %s", h.Name, h.Verdict, h.Evidence, want[h.Name])
		}
	}
	gain := s.Hypotheses[0].Evidence[0]
	if !strings.HasPrefix(gain, "64 B: +15.0") {
		t.Errorf("first gain: %s", gain)
	}
	if text := strings.Join(s.Findings, "\n"); !strings.Contains(text, "the core is the bound at every size") ||
		!strings.Contains(text, "generic costs 0.36 (0.20 to 0.52) ns more than the bridge (1.36 against 1.00") ||
		!strings.Contains(text, "0 points the link") {
		t.Errorf("findings:\n%s", text)
	}
	if len(a.Remarks) != 4 {
		t.Errorf("remarks %+v", a.Remarks)
	}
	// With equation 1 as written the frame is all that counts.
	if over := analyze(t, Paper(), Options{Overhead: WireOverhead}).Series[0].Bounds[13]; !near(*over.Used, 0.706, 0.001) {
		t.Errorf("with the overhead %v of the link is used", *over.Used)
	}
}

// synthetic makes a file of lines: engine name to a and b.
func synthetic(link float64, scatter float64, lines map[string][2]float64, order ...string) *results.File {
	f := results.New(results.Meta{Command: "wire"})
	r := rand.New(rand.NewPCG(3, 3))
	for _, engine := range order {
		for _, size := range paperSizes {
			cost := lines[engine][0] + lines[engine][1]*float64(size)
			rate, cpu := 1e9/cost, 1.0
			if limit := linkRate(link, size, WireOverhead); rate > limit {
				rate, cpu = limit, limit/rate
			}
			c := results.Cell{Work: "wire", Input: results.Wire, Size: size, Link: link, Engine: engine, Unit: results.FramesPerS, CPU: &cpu}
			for range 5 {
				c.Samples = append(c.Samples, rate*(1+scatter*r.NormFloat64()))
			}
			c.Summarize()
			f.Cells = append(f.Cells, c)
		}
	}
	return f
}

// TestFindsBack measures paths with known costs over many links: the model
// finds the costs back, also where the link is the bound and the core's load
// tells the cost.
func TestFindsBack(t *testing.T) {
	lines := map[string][2]float64{"bridge": {2000, 0.8}, "generic": {1000, 1.6}, "tc": {1500, 0.8}, "drop xdp": {700, 0.1}}
	for _, link := range []float64{0, 1e8, 1e9, 2.5e9, 1e10} {
		s := &analyze(t, synthetic(link, 1e-6, lines, "tc", "generic", "bridge", "drop xdp"), Options{Overhead: WireOverhead}).Series[0]
		for engine, want := range lines {
			if l := s.path(engine).Line; !near(l.A.Value, want[0], 1) || !near(l.B.Value, want[1], 0.01) {
				t.Errorf("link %v: %s: a %v, b %v, want %v", link, engine, l.A.Value, l.B.Value, want)
			}
		}
		if s.Paths[0].Engine != "bridge" {
			t.Errorf("first path %s", s.Paths[0].Engine)
		}
		if !s.SharedMeasured || len(s.Split) != len(paperSizes) {
			t.Fatalf("link %v: split %+v", link, s.Split)
		}
		if sp := s.Split[2]; !near(sp.Shared.Value, 725.6, 1) || !near(sp.Parts[0].Diff.Value, 2204.8-725.6, 1) {
			t.Errorf("link %v: split at 256 B %+v", link, sp)
		}
		for _, c := range s.Contrasts {
			if c.Engine == "generic" && (c.Even == nil || !near(*c.Even, 1250, 2)) {
				t.Errorf("link %v: generic and the bridge are even at %v", link, c.Even)
			}
			if c.Engine == "tc" && (!near(c.Fixed.Value, 500, 1) || !near(c.PerByte.Value, 0, 0.01)) {
				t.Errorf("link %v: tc %+v", link, c)
			}
		}
		for _, b := range s.Bounds {
			cost := lines[b.Engine][0] + lines[b.Engine][1]*float64(b.Size)
			want := CoreBound
			if linkRate(link, b.Size, WireOverhead) < 1e9/cost {
				want = LinkBound
			}
			if b.Regime != want {
				t.Errorf("link %v: %s at %d B: bound %s, want %s", link, b.Engine, b.Size, b.Regime, want)
			}
		}
	}
}

// TestHypotheses has data for each verdict.
func TestHypotheses(t *testing.T) {
	faster := map[string][2]float64{"bridge": {2000, 0.8}, "generic": {1000, 1.6}}
	even := map[string][2]float64{"bridge": {2000, 0.8}, "generic": {2000, 0.8}}
	slower := map[string][2]float64{"bridge": {1000, 0.8}, "generic": {1400, 0.8}}
	for _, c := range []struct {
		name    string
		f       *results.File
		h1, h2  Verdict
		h3      Verdict
		because string
	}{
		{"faster, no link", synthetic(0, 1e-4, faster, "bridge", "generic"), Supported, NotTested, NotSeen, "nothing but memory"},
		{"faster, 1 Gb/s", synthetic(1e9, 1e-4, faster, "bridge", "generic"), Supported, Supported, NotSeen, "1514 B: "},
		{"slower", synthetic(0, 1e-4, slower, "bridge", "generic"), Contradicted, NotTested, Supported, "64 B: -2"},
		{"even", synthetic(0, 1e-2, even, "bridge", "generic"), Undecided, NotTested, Undecided, ""},
		{"a link that is too slow", synthetic(1e7, 1e-4, faster, "bridge", "generic"), NotTested, Supported, Undecided, "no frames of up to 256 B"},
	} {
		s := &analyze(t, c.f, Options{Overhead: WireOverhead}).Series[0]
		want := map[string]Verdict{"H1": c.h1, "H2": c.h2, "H3": c.h3}
		var evidence []string
		for _, h := range s.Hypotheses {
			evidence = append(evidence, h.Evidence...)
			if h.Verdict != want[h.Name] {
				t.Errorf("%s: %s is %s by %q, want %s", c.name, h.Name, h.Verdict, h.Evidence, want[h.Name])
			}
		}
		if text := strings.Join(evidence, "\n"); len(s.Hypotheses) != 3 || !strings.Contains(text, c.because) {
			t.Errorf("%s: no %q in\n%s", c.name, c.because, text)
		}
	}
	// A latency that is clearly worse contradicts H1, however high the gain.
	f := synthetic(0, 1e-4, faster, "bridge", "generic")
	for _, engine := range []string{"bridge", "generic"} {
		mean := map[string]float64{"bridge": 100, "generic": 120}[engine]
		f.Cells = append(f.Cells, results.Cell{Work: "rtt", Input: results.Wire, Size: 64, Engine: engine, Unit: results.Microsecond, N: 3, Mean: mean, SD: 1})
	}
	if h := analyze(t, f, Options{}).Series[0].Hypotheses[0]; h.Verdict != Contradicted {
		t.Errorf("H1 with a worse latency: %+v", h)
	}
	// A gap that stays although the link is the bound contradicts H2: bytes that
	// one of them loses, say.
	f = synthetic(1e9, 1e-4, faster, "bridge", "generic")
	for i := range f.Cells {
		if c := &f.Cells[i]; c.Engine == "generic" && c.Size > 1000 {
			for j := range c.Samples {
				c.Samples[j] *= 0.9
			}
			c.CPU = results.Pointer(*c.CPU * 0.9)
			c.Summarize()
		}
	}
	if h := analyze(t, f, Options{Overhead: WireOverhead}).Series[0].Hypotheses[1]; h.Verdict != Contradicted {
		t.Errorf("H2 with a gap: %+v", h)
	}
}

// TestPairedRatios shows that a file's own pairs decide over the scatter of
// the runs, which the machine's changes blow up.
func TestPairedRatios(t *testing.T) {
	f := synthetic(0, 0.2, map[string][2]float64{"bridge": {2000, 0}, "tc": {1900, 0}}, "bridge", "tc")
	for i := range f.Cells {
		if c := &f.Cells[i]; c.Engine == "tc" {
			c.Ratio = &results.Ratio{Of: "bridge", Value: 1.05, Low: 1.04, High: 1.06, N: 9}
		}
	}
	if h := analyze(t, f, Options{}).Series[0].Hypotheses[0]; h.Verdict != Supported || !strings.Contains(h.Evidence[0], "+5.0 (+4.0 to +6.0)%") {
		t.Errorf("%+v", h)
	}
}

// TestOtherFiles has files that the model can use in part or not at all.
func TestOtherFiles(t *testing.T) {
	two := results.New(results.Meta{Command: "forward"})
	for _, size := range []int{60, 1514} {
		two.Cells = append(two.Cells, results.Cell{Work: "forward", Size: size, Engine: "bridge", Unit: results.NsPerFrame, N: 1, Mean: 1000})
	}
	for want, f := range map[string]*results.File{
		"no cells that the model can use":                results.New(results.Meta{Command: "tcp"}),
		"forward: bridge: fit a line: 2 different sizes": two,
		"forward, 60 bytes: both a rate and a cost": func() *results.File {
			f := results.New(two.Meta)
			rate := two.Cells[0]
			rate.Unit = results.FramesPerS
			f.Cells = []results.Cell{two.Cells[0], rate}
			return f
		}(),
	} {
		if _, err := Analyze(f, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	// The bridge alone: its costs, no gains. A full link without the core's load
	// says nothing of the cost, a unit of something else neither.
	f := synthetic(1e9, 1e-4, map[string][2]float64{"bridge": {5000, 0.1}}, "bridge")
	for i := range f.Cells {
		f.Cells[i].CPU = nil
	}
	f.Cells = append(f.Cells, results.Cell{Work: "wire", Input: results.Wire, Size: 700, Link: 1e9, Engine: "bridge", Unit: results.Percent, N: 1, Mean: 5})
	s := &analyze(t, f, Options{Overhead: WireOverhead}).Series[0]
	notes := fmt.Sprint(s.Notes)
	if len(s.Contrasts) != 0 || len(s.Hypotheses) != 0 || !strings.Contains(notes, "filled the link") || !strings.Contains(notes, "bridge at 700 bytes is in percent") {
		t.Errorf("contrasts %v, hypotheses %v, notes %s", s.Contrasts, s.Hypotheses, notes)
	}
	f = synthetic(1e9, 1e-4, map[string][2]float64{"tc": {1000, 0}}, "tc")
	if s := &analyze(t, f, Options{}).Series[0]; len(s.Predictions) != 0 || !strings.Contains(fmt.Sprint(s.Notes), "the bridge was not measured") {
		t.Errorf("without the bridge: %v, %v", s.Predictions, s.Notes)
	}
}
