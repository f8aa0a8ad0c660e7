// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
)

// A shell may leave programs behind that run in the demo's namespaces, and
// each would keep its namespace alive.

// endInside ends every process in a namespace, the stubborn ones after a
// second.
func endInside(ns *lab.NS) error {
	deadline := time.Now().Add(time.Second)
	for signal := unix.SIGTERM; ; {
		n, err := signalInside(ns, signal)
		if err != nil || n == 0 {
			return err
		}
		// There is no event for the end of other people's children.
		time.Sleep(20 * time.Millisecond)
		if time.Now().After(deadline) {
			if signal == unix.SIGKILL {
				return fmt.Errorf("%d processes do not leave namespace %s", n, ns)
			}
			signal, deadline = unix.SIGKILL, deadline.Add(time.Second)
		}
	}
}

// signalInside signals the processes in a namespace and returns their number.
func signalInside(ns *lab.NS, signal unix.Signal) (int, error) {
	here, err := os.Stat(ns.Path())
	if err != nil {
		return 0, fmt.Errorf("look for processes in %s: %w", ns, err)
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		// The descriptor is taken before the process is judged, so that it is
		// that process which gets the signal, not one with its number.
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			continue // it has ended
		}
		its, err := os.Stat(dir + "/ns/net") // fails once it has ended
		if err == nil && os.SameFile(here, its) {
			n++
			err = unix.PidfdSendSignal(fd, signal, nil, 0)
			if err != nil && !errors.Is(err, unix.ESRCH) {
				unix.Close(fd)
				return n, fmt.Errorf("end process %d: %w", pid, err)
			}
		}
		unix.Close(fd)
	}
	return n, nil
}
