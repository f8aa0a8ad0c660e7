// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// What is demanded of a measurement.
const (
	// floorLimit is how far from zero the pooled floor may be, in ns.
	floorLimit = 0.5
	// driftLimit is how much a cell's base may change while it is measured.
	driftLimit = 0.10
	// spreadLimit and spreadShare bound half of a cell's interval: ns, or a
	// share of the value, whichever is more.
	spreadLimit = 1.0
	spreadShare = 0.15
	// againLimit is the share of runs that may have been interrupted.
	againLimit = 0.05
)

// audit looks at whether the numbers may be trusted.
func audit(cells []*cell) []results.Check {
	return []results.Check{
		countsMatch(cells), floorSpansZero(cells), floorSmall(cells), clockSteady(cells), spreadBounded(cells), seldomInterrupted(cells),
	}
}

func countsMatch(cells []*cell) results.Check {
	runs := 0
	var wrong []string
	for _, c := range cells {
		runs += c.runs
		wrong = append(wrong, c.wrong...)
	}
	check := results.Check{
		Name: "counts match", Expected: "in each run the program ran and took the step as often as it was told, and each step did what it should",
		Value: fmt.Sprintf("%d runs, %d wrong", runs, len(wrong)), Passed: runs > 0 && len(wrong) == 0,
	}
	if len(wrong) > 0 {
		check.Value += ": " + strings.Join(wrong[:min(len(wrong), 3)], "; ")
	}
	return check
}

// mostAstray is how many of n intervals of 95% may miss what they hold, so that
// an honest measurement passes 99 times in 100.
func mostAstray(n int) int {
	probability, sum := math.Pow(0.95, float64(n)), 0.0
	for k := 0; ; k++ {
		if sum += probability; sum >= 0.99 || k == n {
			return k
		}
		probability *= float64(n-k) / float64(k+1) * 0.05 / 0.95
	}
}

func floorSpansZero(cells []*cell) results.Check {
	var astray []string
	for _, c := range cells {
		if iv := rig.Bootstrap(c.floor, 1); iv.Low > 0 || iv.High < 0 {
			astray = append(astray, fmt.Sprintf("%s (%.2f to %.2f ns)", c.step.title(), iv.Low, iv.High))
		}
	}
	most := mostAstray(len(cells))
	check := results.Check{
		Name:     "floor spans zero",
		Expected: fmt.Sprintf("at most %d of %d intervals without zero, where both halves of the pair are the same", most, len(cells)),
		Value:    fmt.Sprintf("%d without", len(astray)), Passed: len(cells) > 0 && len(astray) <= most,
	}
	if len(astray) > 0 {
		check.Value += ": " + strings.Join(astray, ", ")
	}
	return check
}

func floorSmall(cells []*cell) results.Check {
	iv := floorOf(cells)
	return results.Check{
		Name: "floor is small", Value: fmt.Sprintf("%.3f ns (%.3f to %.3f, %d pairs)", iv.Median, iv.Low, iv.High, iv.N),
		Expected: fmt.Sprintf("within %.1f ns of zero, all cells together", floorLimit),
		Passed:   iv.N > 0 && iv.Low >= -floorLimit && iv.High <= floorLimit,
	}
}

// floorOf pools the floors of all cells.
func floorOf(cells []*cell) rig.Interval {
	var all []float64
	for _, c := range cells {
		all = append(all, c.floor...)
	}
	return rig.Bootstrap(all, 1)
}

func clockSteady(cells []*cell) results.Check {
	worst, where := 0.0, ""
	for _, c := range cells {
		if d := math.Abs(c.drift()); d >= worst || math.IsNaN(d) {
			worst, where = d, c.step.title()
		}
	}
	return results.Check{
		Name: "clock steady", Value: fmt.Sprintf("at most %.1f%% (%s)", 100*worst, where),
		Expected: fmt.Sprintf("a run without the step takes the same in the last third of a cell as in the first, within %.0f%%", 100*driftLimit),
		Passed:   worst <= driftLimit,
	}
}

func spreadBounded(cells []*cell) results.Check {
	var wide []string
	for _, c := range cells {
		iv := rig.Bootstrap(c.deltas, 1)
		if half := (iv.High - iv.Low) / 2; half > max(spreadLimit, spreadShare*math.Abs(iv.Median)) {
			wide = append(wide, fmt.Sprintf("%s (±%.1f of %.1f ns)", c.step.title(), half, iv.Median))
		}
	}
	slices.Sort(wide)
	check := results.Check{
		Name: "spread bounded", Value: fmt.Sprintf("%d of %d are wider", len(wide), len(cells)), Passed: len(wide) == 0,
		Expected: fmt.Sprintf("intervals of at most ±%.1f ns or ±%.0f%%", spreadLimit, 100*spreadShare),
	}
	if len(wide) > 0 {
		check.Value += ": " + strings.Join(wide, ", ")
	}
	return check
}

func seldomInterrupted(cells []*cell) results.Check {
	runs, again := 0, 0
	for _, c := range cells {
		runs, again = runs+c.runs, again+c.again
	}
	return results.Check{
		Name: "seldom interrupted", Value: fmt.Sprintf("%d of %d runs were begun again", again, runs),
		Expected: fmt.Sprintf("at most %.0f%%", 100*againLimit), Passed: float64(again) <= againLimit*float64(runs),
	}
}
