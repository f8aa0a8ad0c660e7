// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Sender puts raw frames on a device's wire. The sk_buffs that it makes have
// little headroom, as those of a NIC driver without XDP. Frames sent from
// different CPUs may overtake each other.
type Sender struct {
	ns   *NS
	name string
	file *os.File
}

// Sender opens a device of the namespace for sending. It ends with Close or
// with the namespace.
func (ns *NS) Sender(dev string) (*Sender, error) {
	// Protocol 0: the socket receives nothing.
	file, err := ns.PacketSocket(dev, 0, nil)
	if err != nil {
		return nil, fmt.Errorf("sender on %s of %s: %w", dev, ns, err)
	}
	s := &Sender{ns: ns, name: dev + " of " + ns.String(), file: file}
	ns.Track(s)
	return s, nil
}

// Send sends one frame, from its destination address on, without frame check
// sequence. It waits while the device's queue is full.
func (s *Sender) Send(frame []byte) error {
	_, err := s.file.Write(frame)
	if err != nil {
		return fmt.Errorf("send %d bytes on %s: %w", len(frame), s.name, err)
	}
	return nil
}

// mmsghdr is the kernel's struct mmsghdr; Go pads it as C does.
type mmsghdr struct {
	hdr unix.Msghdr
	len uint32
}

// SendAll sends many frames with few system calls and returns how many the
// kernel took. Frames that a full device drops count as taken, as on a wire.
func (s *Sender) SendAll(frames [][]byte) (int, error) {
	const batch = 256
	msgs := make([]mmsghdr, min(len(frames), batch))
	iovs := make([]unix.Iovec, len(msgs))
	conn, err := s.file.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("send on %s: %w", s.name, err)
	}
	sent := 0
	for sent < len(frames) {
		n := min(len(frames)-sent, batch)
		for i, f := range frames[sent : sent+n] {
			iovs[i].Base = &f[0]
			iovs[i].SetLen(len(f))
			msgs[i].hdr.Iov = &iovs[i]
			msgs[i].hdr.SetIovlen(1)
		}
		var took uintptr
		var errno unix.Errno
		err := conn.Write(func(fd uintptr) bool {
			for {
				took, _, errno = unix.Syscall6(unix.SYS_SENDMMSG, fd, uintptr(unsafe.Pointer(&msgs[0])), uintptr(n), 0, 0, 0)
				if errno != unix.EINTR {
					return errno != unix.EAGAIN
				}
			}
		})
		runtime.KeepAlive(frames)
		if errno == unix.ENOBUFS { // the first frame was dropped by the queue
			took, errno = 1, 0
		}
		if errno != 0 {
			err = errors.Join(err, errno)
		}
		if err != nil {
			return sent, fmt.Errorf("send on %s: %w", s.name, err)
		}
		sent += int(took)
	}
	return sent, nil
}

// Close closes the sender.
func (s *Sender) Close() error {
	s.ns.Untrack(s)
	if err := s.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
