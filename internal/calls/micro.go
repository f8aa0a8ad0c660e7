// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/rig"
)

// cell is what was measured of a step by running its program.
type cell struct {
	step   Step
	deltas []float64 // ns a step, a value for each pair
	cycles []float64 // the same in cycles, where the PMU counts
	floor  []float64 // the same with both halves of the pair alike
	bases  []float64 // ns a run with fewer steps, in the order of time
	again  int       // runs that were interrupted and begun again
	runs   int
	wrong  []string // counts that did not match
}

// sliceTime is about how long a run of many repeats takes: short enough that a
// neighbour who wakes up spoils a pair and not the cell.
const sliceTime = 8 * time.Millisecond

// runner measures programs on the thread that calls it.
type runner struct {
	b      *bench
	cycles *counter // nil where the PMU does not answer
	frame  []byte
}

// measure runs a step's program in pairs, with fewer steps and with more of
// them: fewer, more, more, fewer (ABBA), and every second pair the other way
// round. After each pair comes one in which both halves have fewer.
func (r *runner) measure(ctx context.Context, s Step, fewer, more uint32, pairs int) (*cell, error) {
	c := &cell{step: s}
	r.b.prepare(s)
	repeat, err := r.repeats(c, more)
	if err != nil {
		return c, err
	}
	for n := range pairs {
		if err := ctx.Err(); err != nil {
			return c, context.Cause(ctx)
		}
		a, b, err := r.pair(c, fewer, more, n%2 == 1, repeat)
		if err != nil {
			return c, err
		}
		c.deltas = append(c.deltas, (b.ns-a.ns)/float64(more-fewer))
		c.bases = append(c.bases, a.ns)
		if r.cycles != nil {
			c.cycles = append(c.cycles, (b.cycles-a.cycles)/float64(more-fewer))
		}
		a, b, err = r.pair(c, fewer, fewer, n%2 == 1, repeat)
		if err != nil {
			return c, err
		}
		c.floor = append(c.floor, (b.ns-a.ns)/float64(more-fewer))
	}
	return c, nil
}

// repeats is how many runs take about sliceTime.
func (r *runner) repeats(c *cell, times uint32) (uint32, error) {
	const trial = 20_000
	var best float64
	for range 3 { // the first warms up
		t, err := r.run(c, times, trial)
		if err != nil {
			return 0, err
		}
		if best == 0 || t.ns < best {
			best = t.ns
		}
	}
	n := float64(sliceTime.Nanoseconds()) / max(best, 1)
	return uint32(min(max(n, 5_000), 2_000_000)), nil
}

// taken is what a run took.
type taken struct{ ns, cycles float64 }

// pair returns the means of the runs with fewer steps and of those with more.
func (r *runner) pair(c *cell, fewer, more uint32, reversed bool, repeat uint32) (a, b taken, err error) {
	for _, second := range []bool{false, true, true, false} {
		times, to := fewer, &a
		if second != reversed {
			times, to = more, &b
		}
		t, err := r.run(c, times, repeat)
		if err != nil {
			return a, b, err
		}
		to.ns += t.ns / 2
		to.cycles += t.cycles / 2
	}
	return a, b, nil
}

// run has the kernel run the program, and compares what the program counted to
// what it should have done. The clock is that of this thread's CPU time: while
// others have the CPU it stands still.
func (r *runner) run(c *cell, times, repeat uint32) (taken, error) {
	if err := r.b.set(times); err != nil {
		return taken{}, err
	}
	for range 100 {
		before, err := r.b.done()
		if err != nil {
			return taken{}, err
		}
		cycles := r.cycles.read()
		began, err := cpuTime()
		if err != nil {
			return taken{}, err
		}
		_, err = r.b.program(c.step).Run(&ebpf.RunOptions{Data: r.frame, Repeat: repeat})
		if err != nil {
			return taken{}, fmt.Errorf("run %s: %w", c.step.Name, err)
		}
		ended, err := cpuTime()
		if err != nil {
			return taken{}, err
		}
		cycles = r.cycles.read() - cycles
		after, err := r.b.done()
		if err != nil {
			return taken{}, err
		}
		c.runs++
		ran := after.Runs - before.Runs
		if ran > uint64(repeat) {
			c.again++ // a signal came, and the kernel began anew
			continue
		}
		c.count(before, after, times, repeat)
		return taken{float64((ended - began).Nanoseconds()) / float64(repeat), float64(cycles) / float64(repeat)}, nil
	}
	return taken{}, fmt.Errorf("run %s: interrupted again and again", c.step.Name)
}

// count notes if a program did not do what it was told.
func (c *cell) count(before, after stepsStepDone, times, repeat uint32) {
	want := uint64(times) * uint64(repeat)
	runs, steps, right := after.Runs-before.Runs, after.Steps-before.Steps, after.Right-before.Right
	if runs == uint64(repeat) && steps == want && right == want {
		return
	}
	c.wrong = append(c.wrong, fmt.Sprintf("%s: %d of %d runs, %d of %d steps, %d right", c.step.Name, runs, repeat, steps, want, right))
}

func cpuTime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0, fmt.Errorf("read the thread's CPU time: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// drift is how much the base changed from the first third to the last.
func (c *cell) drift() float64 {
	third := max(len(c.bases)/3, 1)
	return rig.Median(slices.Clone(c.bases[len(c.bases)-third:]))/rig.Median(slices.Clone(c.bases[:third])) - 1
}
