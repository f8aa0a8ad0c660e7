// SPDX-License-Identifier: Apache-2.0

package results

import (
	"fmt"
	"math"

	"github.com/xdpl2/xdpl2/internal/rig"
)

// Summarize computes what a cell says of its samples: their number, mean,
// standard deviation and median.
func (c *Cell) Summarize() {
	c.N = len(c.Samples)
	if c.N == 0 {
		return
	}
	c.Mean = rig.Mean(c.Samples)
	c.SD = StandardDeviation(c.Samples)
	c.Median = Pointer(rig.Median(c.Samples))
}

// StandardDeviation returns the standard deviation of a sample, 0 for fewer
// than two values.
func StandardDeviation(values []float64) float64 {
	if len(values) < 2 {
		return 0
	}
	mean, sum := rig.Mean(values), 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(values)-1))
}

// Shares are the quantiles that cells of single values have.
var Shares = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 1}

// SetQuantiles computes the quantiles of single values (round trips).
func (c *Cell) SetQuantiles(values []float64) {
	c.Quantiles = nil
	for _, p := range Shares {
		c.Quantiles = append(c.Quantiles, Quantile{p, rig.Percentile(values, p)})
	}
}

// SetRatio compares a cell to the same cell of another engine, run by run:
// the median of the quotients with its 95% bootstrap interval.
func (c *Cell) SetRatio(base *Cell) error {
	a, b := base.Samples, c.Samples // costs
	if c.Unit.MoreIsBetter() {
		a, b = b, a
	}
	ratios, err := rig.Ratios(a, b)
	if err != nil {
		return fmt.Errorf("%s against %s: %w", c.Engine, base.Engine, err)
	}
	iv := rig.Bootstrap(ratios, 1)
	c.Ratio = &Ratio{Of: base.Engine, Value: iv.Median, Low: iv.Low, High: iv.High, N: iv.N}
	return nil
}
