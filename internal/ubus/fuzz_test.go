// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/internal/golden"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// FuzzMessages lets a client with an object, a listener, a subscription and
// open requests read whatever comes.
func FuzzMessages(f *testing.F) {
	for _, path := range golden.Traces(f, golden.Kept(f)) {
		for _, conn := range conversations(golden.Load(f, path)) {
			f.Add(conn)
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		c := newClient(Options{})
		l := &link{c: c, id: 2000, pending: map[uint16]*pending{}, objects: map[uint32]served{},
			space: make(chan struct{}), wake: make(chan struct{}, 1)}
		l.ctx, l.cancel = context.WithCancelCause(c.ctx)
		r := &Registration{methods: map[string]*Method{
			"status": {Name: "status", Handler: echo},
			"set":    {Name: "set", Args: []Arg{{Name: "n", Type: blobmsg.Int64}, {Name: "name", Type: blobmsg.String, Required: true}}, Handler: echo},
		}}
		r.queue.c = c
		s := &Subscription{targets: map[uint32]string{7: "x"}, options: SubscribeOptions{Handler: echo}, match: func(string) bool { return false }}
		s.queue.c = c
		ln := &Listener{handler: func(Event) {}}
		ln.queue.c = c
		for id, o := range map[uint32]served{1: r, 2: s, 3: ln, 4: (*watcher)(s)} {
			l.objects[id] = o
		}
		for seq := range uint16(4) {
			l.pending[seq] = &pending{done: make(chan struct{}), answer: func(m *wire.Message, a *wire.Attrs) bool {
				methodsOf(a.Signature)
				return m.Type == wire.Status
			}}
		}
		for in := bytes.NewReader(stream); ; {
			m, err := wire.Read(in, readLimit)
			if err != nil {
				break
			}
			// The recordings' ids are random: whatever is asked for is there.
			if a := wire.Parse(m.Body); a.Has(wire.AttrObjID) && l.objects[a.ObjID] == nil && len(l.objects) < 20 {
				l.objects[a.ObjID] = []served{r, s, ln, (*watcher)(s)}[a.ObjID%4]
			}
			l.dispatch(m)
		}
		l.cancel(errors.New("over"))
		c.cancel()
		c.Wait()
	})
}

// conversations are what the clients of a trace were told.
func conversations(trace *golden.Trace) (streams [][]byte) {
	names, conns := trace.ByConn()
	for _, name := range names {
		var b []byte
		for _, s := range conns[name] {
			if !s.FromClient && len(s.Bytes) < 4096 {
				b = append(b, s.Bytes...)
			}
		}
		streams = append(streams, b)
	}
	return streams
}

// FuzzNotifyAnswers is FuzzMessages for the one request that many answer.
func FuzzNotifyAnswers(f *testing.F) {
	f.Add([]byte{0, 1, 0, 1, 0, 0, 0, 9, 0, 0, 0, 24, 3, 0, 0, 8, 0, 0, 0, 9, 11, 0, 0, 4, 1, 0, 0, 8, 0, 0, 0, 0})
	f.Add([]byte{0, 1, 0, 1, 0, 0, 0, 9, 0, 0, 0, 16, 11, 0, 0, 12, 0, 0, 0, 8, 0, 0, 0, 5, 0, 1, 0, 1, 0, 0, 0, 5, 0, 0, 0, 12, 1, 0, 0, 8, 0, 0, 0, 8})
	f.Fuzz(func(t *testing.T, stream []byte) {
		c := newClient(Options{})
		l := &link{c: c, pending: map[uint16]*pending{}, objects: map[uint32]served{},
			space: make(chan struct{}), wake: make(chan struct{}, 1)}
		l.ctx, l.cancel = context.WithCancelCause(c.ctx)
		started := make(chan struct{})
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-started
			_, _ = l.notifyWait(c.ctx, &wire.Message{Type: wire.Notify, Peer: 9})
		}()
		close(started)
		<-l.wake // the request is queued, and so it has its place
		for in := bytes.NewReader(stream); ; {
			m, err := wire.Read(in, readLimit)
			if err != nil {
				break
			}
			m.Seq = 1
			l.dispatch(m)
		}
		c.cancel()
		<-done
	})
}
