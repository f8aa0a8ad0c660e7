// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// testContext bounds a test that hangs; no test waits for it to pass.
func testContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func mustPing(t *testing.T, from *Host, to netip.Addr) {
	t.Helper()
	stats, err := from.Ping(testContext(t), to, PingOptions{Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	if stats.Received != 3 || stats.Duplicates != 0 {
		t.Fatalf("%s to %s: %+v, want 3 answers", from.Name, to, stats)
	}
}

func TestPing(t *testing.T) {
	l := ForTest(t, Options{})
	for _, from := range l.Hosts {
		for _, to := range l.Hosts {
			if from != to {
				mustPing(t, from, to.IP4)
				mustPing(t, from, to.IP6)
			}
		}
		mustPing(t, from, RouterIP4)
		mustPing(t, from, RouterIP6)
	}
	stats, err := l.Hosts[0].Ping(testContext(t), l.Hosts[1].IP4, PingOptions{Count: 20, Size: 1400, Interval: time.Millisecond})
	if err != nil || stats.Lost() != 0 || len(stats.RTTs) != 20 || stats.MedianRTT() <= 0 {
		t.Errorf("20 pings of 1400 bytes: %+v, %v", stats, err)
	}
}

func TestPingLost(t *testing.T) {
	l := ForTest(t, Options{Hosts: 1})
	// Resolving fails in the end, which the kernel tells with an error on the
	// socket or not at all, depending on the time: only answers are excluded.
	stats, err := l.Hosts[0].Ping(testContext(t), netip.MustParseAddr("192.168.77.99"), PingOptions{Timeout: 50 * time.Millisecond})
	if stats.Received != 0 {
		t.Errorf("an address that nobody has answered: %+v, %v", stats, err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	gone := errors.New("gone")
	time.AfterFunc(20*time.Millisecond, func() { cancel(gone) })
	_, err = l.Hosts[0].Ping(ctx, netip.MustParseAddr("192.168.77.99"), PingOptions{Timeout: time.Minute})
	if !errors.Is(err, gone) {
		t.Errorf("cancelled ping: %v", err)
	}
}

func TestTCP(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	ctx := testContext(t)
	for _, v6 := range []bool{false, true} {
		s, err := l.Hosts[1].TCPServe(ctx, v6)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range []Direction{Up, Down, Both} {
			r, err := l.Hosts[0].NS.TCPSend(ctx, s.Addr(), TCPOptions{Direction: dir, Bytes: 3_000_001})
			if err != nil {
				t.Fatalf("direction %d: %v", dir, err)
			}
			want := map[Direction][2]int64{Up: {3_000_001, 0}, Down: {0, 3_000_001}, Both: {3_000_001, 3_000_001}}[dir]
			if r.Up != want[0] || r.Down != want[1] {
				t.Errorf("direction %d: %d up, %d down", dir, r.Up, r.Down)
			}
		}
	}
}

func TestTCPWatched(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	ctx := testContext(t)
	s, err := l.Hosts[1].TCPServe(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []Direction{Up, Down, Both} {
		tr, err := l.Hosts[0].Transfer(ctx, s.Addr(), TCPOptions{Direction: dir})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if err := tr.WaitProgress(ctx, 1<<20); err != nil {
				t.Fatal(err)
			}
		}
		tr.Stop()
		r, err := tr.Wait()
		if err != nil || r.Up+r.Down < 3<<20 || r.Goodput() <= 0 {
			t.Errorf("direction %d: %+v, %v", dir, r, err)
		}
	}
	// Without a path it stands still, and goes on when the path is back.
	tr, err := l.Hosts[0].Transfer(ctx, s.Addr(), TCPOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := l.Hosts[0].Port()
	if err := l.SetPortUp(p, false); err != nil {
		t.Fatal(err)
	}
	if err := l.SetPortUp(p, true); err != nil {
		t.Fatal(err)
	}
	if err := tr.WaitProgress(ctx, 10<<20); err != nil {
		t.Fatal(err)
	}
	// A transfer whose context ends is broken off, also without upward data.
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	short, cancel := context.WithCancel(ctx)
	tr, err = l.Hosts[0].Transfer(short, s.Addr(), TCPOptions{Direction: Down})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := tr.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("broken off transfer: %v", err)
	}
}

func TestTCPKeepOffloads(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2, KeepOffloads: true})
	ctx := testContext(t)
	s, err := l.Hosts[1].TCPServe(ctx, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Hosts[0].NS.TCPSend(ctx, s.Addr(), TCPOptions{Direction: Both, Duration: 200 * time.Millisecond})
	if err != nil || r.Up == 0 || r.Down == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	t.Logf("%.1f Gbit/s", r.Goodput()/1e9)
}

func TestReplug(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2, Spares: 1})
	ctx := testContext(t)
	h1, h2 := l.Hosts[0], l.Hosts[1]
	mustPing(t, h1, h2.IP4)
	spare, err := l.Port(3)
	if err != nil {
		t.Fatal(err)
	}
	if err := h2.Replug(ctx, spare); err != nil {
		t.Fatal(err)
	}
	if h2.Port() != spare || h2.Dev() != "eth0" {
		t.Errorf("h2 at %v, device %s", h2.Port(), h2.Dev())
	}
	mustPing(t, h2, h1.IP4)
	mustPing(t, h1, h2.IP6)
	if err := l.WaitStation(ctx, h2.MAC, spare); err != nil {
		t.Error(err)
	}
	if err := h2.Unplug(); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitStation(ctx, h2.MAC, nil); err != nil {
		t.Error(err)
	}
	old, err := l.Port(2)
	if err != nil {
		t.Fatal(err)
	}
	if err := h2.Replug(ctx, old); err != nil {
		t.Fatal(err)
	}
	mustPing(t, h1, h2.IP4)
	if err := h2.Replug(ctx, h1.Port()); err == nil {
		t.Error("two hosts plugged into one port")
	}
}

func TestRoam(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2, Spares: 1, NoIPv6: true})
	ctx := testContext(t)
	h1, h2 := l.Hosts[0], l.Hosts[1]
	mustPing(t, h1, h2.IP4)
	before, _ := l.Port(2)
	spare, _ := l.Port(3)
	old, err := h2.Roam(ctx, spare)
	if err != nil {
		t.Fatal(err)
	}
	// The bridge still believes in the old port until the host speaks.
	if name, err := l.StationPort(h2.MAC); err != nil || name != before.Name {
		t.Errorf("station on port %q before it spoke, %v", name, err)
	}
	capture, err := h2.NS.Capture(old, CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	mustPing(t, h2, h1.IP4)
	if err := l.WaitStation(ctx, h2.MAC, spare); err != nil {
		t.Fatal(err)
	}
	if err := h2.Announce(); err != nil {
		t.Error(err)
	}
	capture.Drain() // the ARP request of h2 was flooded there
	mustPing(t, h1, h2.IP4)
	if n := capture.Count(All(To(h2.MAC), From(h1.MAC))); n != 0 {
		t.Errorf("%d frames to h2 on its old port", n)
	}
	if lost, err := capture.Lost(); err != nil || lost != 0 {
		t.Errorf("capture lost %d frames, %v", lost, err)
	}
}

func TestRecreatePort(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	ctx := testContext(t)
	p := l.Hosts[0].Port()
	before, err := l.Index(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.RecreatePort(ctx, p); err != nil {
		t.Fatal(err)
	}
	after, err := l.Index(p)
	if err != nil || after == before {
		t.Errorf("interface index %d before, %d after, %v", before, after, err)
	}
	mustPing(t, l.Hosts[0], l.Hosts[1].IP4)
	mustPing(t, l.Hosts[1], l.Hosts[0].IP6)
}

func TestPortSettings(t *testing.T) {
	l := ForTest(t, Options{Hosts: 3, MTU: map[int]int{3: 1400}, Bridge: BridgeOptions{AgeingTime: 20 * time.Second}})
	ctx := testContext(t)
	h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	lost := func(from *Host, to netip.Addr) bool {
		t.Helper()
		s, err := from.Ping(ctx, to, PingOptions{Timeout: 30 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return s.Received == 0
	}
	mustPing(t, h1, h2.IP4)
	if err := l.SetPortState(h1.Port(), PortBlocking); err == nil {
		t.Error("the kernel kept a port blocked without STP")
	}
	for _, s := range []PortState{PortListening, PortLearning, PortDisabled} {
		if err := l.SetPortState(h1.Port(), s); err != nil {
			t.Fatal(err)
		}
		if !lost(h1, h2.IP4) || !lost(h2, h1.IP4) {
			t.Errorf("a port in state %d carried frames", s)
		}
	}
	if err := l.SetPortState(h1.Port(), PortForwarding); err != nil {
		t.Fatal(err)
	}
	mustPing(t, h1, h2.IP4)
	for _, h := range []*Host{h1, h2} {
		if err := l.SetIsolated(h.Port(), true); err != nil {
			t.Fatal(err)
		}
	}
	if !lost(h1, h2.IP4) {
		t.Error("isolated ports reached each other")
	}
	mustPing(t, h1, h3.IP4)
	if link, err := l.Router.Link(h3.Port().Name); err != nil || link.Attrs().MTU != 1400 {
		t.Errorf("MTU of eth3: %v, %v", link, err)
	}
	if v, err := l.Router.ReadSys("class/net/br-lan/bridge/ageing_time"); err != nil || v != "2000" {
		t.Errorf("ageing time %s, %v", v, err)
	}
	if err := l.SetBridged(h3.Port(), false); err != nil {
		t.Fatal(err)
	}
	if !lost(h1, h3.IP4) {
		t.Error("a port outside the bridge was reached")
	}
	if err := l.SetBridged(h3.Port(), true); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitForwarding(ctx, h3.Port()); err != nil {
		t.Fatal(err)
	}
	mustPing(t, h1, h3.IP4)
	if err := h3.SetLink(false); err != nil {
		t.Fatal(err)
	}
	if err := h3.SetLink(true); err != nil {
		t.Fatal(err)
	}
	if err := l.WaitForwarding(ctx, h3.Port()); err != nil {
		t.Fatal(err)
	}
	mustPing(t, h1, h3.IP6)
	mustPing(t, h3, h1.IP4)
}

func TestBlockBySTP(t *testing.T) {
	l := ForTest(t, Options{Hosts: 3})
	ctx := testContext(t)
	h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	mustPing(t, h1, h2.IP4)
	if err := l.BlockBySTP(ctx, h1.Port(), h3.Port()); err != nil {
		t.Fatal(err)
	}
	s, err := h2.Ping(ctx, h1.IP4, PingOptions{Timeout: 30 * time.Millisecond})
	if err != nil || s.Received != 0 {
		t.Errorf("a blocked port carried frames: %+v, %v", s, err)
	}
	mustPing(t, h2, h3.IP4)
	if err := l.Unblock(ctx, h1.Port()); err != nil {
		t.Fatal(err)
	}
	mustPing(t, h2, h1.IP4)
}

func TestVLANFiltering(t *testing.T) {
	netns.Require(t)
	if !HasVLANFiltering() {
		if _, err := New(testContext(t), Options{Hosts: 1, Bridge: BridgeOptions{VLANFiltering: true}}); err == nil {
			t.Error("a bridge that cannot filter VLANs was made")
		}
		t.Skip("needs a kernel with bridge VLAN filtering")
	}
	l := ForTest(t, Options{Hosts: 3, NoTxVLAN: true, Bridge: BridgeOptions{VLANFiltering: true}})
	ctx := testContext(t)
	h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	mustPing(t, h1, h3.IP4)
	// h1 untagged and h2 tagged in VLAN 10; h3 stays in 1.
	if err := errors.Join(
		l.DelPortVLAN(h1.Port(), 1),
		l.AddPortVLAN(h1.Port(), 10, true, true),
		l.AddPortVLAN(h2.Port(), 10, false, false)); err != nil {
		t.Fatal(err)
	}
	at2, err := h2.Capture()
	if err != nil {
		t.Fatal(err)
	}
	at3, err := h3.Capture()
	if err != nil {
		t.Fatal(err)
	}
	send, err := h1.Sender()
	if err != nil {
		t.Fatal(err)
	}
	frame := ether.UDP(Between(h1, h2))
	if err := send.Send(frame); err != nil {
		t.Fatal(err)
	}
	if _, err := at2.Expect(ctx, Equal(ether.Tag(frame, ether.TypeVLAN, 10))); err != nil {
		t.Error(err)
	}
	if at3.Count(UDPPort(DiscardPort)) != 0 {
		t.Error("a frame left its VLAN")
	}
}

func TestCloseTwice(t *testing.T) {
	netns.Require(t)
	l, err := New(testContext(t), Options{Hosts: 1})
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Hosts[0].Capture()
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := l.Hosts[0].NS.Handle(); !errors.Is(err, netns.ErrClosed) {
		t.Errorf("handle of a closed namespace: %v", err)
	}
}
