// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"strings"
	"testing"
	"time"
)

// The clocks of real boxes, see package softirq.
var clocks = []struct {
	name  string
	grain time.Duration
}{
	{"thread", 0},
	{"ticks of 10 ms", 10 * time.Millisecond},
}

func TestSmallFramesGetGeneric(t *testing.T) {
	for _, c := range clocks {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(20) {
				b := newBox(t, Defaults(), seed)
				b.grain = c.grain
				b.run(silence, time.Minute)
				if b.switchs != 0 || b.used[Generic] != 0 {
					t.Fatalf("a quiet port was tried")
				}
				took := b.until(smallUDP, Generic, 20*time.Second)
				last := b.changes[len(b.changes)-1]
				if last.Result == nil || last.Result.Ratio.Median < 1.2 || last.Result.Ratio.Median > 1.45 || last.Cause != CauseMeasured {
					t.Errorf("seed %d: after %v: %+v", seed, took, last)
				}
				b.run(smallUDP, time.Hour)
				if b.d.engine != Generic || b.moves() != 1 {
					t.Errorf("seed %d: %d changes in an hour of the same", seed, b.moves())
				}
				if share := b.used[TC].Seconds() - 80; share > 3600*0.01 {
					t.Errorf("seed %d: %v s of the hour on tc", seed, share)
				}
			}
		})
	}
}

func TestBulkTCPIsNeverTried(t *testing.T) {
	for _, l := range []load{bulkTCP, longUDP, routed, silence,
		{rate: 9000, length: 60, together: 1, tc: 3000, generic: 1000},
		{rate: 100_000, length: 60, together: 1, tc: 500, generic: 300}, // 5% of a core
		{rate: 700_000, length: 600, together: 1.6, tc: 700, generic: 1000},
	} {
		b := newBox(t, Defaults(), 3)
		b.run(l, time.Hour)
		if b.used[Generic] != 0 || len(b.changes) != 0 {
			t.Errorf("%+v: generic for %v, %d changes", l, b.used[Generic], len(b.changes))
		}
	}
}

// Bulk TCP on a port that uses generic, or that is being tried, is back on tc
// within a second.
func TestBulkTCPLeavesGeneric(t *testing.T) {
	for seed := range uint64(20) {
		b := newBox(t, Defaults(), seed)
		b.until(smallUDP, Generic, 20*time.Second)
		b.run(smallUDP, time.Duration(5+seed)*time.Second)
		if took := b.until(bulkTCP, TC, 2*time.Second); took > time.Second {
			t.Errorf("seed %d: %v until tc", seed, took)
		}
		b.run(bulkTCP, time.Minute)
		if b.used[Generic] > 40*time.Second || b.moves() != 2 {
			t.Errorf("seed %d: %d changes, generic for %v", seed, b.moves(), b.used[Generic])
		}
		if !strings.Contains(b.step.Why, "GRO") {
			t.Errorf("why tc: %s", b.step.Why)
		}
		// What was measured is still known.
		if took := b.until(smallUDP, Generic, 20*time.Second); took > 8*time.Second {
			t.Errorf("seed %d: %v until generic again", seed, took)
		}
		if last := b.changes[len(b.changes)-1]; !last.Remembered || last.Result == nil {
			t.Errorf("seed %d: %+v", seed, last)
		}
	}
}

func TestBulkTCPEndsATrial(t *testing.T) {
	for after := range 12 {
		b := newBox(t, Defaults(), 1)
		b.load = smallUDP
		for !b.step.Trying {
			b.look()
		}
		for range after {
			b.look()
		}
		if !b.step.Trying {
			t.Fatalf("the trial has ended after %d looks", after)
		}
		start := b.now
		b.load = bulkTCP
		for b.step.Trying || b.step.Engine != TC {
			b.look()
		}
		if took := b.now.Sub(start); took > time.Second {
			t.Errorf("after %d looks: %v until tc", after, took)
		}
		b.run(bulkTCP, 10*time.Second)
		if b.d.engine != TC || b.step.Trying {
			t.Errorf("after %d looks: on %s", after, b.d.engine)
		}
	}
}

func TestLessThanATenthChangesNothing(t *testing.T) {
	for _, c := range clocks {
		for seed := range uint64(30) {
			for _, l := range []load{equalUDP, tightUDP} {
				b := newBox(t, Defaults(), seed)
				b.grain, b.noise = c.grain, 0.04
				b.run(l, 3*time.Hour)
				if b.moves() != 0 {
					t.Errorf("%s, seed %d: %d changes: %+v", c.name, seed, b.moves(), b.changes)
				}
				// The trials are a small share of the time, and fewer with time.
				if share := b.used[Generic].Seconds() / (3 * 3600); share > 0.01 {
					t.Errorf("%s, seed %d: generic for %.2f%% of the time", c.name, seed, 100*share)
				}
				if b.used[Generic] == 0 || !strings.Contains(b.step.Why, "times as fast") {
					t.Errorf("%s, seed %d: never tried: %s", c.name, seed, b.step.Why)
				}
			}
		}
	}
}

// A gain that is little more than asked for takes more pairs to be sure of.
func TestSmallGainIsFound(t *testing.T) {
	found := 0
	const boxes = 30
	for seed := range uint64(boxes) {
		b := newBox(t, Defaults(), seed)
		b.noise = 0.04
		b.run(load{rate: 400_000, length: 60, together: 1, tc: 1000, generic: 885}, 50*time.Second)
		if b.d.engine == Generic {
			found++
		}
	}
	if found < boxes*2/3 {
		t.Errorf("of %d boxes %d found that generic is 1.13 times as fast", boxes, found)
	}
}

// What is much slower is found out in the first slices.
func TestSlowerEndsSoon(t *testing.T) {
	for seed := range uint64(20) {
		b := newBox(t, Defaults(), seed)
		b.run(load{rate: 400_000, length: 60, together: 1, tc: 1000, generic: 2000}, time.Minute)
		if b.used[Generic] > time.Second || b.moves() != 0 || len(b.changes) != 1 {
			t.Errorf("seed %d: generic for %v, %d trials", seed, b.used[Generic], len(b.changes))
		}
	}
}

// Neighbours that wake up make everything slower by 1.7 for a while.
func TestNoiseDoesNotFlap(t *testing.T) {
	converged, mistaken := 0, 0
	for seed := range uint64(40) {
		b := newBox(t, Defaults(), seed)
		b.loud, b.noise = true, 0.08
		b.run(smallUDP, 6*time.Hour)
		if b.moves() > 1 {
			t.Errorf("seed %d: %d changes in six hours of the same", seed, b.moves())
		}
		if b.d.engine == Generic {
			converged++
		}
		b = newBox(t, Defaults(), seed)
		b.loud, b.noise = true, 0.08
		b.run(equalUDP, 6*time.Hour)
		// A mistake costs little, as the engines are nearly alike, and is found out.
		if b.moves() > 2 || b.d.engine != TC {
			t.Errorf("seed %d: %d changes for nothing, on %s in the end", seed, b.moves(), b.d.engine)
		}
		if b.moves() > 0 {
			mistaken++
		}
	}
	if converged < 38 || mistaken > 2 {
		t.Errorf("of 40 boxes %d found that generic is better, and %d thought so for a while where it is not", converged, mistaken)
	}
}

// A mix that changes all the time is not followed ever faster.
func TestRestlessTraffic(t *testing.T) {
	b := newBox(t, Defaults(), 5)
	for b.now.Before(time.Unix(1_000_000+3600, 0)) {
		b.run(smallUDP, 10*time.Second)
		b.run(bulkTCP, 5*time.Second)
	}
	if b.moves() > 20 {
		t.Errorf("%d changes in an hour", b.moves())
	}
}

func TestOtherSmallFramesAreMeasuredAnew(t *testing.T) {
	b := newBox(t, Defaults(), 2)
	b.until(smallUDP, Generic, 20*time.Second)
	// Longer, and still right for generic: tc has to show that GRO gains nothing.
	b.until(mediUDP, TC, 2*time.Second)
	b.until(mediUDP, Generic, 20*time.Second)
	if last := b.changes[len(b.changes)-1]; last.Remembered {
		t.Errorf("frames of another length were judged by an old trial: %+v", last)
	}
	b.run(mediUDP, 10*time.Minute)
	if b.moves() != 3 {
		t.Errorf("%d changes: %+v", b.moves(), b.changes)
	}
}

func TestQuietPortGoesBackToTC(t *testing.T) {
	b := newBox(t, Defaults(), 2)
	b.until(smallUDP, Generic, 20*time.Second)
	b.run(silence, 5*time.Second)
	if b.d.engine != Generic {
		t.Error("a pause of five seconds changed the engine")
	}
	b.until(silence, TC, 10*time.Second)
	if b.changes[len(b.changes)-1].Cause != CauseQuiet {
		t.Errorf("%+v", b.changes)
	}
	if b.until(smallUDP, Generic, 20*time.Second) > 8*time.Second || !b.changes[len(b.changes)-1].Remembered {
		t.Errorf("%+v", b.changes)
	}
}

// Generic sends past the queue of the port that frames leave by.
func TestGenericThatDropsIsLeft(t *testing.T) {
	b := newBox(t, Defaults(), 2)
	b.run(lossy, time.Minute)
	if b.moves() != 0 || len(b.changes) == 0 || b.changes[0].Cause != CauseDropped {
		t.Errorf("%+v", b.changes)
	}
	b = newBox(t, Defaults(), 2)
	b.until(smallUDP, Generic, 20*time.Second)
	b.until(lossy, TC, time.Second)
	b.run(lossy, time.Hour)
	if b.moves() != 2 {
		t.Errorf("%d changes: %+v", b.moves(), b.changes)
	}
}

// What was better once and is no longer is found out when it is looked at again.
func TestRecheck(t *testing.T) {
	b := newBox(t, Defaults(), 2)
	b.until(smallUDP, Generic, 20*time.Second)
	worse := smallUDP
	worse.generic = 920
	took := b.until(worse, TC, 20*time.Minute)
	if last := b.changes[len(b.changes)-1]; last.Cause != CauseMeasured || last.Result == nil || last.Result.Ratio.High >= 1.05 {
		t.Errorf("after %v: %+v", took, last)
	}
	b.run(worse, time.Hour)
	if b.moves() != 2 {
		t.Errorf("%d changes: %+v", b.moves(), b.changes)
	}
}

func TestExpectation(t *testing.T) {
	expect := func(low, high float64) func(float64) (Expectation, bool) {
		return func(float64) (Expectation, bool) {
			return Expectation{Low: low, High: high, Source: "the calibration of 2026-11-30"}, true
		}
	}
	for _, c := range []struct {
		name   string
		expect func(float64) (Expectation, bool)
		most   time.Duration // until generic; 0: not in the first ten minutes
	}{
		{"none", nil, 10 * time.Second},
		{"a gain", expect(1.2, 1.4), 9 * time.Second},
		{"no gain", expect(0.95, 1.05), 0},
		{"may be", expect(0.95, 1.4), 10 * time.Second},
	} {
		b := newBox(t, Defaults(), 4)
		b.d = New(Defaults(), c.expect)
		b.load = smallUDP
		start := b.now
		for c.most > 0 && !b.step.Trying {
			b.look()
		}
		if cites := strings.Contains(b.step.Why, "of tc's speed for frames of such a length: auto tries it now"); cites != (c.name == "a gain") {
			t.Errorf("%s: %s", c.name, b.step.Why)
		}
		if c.most > 0 {
			b.until(smallUDP, Generic, 20*time.Second)
			if took := b.now.Sub(start); took > c.most {
				t.Errorf("%s: generic after %v", c.name, took)
			}
			continue
		}
		b.run(smallUDP, 10*time.Minute)
		if b.used[Generic] != 0 || !strings.Contains(b.step.Why, "the calibration of 2026-11-30 promises generic 0.95 to 1.05") {
			t.Errorf("%s: generic for %v: %s", c.name, b.used[Generic], b.step.Why)
		}
		// Calibrations can be wrong: it is tried all the same, later.
		b.until(smallUDP, Generic, time.Hour)
	}
}

// Two ports that are measured at a time would measure each other.
func TestTrialWaitsForOthers(t *testing.T) {
	d := New(Defaults(), nil)
	now := time.Unix(1_000_000, 0)
	seen := Traffic{Elapsed: time.Second, Frames: 600_000, Bytes: 36_000_000, Softirq: 500 * time.Millisecond, Timed: true}
	for range 10 {
		now = now.Add(time.Second)
		if step := d.Next(now, seen, false); step.Trying || step.Engine != TC {
			t.Fatalf("tried beside another: %+v", step)
		}
	}
	if step := d.Next(now.Add(time.Second), seen, true); !step.Trying {
		t.Errorf("not tried when it may: %+v", step)
	}
}

// Without a clock nothing is tried.
func TestNoClock(t *testing.T) {
	b := newBox(t, Defaults(), 1)
	b.timed = false
	b.run(smallUDP, time.Hour)
	if b.used[Generic] != 0 {
		t.Error("tried without a clock")
	}
}
