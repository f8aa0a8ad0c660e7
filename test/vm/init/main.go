// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command init is the first and only service of a test guest: it sets the
// guest up, runs the test binaries of the plan one after the other, tells the
// runner what happened (package guest), and switches the guest off.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

// serialLine is the guest's only serial line, QEMU's PL011.
const serialLine = "/dev/ttyAMA0"

func main() {
	err := run()
	if err != nil {
		// Outside of any frame: the runner takes such text as a failure.
		fmt.Fprintln(os.Stderr, "init:", err)
	}
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintln(os.Stderr, "init: power off:", err)
	}
	// The kernel panics when its init returns, and the runner sees that.
}

// run is the guest's life. The exit line is sent only at its end.
func run() error {
	if os.Getpid() != 1 {
		return fmt.Errorf("this is the /init of a test guest, not a program to call")
	}
	if err := mountBasics(); err != nil {
		return err
	}
	plan, err := guest.ReadPlan()
	if err != nil {
		return err
	}
	tty, err := openConsole(plan.Shell == nil)
	if err != nil {
		return err
	}
	defer tty.Close()
	if plan.Shell != nil {
		return interactive(plan, tty)
	}
	console := guest.NewWriter(tty)
	if err := console.Send(guest.Hello, release(), ""); err != nil {
		return err
	}
	klog, err := startKernelLog(console)
	if err != nil {
		return err
	}
	setUp(plan, func(format string, args ...any) {
		console.Send(guest.Problem, "", fmt.Sprintf(format, args...))
	})
	if err := console.Send(guest.Ready, "", ""); err != nil {
		return err
	}
	procs := newProcesses()
	for _, p := range plan.Packages {
		if err := procs.runPackage(plan, p, console); err != nil {
			return err
		}
		// Its file lies in memory, which the next ones may need.
		if err := os.Remove(p.Binary); err != nil {
			return err
		}
	}
	if err := klog.stop(); err != nil {
		return err
	}
	if err := console.Send(guest.Done, "", ""); err != nil {
		return err
	}
	return drain(tty)
}

// setUp makes the guest what tests expect of a small router. What fails is a
// problem, but tests may still tell more.
func setUp(plan *guest.Plan, problem func(format string, args ...any)) {
	for _, err := range loadModules() {
		problem("%v", err)
	}
	steps := []struct {
		name string
		do   func() error
	}{
		{"mount", mountRest},
		{"device nodes", makeNodes},
		{"busybox", installBusybox},
		{"loopback", loopbackUp},
		{"host name", func() error { return unix.Sethostname([]byte(guest.Hostname)) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			problem("%s: %v", s.name, err)
		}
	}
	if plan.HideBTF {
		if err := hideBTF(); err != nil {
			problem("hide BTF: %v", err)
		}
	}
}

// release is what `uname -r` prints.
func release() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(name.Release[:])
}

// moduleOptions keep modules from making devices of their own, whose names
// tests may want.
var moduleOptions = map[string]string{
	"bonding": "max_bonds=0",
	"dummy":   "numdummies=0",
	"ifb":     "numifbs=0",
}

// loadModules loads the modules of the kernel's bundle in their order.
func loadModules() []error {
	order, err := os.ReadFile(filepath.Join(guest.ModulesDir, guest.ModuleOrder))
	if err != nil {
		return []error{fmt.Errorf("load modules: %w", err)}
	}
	var errs []error
	for _, name := range strings.Fields(string(order)) {
		if err := loadModule(name); err != nil {
			errs = append(errs, fmt.Errorf("load module %s: %w", name, err))
		}
	}
	return errs
}

// loadModule loads one module and then removes its file, which lies in memory.
func loadModule(name string) error {
	file := filepath.Join(guest.ModulesDir, name+".ko")
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), moduleOptions[name], 0); err != nil && err != unix.EEXIST {
		return err
	}
	return os.Remove(file)
}
