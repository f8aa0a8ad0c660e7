// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

// A kernelLog sends every record of the kernel's log to the runner, from the
// first one of the boot on.
type kernelLog struct {
	fd      int
	console *guest.Writer
	quit    *os.File   // closed to end the reader
	done    chan error // the reader's end
}

// startKernelLog starts the reader.
func startKernelLog(console *guest.Writer) (*kernelLog, error) {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open kernel log: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open kernel log: %w", err)
	}
	k := &kernelLog{fd: fd, console: console, quit: w, done: make(chan error, 1)}
	go func() {
		defer r.Close()
		k.done <- k.follow(int(r.Fd()))
	}()
	return k, nil
}

// stop returns when every record that exists now was sent.
func (k *kernelLog) stop() error {
	k.quit.Close()
	if err := <-k.done; err != nil {
		return err
	}
	return unix.Close(k.fd)
}

// follow sends records until quit is closed at the other end.
func (k *kernelLog) follow(quit int) error {
	for {
		fds := []unix.PollFd{{Fd: int32(k.fd), Events: unix.POLLIN}, {Fd: int32(quit), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			return fmt.Errorf("wait for kernel log: %w", err)
		}
		if err := k.sendAll(); err != nil {
			return err
		}
		if fds[1].Revents != 0 {
			return nil
		}
	}
}

// sendAll sends the records that are there.
func (k *kernelLog) sendAll() error {
	record := make([]byte, 8192) // the kernel's own limit of a record
	for {
		n, err := unix.Read(k.fd, record)
		switch err {
		case nil:
			from, text := parseRecord(string(record[:n]))
			if err := k.console.Send(guest.Log, from, text); err != nil {
				return err
			}
		case unix.EAGAIN:
			return nil
		case unix.EINTR:
		case unix.EPIPE:
			if err := k.console.Send(guest.Problem, "", "the kernel's log ran over: records are lost"); err != nil {
				return err
			}
		default:
			return fmt.Errorf("read kernel log: %w", err)
		}
	}
}

// parseRecord reads "priority,sequence,microseconds,flags;text" and tells who
// wrote it. Programs can write to the kernel's log as well, but the kernel
// never lets them use its own facility, which is 0.
func parseRecord(record string) (from, text string) {
	head, text, _ := strings.Cut(record, ";")
	text, _, _ = strings.Cut(text, "\n") // what follows is the record's dictionary
	fields := strings.Split(head, ",")
	if len(fields) < 3 {
		return guest.FromKernel, record
	}
	from = guest.FromKernel
	if priority, err := strconv.Atoi(fields[0]); err == nil && priority>>3 != 0 {
		from = guest.FromUser
	}
	if us, err := strconv.ParseInt(fields[2], 10, 64); err == nil {
		text = fmt.Sprintf("[%5d.%06d] %s", us/1e6, us%1e6, text)
	}
	return from, text
}
