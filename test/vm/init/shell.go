// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

// interactive gives the console to a person until the shell ends.
func interactive(plan *guest.Plan, tty *os.File) error {
	setUp(plan, func(format string, args ...any) {
		fmt.Fprintf(tty, "init: "+format+"\n", args...)
	})
	if plan.Shell.Rows > 0 && plan.Shell.Columns > 0 {
		size := &unix.Winsize{Row: plan.Shell.Rows, Col: plan.Shell.Columns}
		if err := unix.IoctlSetWinsize(int(tty.Fd()), unix.TIOCSWINSZ, size); err != nil {
			return fmt.Errorf("set terminal size: %w", err)
		}
	}
	fmt.Fprintln(tty, plan.Shell.Welcome)
	cmd := exec.Command(guest.Busybox, "sh", "-l")
	cmd.Dir = "/root"
	cmd.Env = append(plan.Env, "TERM="+plan.Shell.Term, `PS1=\h:\w# `)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err := cmd.Run()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		return fmt.Errorf("run shell: %w", err)
	}
	return nil
}
