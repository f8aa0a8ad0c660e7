// SPDX-License-Identifier: Apache-2.0

// Package netdev reads and changes what the driver of a network device does
// on its own account: its features (offloads), its link speed and its name.
//
// Every function works on the network namespace of the calling OS thread, as
// the kernel's ethtool ioctls do. A caller that works in another namespace
// locks its thread there first.
package netdev

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrNoDevice is wrapped by the errors of all functions when there is no
// device of that name in the namespace.
var ErrNoDevice = errors.New("no such network device")

// ErrUnsupported is wrapped when the driver, or the kernel for this kind of
// device, does not know the request at all.
var ErrUnsupported = errors.New("not supported by the device")

// ifreq is the kernel's struct ifreq with a pointer as its union: 24 bytes of
// union follow the name on 64-bit machines, 16 on 32-bit ones.
type ifreq struct {
	name [unix.IFNAMSIZ]byte
	data unsafe.Pointer
	pad  [16]byte
}

// ethtool sends one SIOCETHTOOL request. The first four bytes of req are the
// command; the kernel answers in the same buffer.
func ethtool(ifname string, req []byte) error {
	if ifname == "" || len(ifname) >= unix.IFNAMSIZ || strings.ContainsAny(ifname, "/ \x00") {
		return fmt.Errorf("device %q: %w", ifname, ErrNoDevice)
	}
	// The socket decides the namespace, so it is opened for each request:
	// these are rare, and the caller's thread may be elsewhere next time.
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		fd, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_GENERIC)
	}
	if err != nil {
		return fmt.Errorf("ethtool socket: %w", err)
	}
	defer unix.Close(fd)

	ifr := ifreq{data: unsafe.Pointer(&req[0])}
	copy(ifr.name[:], ifname)
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifr)))
	runtime.KeepAlive(req)
	switch errno {
	case 0:
		return nil
	case unix.ENODEV:
		return fmt.Errorf("device %q: %w", ifname, ErrNoDevice)
	case unix.EOPNOTSUPP:
		return fmt.Errorf("device %q: %w", ifname, ErrUnsupported)
	}
	return fmt.Errorf("device %q: %w", ifname, errno)
}

// request allocates an ethtool request of the given size in bytes with its
// command filled in.
func request(cmd uint32, size int) []byte {
	b := make([]byte, size)
	binary.NativeEndian.PutUint32(b, cmd)
	return b
}

// Driver returns the name of the device's driver, such as "veth" or "r8169".
func Driver(ifname string) (string, error) {
	// struct ethtool_drvinfo: cmd, driver[32], version[32], fw_version[32],
	// bus_info[32], erom_version[32], reserved[12], five counts.
	req := request(unix.ETHTOOL_GDRVINFO, 196)
	if err := ethtool(ifname, req); err != nil {
		return "", fmt.Errorf("read driver: %w", err)
	}
	return cString(req[4:36]), nil
}

// cString cuts a fixed-size field at its first zero byte.
func cString(b []byte) string {
	s, _, _ := strings.Cut(string(b), "\x00")
	return s
}
