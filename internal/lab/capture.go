// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netns"
)

// CaptureOptions say what to record.
type CaptureOptions struct {
	// Outgoing records frames that the namespace itself sends through the
	// device as well. Without it a Capture shows what arrives.
	Outgoing bool
	// Limit is the number of frames kept; the newest are dropped beyond it.
	// 0 means 65536.
	Limit int
}

// Capture records the frames of one device, from the moment it is made. On
// the router it sees a received frame after programs at the generic XDP hook,
// so not what they redirected; on a host it sees everything that arrives.
type Capture struct {
	ns   *NS
	name string
	file *os.File
	o    CaptureOptions

	mu      sync.Mutex
	frames  [][]byte      // those that no Expect has taken
	changed chan struct{} // closed and replaced with every frame
	seen    int           // frames recorded so far
	lost    int           // frames dropped by the limit or by the kernel
	err     error         // why recording ended
	done    chan struct{}
}

// Capture starts to record a device of the namespace, promiscuously. It ends
// with Close or with the namespace.
func (ns *NS) Capture(dev string, o CaptureOptions) (*Capture, error) {
	if o.Limit <= 0 {
		o.Limit = 1 << 16
	}
	file, err := ns.PacketSocket(dev, unix.ETH_P_ALL, func(fd, index int) error {
		if !o.Outgoing {
			if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1); err != nil {
				return fmt.Errorf("ignore outgoing frames: %w", err)
			}
		}
		// Where the kernel took a VLAN tag out of the frame it tells in the
		// auxiliary data only.
		if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_AUXDATA, 1); err != nil {
			return fmt.Errorf("ask for auxiliary data: %w", err)
		}
		// A burst must fit until the reader runs; ordinary limits hold 100
		// frames or so. Root may go beyond the system's limit.
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20); err != nil {
			return fmt.Errorf("set receive buffer: %w", err)
		}
		mreq := unix.PacketMreq{Ifindex: int32(index), Type: unix.PACKET_MR_PROMISC}
		if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &mreq); err != nil {
			return fmt.Errorf("set promiscuous: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("capture on %s of %s: %w", dev, ns, err)
	}
	c := &Capture{ns: ns, name: dev + " of " + ns.String(), file: file, o: o,
		changed: make(chan struct{}), done: make(chan struct{})}
	ns.Track(c)
	go c.read()
	return c, nil
}

// Capture records what arrives at the host's present device.
func (h *Host) Capture() (*Capture, error) { return h.NS.Capture(h.Dev(), CaptureOptions{}) }

func (c *Capture) read() {
	defer close(c.done)
	conn, err := c.file.SyscallConn()
	if err != nil {
		c.fail(err)
		return
	}
	buf := make([]byte, 1<<17)
	oob := make([]byte, 256)
	for {
		var n, oobn int
		var from unix.Sockaddr
		var rerr error
		err := conn.Read(func(fd uintptr) bool {
			for {
				n, oobn, _, from, rerr = unix.Recvmsg(int(fd), buf, oob, 0)
				if !errors.Is(rerr, unix.EINTR) {
					return !errors.Is(rerr, unix.EAGAIN)
				}
			}
		})
		if err == nil {
			err = rerr
		}
		if errors.Is(err, unix.ENETDOWN) {
			continue // the device went down: it may come up again
		}
		if err != nil {
			c.fail(err)
			return
		}
		if sa, ok := from.(*unix.SockaddrLinklayer); ok && !c.o.Outgoing && sa.Pkttype == unix.PACKET_OUTGOING {
			continue
		}
		c.add(WithTag(buf[:n], oob[:oobn]))
	}
}

// WithTag copies a frame and puts back the VLAN tag that the kernel took out:
// oob is what came beside it on a packet socket with PACKET_AUXDATA.
func WithTag(b, oob []byte) []byte {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err == nil && len(b) >= 12 {
		for _, m := range msgs {
			if m.Header.Level != unix.SOL_PACKET || m.Header.Type != unix.PACKET_AUXDATA ||
				len(m.Data) < int(unsafe.Sizeof(unix.TpacketAuxdata{})) {
				continue
			}
			aux := (*unix.TpacketAuxdata)(unsafe.Pointer(&m.Data[0]))
			if aux.Status&unix.TP_STATUS_VLAN_VALID == 0 {
				continue
			}
			tpid := uint16(unix.ETH_P_8021Q)
			if aux.Status&unix.TP_STATUS_VLAN_TPID_VALID != 0 {
				tpid = aux.Vlan_tpid
			}
			out := make([]byte, 0, len(b)+4)
			out = append(out, b[:12]...)
			out = binary.BigEndian.AppendUint16(out, tpid)
			out = binary.BigEndian.AppendUint16(out, aux.Vlan_tci)
			return append(out, b[12:]...)
		}
	}
	return append([]byte(nil), b...)
}

func (c *Capture) add(frame []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen++
	if len(c.frames) >= c.o.Limit {
		c.lost++
		return
	}
	c.frames = append(c.frames, frame)
	close(c.changed)
	c.changed = make(chan struct{})
}

func (c *Capture) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	close(c.changed)
	c.changed = make(chan struct{})
}

// take removes and returns the first kept frame that matches.
func (c *Capture) take(match func([]byte) bool) (frame []byte, changed <-chan struct{}, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, f := range c.frames {
		if match(f) {
			c.frames = append(c.frames[:i:i], c.frames[i+1:]...)
			return f, nil, nil
		}
	}
	return nil, c.changed, c.err
}

// Expect waits for a frame that matches and takes it out of the record; the
// others stay for later calls, whatever their order. Frames that came before
// the call count.
func (c *Capture) Expect(ctx context.Context, match func([]byte) bool) ([]byte, error) {
	for {
		frame, changed, err := c.take(match)
		if frame != nil {
			return frame, nil
		}
		if err != nil {
			return nil, fmt.Errorf("capture on %s: %w", c.name, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("capture on %s: expected frame did not come among %d: %w", c.name, c.Seen(), context.Cause(ctx))
		}
	}
}

// None watches until ctx ends and reports an error when a frame that matches
// has come, or had come before the call. Where it can, a test sends a frame
// that does come afterwards, waits for that with Expect, and uses Count: this
// needs no waiting.
func (c *Capture) None(ctx context.Context, match func([]byte) bool) error {
	for {
		frame, changed, err := c.take(match)
		if frame != nil {
			return fmt.Errorf("capture on %s: unexpected frame % x", c.name, frame[:min(len(frame), 64)])
		}
		if err != nil {
			return fmt.Errorf("capture on %s: %w", c.name, err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// Count returns how many of the kept frames match.
func (c *Capture) Count(match func([]byte) bool) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, f := range c.frames {
		if match(f) {
			n++
		}
	}
	return n
}

// Drain takes all kept frames.
func (c *Capture) Drain() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	frames := c.frames
	c.frames = nil
	return frames
}

// Seen returns how many frames were recorded so far, taken or not.
func (c *Capture) Seen() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen
}

// Lost returns how many frames were not kept: beyond the limit, or because
// this process was too slow for the kernel.
func (c *Capture) Lost() (int, error) {
	conn, err := c.file.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("capture on %s: %w", c.name, err)
	}
	var stats *unix.TpacketStats
	err2 := conn.Control(func(fd uintptr) {
		stats, err = unix.GetsockoptTpacketStats(int(fd), unix.SOL_PACKET, unix.PACKET_STATISTICS)
	})
	if err = errors.Join(err, err2); err != nil {
		return 0, fmt.Errorf("capture on %s: statistics: %w", c.name, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += int(stats.Drops) // the kernel counts from the last question on
	return c.lost, nil
}

// Close ends the recording. What was recorded can still be asked for.
func (c *Capture) Close() error {
	c.fail(netns.ErrClosed)
	c.ns.Untrack(c)
	err := c.file.Close()
	<-c.done
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
