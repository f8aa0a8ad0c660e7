// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// script is a ubusd that does what a test says, once per connection.
func script(t *testing.T, serve func(net.Conn)) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ubus")
	ok(t, err)
	socket = filepath.Join(dir, "s")
	l, err := net.Listen("unix", socket)
	ok(t, err)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				defer conn.Close()
				serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
		os.RemoveAll(dir)
	})
	return socket
}

var hello = []byte{0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 4}

func TestNoHello(t *testing.T) {
	for name, says := range map[string][]byte{
		"nothing":     {},
		"half":        hello[:7],
		"a PING":      {0, 3, 0, 0, 0, 0, 4, 0, 0, 0, 0, 4},
		"version 1":   {1, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 4},
		"small id":    {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 4},
		"bad length":  {0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 3},
		"HTTP":        []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"huge length": {0, 0, 0, 0, 0, 0, 4, 0, 0, 0xff, 0xff, 0xff},
	} {
		t.Run(name, func(t *testing.T) {
			socket := script(t, func(c net.Conn) { c.Write(says) })
			if c, err := Dial(within(t), Options{Socket: socket}); err == nil {
				c.Close()
				t.Error("accepted")
			}
		})
	}
	t.Run("silence", func(t *testing.T) {
		socket := script(t, func(c net.Conn) { io.Copy(io.Discard, c) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := Dial(ctx, Options{Socket: socket}); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// TestBadStream gets, after a good HELLO, what no ubusd sends. The client comes
// again.
func TestBadStream(t *testing.T) {
	for name, says := range map[string][]byte{
		"version 1":  {1, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 4},
		"bad length": {0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0},
		"too long":   {0, 1, 0, 1, 0, 0, 0, 0, 0, 0x20, 0, 0},
		"cut off":    {0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			connections := make(chan bool, 100)
			socket := script(t, func(c net.Conn) {
				connections <- true
				c.Write(append(bytes.Clone(hello), says...))
				if name != "cut off" {
					io.Copy(io.Discard, c)
				}
			})
			options := quick
			options.Socket = socket
			c := New(options)
			defer shut(t, c)
			receive(t, connections)
			receive(t, connections)
		})
	}
}

// TestUnexpected sends messages that fit nothing. They do no harm.
func TestUnexpected(t *testing.T) {
	socket := script(t, func(c net.Conn) {
		out := bytes.Clone(hello)
		for _, m := range []wire.Message{
			{Type: wire.Hello, Peer: 2000},
			{Type: wire.Status, Seq: 77},
			{Type: wire.Status, Seq: 1, Peer: 5},
			{Type: wire.Data, Seq: 1, Peer: 5},
			{Type: wire.Invoke},
			{Type: wire.Invoke, Body: wire.Body{}.Uint32(wire.AttrObjID, 4711)},
			{Type: wire.Notify, Body: wire.Body{}.Uint32(wire.AttrObjID, 4711).Bool(wire.AttrActive, true)},
			{Type: wire.Unsubscribe, Body: wire.Body{}.Uint32(wire.AttrObjID, 4711).Uint32(wire.AttrTarget, 1)},
			{Type: wire.Monitor},
			{Type: 99},
		} {
			out, _ = m.Append(out)
		}
		c.Write(out)
		for {
			m, err := wire.Read(c, wire.MaxLen)
			if err != nil {
				return
			}
			if m.Type == wire.Ping {
				answer := wire.Message{Type: wire.Status, Seq: m.Seq, Body: wire.Body{}.Uint32(wire.AttrStatus, 0)}
				b, _ := answer.Append(nil)
				c.Write(b)
			}
		}
	})
	c, err := Dial(within(t), Options{Socket: socket})
	ok(t, err)
	defer shut(t, c)
	for range 10 {
		ok(t, c.Ping(within(t)))
	}
}

// deaf is a client of a ubusd that reads nothing after its HELLO.
func deaf(t *testing.T, options Options) (c *Client, l *link, connections chan bool) {
	t.Helper()
	connections = make(chan bool, 10)
	release := make(chan bool)
	options.Socket = script(t, func(c net.Conn) {
		connections <- true
		c.Write(hello)
		<-release
	})
	t.Cleanup(func() { close(release) })
	c, err := Dial(within(t), options)
	ok(t, err)
	t.Cleanup(func() { shut(t, c) })
	receive(t, connections)
	l, err = c.connected()
	ok(t, err)
	return c, l, connections
}

// TestUbusdDoesNotRead fills what lies between the client and a ubusd that
// takes nothing: requests end by their contexts, and nothing grows for ever.
func TestUbusdDoesNotRead(t *testing.T) {
	options := quick
	options.WriteTimeout = time.Hour
	c, l, _ := deaf(t, options)
	big := table("v", strings.Repeat("x", 900<<10))
	full := false
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		_, err := c.Invoke(ctx, 4711, "x", big)
		cancel()
		if !errors.Is(err, StatusTimeout) {
			t.Fatalf("got %v", err)
		}
		l.mu.Lock()
		full = full || l.queued > 3<<20
		if l.queued > maxOut {
			t.Errorf("%d bytes are queued", l.queued)
		}
		l.mu.Unlock()
	}
	if !full {
		t.Error("the queue was never full")
	}
	if len(l.pending) > 0 {
		t.Errorf("%d requests that were given up are kept", len(l.pending))
	}
}

// TestWriteTimeout gives such a ubusd up, and tries again.
func TestWriteTimeout(t *testing.T) {
	options := quick
	options.WriteTimeout = 20 * time.Millisecond
	c, l, connections := deaf(t, options)
	_, err := c.Invoke(within(t), 4711, "x", table("v", strings.Repeat("x", 900<<10)))
	if !errors.Is(err, ErrConnectionLost) || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	<-l.ctx.Done()
	receive(t, connections)
}

// TestUbusdDoesNotAnswer registers with a ubusd that is silent after its HELLO:
// the client tries a new connection.
func TestUbusdDoesNotAnswer(t *testing.T) {
	connections := make(chan bool, 10)
	socket := script(t, func(c net.Conn) {
		connections <- true
		c.Write(hello)
		io.Copy(io.Discard, c)
	})
	options := quick
	options.Socket, options.CallTimeout = socket, 10*time.Millisecond
	c := New(options)
	defer shut(t, c)
	_, err := c.Register(method("test", "x", echo))
	ok(t, err)
	receive(t, connections)
	receive(t, connections)
}
