// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// Event is an event that was sent to whoever listens.
type Event struct {
	Name string
	Data blobmsg.Table
}

// SendEvent sends an event and waits until ubusd has passed it on. The sender's
// own listeners do not hear it. Names that begin with "ubus." are ubusd's.
func (c *Client) SendEvent(ctx context.Context, name string, data any) error {
	l, err := c.connected()
	if err != nil {
		return err
	}
	t, err := blobmsg.Marshal(data)
	if err != nil {
		return fmt.Errorf("send event %s: %w", name, err)
	}
	if t == nil {
		t = blobmsg.Table{}
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	_, err = l.invoke(ctx, wire.EventObject, "send", blobmsg.Table{{Name: "id", Value: name}, {Name: "data", Value: t}})
	if err != nil {
		return fmt.Errorf("send event %s: %w", name, err)
	}
	return nil
}

// Listener hears events.
type Listener struct {
	entry    *entry
	handler  func(Event)
	patterns []string
	queue    queue

	mu sync.Mutex
	id uint32
}

// Listen calls a handler with each event whose name is one of the patterns, or
// begins with what stands before a pattern's final *. The events come in order,
// one at a time, and once each however many patterns they match.
func (c *Client) Listen(handler func(Event), patterns ...string) (*Listener, error) {
	if len(patterns) == 0 {
		return nil, errors.New("listen to events: no pattern")
	}
	for _, p := range patterns {
		if p == "" || strings.ContainsRune(p, 0) {
			return nil, fmt.Errorf("listen to events: pattern %q", p)
		}
	}
	ln := &Listener{handler: handler, patterns: patterns}
	ln.queue.c = c
	ln.entry = c.newEntry("events "+strings.Join(patterns, " "), ln)
	if err := c.add(ln.entry); err != nil {
		return nil, fmt.Errorf("listen to events: %w", err)
	}
	return ln, nil
}

// Wait waits until ubusd knows of the listener, as Wait of Registration does.
func (ln *Listener) Wait(ctx context.Context) error { return ln.entry.wait(ctx) }

// Remove ends the listener. Events that wait for its handler still come.
func (ln *Listener) Remove(ctx context.Context) error { return ln.entry.remove(ctx) }

// Dropped is how many events found no room because the handler was too slow.
func (ln *Listener) Dropped() uint64 { return ln.queue.Dropped() }

func (ln *Listener) install(ctx context.Context, l *link) error {
	id, err := l.listen(ctx, ln, ln.patterns...)
	ln.mu.Lock()
	defer ln.mu.Unlock()
	ln.id = id
	return err
}

// listen adds an object without a path and registers it for events.
func (l *link) listen(ctx context.Context, s served, patterns ...string) (uint32, error) {
	id, err := l.addObject(ctx, wire.Body{}, func(uint32) served { return s })
	if err != nil {
		return 0, fmt.Errorf("add an object for events: %w", err)
	}
	for _, p := range patterns {
		_, err := l.invoke(ctx, wire.EventObject, "register",
			blobmsg.Table{{Name: "object", Value: int32(id)}, {Name: "pattern", Value: p}})
		if err != nil {
			// The next attempt begins with an object of its own.
			_ = l.removeObject(ctx, id)
			return 0, fmt.Errorf("listen to events %s: %w", p, err)
		}
	}
	return id, nil
}

func (ln *Listener) uninstall(ctx context.Context, l *link) error {
	ln.mu.Lock()
	id := ln.id
	ln.mu.Unlock()
	if err := l.removeObject(ctx, id); err != nil {
		return fmt.Errorf("remove an object for events: %w", err)
	}
	return nil
}

func (ln *Listener) invoked(l *link, m *wire.Message, a *wire.Attrs) {
	pushEvent(&ln.queue, l, m, a, ln.handler)
}

// pushEvent has an event handled, and answered like a call, which ubusd ignores
// but libubus does.
func pushEvent(q *queue, l *link, m *wire.Message, a *wire.Attrs, handler func(Event)) {
	q.push(len(m.Body), func() {
		data, err := blobmsg.Decode(a.Data)
		if err != nil {
			l.c.log.Debug("malformed ubus event", "name", a.Method, "error", err)
		} else {
			handler(Event{a.Method, data})
		}
		newRequest(l, m, a).returned(nil)
	})
}

func (ln *Listener) activated(bool)    {}
func (ln *Listener) targetGone(uint32) {}
func (ln *Listener) disconnected()     {}
