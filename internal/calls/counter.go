// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// counter counts events of the thread that opened it.
type counter struct{ file *os.File }

// openCounter opens a perf event of this thread, in the kernel, too: that is
// where programs run.
func openCounter(kind uint32, event uint64) (*counter, error) {
	attr := unix.PerfEventAttr{Type: kind, Config: event, Size: uint32(unsafe.Sizeof(unix.PerfEventAttr{}))}
	fd, err := unix.PerfEventOpen(&attr, 0, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return &counter{os.NewFile(uintptr(fd), "perf event")}, nil
}

// openCycles opens the CPU's cycle counter, and tells why if it does not count.
func openCycles() (*counter, error) {
	c, err := openCounter(unix.PERF_TYPE_HARDWARE, unix.PERF_COUNT_HW_CPU_CYCLES)
	if err != nil {
		return nil, fmt.Errorf("the CPU's cycle counter cannot be had: %w", err)
	}
	before := c.read()
	for i, sum := 0, 0; i < 1_000_000; i++ {
		sum += i * sum
	}
	if c.read() == before {
		return nil, errors.Join(errors.New("the CPU's cycle counter stands still"), c.close())
	}
	return c, nil
}

// read returns the count, 0 without a counter.
func (c *counter) read() int64 {
	if c == nil {
		return 0
	}
	var value [8]byte
	if n, err := unix.Read(int(c.file.Fd()), value[:]); err != nil || n != len(value) {
		return 0
	}
	return int64(binary.NativeEndian.Uint64(value[:]))
}

func (c *counter) close() error {
	if c == nil {
		return nil
	}
	return c.file.Close()
}
