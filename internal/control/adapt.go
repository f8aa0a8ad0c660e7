// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"time"

	"github.com/xdpl2/xdpl2/internal/adapt"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/softirq"
)

// Auto's second step: where a port has a choice between tc and generic, what it
// carries and what that costs is looked at now and then, and package adapt
// decides. Without such a port nothing runs here.

// adapting is what the ports share.
type adapting struct {
	clock  *softirq.Clock
	broken string        // why there is no clock
	timer  *time.Timer   // runs while there are ports to look at
	trying *adaptivePort // one at a time: they would measure each other
}

// adaptivePort is a port that auto may change.
type adaptivePort struct {
	port    *port
	decider *adapt.Decider
	step    adapt.Step
	due     time.Time
	last    portReading
	found   time.Time     // when its threads were looked for
	change  *adapt.Change // while it is being made
}

// portReading is what was read of a port at one moment.
type portReading struct {
	at      time.Time
	traffic datapath.Traffic
	dropped uint64
	counted bool // dropped was read
	softirq softirq.Reading
	timed   bool // softirq was
}

const (
	// looksTogether is how much earlier than due a port is looked at, if another
	// one is looked at anyway.
	looksTogether = 20 * time.Millisecond
	// findThreadsEvery is how often the threads that receive for a busy port are
	// looked for: threading can be switched at any time.
	findThreadsEvery = 5 * time.Minute
)

func newAdapting() adapting {
	a := adapting{timer: time.NewTimer(time.Hour)}
	a.timer.Stop()
	return a
}

// adaptPorts begins to look at ports that have become adaptive, and leaves those
// alone that are no longer. Reconcile ends with it.
func (c *Controller) adaptPorts() {
	for _, p := range c.ports {
		switch can := c.adaptable(p); {
		case can && c.hasClock(p) && p.adaptive == nil:
			c.beginAdapting(p)
		case !can && p.adaptive != nil:
			c.endAdapting(p)
		}
		if a := p.adaptive; a != nil && string(p.attachment.Engine()) == a.step.Engine {
			c.explainPreference(p, p.attachment.Engine(), a.step.Why)
		}
	}
	c.adapting.schedule(c.ports)
}

// adaptable reports whether auto's second step may change a port.
func (c *Controller) adaptable(p *port) bool {
	_, ok := c.allows(p)
	return ok && c.config.Main.Adapt
}

// hasClock reports whether it can be measured what a port's frames cost; where
// not, the port is told why.
func (c *Controller) hasClock(p *port) bool {
	a := &c.adapting
	if a.clock == nil && a.broken == "" && c.opts.FrameCost == nil {
		clock, err := softirq.Open()
		if err != nil {
			a.broken = err.Error()
			c.log.Warn("auto does not adapt under load", "error", err)
		}
		a.clock = clock
	}
	if a.broken == "" {
		return true
	}
	c.explainPreference(p, datapath.EngineTC, fmt.Sprintf("auto cannot compare it with tc: %s", a.broken))
	return false
}

func (c *Controller) beginAdapting(p *port) {
	a := &adaptivePort{port: p, decider: adapt.New(adapt.Defaults(), c.expect)}
	a.step = a.decider.First()
	last, err := c.readPort(a)
	if err != nil {
		c.log.Error("auto does not adapt under load", "device", p.device, "error", err)
		return
	}
	a.last, a.due = last, last.at.Add(a.step.After)
	p.adaptive = a
}

// endAdapting leaves the port to the first step.
func (c *Controller) endAdapting(p *port) {
	c.forgetAdapting(p)
	if p.preferred != nil {
		c.prefer(p, nil)
	}
}

// forgetAdapting drops what was found out about a port, which is another device
// now, or none.
func (c *Controller) forgetAdapting(p *port) {
	if p.adaptive == nil {
		return
	}
	c.adapting.release(p.adaptive)
	p.adaptive = nil
	if c.adapting.clock != nil {
		c.adapting.clock.Forget(p.device)
	}
}

func (a *adapting) release(p *adaptivePort) {
	if a.trying == p {
		a.trying = nil
	}
}

// schedule has the timer run until the next port is due.
func (a *adapting) schedule(ports map[string]*port) {
	var next time.Time
	for _, p := range ports {
		if p.adaptive != nil && (next.IsZero() || p.adaptive.due.Before(next)) {
			next = p.adaptive.due
		}
	}
	if next.IsZero() {
		a.timer.Stop()
		return
	}
	a.timer.Reset(max(time.Until(next), time.Millisecond))
}

// adapt looks at the ports that are due.
func (c *Controller) adapt() {
	now := time.Now().Add(looksTogether)
	for _, p := range c.ordered() {
		if a := p.adaptive; a != nil && !a.due.After(now) {
			c.adaptPort(a)
		}
	}
	c.adapting.schedule(c.ports)
}

// adaptPort looks at a port and does what follows from it.
func (c *Controller) adaptPort(a *adaptivePort) {
	if a.port.attachment == nil || string(a.port.attachment.Engine()) != a.step.Engine {
		c.endAdapting(a.port) // the kernel would not have it
		return
	}
	seen, err := c.readPort(a)
	if err != nil {
		c.log.Error("auto does not adapt under load", "device", a.port.device, "error", err)
		c.endAdapting(a.port)
		return
	}
	traffic := between(a.last, seen, c.opts.FrameCost[a.step.Engine])
	a.last = seen
	mayTry := c.adapting.trying == nil || c.adapting.trying == a
	a.step = a.decider.Next(seen.at, traffic, mayTry)
	if a.step.Trying {
		c.adapting.trying = a
	} else {
		c.adapting.release(a)
	}
	c.follows(a)
	a.due = a.last.at.Add(a.step.After)
}

// follows makes a port what the last step said.
func (c *Controller) follows(a *adaptivePort) {
	p, step := a.port, a.step
	engine := datapath.Engine(step.Engine)
	if change := step.Change; change != nil {
		c.log.Info("auto has decided", "device", p.device, "engine", change.To, "before", change.From, "reason", change.Reason)
		a.change = change
		defer func() { a.change = nil }()
	}
	if p.attachment.Engine() == engine {
		c.explainPreference(p, engine, step.Why)
		c.tellPorts()
		return
	}
	c.prefer(p, &preference{engine, step.Why})
	if p.adaptive != a { // the device has gone meanwhile
		return
	}
	if p.attachment == nil || p.attachment.Engine() != engine {
		c.log.Warn("auto cannot change the engine", "device", p.device, "engine", engine, "reason", p.engines[step.Engine])
		c.endAdapting(p)
		return
	}
	// What comes from now on counts for this engine.
	if last, err := c.readPort(a); err == nil {
		a.last = last
	}
}

// explainPreference renews the sentence that says why the port does not use the
// other engine, which changes with the traffic.
func (c *Controller) explainPreference(p *port, engine datapath.Engine, why string) {
	other := map[datapath.Engine]datapath.Engine{datapath.EngineTC: datapath.EngineGeneric, datapath.EngineGeneric: datapath.EngineTC}[engine]
	p.engines[string(other)] = why
	if p.preferred != nil {
		p.preferred = &preference{engine, why}
	}
}

// readPort reads what there is to know of a port now.
func (c *Controller) readPort(a *adaptivePort) (portReading, error) {
	p := a.port
	r := portReading{at: time.Now()}
	var err error
	if r.traffic, err = c.dp.Traffic(p.slot); err != nil {
		return r, err
	}
	// From before a trial on: what is compared must have been counted at both ends.
	if a.step.Timed || a.step.Engine == adapt.Generic {
		if r.dropped, err = c.droppedBeyond(p); err != nil {
			return r, err
		}
		r.counted = true
	}
	if !a.step.Timed || c.opts.FrameCost != nil {
		return r, nil
	}
	clock := c.adapting.clock
	if r.at.Sub(a.found) > findThreadsEvery {
		if err := clock.Find(p.device); err != nil {
			return r, err
		}
		a.found = r.at
	}
	if r.softirq, err = clock.Read(p.device); err != nil {
		return r, err
	}
	r.timed = true
	return r, nil
}

// droppedBeyond counts the frames that the ports by which a port's frames leave
// had no room for. Generic XDP sends past their queues.
func (c *Controller) droppedBeyond(p *port) (sum uint64, err error) {
	for _, other := range c.ports {
		if other == p || !other.set || c.config.Main.Mode == config.ModePort && other.device != p.section.Target {
			continue
		}
		n, err := netdev.Dropped(other.ifindex)
		if err != nil {
			return 0, fmt.Errorf("count what %s drops: %w", other.device, err)
		}
		sum += n
	}
	return sum, nil
}

// between is what happened between two readings. cost replaces the clock: see
// Options.FrameCost.
func between(a, b portReading, cost time.Duration) adapt.Traffic {
	before, after := &a.traffic.Counters, &b.traffic.Counters
	passed := after.Passed().Packets - before.Passed().Packets
	carried := after.Accelerated().Packets - before.Accelerated().Packets
	t := adapt.Traffic{
		Elapsed: b.at.Sub(a.at),
		Frames:  passed + carried, Passed: passed,
		Bytes:      after.Passed().Bytes + after.Accelerated().Bytes - before.Passed().Bytes - before.Accelerated().Bytes,
		Aggregates: b.traffic.Aggregates.Packets - a.traffic.Aggregates.Packets,
		Segments:   b.traffic.Aggregates.Segments - a.traffic.Aggregates.Segments,
	}
	if a.counted && b.counted && b.dropped > a.dropped {
		t.Dropped = b.dropped - a.dropped
	}
	switch {
	case cost > 0:
		t.Softirq, t.Timed = cost*time.Duration(t.Frames), true
	case a.timed && b.timed:
		frames := make([]uint64, len(b.traffic.Frames))
		for cpu := range frames {
			frames[cpu] = b.traffic.Frames[cpu] - a.traffic.Frames[cpu]
		}
		t.Softirq, t.Grain = softirq.Between(a.softirq, b.softirq, frames)
		t.Timed = true
	}
	return t
}
