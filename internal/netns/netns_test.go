// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func nsForTest(t *testing.T) *NS {
	t.Helper()
	Require(t)
	ns, err := New("test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	return ns
}

func currentNS(t *testing.T) string {
	t.Helper()
	s, err := os.Readlink(threadNetNS())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDo(t *testing.T) {
	ns := nsForTest(t)
	outside := currentNS(t)
	var inside, nested string
	other := nsForTest(t)
	failed := errors.New("failed")
	err := ns.Do(func() error {
		inside = currentNS(t)
		if err := other.Do(func() error { nested = currentNS(t); return nil }); err != nil {
			return err
		}
		if currentNS(t) != inside {
			t.Error("a nested call did not come back")
		}
		return failed
	})
	if !errors.Is(err, failed) {
		t.Errorf("error %v", err)
	}
	if inside == outside || nested == inside || currentNS(t) != outside {
		t.Errorf("outside %s, inside %s, nested %s, now %s", outside, inside, nested, currentNS(t))
	}
	links, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	err = ns.Do(func() error {
		in, err := net.Interfaces()
		if len(in) >= len(links)+1 || in[0].Flags&net.FlagUp == 0 {
			t.Errorf("devices inside: %v", in)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestSysctlAndSysfs(t *testing.T) {
	ns := nsForTest(t)
	before, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward")
	if err != nil {
		t.Fatal(err)
	}
	if err := ns.SetSysctl("net/ipv4/ip_forward", "1"); err != nil {
		t.Fatal(err)
	}
	if v, err := ns.Sysctl("net/ipv4/ip_forward"); err != nil || v != "1" {
		t.Errorf("%q, %v", v, err)
	}
	if after, _ := os.ReadFile("/proc/sys/net/ipv4/ip_forward"); string(after) != string(before) {
		t.Error("the setting changed outside as well")
	}
	if err := ns.SetSysctl("kernel/hostname", "x"); err == nil {
		t.Error("a setting of the whole machine was accepted")
	}
	if err := ns.SetSysctl("net/../kernel/hostname", "x"); err == nil {
		t.Error("a setting of the whole machine was accepted")
	}
	if v, err := ns.ReadSys("class/net/lo/mtu"); err != nil || v != "65536" {
		t.Errorf("MTU of lo: %q, %v", v, err)
	}
	if err := ns.WriteSys("class/net/lo/mtu", "1000"); err != nil {
		t.Error(err)
	}
	if link, err := ns.Link("lo"); err != nil || link.Attrs().MTU != 1000 {
		t.Errorf("%v, %v", link, err)
	}
	if _, err := ns.ReadSys("class/net/none/mtu"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestMain turns the test binary into the process that TestStart starts: a
// guest has no other program to run.
func TestMain(m *testing.M) {
	if os.Getenv("LAB_TEST_CHILD") != "" {
		s, err := os.Readlink("/proc/self/ns/net")
		fmt.Println(s, err)
		_, _ = os.Stdin.Read(make([]byte, 1)) // until it is closed
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestStart(t *testing.T) {
	ns := nsForTest(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	start := func() (*exec.Cmd, string) {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "LAB_TEST_CHILD=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := ns.Start(cmd); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return cmd, line
	}
	cmd, line := start()
	var inside string
	_ = ns.Do(func() error { inside = currentNS(t); return nil })
	if !strings.HasPrefix(line, inside) {
		t.Errorf("process in %s, want %s", line, inside)
	}
	// Threads come and go; the process must not notice.
	done := make(chan struct{})
	for range 20 {
		go func() {
			_ = ns.Do(func() error { return nil })
			done <- struct{}{}
		}()
	}
	for range 20 {
		<-done
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("process is gone: %v", err)
	}
	// Closing the namespace ends what asked for it.
	if err := ns.Close(); err != nil {
		t.Error(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("after Close: %v", err)
	}
	if err := ns.Start(exec.Command(exe)); !errors.Is(err, ErrClosed) {
		t.Errorf("start in a closed namespace: %v", err)
	}
}

func TestNamedNS(t *testing.T) {
	Require(t)
	// A process that is surely dead: a child that was waited for.
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dead := exec.Command(exe)
	dead.Env = append(os.Environ(), "LAB_TEST_CHILD=1")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		t.Skipf("needs %s: %v", netnsDir, err)
	}
	leftover := filepath.Join(netnsDir, fmt.Sprintf("%s%d-old", namePrefix, dead.ProcessState.Pid()))
	foreign := filepath.Join(netnsDir, namePrefix+"not-ours")
	for _, f := range []string{leftover, foreign} {
		if err := os.WriteFile(f, nil, 0o444); err != nil {
			t.Fatal(err)
		}
		defer os.Remove(f)
	}
	ns, err := NewNamed("name-test")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	if _, err := os.Stat(leftover); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leftover of a dead process: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("foreign name: %v", err)
	}
	want := filepath.Join(netnsDir, fmt.Sprintf("xdpl2-%d-name-test", os.Getpid()))
	if ns.Path() != want {
		t.Errorf("path %s, want %s", ns.Path(), want)
	}
	f, err := os.Open(want)
	if err != nil {
		t.Fatal(err)
	}
	var a, b unix.Stat_t
	if err := errors.Join(unix.Fstat(int(f.Fd()), &a), unix.Fstat(ns.FD(), &b)); err != nil || a.Ino != b.Ino || a.Dev != b.Dev {
		t.Errorf("the name shows another namespace: %v", err)
	}
	f.Close()
	if _, err := NewNamed("name-test"); err == nil {
		t.Error("the same name twice")
	}
	if _, err := NewNamed("../x"); err == nil {
		t.Error("a path as a name")
	}
	if err := ns.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(want); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("name after Close: %v", err)
	}
}

func TestListenAndDial(t *testing.T) {
	ns := nsForTest(t)
	ctx := t.Context()
	l, err := ns.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			fmt.Fprint(c, "hello")
			c.Close()
		}
	}()
	c, err := ns.DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s, err := bufio.NewReader(c).ReadString('!'); s != "hello" {
		t.Errorf("%q, %v", s, err)
	}
}
