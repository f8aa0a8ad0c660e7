// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// seen says where a frame that went from eth1 to eth2 is seen: by a packet
// socket, as tcpdump has it, and in a device's statistics.
type seen struct {
	tapIn, tapBridge, tapOut       bool
	rxPort, rxBridge, txPort, fast bool
}

// What docs/capture.md says. A tap on br-lan makes the bridge promiscuous: it
// sees, and counts as received, what is only forwarded then, too.
var (
	seenByBridge = seen{tapIn: true, tapBridge: true, tapOut: true, rxPort: true, rxBridge: true, txPort: true}
	seenByTC     = seen{tapIn: true, tapOut: true, rxPort: true, txPort: true, fast: true}
	seenByXDP    = seen{rxPort: true, txPort: true, fast: true}
	countedOnly  = seen{rxPort: true, txPort: true} // without taps, whatever forwards
)

// TestWhatTapsSee: see docs/capture.md, which says what is asserted here.
func TestWhatTapsSee(t *testing.T) {
	want := map[string]seen{"native": seenByXDP, "generic": seenByXDP, "tc": seenByTC}
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		b.learn(b.lab.Hosts[0], b.lab.Hosts[1])
		check := func(who string, want seen) {
			t.Helper()
			if got := look(t, b, true); got != want {
				t.Errorf("%s: %+v, want %+v", who, got, want)
			}
			got, want := look(t, b, false), countedOnly
			want.fast = got.fast
			if got != want {
				t.Errorf("%s, without taps: %+v, want %+v", who, got, want)
			}
		}
		check("engine "+w.engine, want[w.engine])
		// Without xdpl2, on the same ports.
		b.configure("config xdpl2 'main'\n\toption enabled '0'\n")
		reload(b)
		b.wait("xdpl2 off", func() bool { return !b.status().Enabled })
		check("the bridge alone", seenByBridge)
	})
}

// TestWhatTapsSeeOfNative: the same between veths, whose driver has native XDP.
func TestWhatTapsSeeOfNative(t *testing.T) {
	if !vethsTakeXDP(t) {
		t.Skip("needs veths that take frames from native XDP without a program (Linux 5.13)")
	}
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	for _, h := range l.Hosts {
		// A veth takes what XDP redirects to it only if its other end has NAPI.
		must(t, h.NS.Do(func() error { return netdev.SetFeature(h.Dev(), netdev.GRO, true) }))
	}
	b := newBox(t, l, confOf("native"))
	b.start("--trust-frames")
	b.learn(b.lab.Hosts[0], b.lab.Hosts[1])
	if p := b.portStatus("eth1"); p.Engine != "native" {
		t.Skipf("native is not possible here: %s", p.Engines["native"])
	}
	if got := look(t, b, true); got != seenByXDP {
		t.Errorf("%+v, want %+v", got, seenByXDP)
	}
}

// TestCaptureByHand is the way that docs/capture.md shows for a box whose
// ports run generic: tc for the time of a capture, by a change that is staged
// and never committed. Frames are seen then, and no longer when it is reverted.
func TestCaptureByHand(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("generic"))
	b.start()
	b.learn(l.Hosts[0], l.Hosts[1])
	engine := func(name string) {
		t.Helper()
		b.wait("engine "+name, func() bool {
			p := b.portStatus("eth1")
			return p.State == api.Accelerating && p.Engine == name
		})
	}
	engine("generic")
	staged := filepath.Join(b.dir, "save", "xdpl2")
	must(t, os.WriteFile(staged, []byte("xdpl2.main.engine='tc'\n"), 0o600)) // uci set
	reload(b)
	engine("tc")
	if got := look(t, b, true); got != seenByTC {
		t.Errorf("during the capture: %+v, want %+v", got, seenByTC)
	}
	must(t, os.Remove(staged)) // uci revert
	reload(b)
	engine("generic")
	if got := look(t, b, true); got != seenByXDP {
		t.Errorf("after it: %+v, want %+v", got, seenByXDP)
	}
}

// TestCapture: during `xdpl2 capture` taps see what they do not see otherwise,
// and each port has its engine again when it ends, also by SIGKILL, and with
// two of them when both have ended.
func TestCapture(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("generic"))
	b.start()
	b.learn(l.Hosts[0], l.Hosts[1])
	engine := func(name string) {
		t.Helper()
		b.wait("engine "+name, func() bool {
			for _, p := range b.status().Ports {
				if p.State != api.Accelerating || p.Engine != name {
					return false
				}
			}
			return true
		})
	}
	engine("generic")
	// A tcpdump that tells its arguments and then waits to be ended.
	dir := t.TempDir()
	script := "#!/bin/sh\necho \"$@\" >" + dir + "/args.new\nmv " + dir + "/args.new " + dir + "/args\n" +
		"trap 'touch " + dir + "/ended; exit 0' TERM\nwhile :; do sleep 0.1; done\n"
	must(t, os.WriteFile(filepath.Join(dir, "tcpdump"), []byte(script), 0o700))
	b.env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	var said bytes.Buffer
	capture := func(args ...string) *exec.Cmd {
		cmd := b.program()
		cmd.Args = append(append(cmd.Args, "capture"), args...)
		if len(args) == 0 {
			pipe, err := cmd.StderrPipe()
			must(t, err)
			defer func() {
				line, err := bufio.NewReader(pipe).ReadString('\n')
				must(t, err)
				said.WriteString(line)
			}()
		}
		must(t, l.Router.Start(cmd))
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd
	}
	first := capture("eth2", "-n", "port", "53")
	engine("tc")
	if why := b.portStatus("eth1").Engines["generic"]; why != "frames are being captured, and taps see those of tc only" {
		t.Errorf("why not generic: %q", why)
	}
	if got := look(t, b, true); got != seenByTC {
		t.Errorf("during the capture: %+v, want %+v", got, seenByTC)
	}
	b.wait("tcpdump to start", func() bool { _, err := os.Stat(dir + "/args"); return err == nil })
	args, err := os.ReadFile(dir + "/args")
	must(t, err)
	if got, want := string(args), "-i eth2 -n port 53\n"; got != want {
		t.Errorf("tcpdump got %q, want %q", got, want)
	}
	second := capture() // for other programs
	contains(t, said.String(), "All ports use tc")
	must(t, first.Process.Kill())
	_ = first.Wait()
	if got := b.portStatus("eth1").Engine; got != "tc" {
		t.Errorf("while the second capture goes on: engine %s", got)
	}
	b.wait("tcpdump to end", func() bool { _, err := os.Stat(dir + "/ended"); return err == nil })
	must(t, second.Process.Signal(os.Interrupt))
	if err := second.Wait(); err != nil {
		t.Errorf("an interrupted capture: %v", err)
	}
	engine("generic")
	if got := look(t, b, true); got != seenByXDP {
		t.Errorf("after it: %+v, want %+v", got, seenByXDP)
	}
}

// look sends frames from h1 to h2 and tells where they were seen, with taps on
// both ports and the bridge or without.
func look(t *testing.T, b *box, tapped bool) seen {
	t.Helper()
	h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
	const frames = 100
	frame := ether.UDP(lab.Between(h1, h2))
	var taps []*lab.Capture
	tap := func(device string) (count func() int) {
		if !tapped {
			return func() int { return 0 }
		}
		c, err := b.lab.Router.Capture(device, lab.CaptureOptions{Outgoing: true})
		must(t, err)
		taps = append(taps, c)
		return func() int { return c.Count(lab.Equal(frame)) }
	}
	defer func() {
		for _, c := range taps {
			must(t, c.Close())
		}
	}()
	in, bridge, out := tap("eth1"), tap(lab.BridgeName), tap("eth2")
	at2, err := h2.Capture()
	must(t, err)
	defer at2.Close()
	counters := func() (rxPort, rxBridge, txPort uint64) {
		stats := func(device string) (rx, tx uint64) {
			link, err := b.lab.Router.Link(device)
			must(t, err)
			s := link.Attrs().Statistics
			return s.RxPackets, s.TxPackets
		}
		rxPort, _ = stats("eth1")
		rxBridge, _ = stats(lab.BridgeName)
		_, txPort = stats("eth2")
		return rxPort, rxBridge, txPort
	}
	fast := b.redirected()
	rxPort, rxBridge, txPort := counters()
	sender, err := h1.Sender()
	must(t, err)
	defer sender.Close()
	for range frames {
		must(t, sender.Send(frame))
	}
	for range frames {
		_, err := at2.Expect(testContext(t), lab.Equal(frame))
		must(t, err)
	}
	// A broadcast goes through the bridge and is seen everywhere: behind it,
	// nothing of what came before is still on its way to a tap.
	last := ether.ARPRequest(h1.MAC, h1.IP4, h2.IP4)
	must(t, sender.Send(last))
	for _, c := range append(taps, at2) {
		_, err := c.Expect(testContext(t), lab.Equal(last))
		must(t, err)
	}
	all := func(what string, n, chatter int) bool {
		t.Helper()
		if n > chatter && n < frames {
			t.Errorf("%s: %d of %d frames", what, n, frames)
		}
		return n >= frames
	}
	// Some frames of the hosts' own come beside ours.
	const chatter = 20
	rx, rxb, tx := counters()
	return seen{
		tapIn: all("tap on eth1", in(), 0), tapBridge: all("tap on br-lan", bridge(), 0),
		tapOut: all("tap on eth2", out(), 0), rxPort: all("eth1 rx", int(rx-rxPort), chatter),
		rxBridge: all("br-lan rx", int(rxb-rxBridge), chatter), txPort: all("eth2 tx", int(tx-txPort), chatter),
		fast: all("redirected", int(b.redirected()-fast), chatter),
	}
}

// redirected counts what xdpl2 redirected at eth1; nothing while it is off.
func (b *box) redirected() uint64 {
	b.t.Helper()
	all, err := b.client().Counters(testContext(b.t), "")
	must(b.t, err)
	for _, c := range all {
		if c.Device != "eth1" {
			continue
		}
		for _, v := range c.Verdicts {
			if v.Verdict == "redirected" {
				return v.Packets
			}
		}
	}
	return 0
}
