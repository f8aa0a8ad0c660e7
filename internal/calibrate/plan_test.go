// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"strings"
	"testing"
	"time"
)

// spend plays a schedule with turns that take a given time.
func spend(s *schedule, budget time.Duration, took func(work) time.Duration) (order []string, spent time.Duration) {
	for {
		i := s.next(budget - spent)
		if i == nil {
			return order, spent
		}
		i.done++
		i.took += took(i.work)
		spent += took(i.work)
		order = append(order, i.words())
	}
}

func TestSchedule(t *testing.T) {
	const ms = time.Millisecond
	steady := func(frames, tcp time.Duration) func(work) time.Duration {
		return func(w work) time.Duration {
			if w.kind == workTCP {
				return tcp
			}
			return frames
		}
	}
	for name, c := range map[string]struct {
		budget, guess time.Duration
		took          func(work) time.Duration
		kinds         int // that are measured often enough
		least         time.Duration
	}{
		"plenty":                 {30 * time.Second, 400 * ms, steady(400*ms, 900*ms), 9, 29 * time.Second},
		"half a minute, slow":    {30 * time.Second, 1500 * ms, steady(1500*ms, 3000*ms), 5, 28 * time.Second},
		"little":                 {5 * time.Second, 400 * ms, steady(400*ms, 800*ms), 3, 4 * time.Second},
		"one":                    {1300 * ms, 400 * ms, steady(400*ms, 800*ms), 1, 1200 * ms},
		"none":                   {time.Second, 400 * ms, steady(400*ms, 800*ms), 0, 0},
		"slower than the guess":  {20 * time.Second, 100 * ms, steady(600*ms, 1200*ms), 9, 19 * time.Second},
		"quicker than the guess": {20 * time.Second, 900 * ms, steady(300*ms, 600*ms), 9, 19 * time.Second},
	} {
		s := newSchedule(allWorks)
		s.guess = c.guess
		order, spent := spend(s, c.budget, c.took)
		if spent > c.budget || spent < c.least {
			t.Errorf("%s: %v of %v spent", name, spent, c.budget)
		}
		kinds, fewest, most := 0, len(order), 0
		for _, i := range s.items {
			if i.done >= leastTurns {
				kinds++
				fewest, most = min(fewest, i.done), max(most, i.done)
			} else if i.done > 0 {
				t.Errorf("%s: %d turns of %s are wasted", name, i.done, i.words())
			}
		}
		if kinds != c.kinds || kinds > 0 && most > fewest+1 {
			t.Errorf("%s: %d kinds of work, want %d; %d to %d turns: %v", name, kinds, c.kinds, fewest, most, order)
		}
	}
}

func TestRemaining(t *testing.T) {
	s := newSchedule(allWorks[:2])
	s.guess = 100 * time.Millisecond
	if n := s.remaining(3 * time.Second); n != 20 { // 300 ms for both
		t.Errorf("%d turns", n)
	}
	s.items[0].done, s.items[0].took = 2, 2*time.Second
	if n := s.remaining(3 * time.Second); n != 5 {
		t.Errorf("%d turns", n)
	}
	if n := newSchedule(nil).remaining(time.Second); n != 0 {
		t.Errorf("%d turns of nothing", n)
	}
}

func TestTooLittle(t *testing.T) {
	if tooLittle(nil, time.Second) != nil {
		t.Error("nothing is missing")
	}
	got := tooLittle([]work{{workTCP, 0}, {workRoomy, 64}}, 5*time.Second)
	if len(got) != 1 || !strings.Contains(got[0], "one TCP stream; 64 bytes, roomy: too little time in 5 seconds") {
		t.Errorf("%q", got)
	}
}

func TestRows(t *testing.T) {
	costs := turns{bridge: {1000, 1100, 900}, again: {1000, 1000, 1000}, "tc": {800, 900, 700}}
	got := rows(work{workTight, 64}, costs)
	if len(got) != 2 || got[0].Engine != "bridge" || got[0].Ratio != 1 || got[0].Nanos != 1000 || got[0].Rate != 1e6 ||
		got[1].Engine != "tc" || got[1].Ratio != 1.25 || got[1].Low > 1.25 || got[1].High < 1.25 || got[1].Size != 64 {
		t.Errorf("%+v", got)
	}
	if got := rows(work{workTCP, 0}, turns{bridge: {0.1, 0.1, 0.1}, again: {0.1, 0.1, 0.1}, "generic": {0.2, 0.2, 0.2}}); len(got) != 2 ||
		got[0].Rate != 1e10 || got[0].Nanos != 0 || got[1].Ratio != 0.5 {
		t.Errorf("%+v", got)
	}
	if got := rows(work{workTight, 64}, turns{bridge: {1, 2}, again: {1, 2}}); got != nil {
		t.Errorf("of two turns: %+v", got)
	}
}
