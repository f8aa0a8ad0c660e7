// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// entry is something that the client keeps registered with ubusd: an object, a
// listener, a subscription.
type entry struct {
	c     *Client
	what  string // for the log
	owner registrant

	// Guarded by the client's mutex.
	on      *link // the connection on which it is registered
	rest    *link // the one on which a part of it is, while it is not
	busy    bool  // being registered
	removed bool
	err     error // how the last attempt on this connection failed
	retry   backoff
	due     time.Time // when to attempt again
}

// registrant is what an entry registers.
type registrant interface {
	// install registers on a connection. If it fails it leaves nothing behind.
	install(ctx context.Context, l *link) error
	// uninstall undoes install.
	uninstall(ctx context.Context, l *link) error
	// disconnected tells that the connection with all that was on it is gone.
	disconnected()
}

func (c *Client) newEntry(what string, owner registrant) *entry {
	return &entry{c: c, what: what, owner: owner,
		retry: backoff{min: c.options.RetryMin, max: c.options.RetryMax}}
}

// add has an entry registered, now or when there is a connection.
func (c *Client) add(e *entry) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return ErrClosed
	}
	c.entries = append(c.entries, e)
	c.broadcast()
	return nil
}

// reset forgets what happened on the connection that ended. The caller holds
// the client's mutex.
func (e *entry) reset() {
	e.on, e.rest, e.err, e.due = nil, nil, nil, time.Time{}
	e.retry.reset()
}

// registrar registers on one connection whatever is not, one after another in
// the order in which it was given to the client.
func (c *Client) registrar(l *link) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for l.ctx.Err() == nil {
		e, changed, pause := c.nextEntry(l)
		if e != nil {
			ctx, cancel := context.WithTimeout(l.ctx, c.options.CallTimeout)
			err := e.owner.install(ctx, l)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				// Whether ubusd did it is not known, and it would refuse it a
				// second time: only a new connection makes that clear.
				l.fail(fmt.Errorf("ubusd does not answer: %w", err))
			}
			c.installed(e, l, err)
			continue
		}
		timer.Reset(pause)
		select {
		case <-changed:
		case <-timer.C:
		case <-l.ctx.Done():
			return
		}
	}
}

// nextEntry picks what is to be registered now; if there is nothing, it tells
// how long to wait unless something changes.
func (c *Client) nextEntry(l *link) (e *entry, changed chan struct{}, pause time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause = time.Hour
	for _, e := range c.entries {
		if e.on == l {
			continue
		}
		wait := time.Until(e.due)
		if wait <= 0 {
			e.busy = true
			return e, nil, 0
		}
		pause = min(pause, wait)
	}
	return nil, c.changed, pause
}

func (c *Client) installed(e *entry, l *link, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.busy, e.rest = false, nil
	switch {
	case err == nil:
		if e.err != nil {
			c.log.Info("ubusd accepts", "what", e.what)
		}
		e.on, e.err = l, nil
		e.retry.reset()
	case l.ctx.Err() == nil:
		if e.err == nil {
			c.log.Warn("ubusd refuses", "what", e.what, "error", err)
		}
		e.err = err
		e.due = time.Now().Add(e.retry.next())
	}
	c.broadcast()
}

// again has an entry registered anew after a pause, because what it depended on
// is gone. What is left of it on the connection stays for the next attempt.
func (e *entry) again(err error) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	if e.on == nil {
		return
	}
	e.on, e.rest, e.err = nil, e.on, err
	e.due = time.Now().Add(e.retry.next())
	e.c.broadcast()
}

// wait waits until the entry is registered. It returns the error if the last
// attempt was refused, though others follow.
func (e *entry) wait(ctx context.Context) error {
	c := e.c
	for {
		c.mu.Lock()
		on, err, removed, changed := e.on, e.err, e.removed, c.changed
		c.mu.Unlock()
		switch {
		case removed || c.ctx.Err() != nil:
			return ErrClosed
		case on != nil && on.ctx.Err() == nil:
			return nil
		case err != nil:
			return err
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
		case <-ctx.Done():
			return timedOut(ctx)
		}
	}
}

// current is the connection on which the entry is registered.
func (e *entry) current() (*link, error) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	switch {
	case e.removed || e.c.ctx.Err() != nil:
		return nil, ErrClosed
	case e.on == nil || e.on.ctx.Err() != nil:
		return nil, ErrNotConnected
	}
	return e.on, nil
}

// remove takes the entry from the client and from ubusd.
func (e *entry) remove(ctx context.Context) error {
	c := e.c
	c.mu.Lock()
	if e.removed {
		c.mu.Unlock()
		return nil
	}
	e.removed = true
	c.entries = slices.DeleteFunc(c.entries, func(o *entry) bool { return o == e })
	c.broadcast()
	// An attempt that is under way ends by itself, within CallTimeout; until
	// then it is not known what there is to undo.
	for e.busy {
		changed := c.changed
		c.mu.Unlock()
		<-changed
		c.mu.Lock()
	}
	l := e.on
	if l == nil {
		l = e.rest
	}
	c.mu.Unlock()
	if l == nil || l.ctx.Err() != nil {
		return nil
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return e.owner.uninstall(ctx, l)
}
