// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

func contextWithCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithCancel(ctx)
}

func contains(t testing.TB, text, want string) {
	t.Helper()
	if !strings.Contains(text, want) {
		t.Errorf("%q lacks %q", text, want)
	}
}

// talk sends a frame each way every 20 ms until stop is closed.
func talk(stop <-chan struct{}, a, b *lab.Host) error {
	there, err := a.Sender()
	if err != nil {
		return err
	}
	back, err := b.Sender()
	if err != nil {
		return err
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return nil
		case <-tick.C:
		}
		if err := there.Send(ether.UDP(lab.Between(a, b))); err != nil {
			return err
		}
		if err := back.Send(ether.UDP(lab.Between(b, a))); err != nil {
			return err
		}
	}
}

// traces is everything about the router's devices that xdpl2 could change.
func traces(t testing.TB, l *lab.Lab) string {
	t.Helper()
	var out strings.Builder
	must(t, l.Router.Do(func() error {
		links, err := netdev.Dump(netlink.LinkList)
		if err != nil {
			return err
		}
		slices.SortFunc(links, func(a, b netlink.Link) int { return strings.Compare(a.Attrs().Name, b.Attrs().Name) })
		for _, dev := range links {
			a := dev.Attrs()
			fmt.Fprintf(&out, "%s flags %v promisc %d mtu %d master %d", a.Name, a.Flags, a.Promisc, a.MTU, a.MasterIndex)
			if a.Xdp != nil && a.Xdp.Attached {
				out.WriteString(" XDP attached")
			}
			qdiscs, err := netdev.Dump(func() ([]netlink.Qdisc, error) { return netlink.QdiscList(dev) })
			if err != nil {
				return err
			}
			for _, q := range qdiscs {
				fmt.Fprintf(&out, " qdisc %s", q.Type())
			}
			for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
				filters, _ := netdev.Dump(func() ([]netlink.Filter, error) { return netlink.FilterList(dev, parent) }) // fails without clsact
				fmt.Fprintf(&out, " %d filters", len(filters))
			}
			if lab.HasTCX() {
				q, err := link.QueryPrograms(link.QueryOptions{Target: a.Index, Attach: ebpf.AttachTCXIngress})
				if err != nil {
					return err
				}
				fmt.Fprintf(&out, " %d tcx programs", len(q.Programs))
			}
			out.WriteString("\n")
		}
		return nil
	}))
	return out.String()
}

func TestStopLeavesNoTrace(t *testing.T) {
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{})
			before := traces(t, l)
			b := newBox(t, l, confOf(w.engine))
			b.start(w.args...)
			if during := traces(t, l); during == before {
				t.Fatalf("the daemon runs and nothing is attached; this test would notice nothing:\n%s", during)
			}
			if code := b.end(syscall.SIGTERM); code != exitFine {
				t.Errorf("exit code %d after SIGTERM", code)
			}
			if after := traces(t, l); after != before {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
			if _, err := os.Stat(filepath.Join(b.dir, "run", "control.sock")); !os.IsNotExist(err) {
				t.Errorf("control socket: %v", err)
			}
		})
	}
}

func TestKilledLeavesNoTraceAfterCleanup(t *testing.T) {
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{})
			before := traces(t, l)
			b := newBox(t, l, confOf(w.engine))
			b.start(w.args...)
			b.end(syscall.SIGKILL)
			stdout, stderr, code := b.cli("cleanup")
			if code != exitFine {
				t.Errorf("cleanup: exit code %d, %s", code, stderr)
			}
			if w.hook == "clsact" {
				contains(t, stdout, "removed a filter from eth1")
			}
			// The kernel detaches links a moment after the process has gone.
			after := ""
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("before:\n%safter:\n%s", before, after)
				}
			})
			b.wait("everything to be detached", func() bool { after = traces(t, l); return after == before })
		})
	}
}

func TestClsactKeepsOtherFilters(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	must(t, l.Router.Do(func() error {
		dev, err := netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		return netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: dev.Attrs().Index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
	}))
	before := traces(t, l)
	b := newBox(t, l, confOf("tc"))
	b.start("--no-tcx")
	b.end(syscall.SIGTERM)
	if after := traces(t, l); after != before {
		t.Errorf("a clsact qdisc that was there before: before:\n%safter:\n%s", before, after)
	}
}

// TestBadInput: each mistake is refused with its place, and nothing changes.
func TestBadInput(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	before := traces(t, l)
	port := "config port\n\toption device 'eth1'\n"
	for _, c := range []struct {
		name, config string
		want         []string
	}{
		{"unknown mode", "config xdpl2 'main'\n\toption enabled '1'\n\toption mode 'mc'\n" + port,
			[]string{"/config/xdpl2:3: section xdpl2 'main': option mode 'mc': not valid (did you mean mac?); expected one of mac, port"}},
		{"the same port twice", "config xdpl2 'main'\n\toption enabled '1'\n" + port + port,
			[]string{"section @port[1]: option device 'eth1': the same device is in section @port[0] already"}},
		{"target equal to itself", "config xdpl2 'main'\n\toption enabled '1'\n\toption mode 'port'\n" + port + "\toption target 'eth1'\n",
			[]string{"section @port[0]: option target 'eth1': is the port itself", "expected another device"}},
		{"a file that does not parse", "config xdpl2 'main'\n\toption 'enabled\n", []string{"/config/xdpl2:2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBox(t, l, c.config)
			for _, command := range []string{"daemon", "check"} {
				_, stderr, code := b.cli(command)
				if code != exitFailed {
					t.Errorf("%s: exit code %d, want %d", command, code, exitFailed)
				}
				for _, want := range c.want {
					contains(t, stderr, want)
				}
			}
			nothingChanged(t, b, before)
		})
	}
	t.Run("no file", func(t *testing.T) {
		b := newBox(t, l, "")
		must(t, os.Remove(filepath.Join(b.dir, "config", "xdpl2")))
		for _, command := range []string{"daemon", "check"} {
			_, stderr, code := b.cli(command)
			if code != exitFailed {
				t.Errorf("%s: exit code %d, want %d", command, code, exitFailed)
			}
			contains(t, stderr, "/config/xdpl2: no such file; expected a UCI file")
		}
		nothingChanged(t, b, before)
	})
	t.Run("a port that does not exist", func(t *testing.T) {
		b := newBox(t, l, "config xdpl2 'main'\n\toption enabled '1'\nconfig port\n\toption device 'eth9'\n")
		_, stderr, code := b.cli("check")
		if code != exitFailed {
			t.Errorf("check: exit code %d, want %d", code, exitFailed)
		}
		contains(t, stderr, "section @port[0]: option device 'eth9': no such network device; expected a network device of this box")
		nothingChanged(t, b, before)
		// The daemon waits for it, and says so.
		b.start()
		if p := b.portStatus("eth9"); p.State != api.Waiting {
			t.Errorf("status: %+v", p)
		}
		stdout, _, _ := b.cli("status")
		contains(t, stdout, "there is no device eth9; it is taken when it appears")
		b.waitLog("section @port[0]: option device 'eth9': no such network device")
		b.end(syscall.SIGTERM)
		if after := traces(t, l); after != before {
			t.Errorf("before:\n%safter:\n%s", before, after)
		}
	})
	t.Run("no bridge", func(t *testing.T) {
		b := newBox(t, l, "config xdpl2 'main'\n\toption enabled '1'\n\toption bridge 'br-wan'\n"+port)
		b.start()
		p := b.portStatus("eth1")
		if p.State != api.NotAccelerated || p.Reason != "there is no bridge br-wan" {
			t.Errorf("status: %+v", p)
		}
		b.end(syscall.SIGTERM)
	})
}

func nothingChanged(t *testing.T, b *box, before string) {
	t.Helper()
	if after := traces(t, b.lab); after != before {
		t.Errorf("something was changed; before:\n%safter:\n%s", before, after)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "run")); !os.IsNotExist(err) {
		t.Errorf("run directory: %v", err)
	}
}

func TestSecondDaemon(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	b := newBox(t, l, confOf("tc"))
	b.start()
	before := traces(t, l)
	_, stderr, code := b.cli("daemon")
	if code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	contains(t, stderr, fmt.Sprintf("a daemon is running already with run directory %s (process %d)", filepath.Join(b.dir, "run"), b.cmd.Process.Pid))
	// With a run directory of its own it would fight over the same devices.
	other := newBox(t, l, confOf("tc"))
	if _, stderr, code = other.cli("daemon"); code != exitFailed {
		t.Errorf("another run directory: exit code %d, want %d", code, exitFailed)
	}
	contains(t, stderr, "a daemon is running already, with another run directory")
	if after := traces(t, l); after != before {
		t.Error("the second daemon changed something")
	}
	if s := b.status(); s.Ports[0].State != api.Accelerating {
		t.Error("the first daemon was disturbed")
	}
}

func TestNotRoot(t *testing.T) {
	netns.Require(t)
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "config"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "config", "xdpl2"), []byte(confOf("tc")), 0o644))
	for p := dir; p != "/" && p != os.TempDir(); p = filepath.Dir(p) {
		must(t, os.Chmod(p, 0o755))
	}
	l := lab.ForTest(t, lab.Options{Hosts: 1})
	b := &box{t: t, lab: l, dir: dir}
	exe := copyExecutable(t, dir)
	cmd := b.program("daemon")
	cmd.Path, cmd.Args[0] = exe, exe
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	contains(t, string(out), "the daemon needs root")
}

// copyExecutable puts the test binary where anybody may run it.
func copyExecutable(t *testing.T, dir string) string {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	data, err := os.ReadFile(self)
	must(t, err)
	path := filepath.Join(dir, "xdpl2")
	must(t, os.WriteFile(path, data, 0o755))
	return path
}

func TestCommandLine(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	b := newBox(t, l, confOf("tc"))
	for _, command := range []string{"status", "ports", "stations", "counters", "reload"} {
		_, stderr, code := b.cli(command)
		if code != exitNotRunning {
			t.Errorf("%s without a daemon: exit code %d, want %d", command, code, exitNotRunning)
		}
		contains(t, stderr, "the daemon is not running")
	}
	for _, args := range [][]string{{"stauts"}, {"status", "--jsn"}, {"status", "eth1"}, {"stations", "--vlan", "4095"}, {"stations", "--limit", "-1"}, {"daemon", "--quick"}} {
		if _, stderr, code := b.cli(args...); code != exitUsage || stderr == "" {
			t.Errorf("%v: exit code %d, want %d", args, code, exitUsage)
		}
	}
	if stdout, _, code := b.cli("check"); code != exitFine || !strings.Contains(stdout, "is fine: 3 ports") {
		t.Errorf("check: %d, %s", code, stdout)
	}
	b.start()
	b.learn(l.Hosts...)
	for command, words := range map[string][]string{
		"status":   {"accelerating 3 of 3 ports", "eth1", "tc"},
		"ports":    {"PORT", "veth", "br-lan", "forwarding"},
		"stations": {"02:00:00:00:01:01", "bridge", "local", lab.RouterMAC.String()},
		"counters": {"pass_local", "for the box itself"},
		"version":  {"xdpl2 "},
		"reload":   {"reloaded, nothing has changed"},
	} {
		stdout, stderr, code := b.cli(command)
		if code != exitFine {
			t.Errorf("%s: exit code %d, %s", command, code, stderr)
		}
		for _, w := range words {
			contains(t, stdout, w)
		}
		stdout, _, code = b.cli(command, "--json")
		if code != exitFine || !json.Valid([]byte(stdout)) {
			t.Errorf("%s --json: exit code %d, %s", command, code, stdout)
		}
	}
	if _, stderr, code := b.cli("counters", "--port", "eth9"); code != exitFailed || !strings.Contains(stderr, "no port eth9 is configured") {
		t.Errorf("unknown port: %d, %s", code, stderr)
	}
	var list api.StationList
	stdout, _, _ := b.cli("stations", "--json", "--port", "eth2")
	must(t, json.Unmarshal([]byte(stdout), &list))
	if list.Total != 1 || list.Stations[0].MAC != l.Hosts[1].MAC.String() {
		t.Errorf("stations of eth2: %+v", list)
	}
	stdout, _, _ = b.cli("stations", "--json", "--limit", "1", "--offset", "1")
	must(t, json.Unmarshal([]byte(stdout), &list))
	if len(list.Stations) != 1 || list.Total < 4 {
		t.Errorf("a page of one: %+v", list)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"help", "daemon"}, {"stations", "--help"}} {
		var out, errs strings.Builder
		if code := run(context.Background(), args, &out, &errs); code != exitFine || out.Len() < 100 || errs.Len() > 0 {
			t.Errorf("%v: exit code %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
	var out, errs strings.Builder
	if code := run(context.Background(), nil, &out, &errs); code != exitUsage {
		t.Errorf("no command: exit code %d", code)
	}
}

func TestStaticStation(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	silent := net.HardwareAddr{2, 0, 0, 0, 7, 7}
	b := newBox(t, l, confOf("tc")+fmt.Sprintf("\nconfig station\n\toption mac '%s'\n\toption port 'eth2'\n", silent))
	b.start()
	h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	b.learn(h1, h3)
	at2, err := h2.Capture()
	must(t, err)
	at3, err := h3.Capture()
	must(t, err)
	frame := ether.UDP(lab.Between(h1, h2))
	copy(frame, silent)
	sender, err := h1.Sender()
	must(t, err)
	must(t, sender.Send(frame))
	if _, err := at2.Expect(testContext(t), lab.Equal(frame)); err != nil {
		t.Error(err)
	}
	b.ping(h1.NS, h3)
	if n := at3.Count(lab.Equal(frame)); n > 0 {
		t.Error("the frame to a static station was flooded")
	}
}
