// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/lab"
)

// demoShell leaves the router open for a person: it starts a shell inside and
// takes everything down when the shell ends.
func demoShell(ctx context.Context, e *env, have *box, dir string) (err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// Once the shell runs, an interrupt is for what runs in the shell: it has
	// no effect here.
	building, cancel := signal.NotifyContext(ctx, os.Interrupt)
	defer cancel()
	box, err := buildRouter(building, have, filepath.Join(dir, "lan"), "demo")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.leave()) }()
	bin := filepath.Join(dir, "bin")
	if err := writeWrappers(bin, box); err != nil {
		return err
	}
	fmt.Fprint(e.stdout, shellWelcome(box, exec.LookPath))

	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the shell: %w", err)
	}
	shell := cmp.Or(os.Getenv("SHELL"), "/bin/sh")
	if _, err := exec.LookPath(shell); err != nil {
		shell = "/bin/sh"
	}
	if building.Err() != nil {
		return context.Cause(building)
	}
	cmd := exec.CommandContext(ctx, self, "inside", nsName(box.Router), shell)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGHUP) }
	cmd.WaitDelay = time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.stdin, e.stdout, e.stderr
	cmd.Env = append(os.Environ(),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"XDPL2_CONFIG="+box.daemon.file(),
		"XDPL2_DEMO="+nsName(box.Router))
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("the demo was ended: %w", context.Cause(ctx))
	case errors.As(err, &exit) && exit.Exited():
		err = nil // its last command may have failed: that is not ours
	case err != nil:
		return fmt.Errorf("run the shell %s: %w", shell, err)
	}
	fmt.Fprintln(e.stdout, "The router and its hosts are being taken down.")
	return nil
}

// leave is close after people were inside.
func (r *router) leave() error {
	errs := []error{r.daemon.stop(), endInside(r.Router)}
	for _, h := range r.Hosts {
		errs = append(errs, endInside(h.NS))
	}
	return errors.Join(append(errs, r.close())...)
}

// nsName is a namespace's name, as `ip netns` shows it.
func nsName(ns *lab.NS) string { return filepath.Base(ns.Path()) }

// writeWrappers makes small programs for the shell: xdpl2 asks the demo's
// daemon, and h1 to h3 run a program on a host.
func writeWrappers(bin string, box *router) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("write programs for the shell: %w", err)
	}
	if err := os.Mkdir(bin, 0o755); err != nil {
		return fmt.Errorf("write programs for the shell: %w", err)
	}
	wrappers := map[string][]string{"xdpl2": append([]string{box.daemon.program}, box.daemon.options()...)}
	for _, h := range box.Hosts {
		wrappers[h.Name] = []string{self, "inside", nsName(h.NS)}
	}
	for name, command := range wrappers {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(wrapper(command)), 0o755); err != nil {
			return fmt.Errorf("write programs for the shell: %w", err)
		}
	}
	return nil
}

// wrapper is a script that puts words in front of its arguments.
func wrapper(command []string) string {
	quoted := make([]string, len(command))
	for i, word := range command {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return "#!/bin/sh\nexec " + strings.Join(quoted, " ") + " \"$@\"\n"
}

// shellWelcome tells what can be typed.
func shellWelcome(box *router, look func(string) (string, error)) string {
	h1, h2 := box.Hosts[0], box.Hosts[1]
	var b strings.Builder
	fmt.Fprintf(&b, `This shell is inside a router: bridge %s with eth1 to eth3, and a host behind each.
The daemon runs on %s, which is also $XDPL2_CONFIG.

  h1 ping -c 3 %s            ping from h1 to h2 (h1, h2 and h3 run a program there)
  xdpl2 status                            is it accelerating? also: ports, stations, counters
  sed -i s/auto/generic/ $XDPL2_CONFIG    another engine ...
  xdpl2 reload                            ... without losing a frame
  exit                                    take everything down

From another terminal:

  ip netns exec %s ping %s
  %s --run-dir %s status

`, lab.BridgeName, box.daemon.file(), h2.IP4, nsName(h1.NS), h2.IP4, box.daemon.program, filepath.Join(box.daemon.dir, "run"))
	for _, need := range []struct{ program, packages string }{
		{"ip", "iproute2 on Debian, ip-full on OpenWrt"},
		{"ping", "iputils-ping on Debian, part of busybox on OpenWrt"},
	} {
		if _, err := look(need.program); err != nil {
			fmt.Fprintf(&b, "There is no program %s here: package %s brings it.\n", need.program, need.packages)
		}
	}
	return b.String()
}
