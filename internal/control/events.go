// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xdpl2/xdpl2/internal/adapt"
	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// What happens is told to whoever asked for it. Telling never waits: who is
// slow misses events, and learns how many. A flood (a loop in the network moves
// thousands of stations a second) is cut to a trickle before anything is made
// of it, kind by kind, so that it does not drown the rest.

const (
	eventBurst   = 200 // of one kind at once
	eventsPerSec = 50  // of one kind, on average
	eventQueue   = 512 // that wait for one reader
	// missedAfter is when a number of dropped events is told although no
	// further event came to carry it.
	missedAfter = time.Second
)

// events hands events on. Its methods may be called from any goroutine.
type events struct {
	mu      sync.Mutex
	closed  bool
	readers map[*reader]struct{}
	kinds   map[string]*allowance
}

type reader struct {
	ch     chan api.Event
	missed int
}

// allowance is what is left of what may be told of one kind.
type allowance struct {
	left    float64
	at      time.Time
	dropped int
	pending bool // a timer will tell what was dropped
}

func newEvents() *events {
	return &events{readers: map[*reader]struct{}{}, kinds: map[string]*allowance{}}
}

// subscribe returns a channel that is closed when the context ends, or with
// the events.
func (e *events) subscribe(ctx context.Context) (<-chan api.Event, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, errors.New("the daemon is stopping")
	}
	r := &reader{ch: make(chan api.Event, eventQueue)}
	e.readers[r] = struct{}{}
	context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.drop(r)
	})
	return r.ch, nil
}

// drop ends a reader. The caller holds the mutex.
func (e *events) drop(r *reader) {
	if _, ok := e.readers[r]; ok {
		delete(e.readers, r)
		close(r.ch)
	}
}

func (e *events) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for r := range e.readers {
		e.drop(r)
	}
}

// tell tells an event of a kind, unless nobody listens or there were too many
// of that kind. Only then is the event made.
func (e *events) tell(kind string, compose func() api.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.readers) == 0 {
		return
	}
	now := time.Now()
	a := e.kinds[kind]
	if a == nil {
		a = &allowance{left: eventBurst}
		e.kinds[kind] = a
	} else {
		a.left = min(eventBurst, a.left+eventsPerSec*now.Sub(a.at).Seconds())
	}
	a.at = now
	if a.left < 1 {
		a.dropped++
		if !a.pending {
			a.pending = true
			time.AfterFunc(missedAfter, func() { e.tellDropped(kind) })
		}
		return
	}
	a.left--
	event := compose()
	event.Time, event.Kind = now, kind
	event.Missed, a.dropped = a.dropped, 0
	e.send(event)
}

// tellDropped tells how many events were dropped since the last one.
func (e *events) tellDropped(kind string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := e.kinds[kind]
	a.pending = false
	if a.dropped == 0 {
		return
	}
	n := a.dropped
	a.dropped = 0
	e.send(api.Event{Time: time.Now(), Kind: kind, Missed: n,
		Text: fmt.Sprintf("%d more events of kind %s: they came faster than they are told", n, kind)})
}

// send gives every reader the event. The caller holds the mutex.
func (e *events) send(event api.Event) {
	for r := range e.readers {
		mine := event
		mine.Missed += r.missed
		select {
		case r.ch <- mine:
			r.missed = 0
		default: // what the event itself stands for is missed, too
			r.missed += 1 + event.Missed
		}
	}
}

// Events implements api.Service.
func (c *Controller) Events(ctx context.Context) (<-chan api.Event, error) {
	return c.events.subscribe(ctx)
}

// toldPort is what was told of a port last.
type toldPort struct{ state, reason, engine, hook string }

// tellPorts tells what has changed with the ports since the last time.
func (c *Controller) tellPorts() {
	for _, p := range c.ordered() {
		if p.section == nil {
			continue
		}
		now := toldPort{state: p.state, reason: p.reason}
		if p.attachment != nil {
			now.engine, now.hook = string(p.attachment.Engine()), p.attachment.Hook()
		}
		before := p.told
		var change *adapt.Change
		if a := p.adaptive; a != nil {
			change = a.change
			if a.step.Trying && now.engine != "" { // it is not chosen yet
				now.engine, now.hook = before.engine, before.hook
			}
		}
		if now == before {
			continue
		}
		p.told = now
		if now.engine != before.engine && now.engine != "" && before.engine != "" {
			p.engineChanges++
			c.events.tell(api.EventEngine, func() api.Event {
				reason := p.engines[before.engine]
				if change != nil {
					reason = change.Reason
				}
				return api.Event{Device: p.device, Engine: now.engine, Before: before.engine, Reason: reason, Measured: measured(change),
					Text: fmt.Sprintf("%s: engine %s instead of %s: %s", p.device, now.engine, before.engine, reason)}
			})
			before.engine, before.hook = now.engine, now.hook
		}
		if now != before {
			c.events.tell(api.EventPort, func() api.Event {
				return api.Event{Device: p.device, State: now.state, Reason: now.reason, Engine: now.engine, Before: before.state,
					Text: portWords(p.device, now)}
			})
		}
	}
}

func portWords(device string, p toldPort) string {
	switch {
	case p.state == api.Accelerating:
		return fmt.Sprintf("%s: accelerating (%s)", device, p.hook)
	case p.reason != "":
		return fmt.Sprintf("%s: %s: %s", device, stateWords[p.state], p.reason)
	}
	return fmt.Sprintf("%s: %s", device, stateWords[p.state])
}

var stateWords = map[string]string{
	api.Accelerating: "accelerating", api.Waiting: "waiting", api.Off: "off",
	api.NotAccelerated: "not accelerated", api.Failed: "failed",
}

// tellStation tells that a station came or moved, or went if now is nil. The
// box itself is no station.
func (c *Controller) tellStation(key datapath.StationKey, before, now *station) {
	state := "moved"
	switch {
	case c.resizing, before != nil && before.Local || now != nil && now.Local:
		return
	case before == nil && now == nil || before != nil && now != nil && before.ifindex == now.ifindex:
		return
	case before == nil:
		state = "added"
	case now == nil:
		state = "gone"
	}
	c.events.tell(api.EventStation, func() api.Event {
		event := api.Event{MAC: macOf(key), VLAN: int(key.VLAN), State: state}
		name := event.MAC
		if key.VLAN != 0 {
			name += fmt.Sprintf(" in VLAN %d", key.VLAN)
		}
		if before != nil {
			event.Before = c.links[int(before.ifindex)].Name
		}
		if now != nil {
			event.Device = c.links[int(now.ifindex)].Name
		}
		switch state {
		case "added":
			event.Text = fmt.Sprintf("%s: new behind %s", name, event.Device)
		case "moved":
			event.Text = fmt.Sprintf("%s: moved from %s to %s", name, event.Before, event.Device)
		case "gone":
			event.Text = fmt.Sprintf("%s: gone from %s", name, event.Before)
		}
		return event
	})
}

// tellConfig tells of a configuration that was loaded, or refused.
func (c *Controller) tellConfig(result *api.ReloadResult, err error) {
	c.events.tell(api.EventConfig, func() api.Event {
		switch {
		case err != nil:
			return api.Event{State: "refused", Reason: err.Error(), Text: "configuration refused, the last good one stays in force: " + err.Error()}
		case !result.Changed:
			return api.Event{State: "loaded", Text: "configuration loaded, nothing has changed"}
		}
		return api.Event{State: "loaded", Text: "configuration loaded"}
	})
}
