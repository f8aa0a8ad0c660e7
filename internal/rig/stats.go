// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Interval is a median with the interval in which it lies with 95%
// confidence.
type Interval struct {
	Median    float64
	Low, High float64
	N         int // values
}

func (i Interval) String() string {
	return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Median, i.Low, i.High)
}

// Median returns the median of values, NaN without any. It leaves their order
// alone.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	s := slices.Sorted(slices.Values(values))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}

// Mean returns the arithmetic mean, NaN without values.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// Percentile returns the value below which the share p (0 to 1) of the values
// lies, with linear interpolation, NaN without values.
func Percentile(values []float64, p float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	return percentile(slices.Sorted(slices.Values(values)), p)
}

func percentile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	low := int(math.Floor(at))
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// bootstrapRuns is how often values are drawn anew: enough for two digits of
// the interval's ends.
const bootstrapRuns = 2000

// Bootstrap returns the median of values and its 95% interval by the
// percentile bootstrap. The same seed gives the same interval. Fewer than two
// values give an interval of no width, which says nothing.
func Bootstrap(values []float64, seed uint64) Interval {
	iv := Interval{Median: Median(values), N: len(values)}
	iv.Low, iv.High = iv.Median, iv.Median
	if len(values) < 2 {
		return iv
	}
	r := rand.New(rand.NewPCG(seed, uint64(len(values))))
	medians := make([]float64, bootstrapRuns)
	draw := make([]float64, len(values))
	for i := range medians {
		for j := range draw {
			draw[j] = values[r.IntN(len(values))]
		}
		slices.Sort(draw)
		medians[i] = percentile(draw, 0.5)
	}
	slices.Sort(medians)
	iv.Low, iv.High = percentile(medians, 0.025), percentile(medians, 0.975)
	return iv
}

// Ratios returns base[i]/other[i] for each i: how many times cheaper the
// other one is, when both are costs of the same round.
func Ratios(base, other []float64) ([]float64, error) {
	if len(base) != len(other) {
		return nil, fmt.Errorf("ratios of %d and %d values: expected pairs", len(base), len(other))
	}
	ratios := make([]float64, len(base))
	for i := range base {
		if base[i] <= 0 || other[i] <= 0 {
			return nil, fmt.Errorf("ratio of %v and %v in round %d: expected costs above zero", base[i], other[i], i+1)
		}
		ratios[i] = base[i] / other[i]
	}
	return ratios, nil
}

// Mirrored returns the numbers from 0 to n-1 in random order and then the
// same backwards (for two: ABBA or BAAB), so that a machine that steadily
// becomes slower or faster during a round costs all of them the same.
func Mirrored(n int, r *rand.Rand) []int {
	order := r.Perm(n)
	for i := n - 1; i >= 0; i-- {
		order = append(order, order[i])
	}
	return order
}
