// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/calibrate"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// calibrating has the daemon measure and waits until it does. The result comes
// on the channel.
func (b *box) calibrating(ctx context.Context, seconds int) (result chan error, table **api.Calibration, events <-chan api.Event) {
	b.t.Helper()
	events, err := b.client().Events(testContext(b.t))
	must(b.t, err)
	result, table = make(chan error, 1), new(*api.Calibration)
	go func() {
		var err error
		*table, err = b.client().Calibrate(ctx, seconds)
		result <- err
	}()
	for event := range events {
		if event.Kind != api.EventCalibrate {
			continue
		}
		if event.State != "running" {
			b.t.Fatalf("%+v (%v)", event, <-result)
		}
		if event.Of > 0 { // all is set up
			return result, table, events
		}
	}
	b.t.Fatal("no more events")
	return nil, nil, nil
}

// workers are the processes that the daemon has started.
func (b *box) workers() (pids []int) {
	b.t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", b.cmd.Process.Pid))
	must(b.t, err)
	if len(lists) == 0 {
		b.t.Skip("not for guests: the kernel does not tell a process's children")
	}
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			must(b.t, err)
			pids = append(pids, pid)
		}
	}
	return pids
}

// receivers are the kernel threads that receive for devices of a rig, by id.
// Each goes with its device, and that with its namespace.
func receivers(t *testing.T) map[string]bool {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	must(t, err)
	found := map[string]bool{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err == nil && strings.HasPrefix(string(text), "napi/xi") {
			found[name] = true
		}
	}
	return found
}

// nothingLeft waits until a worker and the devices that came with it are gone.
func (b *box) nothingLeft(pid int, before, during map[string]bool) {
	b.t.Helper()
	b.wait("the worker's end", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
	for thread := range during {
		if !before[thread] {
			b.wait("the end of "+thread, func() bool { _, err := os.Stat(thread); return os.IsNotExist(err) })
		}
	}
	left, err := filepath.Glob(filepath.Join(b.dir, "kept", ".*"))
	must(b.t, err)
	if len(left) > 0 {
		b.t.Errorf("left behind: %v", left)
	}
}

// TestCalibrate: the daemon measures by another process, tells how far it is,
// refuses a second caller, and keeps the table.
func TestCalibrate(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
	b.start()
	if _, err := b.client().Calibrate(testContext(t), 0); !errors.Is(err, api.ErrNoData) {
		t.Errorf("nothing was measured: %v", err)
	}
	if _, errs, code := b.cli("calibrate", "--last"); code != exitFailed || !strings.Contains(errs, "nothing has been measured yet: xdpl2 calibrate does it") {
		t.Errorf("code %d, %s", code, errs)
	}
	if inGuest {
		// A turn of all engines, which takes seconds there, is measured in any
		// case, and an engine that does not carry its frames is an error.
		c, err := b.client().Calibrate(testContext(t), 12)
		must(t, err)
		t.Logf("rows %+v, missing %q", c.Rows, c.Missing)
		if len(c.Rows) == 0 && !strings.Contains(strings.Join(c.Missing, "\n"), "too little time") {
			t.Error("nothing was measured")
		}
		return
	}
	result, table, events := b.calibrating(testContext(t), 4)
	if s := b.status(); s.Calibrating == nil || s.Calibrating.Text == "" || s.Calibration != nil {
		t.Errorf("status %+v, %+v", s.Calibrating, s.Calibration)
	}
	if _, err := b.client().Calibrate(testContext(t), 5); !errors.Is(err, api.ErrBusy) {
		t.Errorf("a second caller: %v", err)
	}
	must(t, <-result)
	for event := range events {
		if event.Kind == api.EventCalibrate && event.State != "running" {
			if event.State != "done" {
				t.Errorf("%+v", event)
			}
			break
		}
	}
	c := *table
	for _, r := range c.Rows {
		t.Logf("%+v", r)
	}
	t.Logf("missing: %q", c.Missing)
	if len(c.Rows) == 0 {
		t.Fatalf("nothing was measured: %q", c.Missing)
	}
	info, err := os.Stat(b.calibration())
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("file %v, %v", info, err)
	}
	kept, err := calibrate.Load(b.calibration())
	if err != nil || !reflect.DeepEqual(kept, c) {
		t.Errorf("kept %+v, %v, want %+v", kept, err, c)
	}
	last, err := b.client().Calibrate(testContext(t), 0)
	if err != nil || !reflect.DeepEqual(last, c) {
		t.Errorf("last %+v, %v, want %+v", last, err, c)
	}
	if s := b.status(); s.Calibrating != nil || s.Calibration == nil || s.Calibration.Kernel != calibrate.Kernel() || s.Calibration.Stale != "" {
		t.Errorf("status %+v, %+v", s.Calibrating, s.Calibration)
	}
	out, _, code := b.cli("calibrate", "--last")
	if code != exitFine || !strings.Contains(out, "NOISE") || !strings.Contains(out, c.Rows[0].Work) {
		t.Errorf("code %d, %s", code, out)
	}
	// Another kernel's table is named as such; a broken file is no table.
	c.Kernel = "1.2.3"
	must(t, calibrate.Store(b.calibration(), c))
	reload(b)
	if out, _, _ := b.cli("status"); !strings.Contains(out, "measured on Linux 1.2.3, this is "+calibrate.Kernel()) {
		t.Errorf("status:\n%s", out)
	}
	must(t, os.WriteFile(b.calibration(), []byte(`{"rows": 3}`), 0o644))
	reload(b)
	if _, err := b.client().Calibrate(testContext(t), 0); err == nil || !strings.Contains(err.Error(), b.calibration()) {
		t.Errorf("a broken file: %v", err)
	}
}

// TestCalibrationEnds: however it ends, nothing is left.
func TestCalibrationEnds(t *testing.T) {
	if inGuest {
		t.Skip("not for guests: what ends processes is the same everywhere")
	}
	const long = api.MaxCalibrationSeconds
	started := func(t *testing.T, ctx context.Context) (b *box, result chan error, events <-chan api.Event, gone func()) {
		b = newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
		b.start()
		before := receivers(t)
		result, _, events = b.calibrating(ctx, long)
		during, pids := receivers(t), b.workers()
		if len(pids) != 1 {
			t.Fatalf("workers %v", pids)
		}
		return b, result, events, func() { t.Helper(); b.nothingLeft(pids[0], before, during) }
	}
	ending := func(t *testing.T, b *box, events <-chan api.Event, state string) {
		t.Helper()
		for event := range events {
			if event.Kind == api.EventCalibrate && event.State != "running" {
				if event.State != state {
					t.Errorf("%+v, want %s", event, state)
				}
				break
			}
		}
		b.wait("a status without calibration", func() bool { return b.status().Calibrating == nil })
		if _, err := os.Stat(b.calibration()); !os.IsNotExist(err) {
			t.Errorf("a table was kept: %v", err)
		}
	}
	t.Run("the caller goes", func(t *testing.T) {
		ctx, cancel := context.WithCancel(testContext(t))
		b, result, events, gone := started(t, ctx)
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		gone()
		ending(t, b, events, "cancelled")
	})
	t.Run("the worker is killed", func(t *testing.T) {
		b, result, events, gone := started(t, testContext(t))
		must(t, syscall.Kill(b.workers()[0], syscall.SIGKILL))
		if err := <-result; err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%v", err)
		}
		gone()
		ending(t, b, events, "failed")
		b.learn(b.lab.Hosts...) // and the daemon goes on
	})
	t.Run("the daemon is killed", func(t *testing.T) {
		b, result, _, gone := started(t, testContext(t))
		b.end(syscall.SIGKILL)
		if err := <-result; err == nil {
			t.Error("a table of a daemon that was killed")
		}
		gone()
	})
	t.Run("the daemon is stopped", func(t *testing.T) {
		b, result, _, gone := started(t, testContext(t))
		if code := b.end(syscall.SIGTERM); code != exitFine {
			t.Errorf("exit code %d", code)
		}
		if err := <-result; err == nil {
			t.Error("a table of a daemon that was stopped")
		}
		gone()
	})
}

// TestCalibrateWithoutDaemon: the command measures itself then, and an interrupt
// leaves the table of the last time.
func TestCalibrateWithoutDaemon(t *testing.T) {
	if inGuest {
		t.Skip("not for guests: TestCalibrate measures there")
	}
	b := newBox(t, lab.ForTest(t, lab.Options{Hosts: 1, NoIPv6: true}), confOf("tc"))
	command := func(args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
		cmd := b.program(args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		must(t, b.lab.Router.Start(cmd))
		return cmd, &out, &errs
	}
	cmd, out, errs := command("calibrate", "--seconds=4", "--json")
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	var c api.Calibration
	must(t, json.Unmarshal(out.Bytes(), &c))
	if kept, err := calibrate.Load(b.calibration()); err != nil || !reflect.DeepEqual(kept, &c) {
		t.Errorf("kept %+v, %v, want %+v", kept, err, c)
	}
	begin := time.Now()
	before := receivers(t)
	cmd, out, errs = command("calibrate", "--seconds=60")
	pid := cmd.Process.Pid
	// Namespaces are made before anything can be interrupted halfway.
	b.wait("a rig", func() bool { return len(receivers(t)) > len(before) || time.Since(begin) > 5*time.Second })
	during := receivers(t)
	must(t, cmd.Process.Signal(syscall.SIGINT))
	if err := cmd.Wait(); err == nil || !strings.Contains(errs.String(), "interrupted") || out.Len() > 0 {
		t.Errorf("%v: %s%s", err, errs, out)
	}
	b.nothingLeft(pid, before, during)
	if kept, err := calibrate.Load(b.calibration()); err != nil || !kept.Time.Equal(c.Time) {
		t.Errorf("kept %+v, %v", kept, err)
	}
	for _, args := range [][]string{{"calibrate", "--seconds=61"}, {"calibrate", "--seconds=-1"}, {workerName}, {workerName, "x"}, {workerName, "0"}} {
		if _, errs, code := b.cli(args...); code != exitUsage {
			t.Errorf("%v: code %d, %s", args, code, errs)
		}
	}
}
