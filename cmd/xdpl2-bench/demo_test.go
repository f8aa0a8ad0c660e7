// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// stage is where a demo runs in a test: with the real daemon and a directory
// for temporary files that must be empty in the end.
type stage struct {
	t        *testing.T
	daemon   string
	temp     string
	cmd      *exec.Cmd
	out, err bytes.Buffer // when start does not hand out a pipe
}

var buildOnce sync.Once

// newStage builds the daemon. The program of another package can be had in no
// other way.
func newStage(t *testing.T) *stage {
	t.Helper()
	if os.Getenv("XDPL2_GUEST") == "1" {
		t.Skip("not for guests: the daemon's program is built from source")
	}
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("not for guests: the daemon's program is built from source, which needs the go tool")
	}
	netns.Require(t)
	buildOnce.Do(func() {
		if buildDir, err = os.MkdirTemp("", "xdpl2-bench-test-"); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(goTool, "build", "-o", filepath.Join(buildDir, "xdpl2"), "../xdpl2").CombinedOutput()
		if err != nil {
			t.Fatalf("build the daemon: %v\n%s", err, out)
		}
	})
	return &stage{t: t, daemon: filepath.Join(buildDir, "xdpl2"), temp: t.TempDir()}
}

// command is a run of the program.
func (s *stage) command(args ...string) *exec.Cmd {
	s.t.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command(exe, append(args, "--xdpl2", s.daemon)...)
	s.cmd.Env = append(os.Environ(), asProgram+"=1", "TMPDIR="+s.temp)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.err
	return s.cmd
}

// code is the exit code of a run that has ended.
func (s *stage) code() int { return s.cmd.ProcessState.ExitCode() }

// clean checks that nothing is left.
func (s *stage) clean() {
	s.t.Helper()
	if left, _ := filepath.Glob(filepath.Join(s.temp, "*")); len(left) > 0 {
		s.t.Errorf("left behind: %q", left)
	}
	if left, _ := filepath.Glob(fmt.Sprintf("%s/xdpl2-%d-*", netnsDir, s.cmd.Process.Pid)); len(left) > 0 {
		s.t.Errorf("left behind: %q", left)
	}
	for _, line := range processes(s.t) {
		if strings.Contains(line, s.daemon) || strings.Contains(line, s.temp) {
			s.t.Errorf("still running: %s", line)
		}
	}
}

// processes are the command lines of everything that runs.
func processes(t *testing.T) (lines []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err == nil && len(text) > 0 {
			lines = append(lines, strings.ReplaceAll(string(text), "\x00", " "))
		}
	}
	return lines
}

func TestDemo(t *testing.T) {
	s := newStage(t)
	start := time.Now()
	err := s.command("demo", "--quick", "--json").Run()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, s.out.String(), s.err.String())
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	s.clean()
	var r result
	dec := json.NewDecoder(&s.out)
	if err := dec.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Error("there is more than one document")
	}
	if len(r.Ports) != 3 || len(r.Failures) > 0 || r.Share < 0.5 {
		t.Errorf("%+v", r)
	}
	for _, p := range r.Ports {
		if p.State != api.Accelerating || p.Redirected == 0 || p.Passed == 0 || p.Engine == "" {
			t.Errorf("%+v", p)
		}
	}
	for _, f := range r.Traffic {
		if !f.OK || f.Lost > 0 {
			t.Errorf("%+v", f)
		}
	}
	// A busy machine may have left no time for numbers, but then that is said.
	if len(r.Comparison) == 0 && len(r.LeftOut) == 0 {
		t.Error("nothing is said of the comparison")
	}
	for _, l := range r.Comparison {
		if len(l.Variants) != len(variants) || l.Rounds < minRounds {
			t.Errorf("%+v", l)
		}
		for _, v := range l.Variants {
			if accelerated := v.Name != viaBridge && v.Name != again; accelerated != (v.Share > 0.9) || v.Cost <= 0 {
				t.Errorf("%+v", v)
			}
		}
	}
}

// TestDemoInterrupted ends the demo at several places and sees that nothing is
// left.
func TestDemoInterrupted(t *testing.T) {
	s := newStage(t)
	for _, c := range []struct {
		at     string // in a line of the output
		signal syscall.Signal
	}{
		{"xdpl2 demo ", syscall.SIGINT}, {"  eth1  ", syscall.SIGINT}, {"2. ", syscall.SIGTERM}, {" s left", syscall.SIGHUP},
	} {
		s := &stage{t: t, daemon: s.daemon, temp: s.temp}
		cmd := s.command("demo", "--quick")
		cmd.Stdout = nil
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		sent := false
		var signalled time.Time
		for lines.Scan() {
			if !sent && strings.Contains(lines.Text(), c.at) {
				sent = true
				signalled = time.Now()
				if err := cmd.Process.Signal(c.signal); err != nil {
					t.Error(err)
				}
			}
		}
		_ = cmd.Wait()
		if !sent && c.at == " s left" && rig.Unsupported() != nil {
			t.Log("no comparison here")
			s.clean()
			continue
		}
		if !sent || s.code() != exitFailed || !strings.Contains(s.err.String(), "everything has been taken down") {
			t.Errorf("%v at %q: sent %v, exit code %d, %q", c.signal, c.at, sent, s.code(), s.err.String())
		}
		if took := time.Since(signalled); took > 10*time.Second {
			t.Errorf("%v at %q: it took %v to end", c.signal, c.at, took)
		}
		s.clean()
	}
}

func TestDemoShell(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("needs sh")
	}
	s := newStage(t)
	cmd := s.command("demo", "--shell")
	cmd.Env = append(cmd.Env, "SHELL=/bin/sh")
	cmd.Stdin = strings.NewReader(`
		echo "names $(ls /run/netns)"
		echo "router $(ls /sys/class/net)"
		echo "host $(h1 ls /sys/class/net)"
		xdpl2 status
		sed -i s/auto/generic/ $XDPL2_CONFIG
		xdpl2 reload
		xdpl2 status
		h2 sleep 98765 &
		exit 5
	`)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, s.out.String(), s.err.String())
	}
	s.clean()
	got := strings.Join(strings.Fields(s.out.String()), " ")
	for _, want := range []string{
		fmt.Sprintf("xdpl2-%d-demo-router", cmd.Process.Pid), "router br-lan eth1 eth2 eth3 lo", "host eth0 lo",
		"accelerating 3 of 3 ports", "reloaded", "accelerating generic xdp generic", "are being taken down",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s\n%s", want, s.out.String(), s.err.String())
		}
	}
	for _, line := range processes(t) {
		if strings.HasPrefix(line, "sleep 98765") {
			t.Errorf("still running: %s", line)
		}
	}
}
