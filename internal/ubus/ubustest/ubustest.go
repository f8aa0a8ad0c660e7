// SPDX-License-Identifier: Apache-2.0

// Package ubustest is a small ubusd for tests. To its clients it behaves as
// recordings of the real one show, quirks included: random ids, lookups,
// routing of calls and answers, events with their patterns, subscriptions,
// access files, the monitor, the limits, and the silence when the owner of an
// object goes away during a call.
//
// Where it is known to differ: no file descriptors are passed, a LOOKUP is
// answered at once even if the client is behind with reading, access files are
// matched with a client's user and primary group only.
package ubustest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Options say what is not as usual. The zero value is fine.
type Options struct {
	// Socket is where to listen; Start makes one up if it is empty.
	Socket string
	// ACL holds access files, JSON by name. They bind everybody but root.
	ACL map[string]string
	// Identify tells who a client is; nil: whoever the kernel says.
	Identify func(*net.UnixConn) (Credentials, error)
}

// Credentials is who a client is.
type Credentials struct {
	UID, GID    uint32
	User, Group string
}

// Daemon is a ubusd.
type Daemon struct {
	options Options

	mu      sync.Mutex // guards what follows
	bus     *bus       // nil: stopped
	listen  *net.UnixListener
	running sync.WaitGroup
}

// Start starts a daemon that stops when the test ends.
func Start(tb testing.TB, options Options) *Daemon {
	tb.Helper()
	if options.Socket == "" {
		// Not tb.TempDir: with a test's name in it the path may be longer
		// than the 107 bytes that a socket's may have.
		dir, err := os.MkdirTemp("", "ubus")
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { os.RemoveAll(dir) })
		options.Socket = filepath.Join(dir, "ubus.sock")
	}
	d := New(options)
	if err := d.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(d.Stop)
	return d
}

// New makes a daemon that is not started yet.
func New(options Options) *Daemon { return &Daemon{options: options} }

// Socket is where the daemon listens.
func (d *Daemon) Socket() string { return d.options.Socket }

// Start starts the daemon, with an empty bus. A socket that is left from an
// earlier one is replaced.
func (d *Daemon) Start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bus != nil {
		return errors.New("ubustest: started already")
	}
	acl, err := newACL(d.options.ACL)
	if err != nil {
		return err
	}
	if err := os.Remove(d.options.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("ubustest: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: d.options.Socket, Net: "unix"})
	if err != nil {
		return fmt.Errorf("ubustest: %w", err)
	}
	identify := d.options.Identify
	if identify == nil {
		identify = peerCredentials
	}
	d.listen, d.bus = l, newBus(acl)
	d.running.Add(1)
	go func(b *bus) {
		defer d.running.Done()
		for {
			conn, err := l.AcceptUnix()
			if err != nil {
				return
			}
			who, err := identify(conn)
			if err != nil {
				conn.Close()
				continue
			}
			b.connect(conn, who, &d.running)
		}
	}(d.bus)
	return nil
}

// Stop closes every connection and the socket, as the death of ubusd would.
func (d *Daemon) Stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.bus == nil {
		return
	}
	d.listen.Close()
	d.bus.close()
	d.running.Wait()
	d.bus, d.listen = nil, nil
}

// current is the bus of the daemon that runs; nil if none does.
func (d *Daemon) current() *bus {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bus
}

// Objects are the paths of all objects, sorted.
func (d *Daemon) Objects() []string {
	b := d.current()
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var paths []string
	for _, o := range b.paths {
		paths = append(paths, o.path)
	}
	return paths
}

// Clients is how many clients are connected.
func (d *Daemon) Clients() int {
	b := d.current()
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.clients)
}

// WaitObject waits until an object is there, or until it is gone.
func (d *Daemon) WaitObject(ctx context.Context, path string, there bool) error {
	return d.wait(ctx, fmt.Sprintf("object %q (there: %v)", path, there), func(b *bus) bool {
		_, ok := b.findPath(path)
		return ok == there
	})
}

// WaitListener waits until somebody listens to events of exactly that pattern.
func (d *Daemon) WaitListener(ctx context.Context, pattern string) error {
	return d.wait(ctx, fmt.Sprintf("a listener to %q", pattern), func(b *bus) bool {
		for _, l := range b.listeners {
			if l.pattern() == pattern {
				return true
			}
		}
		return false
	})
}

// WaitSubscriber waits until somebody, or nobody, is subscribed to an object.
func (d *Daemon) WaitSubscriber(ctx context.Context, path string, there bool) error {
	return d.wait(ctx, fmt.Sprintf("subscribers of %q (there: %v)", path, there), func(b *bus) bool {
		i, ok := b.findPath(path)
		return ok && (len(b.paths[i].subscribers) > 0) == there
	})
}

// wait waits until something is so. What is asked for may only change with a
// message or a disconnection.
func (d *Daemon) wait(ctx context.Context, what string, so func(*bus) bool) error {
	b := d.current()
	if b == nil {
		return fmt.Errorf("ubustest: wait for %s: stopped", what)
	}
	stop := context.AfterFunc(ctx, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.changed.Broadcast()
	})
	defer stop()
	b.mu.Lock()
	defer b.mu.Unlock()
	for !so(b) {
		if ctx.Err() != nil {
			return fmt.Errorf("ubustest: wait for %s: %w", what, context.Cause(ctx))
		}
		if b.closed {
			return fmt.Errorf("ubustest: wait for %s: stopped", what)
		}
		b.changed.Wait()
	}
	return nil
}

// Disconnect closes the connection of the client that owns an object.
func (d *Daemon) Disconnect(path string) error {
	b := d.current()
	if b == nil {
		return errors.New("ubustest: stopped")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.findPath(path)
	if !ok {
		return fmt.Errorf("ubustest: no object %q", path)
	}
	// The rest happens when its reader notices.
	return b.paths[i].client.conn.Close()
}
