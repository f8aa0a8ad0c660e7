// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// DefaultSocket is where ubusd listens on OpenWrt.
const DefaultSocket = "/var/run/ubus/ubus.sock"

// Options say how a client behaves. The zero value is fine for OpenWrt.
type Options struct {
	// Socket is ubusd's socket; empty: DefaultSocket.
	Socket string
	// Log gets a line for each connection made and lost, and for what ubusd
	// refuses; nil: nothing is logged.
	Log *slog.Logger
	// CallTimeout ends requests whose context has no deadline; 0: 30 s.
	CallTimeout time.Duration
	// RetryMin and RetryMax are the shortest and the longest pause between
	// attempts to connect, or to register what was refused; 0: 100 ms, 10 s.
	RetryMin, RetryMax time.Duration
	// WriteTimeout gives up a ubusd that does not take a message; 0: 10 s.
	WriteTimeout time.Duration
	// MaxCalls is how many calls of objects run at a time; 0: 128. More are
	// answered with StatusNoMemory.
	MaxCalls int
	// MaxQueue is how many events or notifications wait for one handler; 0:
	// 1024. More are dropped.
	MaxQueue int
}

func (o Options) withDefaults() Options {
	if o.Socket == "" {
		o.Socket = DefaultSocket
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&o.CallTimeout, 30*time.Second)
	def(&o.RetryMin, 100*time.Millisecond)
	def(&o.RetryMax, 10*time.Second)
	def(&o.WriteTimeout, 10*time.Second)
	if o.MaxCalls <= 0 {
		o.MaxCalls = 128
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = 1024
	}
	return o
}

// Client is a connection to ubusd that is made again whenever it is lost. All
// methods may be used concurrently.
type Client struct {
	options Options
	log     *slog.Logger
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc

	mu      sync.Mutex
	link    *link         // nil: not connected
	changed chan struct{} // closed, and made anew, when what is waited for may have changed
	dialErr error         // of the last attempt, while not connected
	seq     uint16        // of the last request; it goes on over reconnections
	entries []*entry      // what is to be registered, in that order
	full    bool          // whether the last call found no place to run

	calls    chan struct{}  // a place for each call that runs
	workers  sync.WaitGroup // goroutines of the package's own
	handlers sync.WaitGroup // goroutines that run handlers
}

// New makes a client that connects in the background.
func New(options Options) *Client {
	c := newClient(options)
	c.workers.Go(func() { c.run(nil) })
	return c
}

// Dial makes a client that is connected; if that fails, there is none. It
// reconnects as one that New made.
func Dial(ctx context.Context, options Options) (*Client, error) {
	c := newClient(options)
	l, err := c.dial(ctx)
	if err != nil {
		c.cancel()
		return nil, err
	}
	c.attach(l)
	c.workers.Go(func() { c.run(l) })
	return c, nil
}

func newClient(options Options) *Client {
	c := &Client{options: options.withDefaults(), changed: make(chan struct{})}
	c.log = c.options.Log
	c.calls = make(chan struct{}, c.options.MaxCalls)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// run keeps the client connected until it is closed.
func (c *Client) run(l *link) {
	retry := backoff{min: c.options.RetryMin, max: c.options.RetryMax}
	for c.ctx.Err() == nil {
		if l == nil {
			var err error
			if l, err = c.dial(c.ctx); err != nil {
				c.dialFailed(err)
				retry.sleep(c.ctx)
				continue
			}
			c.attach(l)
		}
		since := time.Now()
		l.stopped.Go(func() { c.registrar(l) })
		<-l.ctx.Done()
		c.detach(l)
		l = nil
		// A connection that does not last is no reason to hurry.
		if time.Since(since) > c.options.RetryMax {
			retry.reset()
		}
		retry.sleep(c.ctx)
	}
}

func (c *Client) dialFailed(err error) {
	c.mu.Lock()
	first := c.dialErr == nil
	c.dialErr = err
	c.broadcast()
	c.mu.Unlock()
	if first && c.ctx.Err() == nil {
		c.log.Warn("no connection to ubusd", "socket", c.options.Socket, "error", err)
	}
}

func (c *Client) attach(l *link) {
	c.mu.Lock()
	c.link, c.dialErr = l, nil
	c.broadcast()
	c.mu.Unlock()
	c.log.Info("connected to ubusd", "socket", c.options.Socket, "id", fmt.Sprintf("%08x", l.id))
}

func (c *Client) detach(l *link) {
	l.stopped.Wait()
	c.mu.Lock()
	c.link = nil
	entries := slices.Clone(c.entries)
	for _, e := range entries {
		e.reset()
	}
	c.broadcast()
	c.mu.Unlock()
	for _, e := range entries {
		e.owner.disconnected()
	}
	if c.ctx.Err() == nil {
		c.log.Warn("connection to ubusd lost", "error", context.Cause(l.ctx))
	}
}

// broadcast wakes all that wait for a change. The caller holds the mutex.
func (c *Client) broadcast() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Close ends the connection, and with it everything registered. It does not
// wait for handlers, whose contexts end; Wait does. It may be called at any
// time, also from a handler.
func (c *Client) Close() error {
	c.cancel()
	c.workers.Wait()
	return nil
}

// Wait waits for the last handler after Close.
func (c *Client) Wait() {
	<-c.ctx.Done()
	c.workers.Wait()
	c.handlers.Wait()
}

// WaitConnected waits for a connection. If the context ends before, the error
// tells why the last attempt failed, too.
func (c *Client) WaitConnected(ctx context.Context) error {
	for {
		c.mu.Lock()
		l, changed, dialErr := c.link, c.changed, c.dialErr
		c.mu.Unlock()
		if l != nil && l.ctx.Err() == nil {
			return nil
		}
		select {
		case <-changed:
		case <-c.ctx.Done():
			return ErrClosed
		case <-ctx.Done():
			if dialErr != nil {
				return fmt.Errorf("%w: %w", context.Cause(ctx), dialErr)
			}
			return context.Cause(ctx)
		}
	}
}

// ID is the client's id on the bus; 0 while it is not connected.
func (c *Client) ID() uint32 {
	if l, err := c.connected(); err == nil {
		return l.id
	}
	return 0
}

// connected is the connection there is.
func (c *Client) connected() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, ErrClosed
	}
	if c.link == nil || c.link.ctx.Err() != nil {
		return nil, ErrNotConnected
	}
	return c.link, nil
}

// nextSeq is a sequence number for which the function has no other use.
func (c *Client) nextSeq(taken func(uint16) bool) (uint16, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range 1 << 16 {
		// 0 is the HELLO's.
		if c.seq++; c.seq != 0 && !taken(c.seq) {
			return c.seq, true
		}
	}
	return 0, false
}

// backoff doubles the pause between attempts.
type backoff struct{ min, max, pause time.Duration }

func (b *backoff) reset() { b.pause = 0 }

// next is the pause before the next attempt. It is spread a little so that the
// programs on a router do not all come at once when ubusd is back.
func (b *backoff) next() time.Duration {
	b.pause = min(max(2*b.pause, b.min), b.max)
	return b.pause - rand.N(b.pause/4+1)
}

func (b *backoff) sleep(ctx context.Context) {
	t := time.NewTimer(b.next())
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
