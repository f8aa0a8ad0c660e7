// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

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
	if f, ok := r.stdout.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			plan.Shell.Rows, plan.Shell.Columns = size.Row, size.Col
		}
	}
	archive := filepath.Join(r.work, "shell.cpio")
	fs := &initramfs{bundle: bundle, init: initBinary, plan: plan, files: files}
	if err := fs.write(archive); err != nil {
		return err
	}
	r.out.progress("%s: booting (Ctrl-A X ends it at once)", name)
	m := machine{bundle: bundle, initramfs: archive, cpus: settingOf(name).cpus, interactive: true}
	cmd := m.command(ctx, r.qemu)
	var stderr bytes.Buffer // shown only if QEMU fails: it warns about the cable
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.stdin, r.stdout, &stderr
	if !isTerminal(r.stdin) {
		g := &gate{w: r.stdout, open: make(chan struct{})}
		cmd.Stdout = g
		cmd.Stdin = io.MultiReader(g, r.stdin, strings.NewReader(endOfInput))
	} // else QEMU sets the terminal up and restores it
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("QEMU: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// endOfInput, typed at a shell, ends it.
const endOfInput = "\x04"

// isTerminal tells whether a person types into r.
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// A gate holds piped input back until the guest's shell has shown its prompt:
// a guest loses what is typed while it boots. As a Writer it passes the guest's
// output on, as a Reader it is empty, but ends only then.
type gate struct {
	w    io.Writer
	open chan struct{}
	last string
	once sync.Once
}

func (g *gate) Write(p []byte) (int, error) {
	g.last += string(p)
	if strings.Contains(g.last, guest.Prompt) {
		g.once.Do(func() { close(g.open) })
	}
	g.last = g.last[max(0, len(g.last)-len(guest.Prompt)):]
	return g.w.Write(p)
}

func (g *gate) Read([]byte) (int, error) {
	<-g.open
	return 0, io.EOF
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
