// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

const (
	// forwardRoom is what ubusd may add to a message that it passes on: it
	// sends USER and GROUP with a call, and does not look at the length again.
	forwardRoom = 256
	// readLimit is what is read from ubusd: the limit, and what it may have
	// added for a caller that did not leave room.
	readLimit = wire.MaxLen + 4096
	// maxOut is how many bytes wait for ubusd to read them before senders wait.
	maxOut = 4 << 20
	// helloTimeout is how long ubusd may take to say HELLO.
	helloTimeout = 5 * time.Second
)

// link is one connection to ubusd, from its HELLO to its end.
type link struct {
	c    *Client
	conn net.Conn
	id   uint32
	// ctx ends with the connection; its cause says why.
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stopped sync.WaitGroup // reader and writer

	mu      sync.Mutex
	pending map[uint16]*pending
	objects map[uint32]served
	out     [][]byte
	queued  int           // bytes in out and under way
	space   chan struct{} // closed, and made anew, when queued shrinks
	wake    chan struct{} // tells the writer of something in out
}

// served is what takes the messages for one object id. The methods are called
// by the reader and must not block.
type served interface {
	invoked(l *link, m *wire.Message, a *wire.Attrs)
	activated(active bool)
	targetGone(target uint32)
}

// pending is a request that has not been answered yet.
type pending struct {
	// answer takes a DATA or STATUS, under the link's mutex, and says whether
	// it was the last.
	answer func(m *wire.Message, a *wire.Attrs) bool
	done   chan struct{}
}

// dial connects and waits for the HELLO.
func (c *Client) dial(ctx context.Context) (*link, error) {
	fail := func(err error) (*link, error) {
		return nil, fmt.Errorf("connect to ubusd at %s: %w", c.options.Socket, err)
	}
	ctx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", c.options.Socket)
	if err != nil {
		return fail(err)
	}
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })
	r := bufio.NewReaderSize(conn, 64<<10)
	hello, err := wire.Read(r, readLimit)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && (hello.Type != wire.Hello || hello.Version != 0 || hello.Peer < wire.FirstID) {
		err = fmt.Errorf("no HELLO but %v, version %d, peer %#x", hello.Type, hello.Version, hello.Peer)
	}
	if err != nil {
		conn.Close()
		return fail(err)
	}
	l := &link{
		c: c, conn: conn, id: hello.Peer,
		pending: map[uint16]*pending{}, objects: map[uint32]served{},
		space: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	l.ctx, l.cancel = context.WithCancelCause(c.ctx)
	l.stopped.Go(func() { l.read(r) })
	l.stopped.Go(l.write)
	// Closing the client ends it even while nobody has attached it yet.
	context.AfterFunc(l.ctx, func() { conn.Close() })
	return l, nil
}

// fail ends the connection. The first reason counts.
func (l *link) fail(err error) { l.cancel(err) }

// lost is the error for requests that the end of the connection cut off.
func (l *link) lost() error {
	if l.c.ctx.Err() != nil {
		return ErrClosed
	}
	return fmt.Errorf("%w: %w", ErrConnectionLost, context.Cause(l.ctx))
}

// read takes ubusd's messages until the connection ends.
func (l *link) read(r *bufio.Reader) {
	for {
		m, err := wire.Read(r, readLimit)
		if err == nil && m.Version != 0 {
			err = fmt.Errorf("message of version %d", m.Version)
		}
		if err != nil {
			l.fail(err)
			return
		}
		l.dispatch(m)
	}
}

func (l *link) dispatch(m *wire.Message) {
	a := wire.Parse(m.Body)
	switch m.Type {
	case wire.Status, wire.Data:
		l.mu.Lock()
		defer l.mu.Unlock()
		if p := l.pending[m.Seq]; p != nil && p.answer(m, a) {
			delete(l.pending, m.Seq)
			close(p.done)
		}
	case wire.Invoke, wire.Notify, wire.Unsubscribe:
		if !a.Has(wire.AttrObjID) {
			return
		}
		l.mu.Lock()
		o := l.objects[a.ObjID]
		l.mu.Unlock()
		switch {
		case o == nil:
			if m.Type == wire.Invoke {
				l.status(m.Seq, m.Peer, a.ObjID, StatusNotFound)
			}
		case m.Type == wire.Invoke:
			o.invoked(l, m, a)
		case m.Type == wire.Notify && a.Has(wire.AttrActive):
			o.activated(a.Active)
		case m.Type == wire.Unsubscribe && a.Has(wire.AttrTarget):
			o.targetGone(a.Target)
		}
	}
}

// status answers a call without waiting for room in the queue, which the reader
// must not: if ubusd takes nothing, this answer is lost, too.
func (l *link) status(seq uint16, peer, object uint32, s Status) {
	frame, err := statusFrame(seq, peer, object, s)
	if err != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.queued+len(frame) <= maxOut {
		l.enqueue(frame)
	}
}

func statusFrame(seq uint16, peer, object uint32, s Status) ([]byte, error) {
	return frame(&wire.Message{Type: wire.Status, Seq: seq, Peer: peer,
		Body: wire.Body{}.Uint32(wire.AttrStatus, uint32(s)).Uint32(wire.AttrObjID, object)})
}

// frame makes the bytes of a message.
func frame(m *wire.Message) ([]byte, error) {
	if err := fits(m, 0); err != nil {
		return nil, err
	}
	return m.Append(nil)
}

// fits is whether a message is below the limit, with room for what ubusd adds.
func fits(m *wire.Message, room int) error {
	if size := blob.Padded(blob.HeaderLen + len(m.Body)); size > wire.MaxLen-room {
		return &TooLargeError{size, wire.MaxLen - room}
	}
	return nil
}

// send queues a message's bytes; it waits while too much is queued already.
func (l *link) send(ctx context.Context, frame []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.queued > 0 && l.queued+len(frame) > maxOut {
		space := l.space
		l.mu.Unlock()
		err := error(nil)
		select {
		case <-space:
		case <-ctx.Done():
			err = timedOut(ctx)
		case <-l.ctx.Done():
			err = l.lost()
		}
		l.mu.Lock()
		if err != nil {
			return err
		}
	}
	if l.ctx.Err() != nil {
		return l.lost()
	}
	l.enqueue(frame)
	return nil
}

// enqueue hands bytes to the writer. The caller holds the mutex.
func (l *link) enqueue(frame []byte) {
	l.out = append(l.out, frame)
	l.queued += len(frame)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// write sends what is queued until the connection ends.
func (l *link) write() {
	for {
		select {
		case <-l.wake:
		case <-l.ctx.Done():
			return
		}
		l.mu.Lock()
		frames := l.out
		l.out = nil
		l.mu.Unlock()
		for _, f := range frames {
			l.conn.SetWriteDeadline(time.Now().Add(l.c.options.WriteTimeout))
			if _, err := l.conn.Write(f); err != nil {
				l.fail(err)
				return
			}
			l.mu.Lock()
			l.queued -= len(f)
			close(l.space)
			l.space = make(chan struct{})
			l.mu.Unlock()
		}
	}
}

// request sends a request and waits for its last answer. A late answer to one
// that was given up finds nobody; by the time its sequence number comes round
// again, 65535 requests later, it is long there.
func (l *link) request(ctx context.Context, m *wire.Message, room int, answer func(*wire.Message, *wire.Attrs) bool) error {
	if err := fits(m, room); err != nil {
		return err
	}
	p := &pending{answer: answer, done: make(chan struct{})}
	if err := l.start(m, p); err != nil {
		return err
	}
	err := l.await(ctx, m, p)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending[m.Seq] == p {
		// Given up. From here on nothing calls answer any more.
		delete(l.pending, m.Seq)
	}
	return err
}

// start gives a request its sequence number and a place for its answers.
func (l *link) start(m *wire.Message, p *pending) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	seq, ok := l.c.nextSeq(func(s uint16) bool { return l.pending[s] != nil })
	if !ok {
		return fmt.Errorf("65535 requests are under way: %w", StatusNoMemory)
	}
	m.Seq = seq
	l.pending[seq] = p
	return nil
}

func (l *link) await(ctx context.Context, m *wire.Message, p *pending) error {
	f, err := frame(m)
	if err != nil {
		return err
	}
	if err := l.send(ctx, f); err != nil {
		return err
	}
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return timedOut(ctx)
	case <-l.ctx.Done():
		// The answer may have come before the end.
		select {
		case <-p.done:
			return nil
		default:
			return l.lost()
		}
	}
}

// timedOut is the error for a context that ended.
func timedOut(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", StatusTimeout, context.Cause(ctx))
	}
	return context.Cause(ctx)
}
