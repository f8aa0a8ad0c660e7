// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// What the two-core cells are called.
const (
	oneCore  = " one core"
	twoCores = " two cores"
)

// coreSlice is how long a lane forwards at a time.
const coreSlice = 50 * time.Millisecond

// budgetCores measures on each of two cores alone and on both at the same
// time: first the program by itself, with the same frame, stations and port on
// both, which is as much sharing as there can be; then frames that the kernel
// makes and forwards, through two pairs of ports on one bridge and daemon.
func (c *campaign) budgetCores() error {
	half := time.Until(c.until) / 2
	if err := c.coresProgram(time.Now().Add(half)); err != nil {
		return err
	}
	if !c.have.live {
		c.leftOut(c.part, "forwarding: the kernel cannot generate frames (live frames, Linux 5.18)")
		return nil
	}
	return c.coresForward()
}

func (c *campaign) coresProgram(until time.Time) (err error) {
	p, err := c.openPrograms("cores")
	if err != nil {
		return err
	}
	defer closeAll(&err, p.close)
	cpus, err := rig.CPUs()
	if err != nil {
		return err
	}
	cell := results.Cell{Size: 60, Stations: 2, Unit: results.NsPerCall}
	one, two := newSeries("", cell), newSeries("", cell)
	one.cell.Work, two.cell.Work = workProgram+oneCore, workProgram+twoCores
	for more := c.roundsUntil(until); more(); {
		for _, i := range rand.Perm(len(p.names)) {
			name := p.names[i]
			ways := []func() (float64, error){
				func() (float64, error) { return timeTogether(p.byName[name], p.frame, cpus[:1]) },
				func() (float64, error) { return timeTogether(p.byName[name], p.frame, cpus[1:2]) },
				func() (float64, error) { return timeTogether(p.byName[name], p.frame, cpus[:2]) },
			}
			ns, err := inTurn(ways)
			if err != nil {
				return err
			}
			one.add(name, (ns[0]+ns[1])/2)
			two.add(name, ns[2])
		}
		c.progress("program, %d rounds", two.rounds())
	}
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return errors.Join(c.put(one), c.put(two))
}

// inTurn does everything twice, in a random order and back, and returns the
// means.
func inTurn(ways []func() (float64, error)) ([]float64, error) {
	order := rand.Perm(len(ways))
	for i := len(order) - 1; i >= 0; i-- {
		order = append(order, order[i])
	}
	sum := make([]float64, len(ways))
	for _, i := range order {
		v, err := ways[i]()
		if err != nil {
			return nil, err
		}
		sum[i] += v / 2
	}
	return sum, nil
}

func (c *campaign) coresForward() (err error) {
	cpus, err := rig.CPUs()
	if err != nil {
		return err
	}
	meter, err := rig.New(c.ctx, rig.Options{})
	if err != nil {
		return err
	}
	defer closeAll(&err, meter.Close)
	var lanes []*rig.Rig
	var ports []string
	for _, cpu := range cpus[:2] {
		lane, err2 := meter.Lane(c.ctx, cpu)
		if err2 != nil {
			return err2
		}
		defer closeAll(&err, lane.Close)
		lanes = append(lanes, lane)
		ports = append(ports, lane.Ingress, lane.Egress)
	}
	s, err := newSwitcher(c.ctx, c.have.daemon, c.dir+"/lanes", meter.Router, meter.Bridge, ports...)
	if err != nil {
		return err
	}
	defer closeAll(&err, s.daemon.stop)
	cell := results.Cell{Input: results.Roomy, Size: 60, Stations: 4, Unit: results.NsPerFrame}
	one, two := newSeries("", cell), newSeries("", cell)
	one.cell.Work, two.cell.Work = workForward+oneCore, workForward+twoCores
	engines := append([]string{viaBridge}, budgetEngines...)
	for more := c.roundsUntil(c.until); more(); {
		for _, i := range rand.Perm(len(engines)) {
			engine := engines[i]
			if engine == viaBridge {
				err = s.use("")
			} else {
				err = s.use(engine)
			}
			if err != nil {
				return err
			}
			ns, err := inTurn([]func() (float64, error){
				func() (float64, error) { return c.lanes(lanes[:1]) },
				func() (float64, error) { return c.lanes(lanes[1:]) },
				func() (float64, error) { return c.lanes(lanes) },
			})
			if err != nil {
				return err
			}
			one.add(engine, (ns[0]+ns[1])/2)
			two.add(engine, ns[2])
		}
		c.progress("forwarding, %d rounds", two.rounds())
	}
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	return errors.Join(c.put(one), c.put(two))
}

// lanes lets lanes forward at the same time and returns the mean cost.
func (c *campaign) lanes(all []*rig.Rig) (float64, error) {
	ns, errs := make([]float64, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, lane := range all {
		wg.Go(func() {
			sample, err := lane.Slice(c.ctx, rig.Load{Input: rig.Roomy, Length: 60}, coreSlice)
			ns[i], errs[i] = sample.NsPerFrame, err
		})
	}
	wg.Wait()
	return rig.Mean(ns), errors.Join(errs...)
}
