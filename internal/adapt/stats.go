// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"math"
	"slices"
)

// Interval is the median of paired ratios, and where it lies with 95%
// confidence.
type Interval struct {
	Median, Low, High float64
}

// around returns the median of values and its interval by the sign test: it
// asks nothing of how the values are spread, so a neighbour that wakes up in
// one slice does not move it. Below six values there is no such interval; it is
// the whole range then, and covers less.
func around(values []float64) Interval {
	if len(values) == 0 {
		return Interval{}
	}
	s := slices.Sorted(slices.Values(values))
	out := signRank(len(s))
	return Interval{Median: median(s), Low: s[out], High: s[len(s)-1-out]}
}

// signRank is how many of n sorted values lie outside the interval at each end:
// the most for which a fair coin would show that many heads or fewer with a
// probability of at most 2.5%.
func signRank(n int) int {
	k, heads, ways := 0, 1.0, 1.0 // ways to have k heads, and to have up to k
	for {
		heads *= float64(n-k) / float64(k+1)
		if ways += heads; ways > 0.025*math.Pow(2, float64(n)) {
			return k
		}
		k++
	}
}

func median(sorted []float64) float64 {
	n := len(sorted)
	if n == 0 {
		return 0
	}
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}
