// SPDX-License-Identifier: Apache-2.0

package adapt

import "fmt"

// Cause is why a port uses the engine that it uses.
type Cause string

// The causes. All but CauseMeasured, which says which one was better, are for
// tc.
const (
	CauseQuiet    Cause = "quiet"    // too few frames
	CauseIdle     Cause = "idle"     // they cost too little
	CauseTogether Cause = "gro"      // GRO gains
	CausePassed   Cause = "passed"   // the stack gets too many
	CauseLength   Cause = "length"   // long frames
	CauseLonger   Cause = "longer"   // frames have become longer while generic was used
	CauseHold     Cause = "hold"     // the traffic has not been the same for long
	CauseTrial    Cause = "trial"    // being measured
	CauseMeasured Cause = "measured" // a trial said so
	CauseDropped  Cause = "dropped"  // generic loses frames on their way out
	CauseExpected Cause = "expected" // the calibration promises nothing
)

// won says why generic is used.
func (r Result) won() string {
	return fmt.Sprintf("auto measured %.0f ns a frame with generic, %.0f ns with tc: %.2f times as fast (95%%: %.2f to %.2f, %d pairs)",
		r.Generic, r.TC, r.Ratio.Median, r.Ratio.Low, r.Ratio.High, r.Pairs)
}

// lost says why generic is not used, for want of a gain.
func (r Result) lost(gain float64) string {
	if r.Pairs == 0 {
		return "auto could not measure what generic costs: the clocks of this box are too coarse"
	}
	return fmt.Sprintf("auto measured %.0f ns a frame with generic, %.0f ns with tc: %.2f times as fast (95%%: %.2f to %.2f, %d pairs); it takes %.2f",
		r.Generic, r.TC, r.Ratio.Median, r.Ratio.Low, r.Ratio.High, r.Pairs, gain)
}

// tooLittle says why generic is seldom tried.
func (e Expectation) tooLittle() string {
	return fmt.Sprintf("%s promises generic %.2f to %.2f of tc's speed for frames of such a length: auto seldom tries it", e.Source, e.Low, e.High)
}

// enough says that generic is tried soon.
func (e Expectation) enough() string {
	return fmt.Sprintf("%s promises generic %.2f to %.2f of tc's speed for frames of such a length: auto tries it now", e.Source, e.Low, e.High)
}

// words says in one sentence why, with the numbers of what was seen.
func (d *Decider) words(c Cause, t Traffic) string {
	s := &d.settings
	switch c {
	case CauseQuiet:
		return fmt.Sprintf("auto tries generic where more frames come: there are too few for the engine to matter (less than %.0f a second)", s.MinRate)
	case CauseIdle:
		return fmt.Sprintf("auto tries generic where there is more to do: forwarding takes less than %.0f%% of a core here", 100*s.MinBusy)
	case CauseTogether:
		return fmt.Sprintf("GRO puts %.1f frames together here on average, and generic would turn it off", t.together())
	case CausePassed:
		return fmt.Sprintf("%.0f%% of the frames are for the box itself or routed, and generic would take GRO from them", 100*t.passedShare())
	case CauseLength:
		return fmt.Sprintf("auto tries generic where frames are short: they have %.0f bytes on average", t.length())
	case CauseLonger:
		return fmt.Sprintf("frames have become longer (%.0f bytes on average instead of %.0f): tc shows what GRO would gain", t.length(), d.base.length)
	case CauseHold:
		return "auto waits until the traffic has been the same for a while before it tries generic"
	case CauseTrial:
		return "auto measures tc and generic in turns"
	case CauseDropped:
		return "with generic more frames were dropped on their way out than with tc"
	}
	return ""
}
