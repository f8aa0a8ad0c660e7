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

// Request is a call of one of the client's objects, or a notification.
type Request struct {
	// Method is the method's name, or the notification's type.
	Method string
	Args   blobmsg.Table
	// User and Group are the caller's, as ubusd knows them.
	User, Group string
	// Peer is the caller's id on the bus.
	Peer uint32
	// NoReply tells that the caller does not listen to answers.
	NoReply bool

	link   *link
	object uint32
	seq    uint16

	mu       sync.Mutex
	deferred bool
	over     bool
}

// ErrCompleted is the answer to a reply to a call that is over.
var ErrCompleted = errors.New("the call is over")

// Reply sends data to the caller, which may get any number of replies before
// the call is over. A reply over the limit is not sent.
func (r *Request) Reply(v any) error {
	data, err := encode(v)
	if err != nil {
		return fmt.Errorf("reply to %s: %w", r.Method, err)
	}
	f, err := frame(&wire.Message{Type: wire.Data, Seq: r.seq, Peer: r.Peer,
		Body: wire.Body{}.Uint32(wire.AttrObjID, r.object).Bytes(wire.AttrData, data)})
	if err != nil {
		return fmt.Errorf("reply to %s: %w", r.Method, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return ErrCompleted
	}
	if r.NoReply {
		return nil
	}
	return r.link.send(r.link.ctx, f)
}

// Defer keeps the call open when the handler returns nil: Complete ends it. A
// handler may as well just take its time.
func (r *Request) Defer() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deferred = true
}

// Context ends with the connection, and with it the call.
func (r *Request) Context() context.Context { return r.link.ctx }

// Complete ends a call that was deferred, with a handler's error. Only the
// first time counts.
func (r *Request) Complete(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over {
		return ErrCompleted
	}
	r.over = true
	if r.NoReply {
		return nil
	}
	f, err := statusFrame(r.seq, r.Peer, r.object, statusOf(err))
	if err != nil {
		return err
	}
	return r.link.send(r.link.ctx, f)
}

// returned ends the call when its handler returns, unless it was deferred.
func (r *Request) returned(err error) {
	r.mu.Lock()
	open := err == nil && r.deferred
	r.mu.Unlock()
	if !open {
		// If it fails, there is nobody left to tell.
		_ = r.Complete(err)
	}
}

func newRequest(l *link, m *wire.Message, a *wire.Attrs) *Request {
	return &Request{Method: a.Method, User: a.User, Group: a.Group, Peer: m.Peer, NoReply: a.NoReply,
		link: l, object: a.ObjID, seq: m.Seq}
}

// invoked starts a call, or refuses it.
func (r *Registration) invoked(l *link, m *wire.Message, a *wire.Attrs) {
	refuse := func(s Status) {
		if !a.NoReply {
			l.status(m.Seq, m.Peer, a.ObjID, s)
		}
	}
	method := r.methods[a.Method]
	switch {
	case !a.Has(wire.AttrMethod):
		refuse(StatusInvalidArgument)
		return
	case method == nil:
		refuse(StatusMethodNotFound)
		return
	case !a.Has(wire.AttrData):
		refuse(StatusInvalidArgument)
		return
	}
	c := l.c
	if !c.takePlace() {
		refuse(StatusNoMemory)
		return
	}
	c.handlers.Go(func() {
		defer func() { <-c.calls }()
		req := newRequest(l, m, a)
		args, err := blobmsg.Decode(a.Data)
		if err == nil {
			args, err = method.check(args)
		}
		if err != nil {
			c.log.Debug("ubus call refused", "object", r.object.Path, "method", a.Method, "error", err)
			req.returned(StatusInvalidArgument)
			return
		}
		req.Args = args
		err = method.Handler(l.ctx, req)
		if err != nil && l.ctx.Err() == nil {
			// The caller only gets a number; the words are for the log.
			c.log.Debug("ubus call failed", "object", r.object.Path, "method", a.Method, "error", err)
		}
		req.returned(err)
	})
}

// takePlace reserves a place for a call, if there is one.
func (c *Client) takePlace() bool {
	free := true
	select {
	case c.calls <- struct{}{}:
	default:
		free = false
	}
	c.mu.Lock()
	first := !free && !c.full
	c.full = !free
	c.mu.Unlock()
	if first {
		c.log.Warn("too many ubus calls at a time", "limit", c.options.MaxCalls)
	}
	return free
}
