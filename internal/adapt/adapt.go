// SPDX-License-Identifier: Apache-2.0

// Package adapt decides between the engines tc and generic for one port, under
// load: generic costs less for many small frames and more than twice as much
// for bulk TCP, since it turns GRO off. It watches what a port carries, tries
// generic against tc in short slices in turns where that can pay, and goes by
// the CPU time for a frame.
//
// It is the decision alone. What was seen is given to it, and it says which
// engine comes next and when it wants to see more; it has no clock, reads no
// counters and changes nothing.
package adapt

import (
	"math"
	"time"
)

// The engines that it decides between.
const (
	TC      = "tc"
	Generic = "generic"
)

// Expectation is what a calibration of this box promises: how many times as
// fast generic is as tc, at worst and at best.
type Expectation struct {
	Low, High float64
	Source    string // what says so, for people
}

// Step is what to do next.
type Step struct {
	// Engine is the one to use from now on.
	Engine string
	// After is when to look again. The look is for all the time in between.
	After time.Duration
	// Timed: the CPU time of the look is wanted.
	Timed bool
	// Trying: the engine is in use for a trial and not yet chosen.
	Trying bool
	// Why says in one sentence why the engine is not the other one.
	Why string
	// Change is not nil if another engine has been chosen, or a trial has ended
	// with the same one.
	Change *Change
}

// Change is a decision with its numbers.
type Change struct {
	From, To string
	Cause    Cause
	Reason   string
	// Result is what was measured, nil if the decision was made without: for
	// what traffic has become. Remembered says that it is an earlier trial's.
	Result     *Result
	Remembered bool
}

// base is what a port was like when generic was chosen.
type base struct {
	length  float64
	dropped float64
}

// verdict is what is known about frames of one length.
type verdict struct {
	won   bool
	at    time.Time     // when it was last known to be true
	next  time.Time     // when it is looked at again
	retry time.Duration // until the next trial, if it is lost
	// recheck is how long a win is believed in.
	recheck time.Duration
	why     string
	result  *Result
	base    base
}

// Decider decides for one port.
type Decider struct {
	settings Settings
	expect   func(length float64) (Expectation, bool)

	engine   string // the one chosen
	since    time.Time
	trial    *trial
	tried    time.Duration // how long the trial has found it quiet
	base     base
	suitable time.Duration // for how long the traffic has been right for generic
	quiet    time.Duration // for how long there were few frames for generic
	hold     time.Duration
	why      string
	verdicts map[int]*verdict
}

// New returns a decider for a port that uses tc. expect says what is to be
// expected for frames of a mean length; it may be nil.
func New(s Settings, expect func(length float64) (Expectation, bool)) *Decider {
	if expect == nil {
		expect = func(float64) (Expectation, bool) { return Expectation{}, false }
	}
	d := &Decider{settings: s, expect: expect, engine: TC, hold: s.Hold, verdicts: map[int]*verdict{}}
	d.why = d.words(CauseQuiet, Traffic{})
	return d
}

// First is the step before anything was seen.
func (d *Decider) First() Step { return d.stay(d.settings.Rest, false) }

// Next takes what was seen since the last call, with the engine that the last
// step asked for, and says what to do. mayTry is false while another port is
// being tried: they would measure each other.
func (d *Decider) Next(now time.Time, t Traffic, mayTry bool) Step {
	switch {
	case d.trial != nil:
		return d.try(now, t)
	case d.engine == Generic:
		return d.guard(now, t, mayTry)
	}
	return d.watch(now, t, mayTry)
}

// stay is a step that changes nothing.
func (d *Decider) stay(after time.Duration, timed bool) Step {
	return Step{Engine: d.engine, After: after, Timed: timed, Why: d.why}
}

// obstacle says what speaks against generic for what was seen with tc.
func (d *Decider) obstacle(t Traffic) (Cause, bool) {
	s := &d.settings
	switch {
	case t.rate() < s.MinRate:
		return CauseQuiet, true
	case t.together() > s.MaxTogether:
		return CauseTogether, true
	case t.passedShare() > s.MaxPassed:
		return CausePassed, true
	case t.length() > s.MaxLength:
		return CauseLength, true
	case t.Timed && t.busy() < s.MinBusy:
		return CauseIdle, true
	}
	return "", false
}

// watch looks at a port that uses tc.
func (d *Decider) watch(now time.Time, t Traffic, mayTry bool) Step {
	s := &d.settings
	if c, is := d.obstacle(t); is {
		d.suitable, d.why = 0, d.words(c, t)
		if c == CauseQuiet {
			return d.stay(s.Rest, false)
		}
		return d.stay(s.Look, true)
	}
	d.suitable += min(t.Elapsed, s.Look) // it may have begun just before the look
	if !t.Timed {
		return d.stay(s.Look, true)
	}
	v := d.known(now, t)
	hold := d.hold
	trying := d.words(CauseTrial, t)
	if e, ok := d.expect(t.length()); ok && e.Low >= s.Gain {
		hold, trying = min(hold, s.Look), e.enough() // worth a try at once
	}
	switch {
	case d.suitable < hold:
		d.why = d.words(CauseHold, t)
	case v != nil && v.won && now.Sub(v.at) <= s.Trust:
		d.base = v.base
		return d.choose(now, Generic, CauseMeasured, v.why, v.result, true)
	case v != nil && now.Before(v.next):
		d.why = v.why
	case mayTry:
		d.trial, d.tried = newTrial(s, TC), 0
		d.why = trying
		return Step{Engine: TC, After: s.Slice, Timed: true, Trying: true, Why: d.why}
	}
	return d.stay(s.Look, true)
}

// known returns what is known about frames of such a length. If nothing is and
// the calibration promises nothing, that is so for the time being.
func (d *Decider) known(now time.Time, t Traffic) *verdict {
	v := d.verdicts[band(t.length())]
	if e, ok := d.expect(t.length()); v == nil && ok && e.High < d.settings.Gain {
		v = &verdict{
			at: now, next: now.Add(d.settings.MaxRetry), retry: d.settings.MaxRetry,
			why: e.tooLittle(),
		}
		d.verdicts[band(t.length())] = v
	}
	return v
}

// band puts frames of similar length together.
func band(length float64) int { return int(math.Round(math.Log2(max(length, 1)))) }

// guard looks at a port that uses generic.
func (d *Decider) guard(now time.Time, t Traffic, mayTry bool) Step {
	s := &d.settings
	if t.rate() < s.MinRate/2 {
		if d.quiet += t.Elapsed; d.quiet >= s.Quiet {
			return d.leave(now, CauseQuiet, t)
		}
		return d.stay(s.Guard, false)
	}
	d.quiet = 0
	if c, is := d.changed(t); is {
		return d.leave(now, c, t)
	}
	if now.Sub(d.since) >= s.Lasting {
		d.hold = s.Hold
	}
	if v := d.verdicts[band(d.base.length)]; v != nil && !now.Before(v.next) && mayTry {
		d.trial, d.tried = newTrial(s, Generic), 0
		return Step{Engine: Generic, After: s.Slice, Timed: true, Trying: true, Why: d.why}
	}
	return d.stay(s.Guard, false)
}

// changed says what has changed for the worse since generic was chosen, as far
// as it can be seen with generic.
func (d *Decider) changed(t Traffic) (Cause, bool) {
	s := &d.settings
	switch {
	case t.longer(d.base.length) > s.MaxLonger:
		return CauseLonger, true
	case t.passedShare() > 1.25*s.MaxPassed:
		return CausePassed, true
	case t.dropsMore(d.base.dropped, s.MaxDropped):
		return CauseDropped, true
	}
	return "", false
}

// leave goes back to tc, since the traffic is no longer what generic was chosen
// for.
func (d *Decider) leave(now time.Time, c Cause, t Traffic) Step {
	why := d.words(c, t)
	if v := d.verdicts[band(d.base.length)]; v != nil && v.won {
		v.at = now // it has been true until now
		if c == CauseDropped {
			d.lost(now, v, why)
		}
	}
	if c != CauseQuiet {
		d.hold = min(2*d.hold, d.settings.MaxHold)
	}
	return d.choose(now, TC, c, why, nil, false)
}

// lost notes that generic is not to be used, and when to look again.
func (d *Decider) lost(now time.Time, v *verdict, why string) {
	// Once won and then lost is no reason to try more often.
	v.retry = min(max(2*v.retry, d.settings.Retry), d.settings.MaxRetry)
	v.won, v.why, v.at, v.next = false, why, now, now.Add(v.retry)
}

// confirm notes that generic was better, once more or for the first time, and
// when to look again.
func (v *verdict) confirm(now time.Time, s *Settings) {
	if v.won {
		v.recheck, v.retry = min(2*v.recheck, s.MaxRetry), 0
	} else {
		v.recheck = s.Recheck
	}
	v.won, v.at, v.next = true, now, now.Add(v.recheck)
}

// choose goes over to an engine.
func (d *Decider) choose(now time.Time, engine string, c Cause, why string, r *Result, remembered bool) Step {
	change := &Change{From: d.engine, To: engine, Cause: c, Reason: why, Result: r, Remembered: remembered}
	d.engine, d.since, d.why, d.suitable, d.quiet, d.trial = engine, now, why, 0, 0, nil
	step := d.stay(d.settings.Look, true)
	if engine == Generic {
		step = d.stay(d.settings.Guard, false)
	}
	step.Change = change
	return step
}

// try goes on with a trial.
func (d *Decider) try(now time.Time, t Traffic) Step {
	s, tr := &d.settings, d.trial
	engine := tr.engine()
	if !tr.settling {
		if step, ended := d.endEarly(now, engine, t); ended {
			return step
		}
	}
	o, after := tr.next(t)
	if o == goesOn {
		return Step{Engine: tr.engine(), After: after, Timed: true, Trying: true, Why: d.why}
	}
	r := tr.result()
	tc := tr.sums[TC]
	key := band(tc.length())
	v := d.verdicts[key]
	if v == nil {
		v = &verdict{}
		d.verdicts[key] = v
	}
	v.result = &r
	switch o {
	case faster:
		v.confirm(now, s)
		v.why = r.won()
		v.base = base{length: tc.length(), dropped: tc.droppedShare()}
		d.base = v.base
		return d.choose(now, Generic, CauseMeasured, v.why, &r, false)
	case droppage:
		d.lost(now, v, d.words(CauseDropped, t))
		return d.choose(now, TC, CauseDropped, v.why, &r, false)
	}
	d.lost(now, v, r.lost(s.Gain))
	return d.choose(now, TC, CauseMeasured, v.why, &r, false)
}

// endEarly ends a trial because the traffic has become another.
func (d *Decider) endEarly(now time.Time, engine string, t Traffic) (Step, bool) {
	tr := d.trial
	switch {
	case t.rate() < d.settings.MinRate/2:
		if d.tried += t.Elapsed; d.tried >= 2*d.settings.MaxSlice {
			return d.leave(now, CauseQuiet, t), true
		}
		return Step{}, false
	case engine == TC:
		c, is := d.obstacle(t)
		if !is || c == CauseQuiet || c == CauseIdle {
			return Step{}, false
		}
		return d.leave(now, c, t), true
	}
	usual := tr.sums[TC].length()
	if tr.sums[TC].Frames == 0 {
		usual = d.base.length
	}
	if d.base.length = usual; t.longer(usual) > d.settings.MaxLonger {
		return d.leave(now, CauseLonger, t), true
	}
	return Step{}, false
}
