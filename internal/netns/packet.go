// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// PacketSocket makes a raw socket bound to a device. Options are set before
// it receives anything.
func (ns *NS) PacketSocket(dev string, protocol int, setup func(fd, index int) error) (*os.File, error) {
	link, err := ns.Link(dev)
	if err != nil {
		return nil, err
	}
	index := link.Attrs().Index
	var file *os.File
	err = ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("packet socket: %w", err)
		}
		if setup != nil {
			if err := setup(fd, index); err != nil {
				unix.Close(fd)
				return err
			}
		}
		addr := &unix.SockaddrLinklayer{Protocol: HToNS(uint16(protocol)), Ifindex: index}
		if err := unix.Bind(fd, addr); err != nil {
			unix.Close(fd)
			return fmt.Errorf("bind packet socket: %w", err)
		}
		file = os.NewFile(uintptr(fd), "packet:"+dev)
		return nil
	})
	return file, err
}

// HToNS brings a number of 16 bits into the order of the network.
func HToNS(v uint16) uint16 {
	var b [2]byte
	binary.BigEndian.PutUint16(b[:], v)
	return binary.NativeEndian.Uint16(b[:])
}
