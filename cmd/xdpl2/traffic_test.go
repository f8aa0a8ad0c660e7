// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// forEachWay runs a test with every way of attaching. The hosts' offloads are
// off (the lab's default), since a veth hands over unfinished checksums and
// GSO frames, which XDP would send on as they are; no NIC does that.
func forEachWay(t *testing.T, opts lab.Options, f func(*testing.T, way, *box)) {
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			l := lab.ForTest(t, opts)
			b := newBox(t, l, confOf(w.engine))
			b.start(w.args...)
			f(t, w, b)
		})
	}
}

// forNativeToo is forEachWay with native XDP, which the hosts' ends of the cables
// must be able to take.
func forNativeToo(t *testing.T, opts lab.Options, f func(*testing.T, way, *box)) {
	forEachWay(t, opts, f)
	if inGuest || !vethsTakeXDP(t) {
		return // TestNativeOnCards and others are for the guests
	}
	w := way{name: "native", engine: "native", hook: "xdp native"}
	t.Run(w.name, func(t *testing.T) {
		l := lab.ForTest(t, opts)
		openWays(t, l)
		b := newBox(t, l, confOf(w.engine))
		b.start()
		f(t, w, b)
	})
}

func TestTraffic(t *testing.T) {
	forNativeToo(t, lab.Options{}, func(t *testing.T, w way, b *box) {
		for _, p := range b.status().Ports {
			if p.State != api.Accelerating || p.Engine != w.engine || w.hook != "" && p.Hook != w.hook {
				t.Fatalf("port %+v, want %s by %s", p, w.engine, w.hook)
			}
		}
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		// From cold: ARP and neighbour discovery go through the bridge.
		b.ping(h1.NS, h2)
		ping6(t, h2.NS, h3.IP6)
		b.learn(h1, h2, h3)
		for _, pair := range [][2]*lab.Host{{h1, h2}, {h2, h1}, {h3, h1}} {
			transfer(t, pair[0], pair[1], false)
		}
		transfer(t, h1, h3, true)
		for _, port := range []string{"eth1", "eth2", "eth3"} {
			if n := b.count(port, "redirected"); n < uint64(scaled(1000)) {
				t.Errorf("%s: only %d frames redirected", port, n)
			}
			if n := b.count(port, "redirect_failed"); n > 0 {
				t.Errorf("%s: %d redirects failed", port, n)
			}
		}
		// The box itself.
		b.ping(h1.NS, nil)
		b.ping(b.lab.Router, h2)
		if n := b.count("eth1", "pass_local"); n == 0 {
			t.Error("nothing was passed to the box")
		}
	})
}

func ping6(t *testing.T, from *lab.NS, to netip.Addr) {
	t.Helper()
	stats, err := from.Ping(testContext(t), to, lab.PingOptions{Count: 3, Timeout: 5 * time.Second})
	must(t, err)
	if stats.Lost() > 0 {
		t.Errorf("ping from %s to %s: %d of %d lost", from, to, stats.Lost(), stats.Sent)
	}
}

// transfer moves data both ways at once and checks every byte.
func transfer(t *testing.T, from, to *lab.Host, v6 bool) {
	t.Helper()
	ctx := testContext(t)
	server, err := to.TCPServe(ctx, v6)
	must(t, err)
	defer server.Close()
	size := int64(scaled(2 << 20))
	result, err := from.NS.TCPSend(ctx, server.Addr(), lab.TCPOptions{Direction: lab.Both, Bytes: size})
	must(t, err)
	if result.Up != size || result.Down != size {
		t.Errorf("%s to %s: %+v", from.Name, to.Name, result)
	}
}

// TestGSO leaves the hosts' offloads on, so that frames of up to 64 KiB with
// unfinished checksums arrive: tc hands them on as the bridge does.
func TestGSO(t *testing.T) {
	l := lab.ForTest(t, lab.Options{KeepOffloads: true})
	b := newBox(t, l, confOf("tc"))
	b.start()
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b.learn(h1, h2)
	transfer(t, h1, h2, false)
	transfer(t, h2, h1, true)
	if n := b.count("eth1", "redirected"); n < 100 {
		t.Errorf("only %d frames redirected", n)
	}
}

func TestGroupAndControlFrames(t *testing.T) {
	forNativeToo(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		ctx := testContext(t)
		sender, err := h1.Sender()
		must(t, err)
		to2, err := h2.Capture()
		must(t, err)
		to3, err := h3.Capture()
		must(t, err)
		// Broadcast reaches everybody, control frames nobody. (Without STP the
		// bridge itself floods BPDUs, so none is sent here.)
		must(t, sender.Send(ether.LLDP(h1.MAC)))
		must(t, sender.Send(ether.EAPOL(h1.MAC)))
		broadcast := ether.ARPRequest(h1.MAC, h1.IP4, netip.MustParseAddr("192.168.77.99"))
		must(t, sender.Send(broadcast))
		for _, c := range []*lab.Capture{to2, to3} {
			_, err := c.Expect(ctx, lab.Equal(broadcast))
			must(t, err)
			// What was sent before the broadcast would have come before it.
			if n := c.Count(func(f []byte) bool { return f[0] == 0x01 && f[1] == 0x80 }); n > 0 {
				t.Errorf("%d control frames were forwarded", n)
			}
		}
		if n := b.count("eth1", "pass_control"); n != 2 {
			t.Errorf("%d control frames passed, want 2", n)
		}
		if n := b.count("eth1", "pass_group"); n == 0 {
			t.Error("no group frame passed")
		}
	})
}

// TestVLANTagsSurvive sends tagged frames through a bridge that knows no
// VLANs: they go by address, tag and priority untouched.
func TestVLANTagsSurvive(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true, NoTxVLAN: true}, func(t *testing.T, w way, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		b.learn(h1, h2)
		ctx := testContext(t)
		sender, err := h1.Sender()
		must(t, err)
		got, err := h2.Capture()
		must(t, err)
		plain := ether.UDP(lab.Between(h1, h2))
		before := b.count("eth1", "redirected")
		for _, f := range [][]byte{
			ether.Tag(plain, 0x8100, 10), ether.Tag(plain, 0x8100, 0xe00a), ether.Tag(plain, 0x8100, 0x3000),
			ether.Tag(plain, 0x88a8, 20), ether.Tag(ether.Tag(plain, 0x8100, 10), 0x88a8, 20),
		} {
			must(t, sender.Send(f))
			if _, err := got.Expect(ctx, lab.Equal(f)); err != nil {
				t.Errorf("frame % x: %v", f[:22], err)
			}
		}
		if n := b.count("eth1", "redirected") - before; n != 5 {
			t.Errorf("%d of 5 tagged frames redirected", n)
		}
	})
}

func TestBlockedPortCarriesNothing(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		ctx := testContext(t)
		got, err := h2.Capture()
		must(t, err)
		sender, err := h1.Sender()
		must(t, err)
		back, err := h2.Sender()
		must(t, err)
		heard, err := h1.Capture()
		must(t, err)
		must(t, b.lab.SetPortState(h2.Port(), lab.PortListening))
		b.wait("eth2 to be blocked", func() bool { return stp(b, "eth2") == "listening" })
		for range 100 {
			must(t, sender.Send(ether.UDP(lab.Between(h1, h2))))
			must(t, back.Send(ether.UDP(lab.Between(h2, h1))))
		}
		// The third port is a witness that frames sent before have been dealt with.
		b.ping(h1.NS, h3)
		b.wait("the frames from the blocked port", func() bool { return b.count("eth2", "pass_blocked") >= 100 })
		if n := got.Count(lab.From(h1.MAC)); n > 0 {
			t.Errorf("%d frames went into a blocked port", n)
		}
		if n := heard.Count(lab.From(h2.MAC)); n > 0 {
			t.Errorf("%d frames came out of a blocked port", n)
		}
		must(t, b.lab.SetPortState(h2.Port(), lab.PortForwarding))
		b.wait("eth2 to forward", func() bool { return stp(b, "eth2") == "forwarding" })
		b.learn(h2)
		before := b.count("eth1", "redirected")
		must(t, sender.Send(ether.UDP(lab.Between(h1, h2))))
		if _, err := got.Expect(ctx, lab.From(h1.MAC)); err != nil {
			t.Error(err)
		}
		b.wait("eth1 to redirect again", func() bool { return b.count("eth1", "redirected") > before })
	})
}

func stp(b *box, device string) string {
	ports, err := b.client().Ports(testContext(b.t))
	must(b.t, err)
	for _, p := range ports {
		if p.Device == device {
			return p.STP
		}
	}
	return ""
}

func TestIsolatedPorts(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		must(t, b.lab.SetIsolated(h1.Port(), true))
		must(t, b.lab.SetIsolated(h2.Port(), true))
		got, err := h2.Capture()
		must(t, err)
		sender, err := h1.Sender()
		must(t, err)
		b.wait("eth1 to be isolated", func() bool {
			must(t, sender.Send(ether.UDP(lab.Between(h1, h2))))
			return b.count("eth1", "pass_isolated") > 10
		})
		got.Drain()
		for range 100 {
			must(t, sender.Send(ether.UDP(lab.Between(h1, h2))))
		}
		b.ping(h1.NS, h3)
		if n := got.Count(lab.From(h1.MAC)); n > 0 {
			t.Errorf("%d frames between isolated ports", n)
		}
	})
}

// TestKilledDuringTransfer kills the daemon while a transfer runs: it goes on
// through the bridge, and the next daemon takes over.
func TestKilledDuringTransfer(t *testing.T) {
	forEachWay(t, lab.Options{}, func(t *testing.T, w way, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		b.learn(h1, h2)
		ctx := testContext(t)
		server, err := h2.TCPServe(ctx, false)
		must(t, err)
		running, err := h1.Transfer(ctx, server.Addr(), lab.TCPOptions{Direction: lab.Both})
		must(t, err)
		step := int64(scaled(1 << 20))
		must(t, running.WaitProgress(ctx, step))
		if b.count("eth1", "redirected") == 0 {
			t.Fatal("nothing was accelerated")
		}
		b.end(syscall.SIGKILL)
		up, down := running.Progress()
		must(t, running.WaitProgress(ctx, up+down+2*step))
		b.start(w.args...)
		b.wait("the next daemon to accelerate", func() bool { return b.count("eth1", "redirected") > 100 })
		up, down = running.Progress()
		must(t, running.WaitProgress(ctx, up+down+step))
		running.Stop()
		result, err := running.Wait()
		must(t, err)
		t.Logf("moved %d and %d bytes", result.Up, result.Down)
		if w.hook == "clsact" && !strings.Contains(strings.Join(b.log, "\n"), "removed filters that an earlier daemon left") {
			t.Error("the filters of the killed daemon were not cleaned up")
		}
	})
}

// TestStaleFiltersPass: before tcx a filter outlives its daemon; it must leave
// everything to the bridge soon.
func TestStaleFiltersPass(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("tc"))
	b.start("--no-tcx")
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b.learn(h1, h2)
	b.end(syscall.SIGKILL)
	ctx, cancel := context.WithTimeout(context.Background(), 25*time.Second)
	defer cancel()
	sender, err := h1.Sender()
	must(t, err)
	frame := ether.UDP(lab.Between(h1, h2))
	// The bridge forgets h2, so it floods what is for h2: h3 hears frames as
	// soon as the filter passes them to the bridge, and none before: the lease
	// was renewed when the daemon ended, or up to two seconds earlier.
	h3 := l.Hosts[2]
	flooded, err := h3.Capture()
	must(t, err)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for flooded.Count(lab.From(h1.MAC)) == 0 {
		select {
		case <-tick.C:
			// Each time, for h2 asks for the router's address now and then.
			if err := forgetStation(l, h2); err != nil && !errors.Is(err, unix.ENOENT) {
				t.Fatal(err)
			}
			must(t, sender.Send(frame))
		case <-ctx.Done():
			t.Fatal("the stale filter still redirects after 25 s")
		}
	}
	if took := time.Since(began); took < datapath.LeaseLength/2 {
		t.Errorf("the filter passed after %v; the test shows nothing", took)
	}
}

// forgetStation deletes a host from the bridge's database.
func forgetStation(l *lab.Lab, h *lab.Host) error {
	handle, err := l.Router.Handle()
	if err != nil {
		return err
	}
	dev, err := l.Router.Link(h.Port().Name)
	if err != nil {
		return err
	}
	return handle.NeighDel(&netlink.Neigh{
		LinkIndex: dev.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, HardwareAddr: h.MAC,
	})
}
