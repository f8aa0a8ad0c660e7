// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// Subscription gets the notifications of other clients' objects.
type Subscription struct {
	entry   *entry
	path    string
	match   func(path string) bool // nil: path alone
	options SubscribeOptions
	queue   queue

	mu      sync.Mutex
	on      *link             // where the object is that is subscribed with
	id      uint32            // its id
	watcher uint32            // of the object that hears of new objects
	targets map[uint32]string // what it is subscribed to, by id
}

// SubscribeOptions say what a subscription does.
type SubscribeOptions struct {
	// Handler gets the notifications, in order, one at a time. Its replies and
	// its error go to the notifier if that asked for them. Request.Method is
	// the kind of the notification.
	Handler Handler
	// Gone is told when an object that was subscribed to goes away; it may be
	// nil. It is called in the order of the notifications.
	Gone func(path string)
}

// Subscribe subscribes to one object. While there is no such object it is
// looked for again and again, with growing pauses.
func (c *Client) Subscribe(path string, options SubscribeOptions) (*Subscription, error) {
	if path == "" {
		return nil, errors.New("subscribe: no path")
	}
	return c.subscribe(&Subscription{path: path, options: options}, path)
}

// SubscribeMatching subscribes to every object whose path a function picks, be
// it there already or come later. The function must not wait for anything.
func (c *Client) SubscribeMatching(match func(path string) bool, options SubscribeOptions) (*Subscription, error) {
	if match == nil {
		return nil, errors.New("subscribe: no function")
	}
	return c.subscribe(&Subscription{match: match, options: options}, "matching objects")
}

func (c *Client) subscribe(s *Subscription, what string) (*Subscription, error) {
	if s.options.Handler == nil {
		return nil, fmt.Errorf("subscribe to %s: no handler", what)
	}
	s.targets = map[uint32]string{}
	s.queue.c = c
	s.entry = c.newEntry("subscription to "+what, s)
	if err := c.add(s.entry); err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", what, err)
	}
	return s, nil
}

// Wait waits until the subscription is in force, as Wait of Registration does.
// For SubscribeMatching that may be without any object.
func (s *Subscription) Wait(ctx context.Context) error { return s.entry.wait(ctx) }

// Remove ends the subscription. Notifications that wait for its handler still
// come.
func (s *Subscription) Remove(ctx context.Context) error { return s.entry.remove(ctx) }

// Dropped is how many notifications found no room because the handler was too
// slow.
func (s *Subscription) Dropped() uint64 { return s.queue.Dropped() }

// Unsubscribe stops the notifications of one object until that object, or the
// connection, goes and comes again. Remove is for good.
func (s *Subscription) Unsubscribe(ctx context.Context, path string) error {
	l, err := s.entry.current()
	if err != nil {
		return fmt.Errorf("unsubscribe from %s: %w", path, err)
	}
	s.mu.Lock()
	id, target := s.id, uint32(0)
	for t, p := range s.targets {
		if p == path {
			target = t
		}
	}
	delete(s.targets, target)
	s.mu.Unlock()
	if target == 0 {
		return fmt.Errorf("unsubscribe from %s: %w", path, StatusNotFound)
	}
	ctx, cancel := l.c.limit(ctx)
	defer cancel()
	if err := l.watch(ctx, wire.Unsubscribe, id, target); err != nil {
		return fmt.Errorf("unsubscribe from %s: %w", path, err)
	}
	return nil
}

// watch sends SUBSCRIBE or UNSUBSCRIBE.
func (l *link) watch(ctx context.Context, t wire.Type, id, target uint32) error {
	return l.simple(ctx, &wire.Message{
		Type: t, Body: wire.Body{}.Uint32(wire.AttrObjID, id).Uint32(wire.AttrTarget, target),
	}, 0, nil)
}

func (s *Subscription) install(ctx context.Context, l *link) error {
	s.mu.Lock()
	there := s.on == l
	s.mu.Unlock()
	if !there {
		id, err := l.addObject(ctx, wire.Body{}, func(uint32) served { return s })
		if err != nil {
			return fmt.Errorf("add an object to subscribe with: %w", err)
		}
		s.mu.Lock()
		s.on, s.id, s.watcher, s.targets = l, id, 0, map[uint32]string{}
		s.mu.Unlock()
	}
	if err := s.findTargets(ctx, l); err != nil {
		// The next attempt begins with objects of its own.
		_ = s.uninstall(ctx, l)
		return err
	}
	return nil
}

// findTargets subscribes to what there is. New objects are heard of before the
// others are listed, so that none is missed.
func (s *Subscription) findTargets(ctx context.Context, l *link) error {
	if s.match != nil {
		id, err := l.listen(ctx, (*watcher)(s), "ubus.object.add")
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.watcher = id
		s.mu.Unlock()
	}
	list, err := l.lookup(ctx, s.path)
	if err != nil {
		return err
	}
	found := false
	for _, o := range list {
		if s.match != nil {
			s.consider(ctx, l, o.Path, o.ID)
			continue
		}
		found = true
		if err := s.subscribeTo(ctx, l, o.Path, o.ID); err != nil {
			return err
		}
	}
	if s.match == nil && !found {
		return fmt.Errorf("look up %q: %w", s.path, StatusNotFound)
	}
	return nil
}

// consider subscribes to an object if it is one of those that were asked for.
func (s *Subscription) consider(ctx context.Context, l *link, path string, id uint32) {
	if !s.match(path) {
		return
	}
	if err := s.subscribeTo(ctx, l, path, id); err != nil && ctx.Err() == nil {
		l.c.log.Warn("ubusd refuses", "what", "subscription to "+path, "error", err)
	}
}

func (s *Subscription) subscribeTo(ctx context.Context, l *link, path string, target uint32) error {
	s.mu.Lock()
	id := s.id
	_, already := s.targets[target]
	// Claimed before it is so: the object may be listed and announced at once,
	// and who subscribes twice hears everything twice.
	s.targets[target] = path
	s.mu.Unlock()
	if already {
		return nil
	}
	err := l.watch(ctx, wire.Subscribe, id, target)
	if err != nil {
		s.mu.Lock()
		delete(s.targets, target)
		s.mu.Unlock()
		return fmt.Errorf("subscribe to %s: %w", path, err)
	}
	return nil
}

func (s *Subscription) uninstall(ctx context.Context, l *link) error {
	s.mu.Lock()
	ids := []uint32{s.watcher, s.id}
	s.on, s.watcher, s.id = nil, 0, 0
	s.mu.Unlock()
	var err error
	for _, id := range ids {
		if id != 0 {
			err = errors.Join(err, l.removeObject(ctx, id))
		}
	}
	if err != nil {
		return fmt.Errorf("remove a subscription's objects: %w", err)
	}
	return nil
}

func (s *Subscription) disconnected() {}

// invoked takes a notification.
func (s *Subscription) invoked(l *link, m *wire.Message, a *wire.Attrs) {
	status := StatusInvalidArgument
	if a.Has(wire.AttrMethod) && a.Has(wire.AttrData) {
		status = StatusNoMemory
	}
	pushed := status == StatusNoMemory && s.queue.push(len(m.Body), func() {
		r := newRequest(l, m, a)
		var err error
		if r.Args, err = blobmsg.Decode(a.Data); err != nil {
			r.returned(StatusInvalidArgument)
			return
		}
		r.returned(s.options.Handler(l.ctx, r))
	})
	if !pushed && !a.NoReply {
		l.status(m.Seq, m.Peer, a.ObjID, status)
	}
}

func (s *Subscription) activated(bool) {}

// targetGone takes the end of an object. It must not be lost in a full queue.
func (s *Subscription) targetGone(target uint32) {
	s.mu.Lock()
	path, ok := s.targets[target]
	delete(s.targets, target)
	s.mu.Unlock()
	if !ok {
		return
	}
	if s.options.Gone != nil {
		s.queue.force(func() { s.options.Gone(path) })
	}
	if s.match == nil {
		s.entry.again(fmt.Errorf("subscribe to %s: %w", path, StatusNotFound))
	}
}

// watcher is the object of a subscription that hears of new objects.
type watcher Subscription

func (w *watcher) invoked(l *link, m *wire.Message, a *wire.Attrs) {
	s := (*Subscription)(w)
	pushEvent(&s.queue, l, m, a, func(e Event) {
		id, ok1 := e.Data.Int("id")
		path, ok2 := e.Data.Text("path")
		if ok1 && ok2 {
			ctx, cancel := l.c.limit(l.ctx)
			defer cancel()
			s.consider(ctx, l, path, uint32(id))
		}
	})
}

func (w *watcher) activated(bool)    {}
func (w *watcher) targetGone(uint32) {}
