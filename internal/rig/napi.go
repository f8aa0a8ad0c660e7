// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

var nameCounter atomic.Uint32

// uniqueName makes a device name that no other rig on the machine uses: the
// kernel threads of all namespaces share one list of names. It is short, since
// the thread's name is cut after 15 characters.
func uniqueName(prefix string) string {
	return fmt.Sprintf("%s%x", prefix, (uint32(os.Getpid())<<4^nameCounter.Add(1))&0xffffff)
}

// threadNAPI moves the reception of a device that is up into a kernel thread
// and returns the thread's id. The device has one receive queue.
func threadNAPI(ns *netns.NS, dev string) (int, error) {
	// A veth has NAPI only with GRO.
	err := ns.Do(func() error { return netdev.SetFeature(dev, netdev.GRO, true) })
	if err != nil {
		return 0, err
	}
	if err := ns.WriteSys("class/net/"+dev+"/threaded", "1"); err != nil {
		return 0, fmt.Errorf("thread reception of %s: %w", dev, err)
	}
	return findThread("napi/" + dev + "-")
}

// findThread finds the kernel thread whose name starts so.
func findThread(prefix string) (int, error) {
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range dirs {
		comm, err := os.ReadFile(dir + "/comm")
		if err == nil && strings.HasPrefix(string(comm), prefix) {
			return strconv.Atoi(filepath.Base(dir))
		}
	}
	return 0, fmt.Errorf("no kernel thread %s*", prefix)
}

// runTime returns how long a thread has run so far.
func runTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, fmt.Errorf("read run time: %w", err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read run time: %w", err)
	}
	return time.Duration(ns), nil
}

// sleeping tells whether a thread waits, as opposed to runs or wants to.
func sleeping(pid int) (bool, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false, fmt.Errorf("read thread state: %w", err)
	}
	// pid (name) state ...: the name may hold spaces and parentheses.
	_, rest, ok := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	return ok && rest != "" && rest[0] != 'R', nil
}

// Pin lets a thread run on one CPU only; pid 0 is the calling thread.
func Pin(pid, cpu int) error {
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(pid, &set); err != nil {
		return fmt.Errorf("pin to CPU %d: %w", cpu, err)
	}
	return nil
}

// allowedCPUs returns the CPUs that this process may use.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read allowed CPUs: %w", err)
	}
	var cpus []int
	for i := range 1024 {
		if set.IsSet(i) {
			cpus = append(cpus, i)
		}
	}
	if len(cpus) == 0 {
		return nil, errors.New("no allowed CPU")
	}
	return cpus, nil
}
