// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"
)

// Transfer is a TCP connection that moves data while others watch.
type Transfer struct {
	conn net.Conn
	o    TCPOptions
	stop chan struct{}
	once sync.Once
	done chan struct{} // closed when result and err are final

	mu       sync.Mutex
	up, down int64
	moved    chan struct{} // closed and replaced when bytes moved

	result TCPResult
	err    error
}

// Transfer connects to a TCPServer's address and starts to move data. When
// ctx ends, the connection is broken off.
func (ns *NS) Transfer(ctx context.Context, address string, o TCPOptions) (*Transfer, error) {
	if o.Direction == 0 {
		o.Direction = Up
	}
	conn, err := ns.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("transfer from %s: %w", ns, err)
	}
	t := &Transfer{conn: conn, o: o, stop: make(chan struct{}), done: make(chan struct{}), moved: make(chan struct{})}
	ns.Track(t)
	go func() {
		defer close(t.done)
		defer ns.Untrack(t)
		t.run(ctx)
		if t.err != nil {
			t.err = fmt.Errorf("transfer from %s to %s: %w", ns, address, t.err)
		}
	}()
	return t, nil
}

// Transfer starts a transfer from the host.
func (h *Host) Transfer(ctx context.Context, address string, o TCPOptions) (*Transfer, error) {
	return h.NS.Transfer(ctx, address, o)
}

// TCPSend transfers and waits for the end.
func (ns *NS) TCPSend(ctx context.Context, address string, o TCPOptions) (TCPResult, error) {
	t, err := ns.Transfer(ctx, address, o)
	if err != nil {
		return TCPResult{}, err
	}
	return t.Wait()
}

func (t *Transfer) run(ctx context.Context) {
	defer t.conn.Close()
	broken := context.AfterFunc(ctx, func() { t.conn.SetDeadline(time.Unix(1, 0)) })
	defer broken()
	if t.o.Duration > 0 {
		timer := time.AfterFunc(t.o.Duration, t.Stop)
		defer timer.Stop()
	}
	start := time.Now()
	var head [tcpHeader]byte
	head[0] = byte(t.o.Direction)
	binary.BigEndian.PutUint64(head[1:], uint64(t.o.Bytes))
	if _, err := t.conn.Write(head[:]); err != nil {
		t.err = t.cause(ctx, fmt.Errorf("send: %w", err))
		return
	}
	received := make(chan error, 1)
	var down int64
	go func() {
		n, err := receiveStream(t.conn, t.progress(&t.down))
		down = n
		if err != nil {
			t.Stop() // nothing is left to send for
		}
		received <- err
	}()
	up, err := t.send()
	if err != nil {
		t.conn.Close()
		<-received
		t.err = t.cause(ctx, err)
		return
	}
	if err := <-received; err != nil {
		t.err = t.cause(ctx, err)
		return
	}
	t.result = TCPResult{Up: up, Down: down, Elapsed: time.Since(start)}
}

// send is the client's sending side. Its trailer also tells the server to
// stop, so without upward data it comes when the transfer shall end.
func (t *Transfer) send() (int64, error) {
	var sent int64
	var sum uint32
	if t.o.Direction&Up != 0 {
		var err error
		if sent, sum, err = sendChunks(t.conn, t.o.Bytes, t.stop, t.progress(&t.up)); err != nil {
			return sent, err
		}
	} else if t.o.Bytes == 0 {
		<-t.stop
	}
	return sent, sendTrailer(t.conn, sent, sum)
}

func (t *Transfer) cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (t *Transfer) progress(counter *int64) func(int) {
	return func(n int) {
		t.mu.Lock()
		defer t.mu.Unlock()
		*counter += int64(n)
		close(t.moved)
		t.moved = make(chan struct{})
	}
}

// Progress returns the bytes that this end has handed to and got from its
// socket so far.
func (t *Transfer) Progress() (up, down int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.up, t.down
}

// WaitProgress waits until n more bytes have moved, both directions together.
// It fails when the transfer ends before.
func (t *Transfer) WaitProgress(ctx context.Context, n int64) error {
	up, down := t.Progress()
	target := up + down + n
	for {
		t.mu.Lock()
		now, moved := t.up+t.down, t.moved
		t.mu.Unlock()
		if now >= target {
			return nil
		}
		select {
		case <-moved:
		case <-t.done:
			if t.err != nil {
				return t.err
			}
			return fmt.Errorf("transfer ended %d bytes early", target-now)
		case <-ctx.Done():
			return fmt.Errorf("transfer stands still, %d bytes short: %w", target-now, context.Cause(ctx))
		}
	}
}

// Stop ends an unlimited transfer in good order: both sides finish and check.
func (t *Transfer) Stop() { t.once.Do(func() { close(t.stop) }) }

// Done is closed when the transfer has ended.
func (t *Transfer) Done() <-chan struct{} { return t.done }

// Wait waits for the end and returns the result; ctx of Transfer bounds it.
func (t *Transfer) Wait() (TCPResult, error) {
	<-t.done
	return t.result, t.err
}

// Close breaks the connection off.
func (t *Transfer) Close() error {
	t.Stop()
	err := t.conn.Close()
	<-t.done
	_ = err // it may be closed already
	return nil
}
