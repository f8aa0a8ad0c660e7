// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math/rand/v2"
	"testing"
)

// TestPredicts leaves a size out, and predicts it.
func TestPredicts(t *testing.T) {
	lines := map[string][2]float64{"bridge": {2000, 0.8}, "generic": {1000, 1.6}}
	f := synthetic(0, 1e-6, lines, "bridge", "generic")
	a := analyze(t, f, Options{Sizes: []int{2000, 700, 700}, Links: []float64{2.5e9, 1e8, 1e10}, Overhead: WireOverhead})
	got := map[[2]float64]Prediction{}
	for _, p := range a.Series[0].Predictions {
		if p.Engine == "generic" {
			got[[2]float64{float64(p.Size), p.Link}] = p
		}
	}
	if len(got) != 6 {
		t.Fatalf("%d predictions: %+v", len(got), got)
	}
	for at, want := range map[[2]float64]struct {
		rate, gain float64
		regime     Regime
		outside    bool
	}{
		{700, 1e10}:   {1e9 / 2120, 2560.0/2120 - 1, CoreBound, false},
		{700, 2.5e9}:  {2.5e9 / 8 / 724, 2560.0*2.5/8/724 - 1, LinkBound, false}, // the bridge still by its core
		{700, 1e8}:    {1e8 / 8 / 724, 0, LinkBound, false},
		{2000, 1e10}:  {1e9 / 4200, 3600.0/4200 - 1, CoreBound, true},
		{2000, 2.5e9}: {2.5e9 / 8 / 2024, 0, LinkBound, true},
	} {
		p := got[at]
		if !near(p.Rate.Value, want.rate, want.rate*1e-3) || !near(p.Gain.Value, want.gain, 2e-3) || p.Regime != want.regime || p.Outside != want.outside {
			t.Errorf("%v: %+v, want %+v", at, p, want)
		}
		if p.Gain.Low > p.Gain.Value+1e-9 || p.Gain.High < p.Gain.Value-1e-9 {
			t.Errorf("%v: gain %+v", at, p.Gain)
		}
	}
}

// TestPredictionIntervals measures at seven sizes, predicts the gain at an
// eighth, and measures it: as many lie in the interval as it says, although
// both paths lie off their lines together.
func TestPredictionIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	x := make([]float64, len(paperSizes))
	for i, size := range paperSizes {
		x[i] = float64(size)
	}
	const at, tries = 800, 150
	in := 0
	for range tries {
		costs := func(x []float64) (bridge, engine []float64) {
			for _, v := range x {
				both := 150 * r.NormFloat64()
				bridge = append(bridge, 5900+v+both+40*r.NormFloat64())
				engine = append(engine, 5200+1.4*v+both+40*r.NormFloat64())
			}
			return bridge, engine
		}
		b, e := costs(x)
		lb, err := FitLine(x, b)
		if err != nil {
			t.Fatal(err)
		}
		le, err := FitLine(x, e)
		if err != nil {
			t.Fatal(err)
		}
		p := newPredictor(lb, le).at("generic", at, 0, 0)
		nb, ne := costs([]float64{at})
		gain := nb[0]/ne[0] - 1
		in += boolInt(p.Gain.Low <= gain && gain <= p.Gain.High)
		if p.Gain.High-p.Gain.Low > 0.15 {
			t.Fatalf("interval %+v: what both have in common was not taken out", p.Gain)
		}
	}
	// 95% of 150 is 142, with a standard deviation of 2.7.
	if in < 132 {
		t.Errorf("%d of %d measured gains lie in the interval", in, tries)
	}
}

func TestCrossover(t *testing.T) {
	l := &Line{A: exactly(1000), B: exactly(1)}
	for _, c := range []struct {
		bits     float64
		overhead int
		size     float64
		ok       bool
	}{
		{1e9, 0, 1000.0 / 7, true}, // 8 ns a byte
		{1e9, 24, (1000.0 - 192) / 7, true},
		{1e7, 24, 0, true},   // a link that is always slower
		{1e10, 24, 0, false}, // 0.8 ns a byte: never
	} {
		if size, ok := l.Crossover(c.bits, c.overhead); ok != c.ok || !near(size, c.size, 1e-6) {
			t.Errorf("%+v: %v, %v", c, size, ok)
		}
	}
}

func TestParseRate(t *testing.T) {
	for text, want := range map[string]float64{
		"2.5G": 2.5e9, "1g": 1e9, "100M": 1e8, "10Gb/s": 1e10, "10 Gbit/s": 1e10, "1000Mbit": 1e9, "64k": 64e3, "1T": 1e12,
	} {
		if got, err := ParseRate(text); err != nil || got != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "G", "2.5", "-1G", "0G", "NaNG", "InfG", "1X", "1GG", "1e9G", "bit/s"} {
		if got, err := ParseRate(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	for want, bits := range map[string]float64{"2.5 Gb/s": 2.5e9, "100 Mb/s": 1e8, "64000 b/s": 64e3} {
		if got := Rate(bits); got != want {
			t.Errorf("%v: %q", bits, got)
		}
	}
}
