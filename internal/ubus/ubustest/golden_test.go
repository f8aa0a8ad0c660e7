// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ubus/internal/golden"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

func TestRecordedTraces(t *testing.T) { testTraces(t, golden.Recorded(t)) }
func TestKeptTraces(t *testing.T)     { testTraces(t, golden.Kept(t)) }

func testTraces(t *testing.T, dir string) {
	for _, path := range golden.Traces(t, dir) {
		trace := golden.Load(t, path)
		t.Run(trace.Name, func(t *testing.T) { replay(t, trace) })
	}
}

// notRoot are the recorded clients that were not root, in the scenarios in
// which some were not. The traces do not tell.
var notRoot = map[string][]int{
	"acl-none": {2, 3, 4, 5},
	"acl-user": {4, 5, 6, 7, 8, 9, 10, 11},
}

// player plays the clients of a trace against the daemon.
type player struct {
	t     *testing.T
	d     *Daemon
	conns map[string]*playedConn
	ids   map[string]uint32 // the daemon's, by the names in the trace
}

type playedConn struct {
	*net.UnixConn
	id      uint32
	pending []byte // sent, and not yet known to be whole messages
	whole   int64  // bytes in whole messages
}

// replay sends what the clients of a trace sent, in that order, and compares
// every byte that the daemon sends to them.
func replay(t *testing.T, trace *golden.Trace) {
	accepted := 0
	p := &player{t: t, conns: map[string]*playedConn{}, ids: map[string]uint32{}}
	acl := map[string]string{}
	for name, text := range trace.ACL {
		acl[name] = string(text)
	}
	p.d = Start(t, Options{ACL: acl, Identify: func(*net.UnixConn) (Credentials, error) {
		accepted++
		if slices.Contains(notRoot[trace.Name], accepted) {
			return Credentials{UID: 65534, GID: 65534, User: "nobody", Group: "nogroup"}, nil
		}
		return Credentials{User: "root", Group: "root"}, nil
	}})
	restarts := slices.ContainsFunc(trace.Steps, isRestart)
	for i, s := range trace.Steps {
		c := p.conns[s.Conn]
		switch {
		case isRestart(s):
			if err := p.d.Start(); err != nil {
				t.Fatal(err)
			}
		case s.Conn == "":
		case s.Connect:
			p.connect(s.Conn)
		case s.Close && s.FromClient:
			p.leave(i, c)
		case s.Close:
			if restarts {
				p.d.Stop()
			}
			if header := refused(t, trace, s.Conn); header != nil {
				p.send(i, c, golden.Step{Bytes: header})
			}
			c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if n, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
				t.Fatalf("step %d: the connection is not closed: %d bytes, %v", i, n, err)
			}
		case s.FromClient:
			p.send(i, c, s)
		default:
			p.expect(i, c, s)
		}
	}
}

// refused is the header of a message that was never recorded as one, because
// ubusd did not take it: a remark has it.
func refused(t *testing.T, trace *golden.Trace, conn string) []byte {
	for _, s := range trace.Steps {
		if text, ok := strings.CutPrefix(s.Comment, conn+" sent "); ok && strings.HasSuffix(text, "connection closed") {
			text, _, _ = strings.Cut(text, " ")
			return golden.Expand(t, text)
		}
	}
	return nil
}

func isRestart(s golden.Step) bool { return strings.Contains(s.Comment, "started again") }

func (p *player) connect(name string) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: p.d.Socket(), Net: "unix"})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { conn.Close() })
	c := &playedConn{UnixConn: conn}
	p.conns[name] = c
	// The HELLO is compared in its turn; here it is waited for, because only
	// one that has arrived is in the daemon's order.
	var h [12]byte
	p.peek(c, h[:])
	c.id = binary.BigEndian.Uint32(h[4:])
}

// peek waits for bytes without taking them.
func (p *player) peek(c *playedConn, into []byte) {
	raw, err := c.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	err = raw.Read(func(fd uintptr) bool {
		n, _, err := unix.Recvfrom(int(fd), into, unix.MSG_PEEK)
		return n == len(into) || err != nil && !errors.Is(err, unix.EAGAIN)
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

// leave closes a connection, on which nothing may be left, and waits until the
// daemon has noticed.
func (p *player) leave(step int, c *playedConn) {
	raw, err := c.SyscallConn()
	if err != nil {
		p.t.Fatal(err)
	}
	var left [256]byte
	var n int
	raw.Control(func(fd uintptr) {
		n, _, _ = unix.Recvfrom(int(fd), left[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	if n > 0 {
		p.t.Fatalf("step %d: more than was recorded: %x", step, left[:n])
	}
	c.Close()
	p.wait(func(b *bus) bool { return b.clients[c.id] == nil })
}

func (p *player) wait(so func(*bus) bool) {
	if err := p.d.wait(p.t.Context(), "the daemon", so); err != nil {
		p.t.Fatal(err)
	}
}

// send sends recorded bytes with the daemon's ids in them, and waits until it
// has handled what is whole.
func (p *player) send(step int, c *playedConn, s golden.Step) {
	out := s.Mask(func(name string, old uint32) uint32 {
		id, ok := p.ids[name]
		if !ok {
			p.t.Fatalf("step %d: no id is known for %s", step, name)
		}
		return id
	})
	// The daemon may close before all is written.
	if _, err := c.Write(out); err != nil && !errors.Is(err, unix.EPIPE) && !errors.Is(err, unix.ECONNRESET) {
		p.t.Fatal(err)
	}
	c.pending = append(c.pending, out...)
	for {
		r := bytes.NewReader(c.pending)
		if _, err := wire.Read(r, wire.MaxLen); err != nil {
			break
		}
		size := len(c.pending) - r.Len()
		c.pending = c.pending[size:]
		c.whole += int64(size)
	}
	p.wait(func(b *bus) bool {
		cl := b.clients[c.id]
		return cl == nil || cl.read >= c.whole
	})
}

// expect compares what the daemon sends with the recording, ids apart: the same
// name must stand for the same id everywhere, and another for another.
func (p *player) expect(step int, c *playedConn, s golden.Step) {
	got := make([]byte, len(s.Bytes))
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, err := io.ReadFull(c, got); err != nil {
		p.t.Fatalf("step %d: want %s: got %x, %v", step, s.Note, got[:n], err)
	}
	want := s.Mask(func(string, uint32) uint32 { return 0 })
	masked := bytes.Clone(got)
	for _, place := range s.IDs {
		id := binary.BigEndian.Uint32(got[place.Offset:])
		binary.BigEndian.PutUint32(masked[place.Offset:], 0)
		known, ok := p.ids[place.Name]
		if !ok {
			for other, o := range p.ids {
				if o == id && other[0] == place.Name[0] {
					p.t.Fatalf("step %d: %s has the id of %s", step, place.Name, other)
				}
			}
			if id < wire.FirstID {
				p.t.Fatalf("step %d: %s is %d", step, place.Name, id)
			}
			p.ids[place.Name] = id
		} else if known != id {
			p.t.Fatalf("step %d: %s is %#x, was %#x", step, place.Name, id, known)
		}
	}
	if !bytes.Equal(masked, want) {
		p.t.Fatalf("step %d: %s\n got %.400x\nwant %.400x", step, s.Note, masked, want)
	}
}
