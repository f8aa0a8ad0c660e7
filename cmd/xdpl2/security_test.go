// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// TestCapabilitiesAreDropped: of root's capabilities the daemon keeps four, in
// all of its threads, and what it starts may have three more.
func TestCapabilitiesAreDropped(t *testing.T) {
	if _, _, errno := syscall.AllThreadsSyscall(unix.SYS_GETPID, 0, 0, 0); errors.Is(errno, syscall.ENOTSUP) {
		t.Skip("needs a binary without C, as the router's is (CGO_ENABLED=0)")
	}
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
	b.start()
	var want uint64
	for _, c := range keptCapabilities {
		want |= 1 << c
	}
	bound := want
	for _, c := range startedCapabilities {
		// Where this test runs, root may be without it.
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, uintptr(c), 0, 0, 0); err == nil && has == 1 {
			bound |= 1 << c
		}
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", b.cmd.Process.Pid))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads %v, %v", tasks, err)
	}
	for _, task := range tasks {
		text, err := os.ReadFile(task)
		if os.IsNotExist(err) {
			continue // it has ended
		}
		must(t, err)
		for line := range strings.SplitSeq(string(text), "\n") {
			name, value, _ := strings.Cut(line, ":")
			want := want
			switch name {
			case "CapEff", "CapPrm":
			case "CapBnd":
				want = bound
			default:
				continue
			}
			got, err := strconv.ParseUint(strings.TrimSpace(value), 16, 64)
			if err != nil || got != want {
				t.Errorf("%s: %s %x, want %x (%v)", task, name, got, want, err)
			}
		}
	}
	// What needs the kernel's leave still works: other engines, other maps.
	b.configure(confOf("generic", "option max_stations '512'"))
	reload(b)
	b.learn(b.lab.Hosts...)
	if p := b.portStatus("eth1"); p.Engine != "generic" || p.State != api.Accelerating {
		t.Errorf("eth1 %+v", p)
	}
}

func TestCapabilitiesOfOldKernels(t *testing.T) {
	if got, want := capabilitiesFor(37), []uint{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW, unix.CAP_SYS_ADMIN}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLogLines: a line each, the level first, warnings to standard error.
func TestLogLines(t *testing.T) {
	var out, errs bytes.Buffer
	log := newLog(&out, &errs, slog.LevelInfo)
	log.Debug("nothing")
	log.Info("ready", "ports", 3)
	log.With("device", "eth1").Warn("two\nlines", "error", "a b")
	log.WithGroup("port").Error("lost", "name", "eth1")
	if want := "level=INFO msg=ready ports=3\n"; out.String() != want {
		t.Errorf("standard output %q, want %q", out.String(), want)
	}
	want := "level=WARN msg=\"two\\nlines\" device=eth1 error=\"a b\"\nlevel=ERROR msg=lost port.name=eth1\n"
	if errs.String() != want {
		t.Errorf("standard error %q, want %q", errs.String(), want)
	}
}

// TestNothingListensOnTheNetwork by default.
func TestNothingListensOnTheNetwork(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
	sockets := func() string {
		var all strings.Builder
		must(t, b.lab.Router.Do(func() error {
			for _, name := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "raw6"} {
				text, err := os.ReadFile("/proc/thread-self/net/" + name)
				if err != nil && !os.IsNotExist(err) {
					return err
				}
				lines := strings.SplitN(string(text), "\n", 2)
				all.WriteString(name + " " + lines[len(lines)-1])
			}
			return nil
		}))
		return all.String()
	}
	before := sockets()
	b.start()
	if during := sockets(); during != before {
		t.Errorf("sockets before:\n%s\nwith the daemon:\n%s", before, during)
	}
	info, err := os.Stat(filepath.Join(b.dir, "run", "control.sock"))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the control socket's mode is %v", info.Mode())
	}
}
