// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

func moment(at int64, counts map[string]api.Count) *topMoment {
	verdicts := []api.VerdictCount{}
	for name, c := range counts {
		verdicts = append(verdicts, api.VerdictCount{Verdict: name, Count: c})
	}
	return &topMoment{time.Unix(at, 0), &api.Status{Version: "1", Enabled: true, Accelerated: 0.9, Ports: []api.PortStatus{
		{Device: "eth1", State: api.Accelerating, Engine: "tc", Up: true, Carrier: true, Speed: 2500},
		{Device: "eth2", State: api.NotAccelerated, Reason: "it is a bond's", Up: true},
		{Device: "eth3", State: api.Waiting, Reason: "there is no device eth3"},
	}}, []api.PortCounters{{Device: "eth1", Verdicts: verdicts}}}
}

func TestTopDrawsRates(t *testing.T) {
	before := moment(100, map[string]api.Count{"redirected": {Packets: 1000, Bytes: 100000}, "pass_local": {Packets: 5, Bytes: 500}, "pass_group": {Packets: 90}})
	now := moment(102, map[string]api.Count{"redirected": {Packets: 2980, Bytes: 600000}, "pass_local": {Packets: 21, Bytes: 500}, "pass_group": {Packets: 4}})
	var out bytes.Buffer
	draw(before, now).table().print(&out)
	want := `PORT  LINK         ENGINE  FRAMES/S  MBIT/S  SHARE  PASSED BECAUSE
eth1  2500 Mbit/s  tc      1000      2.0     99.0%  local 8, group 2
eth2  no carrier                                    it is a bond's
eth3  absent                                        there is no device eth3
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestTopOfADaemon(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
	if _, stderr, code := b.cli("top"); code != exitNotRunning || !strings.Contains(stderr, "not running") {
		t.Errorf("without a daemon: exit code %d, %s", code, stderr)
	}
	b.start()
	h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
	b.learn(h1, h2)
	sender, err := h1.Sender()
	must(t, err)
	ctx, cancel := context.WithCancel(testContext(t))
	sent := make(chan error, 1)
	go func() {
		for ctx.Err() == nil {
			if err := sender.Send(ether.UDP(lab.Between(h1, h2))); err != nil {
				sent <- err
				return
			}
			time.Sleep(time.Millisecond)
		}
		sent <- nil
	}()
	stdout, stderr, code := b.cli("top", "--count", "2", "--interval", "0.5", "--json")
	cancel()
	must(t, <-sent)
	if code != exitFine {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	dec := json.NewDecoder(strings.NewReader(stdout))
	for range 2 {
		var p picture
		must(t, dec.Decode(&p))
		if len(p.Ports) != 3 || p.Ports[0].Frames == 0 || p.Ports[0].Share <= 0.5 || p.Ports[0].Engine != "tc" {
			t.Errorf("%+v", p)
		}
	}
	stdout, _, _ = b.cli("top", "--count", "1", "--interval", "0.1")
	contains(t, stdout, "accelerating 3 of 3 ports")
	contains(t, stdout, "FRAMES/S")
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("control sequences, but no terminal: %q", stdout)
	}
	for _, args := range [][]string{{"top", "--interval", "0"}, {"top", "--count", "-1"}, {"events", "--kind", "prot"}} {
		if _, _, code := b.cli(args...); code != exitUsage {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

// TestTopOnATerminal: the picture is refreshed in place, no line is wider than
// the terminal, and afterwards the terminal is as before.
func TestTopOnATerminal(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	must(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, master.Fd(), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY)
	if errno != 0 {
		t.Skipf("the kernel does not open the other end of a pseudo-terminal: %v", errno)
	}
	terminal := os.NewFile(peer, "terminal")
	must(t, unix.IoctlSetWinsize(int(peer), unix.TIOCSWINSZ, &unix.Winsize{Col: 40, Row: 6}))
	s := newScreen(terminal)
	if s.terminal == nil {
		t.Fatal("not taken for a terminal")
	}
	must(t, s.show(draw(moment(100, nil), moment(101, nil))))
	s.close()
	terminal.Close()
	text, _ := io.ReadAll(master) // ends with an error when the other end is closed
	got := string(text)
	if !strings.HasPrefix(got, enterScreen+fromTheTop) || !strings.HasSuffix(got, leaveScreen) {
		t.Errorf("%q", got)
	}
	lines := strings.Split(got, "\r\n")
	for _, line := range lines {
		for _, control := range []string{enterScreen, leaveScreen, fromTheTop, clearLine, clearRest} {
			line = strings.ReplaceAll(line, control, "")
		}
		if len([]rune(line)) > 40 {
			t.Errorf("a line of %d columns: %q", len([]rune(line)), line)
		}
	}
	if len(lines) != 6 {
		t.Errorf("%d lines on a terminal of 6", len(lines))
	}
}

func TestEventsCommand(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
	if _, _, code := b.cli("events"); code != exitNotRunning {
		t.Errorf("without a daemon: exit code %d", code)
	}
	b.start()
	// listen starts the command while something happens again and again, and
	// returns its first line with a text in it.
	listen := func(part string, args ...string) (line string, interrupt func(), ended chan int) {
		t.Helper()
		ctx, cancel := context.WithCancel(testContext(t))
		r, w := io.Pipe()
		ended = make(chan int, 1)
		go func() {
			ended <- run(ctx, append(append([]string{"events"}, args...), b.dirs()...), w, io.Discard)
			w.Close()
		}()
		heard := make(chan struct{})
		disturbed := make(chan struct{})
		go func() {
			defer close(disturbed)
			for i := 0; ; i++ {
				b.configure(confOf([]string{"generic", "tc"}[i%2]))
				if _, err := b.client().Reload(ctx); err != nil {
					return
				}
				select {
				case <-heard:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}()
		lines := bufio.NewScanner(r)
		for lines.Scan() && line == "" {
			if strings.Contains(lines.Text(), part) {
				line = lines.Text()
			}
		}
		close(heard)
		<-disturbed
		go func() { _, _ = io.Copy(io.Discard, r) }()
		return line, cancel, ended
	}
	line, interrupt, ended := listen("engine generic instead of tc")
	interrupt()
	if code := <-ended; code != exitFine || !strings.Contains(line, " engine   eth") {
		t.Errorf("exit code %d, %q", code, line)
	}
	line, interrupt, ended = listen("config", "--json", "--kind", "config")
	defer interrupt()
	var event api.Event
	if err := json.Unmarshal([]byte(line), &event); err != nil || event.Kind != api.EventConfig || event.State != "loaded" {
		t.Errorf("%q: %v", line, err)
	}
	b.end(unix.SIGTERM)
	if code := <-ended; code != exitNotRunning {
		t.Errorf("after the end of the daemon: exit code %d", code)
	}
}
