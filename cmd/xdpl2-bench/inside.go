// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// insideCommand is `ip netns exec` for the demo's shell, where there may be no
// `ip`: it runs a program in a named namespace, with a /sys that shows it.
func insideCommand() *command {
	return &command{
		name: "inside", args: "NAMESPACE PROGRAM [ARGUMENT]...", hidden: true,
		short: "Run a program in a named network namespace",
		run: func(_ context.Context, _ *env, args []string) error {
			if len(args) < 2 {
				return usagef("inside: a namespace and a program are needed")
			}
			return inside(args[0], args[1:])
		},
	}
}

// netnsDir is where named network namespaces are.
const netnsDir = "/run/netns"

// inside replaces this process; it returns only if that fails.
func inside(name string, args []string) error {
	path, err := exec.LookPath(args[0])
	if err != nil {
		return fmt.Errorf("run in namespace %s: %w", name, err)
	}
	// Namespaces belong to the thread, and the thread that executes is the
	// one that the new program keeps.
	runtime.LockOSThread()
	ns, err := os.Open(filepath.Join(netnsDir, name))
	if err != nil {
		return fmt.Errorf("enter namespace: %w", err)
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter namespace %s: %w", name, err)
	}
	if err := ownSys(); err != nil {
		return fmt.Errorf("mount /sys for namespace %s: %w", name, err)
	}
	return fmt.Errorf("run %s: %w", path, syscall.Exec(path, args, os.Environ()))
}

// ownSys puts a sysfs of the present network namespace over /sys, for this
// process and its children only.
func ownSys() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	// Mounts made here stay here; those of the others still arrive.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.Mount("sysfs", "/sys", "sysfs", 0, "")
}
