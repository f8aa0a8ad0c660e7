// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
)

// Options of a Bench.
type Options struct {
	Engine string // generic or tc
	NoTCX  bool   // tc by clsact filters even where the kernel has tcx
	// TrustTags lets XDP engines redirect in VLAN-aware bridges, although the
	// ports are virtual; no frame here has a tag beside its data.
	TrustTags bool
	// Program is the xdpl2 binary; empty: the daemon of this program (see
	// MaybeDaemon).
	Program string
	// CPU is the processor that frames are sent from.
	CPU int
}

// Bench is a bridge alone and one with xdpl2, side by side. It is for one
// goroutine, which stays on one thread and processor from NewBench to Close:
// frames that are sent from different processors may overtake each other.
type Bench struct {
	opts        Options
	alone, with *side
	daemon      *daemon
	layout      string // configuration in force
	cpus        unix.CPUSet
	counted     map[string]uint64 // verdicts of layouts before
}

// NewBench builds both boxes.
func NewBench(ctx context.Context, o Options) (_ *Bench, err error) {
	b := &Bench{opts: o, counted: map[string]uint64{}}
	runtime.LockOSThread()
	if err := unix.SchedGetaffinity(0, &b.cpus); err != nil {
		return nil, fmt.Errorf("read the thread's processors: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.alone, err = newSide("alone"); err != nil {
		return nil, err
	}
	if b.with, err = newSide("with"); err != nil {
		return nil, err
	}
	b.layout = Layout{}.config(o.Engine)
	if b.daemon, err = startDaemon(ctx, b.with, b.layout, o); err != nil {
		return nil, err
	}
	return b, b.pin()
}

// pin keeps the thread on the n-th of the processors that it may use.
func (b *Bench) pin() error {
	var allowed []int
	for cpu := range 8 * len(b.cpus) * 8 {
		if b.cpus.IsSet(cpu) {
			allowed = append(allowed, cpu)
		}
	}
	var one unix.CPUSet
	one.Set(allowed[b.opts.CPU%len(allowed)])
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("stay on one processor: %w", err)
	}
	return nil
}

// Close takes everything down.
func (b *Bench) Close() error {
	var err error
	if b.daemon != nil {
		err = errors.Join(err, b.daemon.stop())
	}
	for _, s := range []*side{b.alone, b.with} {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}
	err = errors.Join(err, unix.SchedSetaffinity(0, &b.cpus))
	runtime.UnlockOSThread()
	return err
}

// Report is the result of a scenario.
type Report struct {
	Scenario    *Scenario
	Differences []Difference
}

// String tells what differs, and in which scenario.
func (r *Report) String() string {
	var out strings.Builder
	for _, d := range r.Differences {
		fmt.Fprintf(&out, "%s\n", d)
	}
	fmt.Fprintf(&out, "in this scenario:\n%s", r.Scenario)
	return out.String()
}

// Play plays a scenario to both boxes and compares. The error is for what went
// wrong with the bench itself.
func (b *Bench) Play(ctx context.Context, sc *Scenario) (*Report, error) {
	if err := b.prepare(ctx, sc); err != nil {
		return nil, fmt.Errorf("prepare seed %d: %w", sc.Seed, err)
	}
	p := &play{b: b, sc: sc, box: sc.Box.clone(), want: newOutcome(), got: newOutcome(), wired: map[place][][]byte{}}
	if err := p.run(ctx); err != nil {
		return nil, fmt.Errorf("play seed %d: %w", sc.Seed, err)
	}
	r := &Report{Scenario: sc, Differences: compare(p.want, p.got)}
	idle, err := b.idlePorts(ctx, sc)
	r.Differences = append(r.Differences, idle...)
	return r, err
}

// idlePorts lists managed ports that are left to the bridge without a reason
// that the scenario gives: a comparison with them would show nothing.
func (b *Bench) idlePorts(ctx context.Context, sc *Scenario) (idle []Difference, err error) {
	status, err := b.daemon.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range status.Ports {
		if p.State != api.Accelerating && !(sc.Box.VLANAware && p.State == api.NotAccelerated) {
			idle = append(idle, Difference{p.Device, fmt.Sprintf("is not accelerated: %s, %s", p.State, p.Reason)})
		}
	}
	return idle, nil
}

// prepare brings both boxes and the daemon to the scenario's beginning.
func (b *Bench) prepare(ctx context.Context, sc *Scenario) error {
	if conf := sc.Layout.config(b.opts.Engine); conf != b.layout {
		// Counters of ports that are given up are lost: with none managed,
		// what is managed next counts from 0.
		if err := b.addVerdicts(ctx, b.counted); err != nil {
			return err
		}
		if err := b.daemon.reload(ctx, Layout{}.config(b.opts.Engine)); err != nil {
			return err
		}
		if err := b.daemon.reload(ctx, conf); err != nil {
			return err
		}
		b.layout = conf
	}
	for _, s := range []*side{b.alone, b.with} {
		if err := s.reset(sc.Box); err != nil {
			return err
		}
		for _, e := range sc.FDB {
			if err := s.putEntry(e); err != nil {
				return err
			}
		}
	}
	return b.daemon.settle(ctx)
}

// Verdicts tells how many frames had which verdict so far.
func (b *Bench) Verdicts(ctx context.Context) (map[string]uint64, error) {
	total := maps.Clone(b.counted)
	return total, b.addVerdicts(ctx, total)
}

func (b *Bench) addVerdicts(ctx context.Context, to map[string]uint64) error {
	all, err := b.daemon.Counters(ctx, "")
	if err != nil {
		return err
	}
	for _, p := range all {
		for _, v := range p.Verdicts {
			to[v.Verdict] += v.Packets
		}
	}
	return nil
}

// play is one scenario under way.
type play struct {
	b         *Bench
	sc        *Scenario
	box       Box // as it is now
	want, got *outcome
	// wired are the frames that the model of mode port sends, by place.
	wired map[place][][]byte
	local map[[6]byte]bool
}

func (p *play) run(ctx context.Context) error {
	b := p.b
	beforeAlone, err := b.alone.sentCounts()
	if err != nil {
		return err
	}
	beforeWith, err := b.with.sentCounts()
	if err != nil {
		return err
	}
	if err := p.learnLocal(); err != nil {
		return err
	}
	drainsAlone, drainsWith := b.alone.drains, b.with.drains
	for i, step := range p.sc.Steps {
		switch {
		case step.Frame != nil:
			err = p.send(step.Frame)
		case step.Change != nil:
			err = p.change(ctx, step.Change)
		default:
			err = p.settle(ctx)
		}
		if err != nil {
			return fmt.Errorf("step %d (%s): %w", i, step, err)
		}
	}
	if err := p.drain(ctx); err != nil {
		return err
	}
	if err := b.alone.finish(p.want, beforeAlone, b.alone.drains-drainsAlone); err != nil {
		return err
	}
	if err := b.with.finish(p.got, beforeWith, b.with.drains-drainsWith); err != nil {
		return err
	}
	p.expectWired()
	return nil
}

func (p *play) drain(ctx context.Context) error {
	return errors.Join(p.b.alone.drain(ctx, p.want), p.b.with.drain(ctx, p.got))
}

func (p *play) settle(ctx context.Context) error {
	if err := p.drain(ctx); err != nil {
		return err
	}
	return p.b.daemon.settle(ctx)
}

func (p *play) send(f *Frame) error {
	if err := p.b.with.inject(f); err != nil {
		return err
	}
	if target, wired := p.sc.Layout.Wired(&p.box, p.isLocal, f, p.engineOf(f.Port), p.b.opts.TrustTags); wired {
		at := place{port: target}
		p.wired[at] = append(p.wired[at], f.wire())
		return nil
	}
	return p.b.alone.inject(f)
}

// inject has a host send a frame.
func (s *side) inject(f *Frame) error {
	if err := s.wire.mark(f.Hidden); err != nil {
		return err
	}
	if err := s.wire.send(s.ends[f.Port], f.Data); err != nil {
		return fmt.Errorf("send %s: %w", f, err)
	}
	return nil
}

// isLocal tells whether an address is the box's own.
func (p *play) isLocal(mac [6]byte) bool { return p.local[mac] }

// learnLocal reads which addresses are the box's own. They change with the
// scenario's entries alone, never with what is forwarded.
func (p *play) learnLocal() error {
	entries, err := p.b.alone.router.FDB()
	if err != nil {
		return err
	}
	p.local = map[[6]byte]bool{}
	for _, e := range entries {
		if e.Local {
			p.local[e.MAC] = true
		}
	}
	return nil
}

// engineOf is the engine that carries a port's frames.
func (p *play) engineOf(port int) string {
	m, _ := p.sc.Layout.managed(port)
	switch m.Engine {
	case "":
		return p.b.opts.Engine
	case "auto":
		return "tc"
	}
	return m.Engine
}

// expectWired adds the wired frames to what is expected: in the order in which
// they were sent, which is that of their numbers.
func (p *play) expectWired() {
	for at, frames := range p.wired {
		all := append(p.want.frames[at], frames...)
		slices.SortStableFunc(all, func(a, b []byte) int { return number(a) - number(b) })
		p.want.frames[at] = all
		p.want.sent[at.port] += uint64(len(frames))
	}
}

// change changes both bridges. Frames before it are through by then: that a
// change meets a frame on its way is nobody's promise.
func (p *play) change(ctx context.Context, c *Change) error {
	if err := p.drain(ctx); err != nil {
		return err
	}
	if c.Mutate != nil {
		c.Mutate(&p.box)
	}
	for _, side := range []struct {
		*side
		into *outcome
	}{{p.b.alone, p.want}, {p.b.with, p.got}} {
		var err error
		if c.Event != nil {
			// An entry may be gone, or a port not learning: the kernel's
			// answer must be the same.
			if err = c.Event(side.side); err != nil {
				side.into.errs = append(side.into.errs, errors.Unwrap(err).Error())
			}
			continue
		}
		if err = side.converge(p.box); err != nil {
			return err
		}
	}
	return p.learnLocal()
}
