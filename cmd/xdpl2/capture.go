// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/httpapi"
)

func captureCommand() *command {
	return &command{
		name: "capture", args: "[DEVICE [TCPDUMP-ARGUMENT]...]",
		short: "Let tcpdump see every frame, and start it",
		long: "tcpdump on a port does not see what the engines native and generic forward. While this\n" +
			"command runs, every port uses tc, whose frames it sees; then each has its engine again,\n" +
			"however the command ends. With a DEVICE it starts tcpdump there, with the arguments behind\n" +
			"it; without one it waits until it is interrupted, for another program that captures. On the\n" +
			"bridge itself accelerated frames are never seen: name a port.",
		run: func(ctx context.Context, e *env, args []string) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			if len(args) == 0 {
				return holdCapture(ctx, e)
			}
			tcpdump, err := exec.LookPath("tcpdump")
			if err != nil {
				return errors.New("no program tcpdump (opkg install tcpdump-mini); without a DEVICE, capture lets other programs see the frames")
			}
			if err := httpapi.NewClient(e.runDir).Capture(ctx); err != nil {
				return err
			}
			return runTcpdump(ctx, e, tcpdump, args)
		},
	}
}

// holdCapture keeps frames visible until the context ends.
func holdCapture(ctx context.Context, e *env) error {
	switch err := httpapi.NewClient(e.runDir).Capture(ctx); {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	fmt.Fprintln(e.stderr, "All ports use tc: captures see every frame, until this is interrupted.")
	<-ctx.Done()
	return nil
}

// runTcpdump runs it until it ends by itself or the context does.
func runTcpdump(ctx context.Context, e *env, program string, args []string) error {
	device, args := args[0], args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	cmd := exec.CommandContext(ctx, program, append([]string{"-i", device}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, e.stdout, e.stderr
	// It ends in good order, also when this process is killed: what it shows
	// from then on would not be all.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 2 * time.Second
	runtime.LockOSThread() // its parent is the thread, not the process
	defer runtime.UnlockOSThread()
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil // interrupted, as tcpdump usually is
	}
	if err != nil {
		return fmt.Errorf("tcpdump: %w", err)
	}
	return nil
}
