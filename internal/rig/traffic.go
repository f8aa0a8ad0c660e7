// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// Bulk is a bulk transfer over TCP that goes on until it is closed. Sender and
// receiver do as little as possible: the data is neither made nor looked at.
type Bulk struct {
	received atomic.Uint64
	conns    []*os.File // blocking, both ends of each stream
	wg       sync.WaitGroup
}

// Bulk starts to send over a number of streams from one host to another.
func (n *Network) Bulk(ctx context.Context, from, to *Host, streams int) (*Bulk, error) {
	b := &Bulk{}
	for range streams {
		near, far, err := connection(ctx, from, to)
		if err != nil {
			return nil, errors.Join(err, b.Close())
		}
		b.conns = append(b.conns, near, far)
		chunk, sink := make([]byte, 256<<10), make([]byte, 256<<10)
		n.endpointThread(&b.wg, func() bool {
			err := unix.Send(int(near.Fd()), chunk, unix.MSG_NOSIGNAL)
			return err == nil || errors.Is(err, unix.EINTR)
		})
		n.endpointThread(&b.wg, func() bool {
			// MSG_TRUNC: taken from the queue, not copied.
			got, _, err := unix.Recvfrom(int(far.Fd()), sink, unix.MSG_TRUNC)
			b.received.Add(uint64(max(got, 0)))
			return got > 0 || errors.Is(err, unix.EINTR)
		})
	}
	return b, nil
}

// endpointThread repeats f on a thread of the hosts' core while it returns
// true.
func (n *Network) endpointThread(wg *sync.WaitGroup, f func() bool) {
	wg.Go(func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its pinning
		if n.PinEndpoint() != nil {
			return // seen as a stream that stands still
		}
		for f() {
		}
	})
}

// Received returns how many bytes have arrived so far, all streams together.
func (b *Bulk) Received() uint64 { return b.received.Load() }

// Close ends the transfer.
func (b *Bulk) Close() error { return closeConnections(&b.wg, b.conns) }

// closeConnections wakes threads that wait in blocking calls and closes.
func closeConnections(wg *sync.WaitGroup, conns []*os.File) error {
	for _, c := range conns {
		_ = unix.Shutdown(int(c.Fd()), unix.SHUT_RDWR) // it may be broken already
	}
	wg.Wait()
	var errs []error
	for _, c := range conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// connection makes a TCP connection and returns both ends, for blocking calls.
func connection(ctx context.Context, from, to *Host) (near, far *os.File, err error) {
	l, err := to.NS.Listen(ctx, "tcp", net.JoinHostPort(to.IP.String(), "0"))
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	dialled := make(chan error, 1)
	var c net.Conn
	go func() {
		var err error
		c, err = from.NS.DialContext(ctx, "tcp", l.Addr().String())
		dialled <- err
	}()
	s, err := l.Accept()
	if derr := <-dialled; derr != nil {
		if s != nil {
			s.Close()
		}
		return nil, nil, fmt.Errorf("connect: %w", derr)
	}
	if err != nil {
		c.Close()
		return nil, nil, fmt.Errorf("connect: %w", err)
	}
	if near, err = blocking(c); err != nil {
		s.Close()
		return nil, nil, err
	}
	if far, err = blocking(s); err != nil {
		near.Close()
		return nil, nil, err
	}
	return near, far, nil
}

// blocking takes a connection away from the runtime's poller.
func blocking(c net.Conn) (*os.File, error) {
	defer c.Close()
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("%T: expected a TCP connection", c)
	}
	file, err := tcp.File()
	if err != nil {
		return nil, err
	}
	file.Fd() // sets it to blocking
	return file, nil
}

// Exchange is a TCP connection for requests of a byte with answers of a byte.
type Exchange struct {
	n         *Network
	near, far *os.File
	wg        sync.WaitGroup
}

// Exchange connects a client with a server that answers.
func (n *Network) Exchange(ctx context.Context, client, server *Host) (*Exchange, error) {
	near, far, err := connection(ctx, client, server)
	if err != nil {
		return nil, err
	}
	x := &Exchange{n: n, near: near, far: far}
	var b [1]byte
	n.endpointThread(&x.wg, func() bool {
		got, err := unix.Read(int(far.Fd()), b[:])
		if err == nil && got == 1 {
			err = unix.Send(int(far.Fd()), b[:], unix.MSG_NOSIGNAL)
		}
		return err == nil && got == 1 || errors.Is(err, unix.EINTR)
	})
	return x, nil
}

// RoundTrips asks again and again for a time and returns how long each answer
// took, in microseconds.
func (x *Exchange) RoundTrips(d time.Duration) (us []float64, err error) {
	var wg sync.WaitGroup
	end := time.Now().Add(d)
	var b [1]byte
	x.n.endpointThread(&wg, func() bool {
		began := time.Now()
		if err = unix.Send(int(x.near.Fd()), b[:], unix.MSG_NOSIGNAL); err != nil {
			return false
		}
		var got int
		if got, err = unix.Read(int(x.near.Fd()), b[:]); err != nil || got != 1 {
			return false
		}
		now := time.Now()
		us = append(us, float64(now.Sub(began).Nanoseconds())/1000)
		return now.Before(end)
	})
	wg.Wait()
	if err != nil {
		return us, fmt.Errorf("round trip: %w", err)
	}
	if len(us) == 0 {
		return us, errors.New("no round trip")
	}
	return us, nil
}

// Close ends the exchange.
func (x *Exchange) Close() error { return closeConnections(&x.wg, []*os.File{x.near, x.far}) }

// Paced sends small UDP frames at a steady rate until it is closed.
type Paced struct {
	sent   atomic.Uint64
	to     *Host
	sender *netns.Sender
	stop   chan struct{}
	wg     sync.WaitGroup
}

// Paced starts to send frames of 60 bytes, every millisecond some. The
// receiving host's kernel drops them, since they have another's IP address.
func (n *Network) Paced(from, to *Host, perSecond int) (*Paced, error) {
	sender, err := from.NS.Sender(from.Dev)
	if err != nil {
		return nil, err
	}
	p := &Paced{to: to, sender: sender, stop: make(chan struct{})}
	frame := ether.UDP(ether.UDPSpec{Dst: to.MAC, Src: from.MAC, DstIP: farIP.Next(), SrcIP: from.IP, DstPort: discardPort, SrcPort: 40000})
	frames := make([][]byte, max(perSecond/1000, 1))
	for i := range frames {
		frames[i] = frame
	}
	tick := time.NewTicker(time.Millisecond)
	n.endpointThread(&p.wg, func() bool {
		select {
		case <-tick.C:
		case <-p.stop:
			tick.Stop()
			return false
		}
		sent, err := sender.SendAll(frames)
		p.sent.Add(uint64(sent))
		return err == nil
	})
	return p, nil
}

// Counts returns how many frames were sent so far, and how many arrived.
func (p *Paced) Counts() (sent, received uint64, err error) {
	sent = p.sent.Load()
	link, err := p.to.NS.Link(p.to.Dev)
	if err != nil {
		return 0, 0, err
	}
	if s := link.Attrs().Statistics; s != nil {
		received = s.RxPackets
	}
	return sent, received, nil
}

// Close ends the sending.
func (p *Paced) Close() error {
	close(p.stop)
	p.wg.Wait()
	return p.sender.Close()
}
