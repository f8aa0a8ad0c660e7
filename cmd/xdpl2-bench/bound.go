// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// bound is what a number has to keep: at least, or at most. Neither is set for
// a number that is there for comparison.
type bound struct{ atLeast, atMost float64 }

func (b bound) String() string {
	switch {
	case b.atMost != 0:
		return fmt.Sprintf("<= %.2f", b.atMost)
	case b.atLeast != 0:
		return fmt.Sprintf(">= %.2f", b.atLeast)
	}
	return ""
}

// The verdicts. A number keeps its bound if all of its interval does, and does
// not if none of it does; what lies between is not known, and no pass.
const (
	met       = "met"
	missed    = "missed"
	undecided = "undecided"
)

// judge compares an interval with the bound.
func (b bound) judge(iv rig.Interval) string {
	if b == (bound{}) {
		return ""
	}
	if iv.N < minForInterval {
		return undecided
	}
	low, high := iv.Low-b.atLeast, iv.High-b.atLeast
	if b.atMost != 0 {
		low, high = b.atMost-iv.High, b.atMost-iv.Low
	}
	switch {
	case low >= 0:
		return met
	case high < 0:
		return missed
	}
	return undecided
}

// finding is a number with its bound and the verdict.
type finding struct {
	Part    string  `json:"part"`
	What    string  `json:"what"`
	Engine  string  `json:"engine"`
	Value   float64 `json:"value"`
	Low     float64 `json:"low"` // of the 95% interval
	High    float64 `json:"high"`
	Rounds  int     `json:"rounds"`
	Bound   string  `json:"bound,omitempty"`
	Verdict string  `json:"verdict,omitempty"`
	Comment string  `json:"comment,omitempty"`
}

func newFinding(part, what, engine string, iv rig.Interval, b bound) finding {
	return finding{part, what, engine, iv.Median, iv.Low, iv.High, iv.N, b.String(), b.judge(iv), ""}
}

// times returns by how much more a cell's number is than another's, run by
// run: the median of the quotients and its interval. False if one of them was
// not measured.
func times(a, b *results.Cell) (rig.Interval, bool) {
	if a == nil || b == nil {
		return rig.Interval{}, false
	}
	n := min(len(a.Samples), len(b.Samples))
	ratios, err := rig.Ratios(a.Samples[:n], b.Samples[:n])
	if err != nil || n == 0 {
		return rig.Interval{}, false
	}
	return rig.Bootstrap(ratios, 1), true
}

// ratioOf is the cell's ratio to the bridge.
func ratioOf(c *results.Cell) rig.Interval {
	if c.Ratio == nil {
		return rig.Interval{}
	}
	return rig.Interval{Median: c.Ratio.Value, Low: c.Ratio.Low, High: c.Ratio.High, N: c.Ratio.N}
}

// outcome counts the verdicts; the error says that not every bound is kept.
func outcome(all []finding) error {
	count := map[string]int{}
	for _, f := range all {
		count[f.Verdict]++
	}
	switch {
	case count[met]+count[missed]+count[undecided] == 0:
		return fmt.Errorf("nothing was judged")
	case count[missed] > 0:
		return fmt.Errorf("%d bounds missed, %d undecided, %d met", count[missed], count[undecided], count[met])
	case count[undecided] > 0:
		return fmt.Errorf("%d bounds undecided (too few rounds, or too near to call), %d met", count[undecided], count[met])
	}
	return nil
}

// findingLines is the table for people.
func findingLines(all []finding) []string {
	rows := [][]string{{"PART", "WHAT", "ENGINE", "VALUE", "95% INTERVAL", "ROUNDS", "BOUND", "VERDICT"}}
	part := ""
	for _, f := range all {
		name := f.Part
		if name == part {
			name = ""
		}
		part = f.Part
		rows = append(rows, []string{name, f.What, f.Engine, fmt.Sprintf("%.2f", f.Value), f.intervalText(), fmt.Sprint(f.Rounds), f.Bound, f.verdictText()})
	}
	return newTable("lllrlrll").lines(rows...)
}

func (f *finding) intervalText() string {
	if f.Rounds < minForInterval {
		return "too few rounds"
	}
	return fmt.Sprintf("%.2f to %.2f", f.Low, f.High)
}

func (f *finding) verdictText() string {
	switch {
	case f.Comment == "":
		return f.Verdict
	case f.Verdict == "":
		return f.Comment
	}
	return f.Verdict + " (" + f.Comment + ")"
}
