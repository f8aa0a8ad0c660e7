// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// runs is how often a program is run at a time: some ten milliseconds.
const runs = 200_000

// attachedProgram opens the program that the daemon has attached to a device.
func attachedProgram(ns *netns.NS, device, engine string) (*ebpf.Program, error) {
	dev, err := ns.Link(device)
	if err != nil {
		return nil, err
	}
	id := ebpf.ProgramID(0)
	if engine == "tc" {
		err = ns.Do(func() error {
			found, err := link.QueryPrograms(link.QueryOptions{Target: dev.Attrs().Index, Attach: ebpf.AttachTCXIngress})
			if err == nil && len(found.Programs) > 0 {
				id = found.Programs[0].ID
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("look for the tc program of %s: %w", device, err)
		}
	} else if xdp := dev.Attrs().Xdp; xdp != nil {
		id = ebpf.ProgramID(xdp.ProgId)
	}
	if id == 0 {
		return nil, fmt.Errorf("%s has no program of engine %s", device, engine)
	}
	return ebpf.NewProgramFromID(id)
}

// onCPU runs f on a thread of its own that stays on a CPU.
func onCPU(cpu int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its pinning
		if err := rig.Pin(0, cpu); err != nil {
			done <- err
			return
		}
		done <- f()
	}()
	return <-done
}

// timeRun has the kernel run a program and returns what one run takes, in ns of
// the calling thread's own time, which must be locked: others on the machine
// may have the processor in between.
func timeRun(p *ebpf.Program, frame []byte) (float64, error) {
	began, err := threadTime()
	if err != nil {
		return 0, err
	}
	if _, err := p.Run(&ebpf.RunOptions{Data: frame, Repeat: runs}); err != nil {
		return 0, fmt.Errorf("run program: %w", err)
	}
	ended, err := threadTime()
	return float64(ended-began) / runs, err
}

// threadTime is how long the calling thread has run, in ns.
func threadTime() (int64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		return 0, fmt.Errorf("read the thread's time: %w", err)
	}
	return ts.Nano(), nil
}

// programs are the daemon's and the bare ones, by name, opened for running.
type programs struct {
	byName map[string]*ebpf.Program
	names  []string
	frame  []byte
	close  func() error
}

// openPrograms starts a daemon on a rig and opens its ingress's program with
// each engine. The programs stay when the daemon has put others in their place,
// with the maps as they were.
func (c *campaign) openPrograms(label string) (p *programs, err error) {
	p = &programs{byName: map[string]*ebpf.Program{}}
	var closers []func() error
	p.close = func() error {
		var errs []error
		for i := len(closers) - 1; i >= 0; i-- {
			errs = append(errs, closers[i]())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.close())
		}
	}()
	meter, err := rig.New(c.ctx, rig.Options{})
	if err != nil {
		return p, err
	}
	closers = append(closers, meter.Close)
	p.frame = meter.Frame(60)
	b, err := c.bench(label, meter)
	if err != nil {
		return p, err
	}
	closers = append(closers, b.daemon.stop)
	least, err := newBare(meter.Router, meter.Ingress, meter.Egress)
	if err != nil {
		return p, err
	}
	closers = append(closers, least.Close)
	b.stations = 2
	for _, engine := range budgetEngines {
		if err := b.use(engine); err != nil {
			return p, err
		}
		full, err := attachedProgram(meter.Router, meter.Ingress, engine)
		if err != nil {
			return p, err
		}
		closers = append(closers, full.Close)
		p.byName[engine] = full
		p.byName[bareOf(engine)] = map[string]*ebpf.Program{"generic": least.xdp, "tc": least.tc}[engine]
		p.names = append(p.names, engine, bareOf(engine))
	}
	for _, engine := range budgetEngines {
		if err := b.redirects(p.byName[engine], p.frame); err != nil {
			return p, fmt.Errorf("engine %s: %w", engine, err)
		}
	}
	return p, nil
}

// redirects makes sure that a program redirects the frame with which it is
// timed: everything else would be cheaper.
func (b *bench) redirects(p *ebpf.Program, frame []byte) error {
	const n = 100
	_, before, err := b.count()
	if err != nil {
		return err
	}
	if _, err := p.Run(&ebpf.RunOptions{Data: frame, Repeat: n}); err != nil {
		return fmt.Errorf("run program: %w", err)
	}
	_, after, err := b.count()
	if err == nil && after-before != n {
		err = fmt.Errorf("%d of %d runs redirected the frame", after-before, n)
	}
	return err
}

func (c *campaign) budgetProgram() (err error) {
	p, err := c.openPrograms("program")
	if err != nil {
		return err
	}
	defer closeAll(&err, p.close)
	cpus, err := rig.CPUs()
	if err != nil {
		return err
	}
	s := newSeries("", results.Cell{Work: workProgram, Size: 60, Stations: 2, Unit: results.NsPerCall})
	for more := c.roundsUntil(c.until); more(); {
		err := onCPU(cpus[0], func() error { return p.round(s) })
		if err != nil {
			return err
		}
		c.progress("%d rounds", s.rounds())
	}
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return c.put(s)
}

// round times each program twice, in a random order and back.
func (p *programs) round(s *series) error {
	order := rand.Perm(len(p.names))
	for i := len(order) - 1; i >= 0; i-- {
		order = append(order, order[i])
	}
	sum := map[string]float64{}
	for _, i := range order {
		ns, err := timeRun(p.byName[p.names[i]], p.frame)
		if err != nil {
			return err
		}
		sum[p.names[i]] += ns / 2
	}
	for _, name := range p.names {
		s.add(name, sum[name])
	}
	return nil
}

// timeTogether times a program on several CPUs at once and returns the mean.
// Each begins when all are ready, and goes on until all have been timed, so
// that none is alone while it is.
func timeTogether(p *ebpf.Program, frame []byte, cpus []int) (float64, error) {
	var wg, ready, timed sync.WaitGroup
	ready.Add(len(cpus))
	timed.Add(len(cpus))
	finished := make(chan struct{})
	go func() { timed.Wait(); close(finished) }()
	ns, errs := make([]float64, len(cpus)), make([]error, len(cpus))
	for i, cpu := range cpus {
		wg.Go(func() {
			// Whatever happens, the others must not wait for ever.
			here, through := sync.OnceFunc(ready.Done), sync.OnceFunc(timed.Done)
			defer through()
			defer here()
			errs[i] = onCPU(cpu, func() (err error) {
				here()
				ready.Wait()
				if _, err = p.Run(&ebpf.RunOptions{Data: frame, Repeat: runs / 4}); err != nil {
					return err
				}
				ns[i], err = timeRun(p, frame)
				through()
				for err == nil {
					select {
					case <-finished:
						return nil
					default:
						_, err = p.Run(&ebpf.RunOptions{Data: frame, Repeat: runs / 20})
					}
				}
				return err
			})
		})
	}
	wg.Wait()
	return rig.Mean(ns), errors.Join(errs...)
}
