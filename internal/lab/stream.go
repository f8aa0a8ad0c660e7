// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// StreamOptions describe a stream of numbered frames.
type StreamOptions struct {
	Frames int // 0 means until Stop
	Length int // of each frame in bytes without check sequence; 0 means MinFrame
	// Window is the number of frames on their way at most; 0 means 64. It
	// bounds the load and keeps queues from overflowing on a slow machine,
	// where a lost frame would mean nothing.
	Window int
	// Rate in frames a second; 0 means as fast as the window allows.
	Rate int
	// Stall is how long nothing may arrive until the frames on their way
	// count as lost and sending goes on; 0 means 500 ms.
	Stall time.Duration
	// Wrap changes each frame before it is sent, to tag it for example.
	Wrap func([]byte) []byte
	// V6 sends over IPv6.
	V6 bool
}

// StreamStats are the counts of a stream.
type StreamStats struct {
	Sent       int
	Received   int // different frames that arrived
	Duplicated int // copies of them on the device where they had arrived
	Elsewhere  int // copies of them on another device of the host
	Reordered  int // frames that arrived after one with a higher number
	Corrupt    int // frames whose UDP header or data had changed
}

// Lost is the number of frames that never arrived.
func (s StreamStats) Lost() int { return s.Sent - s.Received }

// Perfect tells whether every frame arrived once, unchanged and in order.
func (s StreamStats) Perfect() bool {
	return s.Lost() == 0 && s.Duplicated == 0 && s.Reordered == 0 && s.Corrupt == 0
}

const (
	streamMagic  = 0x7864706c32736571 // "xdpl2seq"
	streamHeader = 16                 // magic, stream, number
	streamFence  = math.MaxInt32      // the number of the frame behind the last
)

// Stream is a stream of numbered frames that is under way.
type Stream struct {
	o    StreamOptions
	id   uint32
	spec ether.UDPSpec
	send *netns.Sender
	file *os.File // of the receiver
	stop chan struct{}
	once sync.Once
	done chan struct{}

	fence     chan struct{} // closed when the fence has arrived
	fenceOnce sync.Once

	mu      sync.Mutex
	stats   StreamStats
	first   []int32 // by number: the device where it arrived first, 0 if not yet
	highest int
	given   int // frames that wait no longer waits for
	changed chan struct{}

	err error
}

// Stream sends numbered frames from one host to another and waits for the end.
func (l *Lab) Stream(ctx context.Context, from, to *Host, o StreamOptions) (StreamStats, error) {
	s, err := l.StartStream(ctx, from, to, o)
	if err != nil {
		return StreamStats{}, err
	}
	return s.Wait()
}

// StartStream sends numbered frames from one host's present device to
// another host, which records them on whichever device they arrive. The
// bridge knows the destination only if it has spoken before.
func (l *Lab) StartStream(ctx context.Context, from, to *Host, o StreamOptions) (*Stream, error) {
	if o.Window <= 0 {
		o.Window = 64
	}
	if o.Stall <= 0 {
		o.Stall = 500 * time.Millisecond
	}
	s := &Stream{o: o, id: rand.Uint32(), spec: Between(from, to), highest: -1,
		stop: make(chan struct{}), done: make(chan struct{}), fence: make(chan struct{}), changed: make(chan struct{})}
	if o.V6 {
		s.spec.DstIP, s.spec.SrcIP = to.IP6, from.IP6
	}
	s.spec.Length = o.Length
	var err error
	if s.send, err = from.Sender(); err != nil {
		return nil, fmt.Errorf("stream: %w", err)
	}
	if s.file, err = to.NS.anyPacketSocket(); err != nil {
		s.send.Close()
		return nil, fmt.Errorf("stream: receiver in %s: %w", to.NS, err)
	}
	received := make(chan error, 1)
	go func() { received <- s.receive() }()
	go func() {
		defer close(s.done)
		err := s.run(ctx)
		s.send.Close()
		s.file.Close()
		if rerr := <-received; err == nil {
			err = rerr
		}
		if err != nil {
			s.err = fmt.Errorf("stream from %s to %s: %w", from.Name, to.Name, err)
		}
	}()
	return s, nil
}

// anyPacketSocket receives from all devices of the namespace, also from ones
// that come later.
func (ns *NS) anyPacketSocket() (*os.File, error) {
	var file *os.File
	err := ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("packet socket: %w", err)
		}
		err = errors.Join(
			unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
			unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: netns.HToNS(unix.ETH_P_ALL)}))
		if err != nil {
			unix.Close(fd)
			return fmt.Errorf("set up packet socket: %w", err)
		}
		file = os.NewFile(uintptr(fd), "packet")
		return nil
	})
	return file, err
}

// frame builds the frame with a number.
func (s *Stream) frame(n int) []byte {
	spec := s.spec
	var head [streamHeader]byte
	binary.BigEndian.PutUint64(head[:], streamMagic)
	binary.BigEndian.PutUint32(head[8:], s.id)
	binary.BigEndian.PutUint32(head[12:], uint32(n))
	spec.Payload = head[:]
	return ether.UDP(spec)
}

func (s *Stream) run(ctx context.Context) error {
	if err := s.sendAll(ctx); err != nil {
		return err
	}
	if err := s.wait(ctx, 0); err != nil {
		return err
	}
	// All have arrived, or long should have. Copies of the last ones may still
	// be on the same way: one more frame pushes them out.
	if err := s.sendFrame(streamFence); err != nil {
		return err
	}
	timer := time.NewTimer(s.o.Stall)
	defer timer.Stop()
	select {
	case <-s.fence:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

func (s *Stream) sendFrame(n int) error {
	f := s.frame(n)
	if s.o.Wrap != nil {
		f = s.o.Wrap(f)
	}
	return s.send.Send(f)
}

// sendAll sends on one CPU: a veth hands each frame to the CPU that sends it,
// and frames from two of them overtake each other, bridge or not.
func (s *Stream) sendAll(ctx context.Context) error {
	release, err := pinHere()
	if err != nil {
		return err
	}
	defer release()
	start := time.Now()
	for n := 0; s.o.Frames == 0 || n < s.o.Frames; n++ {
		if s.o.Rate > 0 {
			if !s.pause(ctx, start.Add(time.Duration(n)*time.Second/time.Duration(s.o.Rate))) {
				return nil
			}
		}
		if err := s.wait(ctx, s.o.Window-1); err != nil {
			return err
		}
		select {
		case <-s.stop:
			return nil
		default:
		}
		s.mu.Lock()
		s.stats.Sent++
		s.first = append(s.first, 0)
		s.mu.Unlock()
		if err := s.sendFrame(n); err != nil {
			return err
		}
	}
	return nil
}

// pause waits for the time of the next frame; false means to stop.
func (s *Stream) pause(ctx context.Context, until time.Time) bool {
	d := time.Until(until)
	if d < time.Millisecond {
		return true // timers are not finer; the next frames make it up
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.stop:
	case <-ctx.Done():
	}
	return false
}

// wait waits until at most n frames are on their way. Frames count as lost
// when nothing arrives for the stall time.
func (s *Stream) wait(ctx context.Context, n int) error {
	timer := time.NewTimer(s.o.Stall)
	defer timer.Stop()
	for {
		s.mu.Lock()
		way, changed := s.stats.Sent-s.stats.Received-s.given, s.changed
		s.mu.Unlock()
		if way <= n {
			return nil
		}
		select {
		case <-changed:
			timer.Reset(s.o.Stall)
		case <-timer.C:
			s.mu.Lock()
			s.given = s.stats.Sent - s.stats.Received
			s.mu.Unlock()
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *Stream) receive() error {
	conn, err := s.file.SyscallConn()
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<16)
	for {
		var n int
		var from unix.Sockaddr
		var rerr error
		err := conn.Read(func(fd uintptr) bool {
			for {
				n, from, rerr = unix.Recvfrom(int(fd), buf, 0)
				if !errors.Is(rerr, unix.EINTR) {
					return !errors.Is(rerr, unix.EAGAIN)
				}
			}
		})
		if err != nil {
			return nil // the file was closed: the stream has ended
		}
		if errors.Is(rerr, unix.ENETDOWN) {
			continue
		}
		if rerr != nil {
			return fmt.Errorf("receive: %w", rerr)
		}
		if sa, ok := from.(*unix.SockaddrLinklayer); ok {
			s.take(buf[:n], int32(sa.Ifindex))
		}
	}
}

// take counts one received frame if it belongs to this stream.
func (s *Stream) take(f []byte, index int32) {
	udp := udpOf(f)
	if len(udp) < 8+streamHeader ||
		binary.BigEndian.Uint64(udp[8:]) != streamMagic || binary.BigEndian.Uint32(udp[16:]) != s.id {
		return
	}
	n := int(binary.BigEndian.Uint32(udp[20:]))
	if n == streamFence {
		s.fenceOnce.Do(func() { close(s.fence) })
		return
	}
	want := udpOf(s.frame(n))
	intact := len(udp) >= len(want) && bytes.Equal(udp[:len(want)], want)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case n >= len(s.first) || !intact:
		s.stats.Corrupt++
		return
	case s.first[n] == index:
		s.stats.Duplicated++
		return
	case s.first[n] != 0:
		s.stats.Elsewhere++
		return
	}
	s.first[n] = index
	s.stats.Received++
	if n < s.highest {
		s.stats.Reordered++
	}
	s.highest = max(s.highest, n)
	close(s.changed)
	s.changed = make(chan struct{})
}

// Progress returns the counts so far.
func (s *Stream) Progress() StreamStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stats
}

// WaitReceived waits until n frames have arrived in all. It fails when the
// stream ends before.
func (s *Stream) WaitReceived(ctx context.Context, n int) error {
	for {
		s.mu.Lock()
		got, changed := s.stats.Received, s.changed
		s.mu.Unlock()
		if got >= n {
			return nil
		}
		select {
		case <-changed:
		case <-s.done:
			if s.err != nil {
				return s.err
			}
			return fmt.Errorf("stream ended with %d frames received, expected %d", got, n)
		case <-ctx.Done():
			return fmt.Errorf("stream: %d frames received, expected %d: %w", got, n, context.Cause(ctx))
		}
	}
}

// Stop ends the sending; what is on its way is still waited for.
func (s *Stream) Stop() { s.once.Do(func() { close(s.stop) }) }

// Wait waits for the end and returns the counts. What is lost, duplicated or
// reordered is no error.
func (s *Stream) Wait() (StreamStats, error) {
	<-s.done
	return s.Progress(), s.err
}
