// SPDX-License-Identifier: Apache-2.0

// Package softirq tells how much CPU time a box spends on receiving and
// forwarding what arrives at one device.
//
// Nothing in the kernel counts that as such. What there is:
//
//   - With threaded NAPI (OpenWrt threads the reception of many Ethernet
//     drivers) a kernel thread napi/DEVICE-N does all of it. Its CPU clock is
//     exact to the nanosecond; a thread that never sleeps brings it up to date at
//     every tick.
//   - Otherwise it is done in softirqs: at the end of an interrupt, in ksoftirqd,
//     or in a process that sends to a virtual device. The softirq column of
//     /proc/stat is exact only with CONFIG_IRQ_TIME_ACCOUNTING, which OpenWrt's
//     kernels do not have. Without, whoever runs at a tick gets the whole tick,
//     and there are no ticks while a CPU sleeps between two interrupts, so that
//     the column misses much of the work of a CPU that is half busy. But the idle
//     time is exact (CONFIG_NO_HZ_IDLE and NO_HZ_FULL), so what is left of a CPU's
//     time when idle, user and system time have been taken off is the time in
//     interrupts and softirqs. Where processes run beside, their share is sampled
//     at ticks; with CONFIG_HZ_PERIODIC everything is. The grain is 10 ms for each
//     of these columns.
//
// Which CPUs work for the device is told by the data path's counters, which are
// kept per CPU. What else those CPUs do in softirqs, for other devices, counts
// too: it makes two engines look more alike than they are.
package softirq

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Grain is how exactly the time in softirqs is told: a tick of /proc/stat.
const Grain = 10 * time.Millisecond

// Reading is the state of all clocks at one moment.
type Reading struct {
	at time.Time
	// cpus is the CPU time that is neither idle nor a process's, by CPU.
	cpus []time.Duration
	// threads are the CPU clocks of the device's NAPI threads.
	threads map[int]time.Duration
	// steered: other CPUs go on with what the thread has received.
	steered bool
}

// Clock reads the clocks of a box.
type Clock struct {
	proc, class string
	threads     map[string][]int // NAPI threads by device, as found
}

// Open returns the clock of this box. It is an error if the kernel does not
// tell how CPUs spend their time.
func Open() (*Clock, error) { return open("/proc", "/sys/class/net") }

func open(proc, class string) (*Clock, error) {
	c := &Clock{proc: proc, class: class, threads: map[string][]int{}}
	cpus, err := c.readCPUs()
	if err != nil {
		return nil, fmt.Errorf("no clock for softirqs: %w", err)
	}
	if len(cpus) == 0 {
		return nil, errors.New("no clock for softirqs: /proc/stat tells nothing of single CPUs")
	}
	return c, nil
}

// Find looks for the device's NAPI threads. It is to be called now and then,
// since threading can be switched at any time; Read goes by what it found.
func (c *Clock) Find(device string) error {
	pids, err := c.findThreads(device)
	if err != nil {
		return fmt.Errorf("find the threads that receive for %s: %w", device, err)
	}
	c.threads[device] = pids
	return nil
}

// Forget drops what is known of a device.
func (c *Clock) Forget(device string) { delete(c.threads, device) }

// Read reads the clocks for a device.
func (c *Clock) Read(device string) (Reading, error) {
	r := Reading{threads: map[int]time.Duration{}}
	for _, pid := range c.threads[device] {
		run, err := threadTime(pid)
		if err != nil {
			continue // it has ended: its device does without it now
		}
		r.threads[pid] = run
	}
	var err error
	r.cpus, err = c.readCPUs()
	r.at = time.Now()
	if err != nil {
		return r, fmt.Errorf("read how CPUs spend their time: %w", err)
	}
	r.steered = c.steered(device)
	return r, nil
}

// Between is the CPU time between two readings. frames are those of the device
// that the data path has seen meanwhile, by CPU. It also returns how exact the
// time is.
func Between(a, b Reading, frames []uint64) (spent, grain time.Duration) {
	threads := time.Duration(0)
	for pid, run := range b.threads {
		if before, ok := a.threads[pid]; ok && run > before {
			threads += run - before
		}
	}
	if threads > 0 && !b.steered {
		return threads, time.Millisecond
	}
	total := uint64(0)
	for _, n := range frames {
		total += n
	}
	for cpu, n := range frames {
		// A few frames come to other CPUs when an interrupt or a thread moves.
		if n*20 < total || n == 0 || cpu >= len(a.cpus) || cpu >= len(b.cpus) {
			continue
		}
		spent += min(max(0, b.cpus[cpu]-a.cpus[cpu]), b.at.Sub(a.at))
	}
	return threads + spent, Grain
}

// steered reports whether packets of the device are handed to other CPUs (RPS).
// A device without such a setting, or one whose namespace has another /sys, has
// its packets where they came in.
func (c *Clock) steered(device string) bool {
	masks, _ := filepath.Glob(filepath.Join(c.class, device, "queues", "rx-*", "rps_cpus"))
	for _, path := range masks {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for _, digit := range text {
			if digit >= '1' && digit <= '9' || digit >= 'a' && digit <= 'f' {
				return true
			}
		}
	}
	return false
}
