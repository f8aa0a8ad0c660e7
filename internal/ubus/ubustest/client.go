// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"bufio"
	"fmt"
	"net"
	"os/user"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// maxQueue is what waits for a client that does not read, in bytes. Messages
// beyond are dropped without a word; the connection stays.
const maxQueue = wire.MaxLen

// client is a connection.
type client struct {
	Credentials
	id   uint32
	conn *net.UnixConn
	// objects are the client's, the newest first.
	objects []*object
	// read counts the bytes of the messages that have been handled.
	read int64

	queue  [][]byte // guarded by the bus's mutex; the head may be on its way
	queued int
	wake   chan struct{}
}

// connect takes a connection over: it says HELLO and serves.
func (b *bus) connect(conn *net.UnixConn, who Credentials, running *sync.WaitGroup) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		conn.Close()
		return
	}
	cl := &client{Credentials: who, conn: conn, wake: make(chan struct{}, 1)}
	cl.id = b.newID(func(id uint32) bool { return b.clients[id] != nil })
	b.clients[cl.id] = cl
	b.send(cl, &wire.Message{Type: wire.Hello, Peer: cl.id})
	gone := make(chan struct{})
	running.Add(2)
	go func() {
		defer running.Done()
		b.serve(cl)
		close(gone)
	}()
	go func() {
		defer running.Done()
		b.flush(cl, gone)
	}()
}

// serve handles a client's messages until it goes, or sends what ubusd does not
// accept.
func (b *bus) serve(cl *client) {
	defer cl.conn.Close()
	r := bufio.NewReader(cl.conn)
	for {
		m, err := wire.Read(r, wire.MaxLen)
		b.mu.Lock()
		if err != nil || b.closed {
			b.disconnect(cl)
			b.mu.Unlock()
			return
		}
		// The size before the message is handled: a handler may change it.
		size := int64(12 + len(m.Body))
		b.monitor(cl, m, false)
		b.handle(cl, m)
		cl.read += size
		b.changed.Broadcast()
		b.mu.Unlock()
	}
}

// send sends a message, or as much of it as the socket takes now; the rest
// waits in the queue.
func (b *bus) send(cl *client, m *wire.Message) {
	if m.Type != wire.Monitor {
		b.monitor(cl, m, true)
	}
	frame, err := m.Append(nil)
	if err != nil {
		// Longer by the caller's name than what the caller sent. The real one
		// sends it, and libubus loses its place in the stream.
		return
	}
	if len(cl.queue) == 0 {
		n := tryWrite(cl.conn, frame)
		if n == len(frame) {
			return
		}
		cl.enqueue(frame[n:])
		return
	}
	if cl.queued+len(frame) <= maxQueue {
		cl.enqueue(frame)
	}
}

func (cl *client) enqueue(bytes []byte) {
	cl.queue = append(cl.queue, bytes)
	cl.queued += len(bytes)
	select {
	case cl.wake <- struct{}{}:
	default:
	}
}

// tryWrite writes what the socket takes without waiting.
func tryWrite(conn *net.UnixConn, p []byte) (n int) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	err = raw.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), p)
		return true
	})
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// flush writes what waits in the queue.
func (b *bus) flush(cl *client, gone <-chan struct{}) {
	for {
		select {
		case <-cl.wake:
		case <-gone:
			return
		}
		for {
			b.mu.Lock()
			if len(cl.queue) == 0 {
				b.mu.Unlock()
				break
			}
			head := cl.queue[0]
			b.mu.Unlock()
			if _, err := cl.conn.Write(head); err != nil {
				cl.conn.Close()
				return
			}
			b.mu.Lock()
			cl.queue = cl.queue[1:]
			cl.queued -= len(head)
			b.mu.Unlock()
		}
	}
}

// disconnect removes a client and all that it had.
func (b *bus) disconnect(cl *client) {
	b.monitors = without(b.monitors, func(m *monitor) bool { return m.client == cl })
	for len(cl.objects) > 0 {
		b.free(cl.objects[0])
	}
	delete(b.clients, cl.id)
	b.changed.Broadcast()
}

// peerCredentials asks the kernel who is at the other end.
func peerCredentials(conn *net.UnixConn) (Credentials, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return Credentials{}, err
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err == nil {
		err = credErr
	}
	if err != nil {
		return Credentials{}, fmt.Errorf("who is the client: %w", err)
	}
	who := Credentials{UID: cred.Uid, GID: cred.Gid}
	who.User, who.Group = strconv.Itoa(int(cred.Uid)), strconv.Itoa(int(cred.Gid))
	if u, err := user.LookupId(who.User); err == nil {
		who.User = u.Username
	}
	if g, err := user.LookupGroupId(who.Group); err == nil {
		who.Group = g.Name
	}
	return who, nil
}
