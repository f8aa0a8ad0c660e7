// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMedianAndPercentile(t *testing.T) {
	for _, c := range []struct {
		values      []float64
		median, p90 float64
	}{
		{[]float64{3}, 3, 3},
		{[]float64{4, 1}, 2.5, 3.7},
		{[]float64{9, 1, 5}, 5, 8.2},
		{[]float64{4, 3, 2, 1}, 2.5, 3.7},
		{[]float64{10, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 5, 9},
	} {
		before := slices.Clone(c.values)
		if m := Median(c.values); m != c.median {
			t.Errorf("median of %v is %v, want %v", c.values, m, c.median)
		}
		if p := Percentile(c.values, 0.9); math.Abs(p-c.p90) > 1e-9 {
			t.Errorf("90th percentile of %v is %v, want %v", c.values, p, c.p90)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("%v became %v", before, c.values)
		}
	}
	for _, v := range []float64{Median(nil), Percentile(nil, 0.5), Mean(nil)} {
		if !math.IsNaN(v) {
			t.Errorf("%v of no values", v)
		}
	}
	if m := Mean([]float64{1, 2, 6}); m != 3 {
		t.Errorf("mean %v", m)
	}
}

func TestBootstrap(t *testing.T) {
	same := Bootstrap([]float64{2, 2, 2, 2}, 1)
	if same != (Interval{2, 2, 2, 4}) {
		t.Errorf("equal values: %+v", same)
	}
	if one := Bootstrap([]float64{7}, 1); one != (Interval{7, 7, 7, 1}) {
		t.Errorf("one value: %+v", one)
	}
	values := []float64{1.1, 1.2, 1.3, 1.25, 1.15, 1.22, 1.18, 1.21, 9}
	a, b := Bootstrap(values, 1), Bootstrap(values, 1)
	if a != b {
		t.Errorf("the same seed gave %v and %v", a, b)
	}
	if a.Median != 1.21 || a.Low < 1.1 || a.Low > 1.21 || a.High < 1.21 || a.High > 1.3 {
		t.Errorf("one outlier among nine: %v", a)
	}
}

// TestBootstrapCovers checks the promise of the interval: the true median
// lies inside about 95 of 100 times.
func TestBootstrapCovers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	inside := 0
	const runs = 300
	for i := range runs {
		values := make([]float64, 25)
		for j := range values {
			values[j] = 1.5 + 0.1*r.NormFloat64()
		}
		if iv := Bootstrap(values, uint64(i)); iv.Low <= 1.5 && 1.5 <= iv.High {
			inside++
		}
	}
	if share := float64(inside) / runs; share < 0.89 || share > 0.99 {
		t.Errorf("the true median lies inside %.1f%% of the intervals", 100*share)
	}
}

func TestRatios(t *testing.T) {
	r, err := Ratios([]float64{100, 150}, []float64{50, 100})
	if err != nil || !slices.Equal(r, []float64{2, 1.5}) {
		t.Errorf("%v, %v", r, err)
	}
	if _, err := Ratios([]float64{1}, nil); err == nil {
		t.Error("no pairs")
	}
	if _, err := Ratios([]float64{1}, []float64{0}); err == nil {
		t.Error("a cost of zero")
	}
}

func TestMirrored(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	seen := make(map[int]bool)
	for range 50 {
		order := Mirrored(3, r)
		back := slices.Clone(order)
		slices.Reverse(back)
		if len(order) != 6 || !slices.Equal(order, back) {
			t.Fatalf("order %v", order)
		}
		seen[order[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("always the same first: %v", seen)
	}
}

func TestCompareRounds(t *testing.T) {
	c := Comparison{Variants: []string{"bridge", "fast"}}
	// The machine is three times slower in the second round; the ratio of each
	// round does not see it.
	for _, slow := range []float64{1, 3, 1} {
		c.Rounds = append(c.Rounds, Round{
			{{NsPerFrame: 1000 * slow}, {NsPerFrame: 1200 * slow}},
			{{NsPerFrame: 600 * slow}, {NsPerFrame: 500 * slow}},
		})
	}
	iv, err := c.Ratio("bridge", "fast")
	if err != nil || math.Abs(iv.Median-2) > 1e-9 || math.Abs(iv.High-iv.Low) > 1e-9 || iv.N != 3 {
		t.Errorf("%+v, %v", iv, err)
	}
	cost, err := c.Cost("fast")
	if err != nil || cost.Median != 550 {
		t.Errorf("%+v, %v", cost, err)
	}
	if _, err := c.Ratio("bridge", "none"); err == nil {
		t.Error("a variant that there is not")
	}
}
