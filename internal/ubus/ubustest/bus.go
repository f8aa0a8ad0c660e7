// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// The status codes that ubusd answers itself.
const (
	statusOK               = 0
	statusInvalidCommand   = 1
	statusInvalidArgument  = 2
	statusMethodNotFound   = 3
	statusNotFound         = 4
	statusPermissionDenied = 6

	// noStatus: the request is not answered by a STATUS of ubusd's own.
	noStatus = -1
)

// bus is all that a ubusd knows from its start to its end.
type bus struct {
	mu      sync.Mutex // guards what follows, and what hangs below it
	changed *sync.Cond
	closed  bool

	clients map[uint32]*client
	objects map[uint32]*object
	types   map[uint32]*objectType
	paths   []*object // those with a path, sorted by it

	listeners  []*listener // sorted by what they match
	eventSeq   uint16
	eventRound uint64 // marks who has heard an event

	acl      *acl
	monitors []*monitor

	draw func() uint32 // draws ids
}

func newBus(acl *acl) *bus {
	b := &bus{
		clients: map[uint32]*client{},
		objects: map[uint32]*object{},
		types:   map[uint32]*objectType{},
		acl:     acl,
		draw:    rand.Uint32,
	}
	b.changed = sync.NewCond(&b.mu)
	for id, receive := range map[uint32]receiver{
		wire.EventObject:   b.callEvent,
		wire.ACLObject:     b.callACL,
		wire.MonitorObject: b.callMonitor,
	} {
		b.objects[id] = &object{id: id, receive: receive}
	}
	return b
}

// close ends every connection.
func (b *bus) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, cl := range b.clients {
		cl.conn.Close()
	}
	b.changed.Broadcast()
}

// newID draws an id that nobody has.
func (b *bus) newID(taken func(uint32) bool) uint32 {
	for {
		if id := b.draw(); id >= wire.FirstID && !taken(id) {
			return id
		}
	}
}

// handle answers one message.
func (b *bus) handle(cl *client, m *wire.Message) {
	// What a handler changes in the message must not change the STATUS.
	answer := &wire.Message{Type: wire.Status, Seq: m.Seq, Peer: m.Peer}
	a := wire.Parse(m.Body)
	status := statusInvalidCommand
	switch m.Type {
	case wire.Ping:
		m.Type = wire.Data
		b.send(cl, m)
		status = statusOK
	case wire.Lookup:
		status = b.lookup(cl, m, a)
	case wire.Invoke:
		status = b.invoke(cl, m, a)
	case wire.AddObject:
		status = b.addObject(cl, m, a)
	case wire.RemoveObject:
		status = b.removeObject(cl, m, a)
	case wire.Subscribe:
		status = b.subscribe(cl, a)
	case wire.Unsubscribe:
		status = b.unsubscribe(cl, a)
	case wire.Notify:
		status = b.notify(cl, m, a)
	case wire.Status, wire.Data:
		b.respond(cl, m, a)
		status = noStatus
	}
	if status == noStatus {
		return
	}
	answer.Body = wire.Body{}.Uint32(wire.AttrStatus, uint32(status))
	b.send(cl, answer)
}

// answer sends ubusd's own answer to a request.
func (b *bus) answer(cl *client, m *wire.Message, t wire.Type, body wire.Body) {
	b.send(cl, &wire.Message{Type: t, Seq: m.Seq, Peer: m.Peer, Body: body})
}

// matches is whether a name is a pattern's key, or begins with it if the pattern
// ended in *.
func matches(name, key string, prefix bool) bool {
	return name == key || prefix && strings.HasPrefix(name, key)
}

// without removes what a function picks. The order stays.
func without[T any](list []T, pick func(T) bool) []T {
	kept := list[:0:0]
	for _, v := range list {
		if !pick(v) {
			kept = append(kept, v)
		}
	}
	return kept
}
