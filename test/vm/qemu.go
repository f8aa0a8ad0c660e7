// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/test/vm/kernels"
)

// Two guests run at a time, one for each processor of a small machine. Each may
// take its memory, QEMU's translation buffer, and what QEMU needs itself: the
// kernel and the initramfs once more, and some 40 MiB. Together that is less
// than 1 GiB.
const (
	guestsAtOnce      = 2
	guestMemory       = 256 // MiB
	translationBuffer = 64  // MiB
)

// qemuProgram boots the guests.
const qemuProgram = "qemu-system-aarch64"

// findQEMU finds the program that boots guests.
func findQEMU() (string, error) {
	program, err := exec.LookPath(qemuProgram)
	if err != nil {
		return "", errors.New(qemuProgram + " is missing: install the Debian package qemu-system-arm")
	}
	return program, nil
}

// A machine is what a guest gets.
type machine struct {
	bundle      kernels.Bundle
	initramfs   string
	cpus        int
	interactive bool
}

// kernelParameters are the guests'. The kernel is silent on the console until
// it panics, and then QEMU ends: /init sends its log in frames. The initramfs is
// unpacked into ramfs, since a tmpfs holds no more than half of the memory.
// Page table isolation, which address randomisation brings with it and a
// Cortex-A53 does not need, would make emulation half as slow again.
var kernelParameters = []string{
	"console=ttyAMA0", "quiet", "loglevel=1", "panic=-1",
	"log_buf_len=4M", "printk.devkmsg=on",
	"rdinit=/init", "rootfstype=ramfs", "cma=0",
	"net.ifnames=0",
	"nokaslr", "kpti=off", "mitigations=off",
}

// guestPorts are the names of the guest's two network cards (virtio-net),
// which a cable connects.
const guestPorts = "eth0,eth1"

// arguments are QEMU's. A plain Cortex-A53 is several times faster to emulate
// than the newest processor.
func (m machine) arguments() []string {
	args := []string{
		"-machine", "virt",
		"-cpu", "cortex-a53",
		"-accel", "tcg,thread=multi,tb-size=" + strconv.Itoa(translationBuffer),
		"-smp", strconv.Itoa(m.cpus),
		"-m", strconv.Itoa(guestMemory),
		"-nodefaults", "-no-user-config",
		"-display", "none",
		"-no-reboot",
		"-kernel", m.bundle.Kernel(),
		"-initrd", m.initramfs,
		"-append", strings.Join(kernelParameters, " "),
	}
	for i := range 2 {
		args = append(args,
			"-netdev", fmt.Sprintf("hubport,id=port%d,hubid=0", i),
			"-device", fmt.Sprintf("virtio-net-pci,netdev=port%d,mac=52:54:00:00:00:%02x,romfile=", i, i+1))
	}
	if m.interactive {
		return append(args, "-serial", "mon:stdio") // Ctrl-A X ends QEMU
	}
	return append(args, "-serial", "stdio", "-monitor", "none")
}

// command prepares QEMU. It ends with the context, and with this program.
func (m machine) command(ctx context.Context, qemu string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, qemu, m.arguments()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = 5 * time.Second
	return cmd
}
