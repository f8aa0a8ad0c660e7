// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What the daemon still may do after it has started. NET_RAW opens the socket
// through which the rules of ebtables and iptables are read. PERFMON is not
// about performance counters here: without it the verifier puts barriers against
// speculation into the programs, and they become slower.
var keptCapabilities = []uint{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_BPF, unix.CAP_PERFMON}

// What a process that it starts may have beside these: that is the one that
// measures (calibrate), which makes network namespaces, lets its threads run
// before others, and, before Linux 5.11, raises the limit of locked memory.
var startedCapabilities = []uint{unix.CAP_SYS_ADMIN, unix.CAP_SYS_NICE, unix.CAP_SYS_RESOURCE}

// capabilitiesFor returns those to keep on a kernel whose last capability is
// known. Before Linux 5.8 there is no CAP_BPF, and CAP_SYS_ADMIN stands for it.
func capabilitiesFor(last uint) []uint {
	if last < unix.CAP_BPF {
		return []uint{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN}
	}
	return keptCapabilities
}

// dropCapabilities gives up for good what the process does not need any more.
// A program that it starts gets again what root's programs do, of these and
// startedCapabilities: the rest goes from the bounding set. It returns
// errors.ErrUnsupported in a binary that is linked with C.
func dropCapabilities() error {
	last := uint(unix.CAP_LAST_CAP)
	if text, err := os.ReadFile("/proc/sys/kernel/cap_last_cap"); err == nil {
		if n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 8); err == nil {
			last = uint(n)
		}
	}
	var keep [2]uint32
	for _, c := range capabilitiesFor(last) {
		keep[c/32] |= 1 << (c % 32)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("read the capabilities: %w", err)
	}
	for i := range sets {
		sets[i].Effective &= keep[i]
		sets[i].Permitted &= keep[i]
		sets[i].Inheritable = 0
	}
	// Capabilities are a thread's, and a Go process has many. The bounding set
	// comes first: to change it is a capability, too.
	bound := append(slices.Clone(capabilitiesFor(last)), startedCapabilities...)
	for c := range last + 1 {
		if slices.Contains(bound, c) {
			continue
		}
		_, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0, 0)
		if errors.Is(errno, syscall.ENOTSUP) {
			return errors.ErrUnsupported
		}
		// Who has not the right to (CAP_SETPCAP) has been given little anyway.
		if errno != 0 && errno != unix.EPERM {
			return fmt.Errorf("limit what a started process may have: %w", errno)
		}
	}
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&sets[0])), 0)
	switch {
	case errors.Is(errno, syscall.ENOTSUP):
		return errors.ErrUnsupported
	case errno != 0:
		return fmt.Errorf("drop capabilities: %w", errno)
	}
	return nil
}
