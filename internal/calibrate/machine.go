// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
)

var stationsForTrial = []net.HardwareAddr{hostMAC(0)}

// Kernel is the release of the kernel that runs.
func Kernel() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Machine names the box: its model as far as it is known, and its cores.
func Machine() string { return machine("/", runtime.NumCPU(), runtime.GOARCH) }

func machine(root string, cpus int, arch string) string {
	cores := fmt.Sprintf("%d %s cores", cpus, arch)
	if cpus == 1 {
		cores = "1 " + arch + " core"
	}
	for _, file := range []string{"tmp/sysinfo/model", "proc/device-tree/model", "sys/class/dmi/id/product_name"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		model := strings.Join(strings.Fields(strings.Trim(string(text), "\x00")), " ")
		if err == nil && model != "" {
			return model + ", " + cores
		}
	}
	return cores
}

// Stale says why a calibration no longer speaks for this box; empty if it does.
func Stale(c *api.Calibration) string { return stale(c, Kernel(), Machine()) }

func stale(c *api.Calibration, kernel, machine string) string {
	switch {
	case c.Machine != machine:
		return fmt.Sprintf("measured on another machine (%s, this is %s)", c.Machine, machine)
	case c.Kernel != kernel:
		return fmt.Sprintf("measured on Linux %s, this is %s", c.Kernel, kernel)
	}
	return ""
}
