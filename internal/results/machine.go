// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// ThisMachine describes the machine that this runs on.
func ThisMachine() Machine {
	m := Machine{CPU: "unknown CPU", Cores: runtime.NumCPU(), Arch: runtime.GOARCH, Kernel: "unknown"}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		m.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	if f, err := os.Open("/proc/cpuinfo"); err == nil {
		defer f.Close()
		if name := cpuName(f); name != "" {
			m.CPU = name
		}
	}
	if f, err := os.Open("/etc/os-release"); err == nil {
		defer f.Close()
		m.System = systemName(f)
	}
	m.Clocksource = firstLine("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	m.Governor = governors("/sys/devices/system/cpu")
	return m
}

// cpuName finds the processor's name in /proc/cpuinfo. Many 64-bit ARM kernels
// tell the part's number only, some the board's name.
func cpuName(r io.Reader) string {
	found := map[string]string{}
	for lines := bufio.NewScanner(r); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if key = strings.TrimSpace(key); ok && found[key] == "" {
			found[key] = strings.TrimSpace(value)
		}
	}
	for _, key := range []string{"model name", "Model", "Hardware"} {
		if found[key] != "" {
			return found[key]
		}
	}
	if part := found["CPU part"]; part != "" {
		return fmt.Sprintf("ARM implementer %s part %s", found["CPU implementer"], part)
	}
	return ""
}

// systemName finds the distribution's name in /etc/os-release.
func systemName(r io.Reader) string {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "PRETTY_NAME="); ok {
			return strings.Trim(name, `"'`)
		}
	}
	return ""
}

// governors names who sets the cores' frequencies, "" where nobody does (as in
// most virtual machines).
func governors(cpus string) string {
	files, _ := filepath.Glob(filepath.Join(cpus, "cpu[0-9]*/cpufreq/scaling_governor"))
	var all []string
	for _, file := range files {
		if g := firstLine(file); g != "" && !slices.Contains(all, g) {
			all = append(all, g)
		}
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

func firstLine(file string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line)
}
