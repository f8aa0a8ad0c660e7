// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/rig"
)

// pinHere keeps the calling goroutine on the CPU on which it runs, until the
// returned function is called.
func pinHere() (release func(), err error) {
	runtime.LockOSThread()
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("read allowed CPUs: %w", err)
	}
	var cpu uint32
	_, _, errno := unix.Syscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	if errno != 0 {
		err = errno
	} else {
		err = rig.Pin(0, int(cpu))
	}
	if err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("stay on one CPU: %w", err)
	}
	return func() {
		// A thread that stays pinned ends with its goroutine.
		if unix.SchedSetaffinity(0, &before) == nil {
			runtime.UnlockOSThread()
		}
	}, nil
}
