// SPDX-License-Identifier: Apache-2.0

// Package dbustest starts a real dbus-daemon for tests.
package dbustest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
)

// Bus is a dbus-daemon on a socket of its own, with the rules of a system bus.
type Bus struct {
	tb     testing.TB
	dir    string
	daemon *exec.Cmd
	ended  chan struct{} // closed when the daemon has ended
}

const rules = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=%[1]s/bus</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <deny own="*"/>
    <deny send_type="method_call"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
    <allow send_destination="org.freedesktop.DBus"/>
  </policy>
  <include>%[2]s</include>
</busconfig>
`

// Start starts a bus with a policy file beside the usual rules. It stops when
// the test ends. Where there is no dbus-daemon the test is skipped.
func Start(tb testing.TB, policy string) *Bus {
	tb.Helper()
	for _, program := range []string{"dbus-daemon", "dbus-send"} {
		if _, err := exec.LookPath(program); err != nil {
			tb.Skipf("needs %s (Debian: apt-get install dbus)", program)
		}
	}
	if os.Geteuid() != 0 {
		tb.Skip("needs root: the policy is about who is root")
	}
	policy, err := filepath.Abs(policy)
	if err != nil {
		tb.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "dbus") // not TempDir: a socket's path must be short, and others must reach it
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bus.conf"), fmt.Appendf(nil, rules, dir, policy), 0o644); err != nil {
		tb.Fatal(err)
	}
	b := &Bus{tb: tb, dir: dir}
	b.Start()
	tb.Cleanup(b.Stop)
	return b
}

// Address is where the bus listens.
func (b *Bus) Address() string { return "unix:path=" + b.dir + "/bus" }

// Start starts the bus again after Stop.
func (b *Bus) Start() {
	b.tb.Helper()
	b.daemon = exec.Command("dbus-daemon", "--nofork", "--nopidfile", "--nosyslog", "--print-address", "--config-file="+b.dir+"/bus.conf")
	b.daemon.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var errs bytes.Buffer
	b.daemon.Stderr = &errs
	out, err := b.daemon.StdoutPipe()
	if err == nil {
		err = b.run()
	}
	if err != nil {
		b.tb.Fatal(err)
	}
	// It prints its address when it listens.
	if n, err := out.Read(make([]byte, 256)); n == 0 {
		<-b.ended
		b.tb.Fatalf("dbus-daemon does not start: %v, %s", err, errs.String())
	}
}

// run starts the daemon from a thread that stays until it has ended: a child's
// Pdeathsig comes when the thread ends that started it, not the process.
func (b *Bus) run() error {
	started := make(chan error, 1)
	b.ended = make(chan struct{})
	go func(daemon *exec.Cmd, ended chan struct{}) {
		defer close(ended)
		runtime.LockOSThread()
		err := daemon.Start()
		started <- err
		if err == nil {
			_ = daemon.Wait()
		}
	}(b.daemon, b.ended)
	return <-started
}

// Stop kills the bus.
func (b *Bus) Stop() {
	_ = b.daemon.Process.Kill()
	<-b.ended
}
