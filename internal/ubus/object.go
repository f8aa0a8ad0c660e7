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

// Object is what a client offers to others.
type Object struct {
	Path    string
	Methods []Method
	// Subscribed is told when the first subscriber comes and when the last one
	// goes, also by the end of the connection.
	Subscribed func(active bool)
}

// Method is one method of an object.
type Method struct {
	Name string
	Args []Arg
	// AnyArgs lets arguments pass that are not declared.
	AnyArgs bool
	Handler Handler
}

// Handler answers a call. It runs in a goroutine of its own and may take its
// time; the context ends with the connection. Its error ends the call: nil,
// a Status that is in it, or else StatusUnknownError.
type Handler func(ctx context.Context, r *Request) error

// validate finds mistakes of the program's own.
func (o *Object) validate() error {
	if o.Path == "" || strings.ContainsRune(o.Path, 0) {
		return errors.New("an object needs a path without NUL")
	}
	seen := map[string]bool{}
	for i := range o.Methods {
		m := &o.Methods[i]
		if m.Name == "" || m.Handler == nil || seen[m.Name] || strings.ContainsRune(m.Name, 0) {
			return fmt.Errorf("method %d (%q) has no name, no handler, or another's name", i, m.Name)
		}
		seen[m.Name] = true
		args := map[string]bool{}
		for _, a := range m.Args {
			if a.Name == "" || args[a.Name] || a.Type > blobmsg.Double {
				return fmt.Errorf("method %s: argument %q has no name, another's name, or no type", m.Name, a.Name)
			}
			args[a.Name] = true
		}
	}
	return nil
}

// Registration is an object that the client keeps registered.
type Registration struct {
	entry     *entry
	object    Object
	methods   map[string]*Method
	signature []byte
	queue     queue // for what Subscribed is told

	mu         sync.Mutex
	id         uint32 // on the connection on which it is registered
	subscribed bool
}

// Register offers an object from now on: as soon as there is a connection, and
// again after each reconnection. If ubusd refuses, because another client has
// the path, it is tried again and again; Wait tells.
func (c *Client) Register(o Object) (*Registration, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("register %q: %w", o.Path, err)
	}
	sig, err := signature(o.Methods)
	if err != nil {
		return nil, fmt.Errorf("register %q: %w", o.Path, err)
	}
	r := &Registration{object: o, signature: sig, methods: map[string]*Method{}}
	for i := range o.Methods {
		r.methods[o.Methods[i].Name] = &o.Methods[i]
	}
	if len(sig) > wire.MaxLen {
		return nil, fmt.Errorf("register %q: %w", o.Path, &TooLargeError{len(sig), wire.MaxLen})
	}
	if err := fits(&wire.Message{Body: r.body()}, 0); err != nil {
		return nil, fmt.Errorf("register %q: %w", o.Path, err)
	}
	r.queue.c = c
	r.entry = c.newEntry("object "+o.Path, r)
	if err := c.add(r.entry); err != nil {
		return nil, fmt.Errorf("register %q: %w", o.Path, err)
	}
	return r, nil
}

func (r *Registration) body() wire.Body {
	return wire.Body{}.String(wire.AttrObjPath, r.object.Path).Bytes(wire.AttrSignature, r.signature)
}

// Wait waits until the object is registered. If ubusd refused it the last time,
// Wait returns that error; the client goes on trying.
func (r *Registration) Wait(ctx context.Context) error { return r.entry.wait(ctx) }

// Remove takes the object back. Calls that run are not affected.
func (r *Registration) Remove(ctx context.Context) error { return r.entry.remove(ctx) }

// ID is the object's id; 0 while it is not registered.
func (r *Registration) ID() uint32 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// HasSubscribers is whether somebody is subscribed to the object.
func (r *Registration) HasSubscribers() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.subscribed
}

func (r *Registration) setID(id uint32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.id = id
}

func (r *Registration) install(ctx context.Context, l *link) error {
	id, err := l.addObject(ctx, r.body(), func(id uint32) served {
		r.setID(id)
		return r
	})
	if err != nil {
		r.setID(0)
		return fmt.Errorf("add object %s: %w", r.object.Path, err)
	}
	if id == 0 {
		return fmt.Errorf("add object %s: %w", r.object.Path, StatusNoData)
	}
	return nil
}

func (r *Registration) uninstall(ctx context.Context, l *link) error {
	id := r.ID()
	r.setID(0)
	if err := l.removeObject(ctx, id); err != nil {
		return fmt.Errorf("remove object %s: %w", r.object.Path, err)
	}
	return nil
}

// addObject adds an object. serve is called in the reader as soon as its id is
// known: the next message may be a call of it.
func (l *link) addObject(ctx context.Context, body wire.Body, serve func(id uint32) served) (id uint32, err error) {
	err = l.simple(ctx, &wire.Message{Type: wire.AddObject, Body: body}, 0, func(a *wire.Attrs) {
		if a.Has(wire.AttrObjID) && id == 0 {
			id = a.ObjID
			l.objects[id] = serve(id)
		}
	})
	if err != nil && id != 0 {
		l.forget(id)
		id = 0
	}
	return id, err
}

func (l *link) removeObject(ctx context.Context, id uint32) error {
	err := l.simple(ctx, &wire.Message{
		Type: wire.RemoveObject, Body: wire.Body{}.Uint32(wire.AttrObjID, id),
	}, 0, nil)
	l.forget(id)
	return err
}

func (l *link) forget(id uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.objects, id)
}

func (r *Registration) disconnected() {
	r.setID(0)
	r.activated(false)
}

func (r *Registration) activated(active bool) {
	r.mu.Lock()
	changed := r.subscribed != active
	r.subscribed = active
	r.mu.Unlock()
	if changed && r.object.Subscribed != nil {
		r.queue.force(func() { r.object.Subscribed(active) })
	}
}

// targetGone is for subscribers only.
func (r *Registration) targetGone(uint32) {}
