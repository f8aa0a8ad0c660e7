// SPDX-License-Identifier: Apache-2.0

package softirq

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The columns of a CPU's line in /proc/stat, in ticks of 10 ms on all that Linux
// runs on (USER_HZ). Guest time is part of user and nice.
const (
	colUser = iota
	colNice
	colSystem
	colIdle
	colIOWait
	colIRQ
	colSoftIRQ
	colSteal
)

// readCPUs returns for each CPU the time that is neither idle nor spent by
// processes nor by other guests of the same host: what is left for interrupts
// and softirqs. An offline CPU has none.
func (c *Clock) readCPUs() ([]time.Duration, error) {
	text, now, err := c.readStat()
	if err != nil {
		return nil, err
	}
	var cpus []time.Duration
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		number, ok := strings.CutPrefix(name, "cpu")
		if !ok {
			break // the CPUs come first
		}
		if number == "" {
			continue // their sum
		}
		cpu, err := strconv.Atoi(number)
		if err != nil || cpu >= 1<<14 {
			return nil, fmt.Errorf("/proc/stat: CPU %q", number)
		}
		other, err := otherTime(rest)
		if err != nil {
			return nil, fmt.Errorf("/proc/stat: %s: %w", name, err)
		}
		for len(cpus) <= cpu {
			cpus = append(cpus, 0)
		}
		cpus[cpu] = now - other
	}
	return cpus, nil
}

// readStat reads the beginning of /proc/stat, and the clock at the moment at
// which the kernel wrote it. On a busy CPU the two may come apart; then it reads
// again.
func (c *Clock) readStat() (text string, now time.Duration, err error) {
	f, err := os.Open(filepath.Join(c.proc, "stat"))
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	buf := make([]byte, 16<<10) // 100 CPUs; the interrupts behind them do not matter
	for range 3 {
		before := monotonic()
		n, err := f.ReadAt(buf, 0)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", 0, err
		}
		text, now = string(buf[:n]), before
		if monotonic()-before < time.Millisecond {
			break
		}
	}
	if end := strings.LastIndexByte(text, '\n'); len(text) == len(buf) {
		text = text[:end+1]
	}
	return text, now, nil
}

// monotonic is the clock by which the kernel measures idle time.
func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
	return time.Duration(now.Nano())
}

// otherTime sums what is not the time in interrupts and softirqs.
func otherTime(columns string) (time.Duration, error) {
	fields := strings.Fields(columns)
	if len(fields) <= colSteal {
		return 0, errors.New("too few columns")
	}
	sum := time.Duration(0)
	for _, col := range []int{colUser, colNice, colSystem, colIdle, colIOWait, colSteal} {
		n, err := strconv.ParseUint(fields[col], 10, 63)
		if err != nil {
			return 0, err
		}
		sum += time.Duration(n) * Grain
	}
	return sum, nil
}

// findThreads lists the threads that receive for a device. Their names end with
// the NAPI's number; before 5.17 the kernel showed no more than 15 characters.
func (c *Clock) findThreads(device string) ([]int, error) {
	prefix := "napi/" + device + "-"
	entries, err := os.ReadDir(c.proc)
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		comm, err := os.ReadFile(filepath.Join(c.proc, e.Name(), "comm"))
		if err != nil {
			continue // it has just ended
		}
		if isNAPIThread(strings.TrimSuffix(string(comm), "\n"), prefix) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

func isNAPIThread(comm, prefix string) bool {
	const shown = 15
	number, ok := strings.CutPrefix(comm, prefix)
	if !ok {
		return len(comm) == shown && len(prefix) >= shown && prefix[:shown] == comm
	}
	return strings.Trim(number, "0123456789") == ""
}

// threadTime reads another thread's CPU clock. (/proc/PID/schedstat tells the
// same, but not on every kernel: CONFIG_SCHED_INFO.)
func threadTime(pid int) (time.Duration, error) {
	const schedClock = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedClock), &t); err != nil {
		return 0, err
	}
	return time.Duration(t.Nano()), nil
}
