// SPDX-License-Identifier: Apache-2.0

package adapt

import "time"

// Result is what a trial has measured. TC and Generic are medians of the CPU
// time for a frame in nanoseconds, Ratio is tc's divided by generic's, paired.
type Result struct {
	TC, Generic float64
	Ratio       Interval
	Pairs       int
}

// trial measures the two engines in turns: pairs of slices, in the order first,
// other, other, first and so on, so that what changes with time does not speak
// for one of them, and each pair costs one change.
type trial struct {
	s     *Settings
	first string // the engine that was in use
	slice int    // number of the one that is measured
	// settling: the engine has just been changed, and what its next look says
	// does not count.
	settling bool
	now      Traffic // of this slice so far
	before   Traffic // the other slice of the pair
	sums     map[string]Traffic

	nanos  map[string][]float64
	ratios []float64
}

func newTrial(s *Settings, first string) *trial {
	return &trial{s: s, first: first, sums: map[string]Traffic{}, nanos: map[string][]float64{}}
}

// engine is the one that the current slice is for.
func (t *trial) engine() string {
	if t.slice%4 == 0 || t.slice%4 == 3 {
		return t.first
	}
	return other(t.first)
}

// outcome is how a trial stands.
type outcome int

const (
	goesOn   outcome = iota
	faster           // generic is, by enough
	notFast          // it is not, or it cannot be told
	droppage         // it loses frames on their way out
)

// next takes what was seen and says how the trial stands and when to look next.
func (t *trial) next(seen Traffic) (outcome, time.Duration) {
	if t.settling {
		t.settling = false
		return goesOn, t.s.Slice
	}
	t.now = t.now.add(seen)
	if t.now.Elapsed < t.wanted() {
		return goesOn, t.s.Slice
	}
	engine := t.engine()
	t.sums[engine] = t.sums[engine].add(t.now)
	if t.slice%2 == 1 {
		t.pair(t.before, t.now)
	}
	t.before, t.now = t.now, Traffic{}
	t.slice++
	if o := t.judge(); o != goesOn {
		return o, 0
	}
	if t.engine() != engine {
		t.settling = true
		return goesOn, t.s.Settle
	}
	return goesOn, t.s.Slice
}

// wanted is how long a slice has to be for the clock's grain to be a twentieth
// of what it measures.
func (t *trial) wanted() time.Duration {
	want := t.s.Slice
	if busy := t.now.busy(); busy > 0 {
		want = max(want, time.Duration(20*float64(t.now.Grain)/busy))
	} else {
		want = t.s.MaxSlice
	}
	// A look that comes a little early is as good.
	return min(want, t.s.MaxSlice) - t.s.Slice/10
}

func (t *trial) pair(a, b Traffic) {
	if t.engine() == TC {
		a, b = b, a
	}
	tc, generic := a.nanos(), b.nanos()
	if tc <= 0 || generic <= 0 {
		return // the clock has not moved
	}
	t.nanos[TC] = append(t.nanos[TC], tc)
	t.nanos[Generic] = append(t.nanos[Generic], generic)
	t.ratios = append(t.ratios, tc/generic)
}

// judge says how the trial stands after a slice.
func (t *trial) judge() outcome {
	if t.slice%2 == 1 {
		return goesOn
	}
	if t.sums[Generic].dropsMore(t.sums[TC].droppedShare(), t.s.MaxDropped) {
		return droppage
	}
	n, ratio := len(t.ratios), around(t.ratios)
	if t.first == TC && (n == 1 && ratio.High < 0.75 || n >= 2 && ratio.High < 0.95) {
		return notFast // what is that much slower is not measured to the end
	}
	if n >= t.s.Least {
		// To come takes more than to stay: what lies between changes nothing.
		switch {
		case t.first == TC && ratio.Low >= t.s.Gain, t.first == Generic && ratio.Low >= t.s.Keep:
			return faster
		case t.first == TC && ratio.High < t.s.Gain, t.first == Generic && ratio.High < t.s.Keep:
			return notFast
		}
	}
	switch {
	case t.slice/2 < t.s.Most:
		return goesOn
	case t.first == TC && t.slice/2 < t.s.Longest && ratio.Median >= t.s.Gain:
		return goesOn // it seems to be enough: time makes it sure, or not
	case t.first == Generic && n >= t.s.Least && ratio.Median >= t.s.Keep:
		return faster
	}
	return notFast
}

func (t *trial) result() Result {
	return Result{
		TC: around(t.nanos[TC]).Median, Generic: around(t.nanos[Generic]).Median,
		Ratio: around(t.ratios), Pairs: len(t.ratios),
	}
}

func other(engine string) string {
	if engine == TC {
		return Generic
	}
	return TC
}
