// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"time"

	"github.com/cilium/ebpf/btf"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// Options say what to measure, and how long.
type Options struct {
	Pairs    int   // of each cell
	Rounds   int   // of each cell under frames; 0: that way is left out
	Stations []int // table sizes, powers of two from 2 to 65536
	Tool     string
	// Progress is told what is measured next, and how much of all is done.
	Progress func(what string, done, of int)
}

// The works that cells are of.
const (
	workOnce   = "calls"        // the step once, by BPF_PROG_TEST_RUN
	workRun    = "calls-run"    // the step after it has been taken once, the same way
	workFrames = "calls-frames" // the same, in the attached program
	workFirst  = "calls-first"  // the step once, in the attached program
)

// egressDev is the kernel function of the third seed, in some kernels.
const egressDev = "bpf_xdp_egress_dev"

// Measure measures all cells.
func Measure(ctx context.Context, o Options) (*results.File, error) {
	start := time.Now()
	all, under := Steps(o.Stations)
	f := results.New(results.Meta{
		Command: "calls", Tool: o.Tool, Start: start.UTC().Truncate(time.Second), Machine: results.ThisMachine(),
		Set: map[string]string{
			"pairs": strconv.Itoa(o.Pairs), "order": "abba and baab in turn", "run": sliceTime.String(),
			"rounds under frames": strconv.Itoa(o.Rounds), "steps a frame under frames": strconv.Itoa(manyTimes),
			"clock": "cpu time of the thread",
		},
	})
	f.Meta.LeftOut = append(f.Meta.LeftOut, kfuncLeftOut())
	m := &measurement{o: o, of: len(all)}
	var once, run []*cell
	err := onThread(func() error {
		var err error
		once, run, err = m.run(ctx, all, under, f)
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range once {
		f.Cells = append(f.Cells, c.result(workOnce, results.NsPerCall, c.deltas))
	}
	for _, c := range once {
		if len(c.cycles) > 0 {
			f.Cells = append(f.Cells, c.result(workOnce, results.CyclesCall, c.cycles))
		}
	}
	for _, c := range run {
		f.Cells = append(f.Cells, c.result(workRun, results.NsPerCall, c.deltas))
	}
	if err := m.frames(ctx, under, run, f); err != nil {
		return nil, err
	}
	f.Meta.Audit = audit(append(once, run...))
	f.Meta.Seconds = math.Round(time.Since(start).Seconds()*10) / 10
	return f, nil
}

// onThread runs f on a thread of its own that stays on a CPU.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its pinning
		cpus, err := rig.CPUs()
		if err == nil {
			err = rig.Pin(0, cpus[0])
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

type measurement struct {
	o        Options
	done, of int
}

func (m *measurement) progress(what string) {
	if m.o.Progress != nil {
		m.o.Progress(what, m.done, m.of)
	}
	m.done++
}

// run measures by running programs: every step once, and those that are
// measured under frames, too, as there.
func (m *measurement) run(ctx context.Context, all, under []Step, f *results.File) (once, run []*cell, err error) {
	if m.o.Rounds > 0 {
		m.of += 2 * len(under)
	}
	ns, egress, err := network()
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, ns.Close()) }()
	cycles, why := openCycles()
	if why != nil {
		f.Meta.LeftOut = append(f.Meta.LeftOut, fmt.Sprintf("cycles: %v; times are in ns", why))
	}
	defer cycles.close()
	sizes := append([]int{0}, m.o.Stations...)
	for _, size := range sizes {
		b, err := openBench(ns, egress, size)
		if err != nil {
			return nil, nil, err
		}
		b.knobs.Source, b.knobs.Destination = native(fibSource), native(fibTarget)
		r := &runner{b: b, cycles: cycles, frame: make([]byte, 64)}
		measure := func(steps []Step, fewer, more uint32, to *[]*cell) error {
			for _, s := range steps {
				if s.Stations != size {
					continue
				}
				m.progress(s.title())
				var c *cell
				// Run takes the namespace of the calling thread.
				err := ns.Do(func() error {
					var err error
					c, err = r.measure(ctx, s, fewer, more, m.o.Pairs)
					return err
				})
				if err != nil {
					return err
				}
				*to = append(*to, c)
			}
			return nil
		}
		err = measure(all, 0, 1, &once)
		if err == nil && m.o.Rounds > 0 {
			err = measure(under, oneTime, oneTime+manyTimes, &run)
		}
		if err = errors.Join(err, b.close()); err != nil {
			return nil, nil, err
		}
	}
	return once, run, nil
}

// frames measures the second way, and says whether the two agree.
func (m *measurement) frames(ctx context.Context, under []Step, run []*cell, f *results.File) error {
	if m.o.Rounds <= 0 {
		f.Meta.LeftOut = append(f.Meta.LeftOut, "under frames: not asked for")
		return nil
	}
	if err := rig.Unsupported(); err != nil {
		f.Meta.LeftOut = append(f.Meta.LeftOut, fmt.Sprintf("under frames: %v", err))
		return nil
	}
	if !rig.HasLiveFrames() {
		f.Meta.LeftOut = append(f.Meta.LeftOut, "under frames: the kernel cannot make frames itself (Linux 5.18)")
		return nil
	}
	m.progress(under[0].title() + " under frames")
	n := 0
	return underFrames(ctx, under, m.o.Rounds, func(got *framed) {
		if n++; n < len(under) {
			m.progress(under[n].title() + " under frames")
		}
		c := &cell{step: got.step}
		out := c.result(workFrames, results.NsPerCall, got.deltas)
		for _, other := range run {
			if other.step == got.step {
				out.Note = agreement(*out.Median, rig.Median(other.deltas))
			}
		}
		f.Cells = append(f.Cells, out, c.result(workFirst, results.NsPerCall, got.first))
	})
}

// agreed is how far the two ways may be apart.
const agreed = 0.15

func agreement(frames, run float64) string {
	apart := frames/run - 1
	if math.Abs(apart) <= agreed {
		return fmt.Sprintf("the two ways agree: %+.0f%% against running the program by itself", 100*apart)
	}
	return fmt.Sprintf("THE TWO WAYS DO NOT AGREE: %+.0f%% against running the program by itself (more than %.0f%%)", 100*apart, 100*agreed)
}

// title names a step with its table.
func (s Step) title() string {
	if s.Stations == 0 {
		return s.Name
	}
	return fmt.Sprintf("%s, %d stations, %s", s.Name, s.Stations, s.Access)
}

// result is a cell for the results file.
func (c *cell) result(work string, unit results.Unit, values []float64) results.Cell {
	out := results.Cell{Work: work, Input: c.step.Access, Stations: c.step.Stations, Engine: c.step.Name, Unit: unit, Samples: values, Note: c.step.Says}
	out.Summarize()
	iv := rig.Bootstrap(values, 1)
	out.Interval = &results.Interval{Low: iv.Low, High: iv.High}
	return out
}

// kfuncLeftOut says why resolving the port behind a VLAN device in the kernel is
// not a cell.
func kfuncLeftOut() string {
	const what = egressDev + ": "
	spec, err := btf.LoadKernelSpec()
	if err != nil {
		return what + "whether this kernel has it cannot be told, it has no BTF"
	}
	var fn *btf.Func
	if spec.TypeByName(egressDev, &fn) != nil {
		return what + "not in this kernel"
	}
	return what + "this kernel has it, but its interface was not settled when this program was written"
}
