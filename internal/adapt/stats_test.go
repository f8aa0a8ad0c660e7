// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"math/rand/v2"
	"testing"
)

func TestAround(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Interval
	}{
		{nil, Interval{}},
		{[]float64{2}, Interval{2, 2, 2}},
		{[]float64{3, 1}, Interval{2, 1, 3}},
		{[]float64{6, 5, 4, 3, 2, 1}, Interval{3.5, 1, 6}},
		{[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, Interval{5, 2, 8}},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 1000}, Interval{6.5, 3, 10}},
	} {
		if got := around(c.values); got != c.want {
			t.Errorf("around(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

// The interval holds the true median at least as often as it says.
func TestAroundCovers(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 6; n <= 16; n++ {
		const runs = 4000
		held := 0
		for range runs {
			values := make([]float64, n)
			for i := range values {
				values[i] = rng.NormFloat64()
			}
			if i := around(values); i.Low <= 0 && 0 <= i.High {
				held++
			}
		}
		if share := float64(held) / runs; share < 0.94 {
			t.Errorf("%d values: %.3f", n, share)
		}
	}
}
