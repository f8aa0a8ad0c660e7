// SPDX-License-Identifier: Apache-2.0

package control

import (
	"math"
	"slices"
	"time"

	"github.com/xdpl2/xdpl2/internal/adapt"
	"github.com/xdpl2/xdpl2/internal/api"
)

// What a calibration of this box lets auto's second step expect. It has measured
// sk_buffs with room in front of the frame and without; which of the two a port's
// driver makes is not known, so the worse and the better of them are the bounds.

// expectation says how many times as fast a table has generic than tc for frames
// of a length.
func expectation(table *api.Calibration, length float64) (adapt.Expectation, bool) {
	e := adapt.Expectation{Low: math.Inf(1)}
	if table == nil {
		return e, false
	}
	e.Source = "the calibration of " + table.Time.Local().Format(time.DateOnly)
	for _, work := range []string{"roomy", "tight"} {
		generic, ok := ratioAt(table.Rows, work, string(adapt.Generic), length)
		tc, also := ratioAt(table.Rows, work, string(adapt.TC), length)
		if !ok || !also {
			continue
		}
		e.Low, e.High = min(e.Low, generic/tc), max(e.High, generic/tc)
	}
	return e, e.High > 0
}

// expect is what the calibration of this box says.
func (c *Controller) expect(length float64) (adapt.Expectation, bool) {
	table, err := c.calibrations.table()
	if err != nil || c.opts.Calibrator.Stale(table) != "" {
		return adapt.Expectation{}, false // there is none, or it says nothing about this box as it is
	}
	return expectation(table, length)
}

// ratioAt is what a table has for an engine at a length, between the sizes that
// were measured in proportion.
func ratioAt(rows []api.CalibrationRow, work, engine string, length float64) (float64, bool) {
	var at []api.CalibrationRow
	for _, r := range rows {
		if r.Work == work && r.Engine == engine && r.Size > 0 && r.Ratio > 0 {
			at = append(at, r)
		}
	}
	if len(at) == 0 {
		return 0, false
	}
	slices.SortFunc(at, func(a, b api.CalibrationRow) int { return a.Size - b.Size })
	for i, r := range at {
		if length > float64(r.Size) && i+1 < len(at) {
			continue
		}
		if i == 0 || length >= float64(r.Size) {
			return r.Ratio, true
		}
		before := at[i-1]
		share := (length - float64(before.Size)) / float64(r.Size-before.Size)
		return before.Ratio + share*(r.Ratio-before.Ratio), true
	}
	return 0, false // not reached: the last row ends the loop
}

// measured is a decision's numbers as they are told.
func measured(c *adapt.Change) *api.Measured {
	if c == nil || c.Result == nil {
		return nil
	}
	r := c.Result
	return &api.Measured{
		TC: math.Round(r.TC), Generic: math.Round(r.Generic), Pairs: r.Pairs, Earlier: c.Remembered,
		Ratio: round3(r.Ratio.Median), Low: round3(r.Ratio.Low), High: round3(r.Ratio.High),
	}
}

func round3(x float64) float64 { return math.Round(1000*x) / 1000 }
