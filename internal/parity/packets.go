// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
)

// packets is a packet socket for one device of a namespace or for all. It is
// used by one goroutine, without a reader of its own: what arrives waits in the
// socket until it is asked for.
type packets struct {
	fd       int
	buf, oob []byte
	marked   uint32
}

// arrival is a frame that a socket received.
type arrival struct {
	ifindex int
	data    []byte
}

func openPackets(ns *lab.NS, protocol, ifindex int) (*packets, error) {
	p := &packets{fd: -1, buf: make([]byte, 1<<16), oob: make([]byte, 128)}
	err := ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("packet socket: %w", err)
		}
		p.fd = fd
		for _, o := range []struct{ level, name, value int }{
			{unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1},
			{unix.SOL_PACKET, unix.PACKET_AUXDATA, 1},
			{unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16 << 20},
		} {
			if err := unix.SetsockoptInt(fd, o.level, o.name, o.value); err != nil {
				return fmt.Errorf("packet socket: option %d: %w", o.name, err)
			}
		}
		addr := &unix.SockaddrLinklayer{Protocol: htons(uint16(protocol)), Ifindex: ifindex}
		if err := unix.Bind(fd, addr); err != nil {
			return fmt.Errorf("bind packet socket: %w", err)
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func htons(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}

// send puts a frame on a device's wire. That the other end does not take it,
// since it is too long there, is no error, as it is none on a wire.
func (p *packets) send(ifindex int, data []byte) error {
	const patience = 10 * time.Second
	for deadline := time.Now().Add(patience); ; {
		err := unix.Sendto(p.fd, data, 0, &unix.SockaddrLinklayer{Ifindex: ifindex})
		switch {
		case errors.Is(err, unix.ENOBUFS):
			return nil
		case !errors.Is(err, unix.EAGAIN) || time.Now().After(deadline):
			return err
		}
		// Frames before it are still on their way and fill the socket's buffer.
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLOUT}}, 100); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// receive returns the next frame, ok is false if there is none now.
func (p *packets) receive() (a arrival, ok bool, err error) {
	for {
		n, oobn, _, from, err := unix.Recvmsg(p.fd, p.buf, p.oob, 0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return a, false, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return a, false, fmt.Errorf("receive: %w", err)
		}
		a.data = lab.WithTag(p.buf[:n], p.oob[:oobn])
		if sa, ok := from.(*unix.SockaddrLinklayer); ok {
			a.ifindex = sa.Ifindex
		}
		return a, true, nil
	}
}

// wait returns when there may be something to receive.
func (p *packets) wait(ctx context.Context) error {
	const patience = 10 * time.Second
	deadline := time.Now().Add(patience)
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}, 100)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("wait for a frame: %w", err)
		case n > 0:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Now().After(deadline):
			return errors.New("a frame that must come did not come")
		}
	}
}

// Close closes the socket.
func (p *packets) Close() error {
	if p.fd < 0 {
		return nil
	}
	fd := p.fd
	p.fd = -1
	return unix.Close(fd)
}

// stack receives what reaches the box itself: what the bridge gives to its own
// device, and what the bridge leaves on a port for programs such as lldpd.
type stack struct {
	own   *packets   // the bridge device
	ports []*packets // by type, all devices
}

func openStack(s *side) (*stack, error) {
	st := &stack{}
	var err error
	if st.own, err = openPackets(s.router, unix.ETH_P_ALL, s.bridge); err != nil {
		return nil, err
	}
	for _, t := range controlTypes {
		p, err := openPackets(s.router, int(t), 0)
		if err != nil {
			return nil, errors.Join(err, st.Close())
		}
		st.ports = append(st.ports, p)
	}
	return st, nil
}

// Close closes the sockets.
func (st *stack) Close() error {
	err := st.own.Close()
	for _, p := range st.ports {
		err = errors.Join(err, p.Close())
	}
	return err
}
