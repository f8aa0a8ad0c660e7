// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

// shellPrograms are what a person finds in a guest, if it exists.
var shellPrograms = []string{"xdpl2", "xdpl2-bench"}

// runShell boots one kernel with a shell on this terminal.
func (r *runner) runShell(ctx context.Context) error {
	name := r.kernels[0]
	source, err := r.source()
	if err != nil {
		return err
	}
	bundle, err := source.Get(ctx, name)
	if err != nil {
		return err
	}
	files := map[string]string{}
	var programs []string
	for _, program := range shellPrograms {
		sources, err := filepath.Glob(filepath.Join(r.module.root, "cmd", program, "*.go"))
		if err != nil {
			return err
		}
		if len(sources) == 0 {
			r.out.progress("cmd/%s is not there yet", program)
			continue
		}
		r.out.progress("building cmd/%s for arm64", program)
		if files["bin/"+program], err = r.build(ctx, "./cmd/"+program); err != nil {
			return err
		}
		programs = append(programs, program)
	}
	sample := filepath.Join(r.module.root, "files", "etc", "config", "xdpl2")
	if _, err := os.Stat(sample); err == nil {
		files["etc/config/xdpl2"] = sample
	}
	initBinary, err := r.build(ctx, "./test/vm/init")
	if err != nil {
		return err
	}
	plan := r.plan(name, nil)
	plan.Shell = &guest.Shell{
		Welcome: welcome(name, settingOf(name), programs),
		Term:    os.Getenv("TERM"),
	}
	if size, err := unix.IoctlGetWinsize(int(os.Stdout.Fd()), unix.TIOCGWINSZ); err == nil {
		plan.Shell.Rows, plan.Shell.Columns = size.Row, size.Col
	}
	archive := filepath.Join(r.work, "shell.cpio")
	fs := &initramfs{bundle: bundle, init: initBinary, plan: plan, files: files}
	if err := fs.write(archive); err != nil {
		return err
	}
	r.out.progress("%s: booting (Ctrl-A X ends it at once)", name)
	m := machine{bundle: bundle, initramfs: archive, cpus: settingOf(name).cpus, interactive: true}
	cmd := m.command(ctx, r.qemu)
	// QEMU sets the terminal up and restores it.
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx))
		}
		return fmt.Errorf("QEMU: %w", err)
	}
	return nil
}

// welcome says what can be typed.
func welcome(kernel string, s setting, programs []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nLinux %s", kernel)
	if text := s.String(); text != "" {
		fmt.Fprintf(&b, " (%s)", text)
	}
	fmt.Fprintf(&b, " on an emulated aarch64 processor.\n\n")
	for _, program := range programs {
		switch program {
		case "xdpl2":
			fmt.Fprintln(&b, "  xdpl2 --help             the daemon and its command line")
		case "xdpl2-bench":
			fmt.Fprintln(&b, "  xdpl2-bench demo --shell opens a lab: a router with hosts around it")
		}
	}
	fmt.Fprintln(&b, "  ip link                  eth0 and eth1 are two cards with a cable between them")
	fmt.Fprintln(&b, "  dmesg                    the kernel's log")
	fmt.Fprintln(&b, "  poweroff -f              leaves (so does Ctrl-A X)")
	return b.String()
}
