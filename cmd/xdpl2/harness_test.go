// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/httpapi"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// The tests run the real program: the test binary turns into it when it is
// started with this variable, so that a guest needs no other file.
const asProgram = "XDPL2_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		dieAtStep()
		main()
	}
	if os.Getenv(asUCI) != "" {
		uciGet(os.Args[1:])
		return
	}
	os.Exit(m.Run())
}

// patience bounds every wait; it is never waited out in a test that passes.
const patience = 30 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// box is a router with a daemon.
type box struct {
	t   testing.TB
	lab *lab.Lab
	dir string   // with config, save and run directories
	env []string // of programs that are started
	// ubus is ubusd's socket; there is none unless a test starts one.
	ubus string
	cmd  *exec.Cmd

	mu     sync.Mutex
	exe    string        // the program; "" is this test binary, which can be it
	log    []string      // of the daemon that was started last
	logged chan struct{} // closed and replaced with every line
	ended  chan struct{} // closed when the daemon has ended
	err    error         // of Wait
}

// newBox makes a box without a daemon, with a configuration.
func newBox(t testing.TB, l *lab.Lab, config string) *box {
	t.Helper()
	b := &box{t: t, lab: l, dir: t.TempDir(), logged: make(chan struct{}), ubus: "/nonexistent/ubus.sock"}
	for _, dir := range []string{"config", "save"} {
		must(t, os.Mkdir(filepath.Join(b.dir, dir), 0o700))
	}
	b.configure(config)
	return b
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (b *box) configure(config string) {
	b.t.Helper()
	must(b.t, os.WriteFile(filepath.Join(b.dir, "config", "xdpl2"), []byte(config), 0o600))
}

func (b *box) dirs() []string {
	return []string{
		"--config-dir=" + filepath.Join(b.dir, "config"),
		"--save-dir=" + filepath.Join(b.dir, "save"),
		"--run-dir=" + filepath.Join(b.dir, "run"),
		"--ubus-socket=" + b.ubus,
		"--calibration-file=" + b.calibration(),
	}
}

func (b *box) calibration() string { return filepath.Join(b.dir, "kept", "calibration.json") }

func (b *box) program(args ...string) *exec.Cmd {
	exe := b.exe
	if exe == "" {
		var err error
		exe, err = os.Executable()
		must(b.t, err)
	}
	cmd := exec.Command(exe, append(args, b.dirs()...)...)
	cmd.Env = append(append(os.Environ(), asProgram+"=1"), b.env...)
	return cmd
}

// start starts the daemon and waits until it accelerates.
func (b *box) start(args ...string) {
	b.t.Helper()
	b.launch(args...)
	b.waitLog("msg=ready")
}

func (b *box) launch(args ...string) {
	b.t.Helper()
	b.cmd = b.program(append([]string{"daemon"}, args...)...)
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := b.cmd.StderrPipe()
	must(b.t, err)
	b.cmd.Stdout = b.cmd.Stderr
	must(b.t, b.lab.Router.Start(b.cmd))
	b.ended = make(chan struct{})
	b.mu.Lock()
	b.log = nil
	b.mu.Unlock()
	go func(cmd *exec.Cmd, ended chan struct{}) {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			b.mu.Lock()
			b.log = append(b.log, lines.Text())
			close(b.logged)
			b.logged = make(chan struct{})
			b.mu.Unlock()
		}
		b.err = cmd.Wait()
		close(ended)
	}(b.cmd, b.ended)
	b.t.Cleanup(func() {
		b.end(syscall.SIGKILL)
		if b.t.Failed() {
			b.t.Logf("the daemon's log:\n%s", strings.Join(b.log, "\n"))
		}
	})
}

// waitLog waits for a line of the daemon's log, from the beginning on.
func (b *box) waitLog(part string) {
	b.t.Helper()
	if !b.saysOrEnds(part) {
		b.t.Fatalf("the daemon ended (%v) before it said %q:\n%s", b.err, part, strings.Join(b.log, "\n"))
	}
}

// saysOrEnds waits for a line of the daemon's log; false if the daemon ends
// before.
func (b *box) saysOrEnds(part string) bool {
	b.t.Helper()
	deadline := time.After(patience)
	for next := 0; ; {
		b.mu.Lock()
		for ; next < len(b.log); next++ {
			if strings.Contains(b.log[next], part) {
				b.mu.Unlock()
				return true
			}
		}
		changed := b.logged
		b.mu.Unlock()
		select {
		case <-changed:
		case <-b.ended:
			return false
		case <-deadline:
			b.t.Fatalf("the daemon did not say %q", part)
		}
	}
}

// end ends the daemon and returns its exit code, -1 after a signal.
func (b *box) end(sig syscall.Signal) int {
	b.t.Helper()
	_ = b.cmd.Process.Signal(sig)
	select {
	case <-b.ended:
	case <-time.After(patience):
		_ = b.cmd.Process.Signal(syscall.SIGQUIT) // its log says where it hangs
		select {
		case <-b.ended:
		case <-time.After(time.Second):
		}
		_ = b.cmd.Process.Kill()
		b.t.Fatalf("the daemon does not end on %v", sig)
	}
	return b.cmd.ProcessState.ExitCode()
}

// cli runs a command inside the router, in this process, and returns what it
// printed.
func (b *box) cli(args ...string) (stdout, stderr string, code int) {
	b.t.Helper()
	var out, errs bytes.Buffer
	must(b.t, b.lab.Router.Do(func() error {
		code = run(testContext(b.t), append(args, b.dirs()...), &out, &errs)
		return nil
	}))
	return out.String(), errs.String(), code
}

// inGuest tells whether this is an emulated machine, some twenty times slower
// than others: what repeats a thing to be sure of it repeats it less there.
var inGuest = os.Getenv("XDPL2_GUEST") != ""

func scaled(n int) int {
	if inGuest {
		return n / 10
	}
	return n
}

func (b *box) client() *httpapi.Client { return httpapi.NewClient(filepath.Join(b.dir, "run")) }

// wait asks until what it is told satisfies f. There is no event to wait for
// on the outside of the daemon.
func (b *box) wait(what string, f func() bool) {
	b.t.Helper()
	interval := 2 * time.Millisecond
	if inGuest {
		interval *= 10
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	deadline := time.After(patience)
	for !f() {
		select {
		case <-tick.C:
		case <-deadline:
			if b.dir != "" {
				status, _ := b.client().Status(context.Background())
				b.t.Logf("status %+v", status)
			}
			b.t.Fatalf("waited in vain for %s", what)
		}
	}
}

func (b *box) status() *api.Status {
	b.t.Helper()
	s, err := b.client().Status(testContext(b.t))
	must(b.t, err)
	return s
}

func (b *box) portStatus(device string) api.PortStatus {
	b.t.Helper()
	for _, p := range b.status().Ports {
		if p.Device == device {
			return p
		}
	}
	b.t.Fatalf("no port %s in status", device)
	return api.PortStatus{}
}

// count returns a verdict's frames on a port.
func (b *box) count(device, verdict string) uint64 {
	b.t.Helper()
	all, err := b.client().Counters(testContext(b.t), device)
	must(b.t, err)
	for _, v := range all[0].Verdicts {
		if v.Verdict == verdict {
			return v.Packets
		}
	}
	b.t.Fatalf("no verdict %s", verdict)
	return 0
}

// waitStation waits until the fast path knows a host behind a port.
func (b *box) waitStation(h *lab.Host, device string) {
	b.t.Helper()
	b.wait(fmt.Sprintf("station %s behind %s", h.MAC, device), func() bool {
		list, err := b.client().Stations(testContext(b.t), api.StationQuery{VLAN: -1})
		must(b.t, err)
		for _, s := range list.Stations {
			if s.MAC == h.MAC.String() && s.Port == device {
				return true
			}
		}
		return false
	})
}

// learn lets the bridge and the fast path learn hosts.
func (b *box) learn(hosts ...*lab.Host) {
	b.t.Helper()
	for _, h := range hosts {
		b.ping(h.NS, nil)
		b.waitStation(h, h.Port().Name)
	}
}

// ping pings a host, or the router if there is none, from a namespace and
// fails if anything is lost.
func (b *box) ping(from *lab.NS, to *lab.Host) {
	b.t.Helper()
	ip := lab.RouterIP4
	if to != nil {
		ip = to.IP4
	}
	stats, err := from.Ping(testContext(b.t), ip, lab.PingOptions{Count: 3, Timeout: 5 * time.Second})
	must(b.t, err)
	if stats.Lost() > 0 {
		b.t.Fatalf("ping from %s to %s: %d of %d lost", from, ip, stats.Lost(), stats.Sent)
	}
}

// ways are the ways in which a port can be attached.
type way struct {
	name, engine string
	args         []string
	hook         string // as status names it; empty: whatever tc is here
}

func ways(t testing.TB) []way {
	all := []way{
		{name: "generic", engine: "generic", hook: "xdp generic"},
		{name: "tc", engine: "tc"},
	}
	// Where there is no tcx, tc is clsact, and so the older kernels' guests
	// test it; the newer ones' need not.
	if lab.HasTCX() && !inGuest {
		all = append(all, way{name: "clsact", engine: "tc", args: []string{"--no-tcx"}, hook: "clsact"})
	}
	return all
}

// confOf writes a configuration of mode mac for three ports.
func confOf(engine string, extra ...string) string {
	text := fmt.Sprintf("config xdpl2 'main'\n\toption enabled '1'\n\toption engine '%s'\n", engine)
	for _, line := range extra {
		text += "\t" + line + "\n"
	}
	for _, dev := range []string{"eth1", "eth2", "eth3"} {
		text += fmt.Sprintf("\nconfig port\n\toption device '%s'\n", dev)
	}
	return text
}
