// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// load is what comes to the simulated box's port.
type load struct {
	rate     float64 // frames a second
	length   float64
	together float64 // frames in an sk_buff, as long as GRO works
	passed   float64 // share
	tc       float64 // ns a frame
	generic  float64
	dropped  float64 // share that generic loses on the way out
}

var (
	silence  = load{rate: 20, length: 90, together: 1, tc: 900, generic: 650}
	smallUDP = load{rate: 600_000, length: 60, together: 1, tc: 910, generic: 690}
	tightUDP = load{rate: 250_000, length: 60, together: 1, tc: 2850, generic: 2980}
	mediUDP  = load{rate: 250_000, length: 512, together: 1, tc: 930, generic: 710}
	longUDP  = load{rate: 150_000, length: 1400, together: 1, tc: 950, generic: 730}
	bulkTCP  = load{rate: 700_000, length: 1480, together: 38, tc: 600, generic: 1900}
	equalUDP = load{rate: 600_000, length: 60, together: 1, tc: 900, generic: 855} // 1.05
	routed   = load{rate: 400_000, length: 80, together: 1, passed: 0.6, tc: 1500, generic: 1300}
	lossy    = load{rate: 600_000, length: 60, together: 1, tc: 910, generic: 690, dropped: 0.05}
)

// box is a box whose clock the test moves: it forwards what comes with the
// engine that the decider asks for, and shows what a real one would.
type box struct {
	t       *testing.T
	rng     *rand.Rand
	noise   float64 // of a look's cost, relative
	grain   time.Duration
	timed   bool
	d       *Decider
	now     time.Time
	step    Step
	load    load
	changes []Change
	switchs int // of the engine in use
	used    map[string]time.Duration
	spent   time.Duration // exact softirq time so far
	slow    bool          // a neighbour takes the caches
	loud    bool          // neighbours wake up and go
}

func newBox(t *testing.T, s Settings, seed uint64) *box {
	b := &box{t: t, rng: rand.New(rand.NewPCG(seed, 7)), timed: true, noise: 0.02,
		d: New(s, nil), now: time.Unix(1_000_000, 0), load: silence, used: map[string]time.Duration{}}
	b.step = b.d.First()
	return b
}

// run lets a load come for some time.
func (b *box) run(l load, d time.Duration) {
	b.load = l
	for end := b.now.Add(d); b.now.Before(end); {
		b.look()
	}
}

// until runs a load until the chosen engine is one, and says how long it took.
func (b *box) until(l load, engine string, most time.Duration) time.Duration {
	b.t.Helper()
	b.load = l
	for start := b.now; b.now.Sub(start) <= most; {
		b.look()
		if b.d.engine == engine && !b.step.Trying {
			return b.now.Sub(start)
		}
	}
	b.t.Fatalf("not on %s after %v: %s", engine, most, b.step.Why)
	return 0
}

// look lets the time of a step pass.
func (b *box) look() {
	engine, l := b.step.Engine, b.load
	cost := l.tc
	seen := Traffic{Elapsed: b.step.After, Grain: b.grain}
	if engine == Generic {
		cost = l.generic
	}
	if b.loud && b.rng.Float64() < 0.1 {
		b.slow = !b.slow
	}
	if b.slow {
		cost *= 1.7
	}
	cost *= math.Exp(b.noise * b.rng.NormFloat64())
	rate := min(l.rate, 1e9/cost) // one core
	n := rate * b.step.After.Seconds()
	seen.Frames, seen.Bytes, seen.Passed = uint64(n), uint64(n*l.length), uint64(n*l.passed)
	if l.together > 1 && engine == TC {
		seen.Segments, seen.Aggregates = uint64(n), uint64(n/l.together)
	}
	if engine == Generic {
		seen.Dropped = uint64(n * l.dropped)
	}
	before := b.spent
	b.spent += time.Duration(n * cost)
	if seen.Timed = b.timed && b.step.Timed; seen.Timed {
		seen.Softirq = b.spent - before
		if b.grain > 0 {
			seen.Softirq = b.spent.Truncate(b.grain) - before.Truncate(b.grain)
		}
	}
	b.now = b.now.Add(b.step.After)
	b.used[engine] += b.step.After
	b.step = b.d.Next(b.now, seen, true)
	if b.step.Engine != engine {
		b.switchs++
	}
	if c := b.step.Change; c != nil {
		if c.Reason == "" || c.To == Generic && c.Result == nil {
			b.t.Errorf("a change without its numbers: %+v", c)
		}
		b.changes = append(b.changes, *c)
	}
	if b.step.Why == "" {
		b.t.Fatal("a step without a reason")
	}
	if b.step.After < 10*time.Millisecond {
		b.t.Fatalf("the next look is wanted in %v", b.step.After)
	}
}

// moves counts the changes of the chosen engine.
func (b *box) moves() int {
	n := 0
	for _, c := range b.changes {
		if c.From != c.To {
			n++
		}
	}
	return n
}
