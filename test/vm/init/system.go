// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

// mountPoint is one file system of the guest.
type mountPoint struct{ fstype, target, options string }

// mountBasics mounts what everything else needs.
func mountBasics() error {
	return mountAll([]mountPoint{
		{"proc", "/proc", ""},
		{"sysfs", "/sys", ""},
		{"devtmpfs", "/dev", ""},
	})
}

// mountRest mounts what tests need.
func mountRest() error {
	return mountAll([]mountPoint{
		{"devpts", "/dev/pts", "mode=0620,ptmxmode=0666"},
		{"tmpfs", "/dev/shm", "mode=1777"},
		{"tmpfs", "/tmp", "mode=1777"},
		{"tmpfs", "/run", "mode=0755"},
		{"bpf", "/sys/fs/bpf", "mode=0700"},
	})
}

func mountAll(points []mountPoint) error {
	var errs []error
	for _, m := range points {
		err := os.MkdirAll(m.target, 0o755)
		if err == nil || errors.Is(err, os.ErrExist) {
			err = unix.Mount(m.fstype, m.target, m.fstype, 0, m.options)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s on %s: %w", m.fstype, m.target, err))
		}
	}
	return errors.Join(errs...)
}

// makeNodes makes the nodes that devtmpfs leaves to a device manager.
func makeNodes() error {
	links := [][2]string{
		{"/proc/self/fd", "/dev/fd"},
		{"/proc/self/fd/0", "/dev/stdin"},
		{"/proc/self/fd/1", "/dev/stdout"},
		{"/proc/self/fd/2", "/dev/stderr"},
	}
	for _, l := range links {
		if err := os.Symlink(l[0], l[1]); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := os.MkdirAll("/dev/net", 0o755); err != nil {
		return err
	}
	err := unix.Mknod("/dev/net/tun", unix.S_IFCHR|0o666, int(unix.Mkdev(10, 200)))
	if err != nil && err != unix.EEXIST {
		return fmt.Errorf("/dev/net/tun: %w", err)
	}
	return nil
}

// installBusybox gives every applet of busybox its name.
func installBusybox() error {
	out, err := exec.Command(guest.Busybox, "--install", "-s", filepath.Dir(guest.Busybox)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// loopbackUp sets the interface lo up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// hideBTF makes the kernel look like one that was built without BTF, as the
// stock kernels of OpenWrt are.
func hideBTF() error {
	const dir = "/sys/kernel/btf"
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY, "mode=0755")
}

// openConsole opens the serial line; raw, bytes pass as they are.
func openConsole(raw bool) (*os.File, error) {
	tty, err := os.OpenFile(serialLine, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open console: %w", err)
	}
	if !raw {
		return tty, nil
	}
	t, err := unix.IoctlGetTermios(int(tty.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("set up console: %w", err)
	}
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ICANON | unix.ISIG
	if err := unix.IoctlSetTermios(int(tty.Fd()), unix.TCSETS, t); err != nil {
		return nil, fmt.Errorf("set up console: %w", err)
	}
	return tty, nil
}

// drain waits until everything was sent.
func drain(tty *os.File) error {
	if err := unix.IoctlSetInt(int(tty.Fd()), unix.TCSBRK, 1); err != nil {
		return fmt.Errorf("drain console: %w", err)
	}
	return nil
}
