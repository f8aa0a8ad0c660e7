// SPDX-License-Identifier: Apache-2.0

// Package red is a test package that must turn a run red, and shows besides
// what must not. The runner's own tests boot it.
package red

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func guest(t *testing.T) {
	t.Helper()
	if os.Getenv("XDPL2_GUEST") == "" {
		t.Skip("runs in a test guest only")
	}
}

func TestPasses(t *testing.T) {
	guest(t)
	data, err := os.ReadFile("testdata/text")
	if err != nil {
		t.Fatal(err)
	}
	if string(data) != "test data\n" {
		t.Errorf("test data is %q", data)
	}
}

func TestFails(t *testing.T) {
	guest(t)
	t.Run("sub", func(t *testing.T) { t.Error("fails on purpose") })
	t.Run("other", func(*testing.T) {})
}

func TestSkips(t *testing.T) {
	guest(t)
	t.Skip("skipped on purpose")
}

func TestRig(t *testing.T) {
	guest(t)
	t.Skip("not for guests: a rig on purpose")
}

// What programs print and what they write into the kernel's log must not be
// taken for the kernel's own words.
func TestWordsOfPrograms(t *testing.T) {
	guest(t)
	fmt.Println("BUG: Oops: WARNING: printed")
	fmt.Println("--- FAIL: TestWordsOfPrograms (0.00s)")
	fmt.Fprintln(os.Stderr, "\x02deadbeef done \"\" \"\"")
	if err := os.WriteFile("/dev/kmsg", []byte("<2>WARNING: BUG: written by a program"), 0); err != nil {
		t.Error(err)
	}
}

// The kernel begins a message about a network device with the device's name.
func TestKernelWarning(t *testing.T) {
	guest(t)
	for _, args := range []string{
		"link add red0 type dummy",
		"link set red0 name WARNING",
	} {
		if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", args, err, out)
		}
	}
}

// What a test needs of a guest.
func TestGuest(t *testing.T) {
	guest(t)
	for _, name := range strings.Split(os.Getenv("XDPL2_GUEST_PORTS"), ",") {
		if _, err := net.InterfaceByName(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if lo, err := net.InterfaceByName("lo"); err != nil || lo.Flags&net.FlagUp == 0 {
		t.Errorf("loopback: %+v, %v", lo, err)
	}
	for _, path := range []string{"/dev/net/tun", "/sys/fs/bpf", "/run", "/var/run", "/tmp", "/bin/sh", "/dev/pts/ptmx"} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for _, module := range []string{"veth", "bridge", "8021q"} {
		if _, err := os.Stat("/sys/module/" + module); err != nil {
			t.Error(err)
		}
	}
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	if hidden := os.Getenv("XDPL2_GUEST") == "6.12"; hidden != os.IsNotExist(err) {
		t.Errorf("BTF hidden: %v, but: %v", hidden, err)
	}
}

// A program that a test leaves behind is ended, and noted.
func TestLeavesProcess(t *testing.T) {
	guest(t)
	if err := exec.Command("sleep", "1000").Start(); err != nil {
		t.Fatal(err)
	}
}
