// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// openWays turns GRO on at both ends of each port's cable: a veth then takes
// what native XDP sends it, and keeps its queue when a program comes or goes.
func openWays(t *testing.T, l *lab.Lab) {
	t.Helper()
	for _, h := range l.Hosts {
		on := func(dev string) func() error {
			return func() error { return netdev.SetFeature(dev, netdev.GRO, true) }
		}
		must(t, l.Router.Do(on(h.Port().Name)))
		must(t, h.NS.Do(on(h.Dev())))
	}
}

// setEngine does what `uci set xdpl2.main.engine=...; /etc/init.d/xdpl2 reload` does.
func setEngine(b *box, engine string) {
	b.t.Helper()
	must(b.t, os.WriteFile(filepath.Join(b.dir, "save", "xdpl2"), fmt.Appendf(nil, "xdpl2.main.engine='%s'\n", engine), 0o600))
	reload(b)
}

// bulkSize is how many frames native XDP may hold back until the driver has
// looked through its ring (DEV_MAP_BULK_SIZE in kernel/bpf/devmap.c). Those that
// the same look gives to the stack, before or behind them, do not wait for them,
// so when native comes or goes in the middle of a look, so many may be overtaken.
const bulkSize = 16

// TestEveryChangeOfEngines changes from each engine to each other one while
// frames flow: none is lost or doubled, and between tc and generic none is
// overtaken.
func TestEveryChangeOfEngines(t *testing.T) {
	if !vethsTakeXDP(t) {
		t.Skip("needs veths that take frames from native XDP without a program (Linux 5.13)")
	}
	frames := scaled(100_000)
	hooks := map[string]string{"native": "xdp native", "generic": "xdp generic", "tc": ""}
	// A walk that takes each of the six changes once.
	walk := []string{"native", "tc", "generic", "native", "generic", "tc", "native"}
	for _, clsact := range []bool{false, true} {
		if clsact && (inGuest || !lab.HasTCX()) {
			continue // see ways
		}
		t.Run(fmt.Sprintf("clsact=%v", clsact), func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{NoIPv6: true})
			openWays(t, l)
			b := newBox(t, l, confOf(walk[0]))
			if clsact {
				b.start("--no-tcx")
			} else {
				b.start()
			}
			if p := b.portStatus("eth1"); p.Engine != "native" {
				t.Fatalf("native is not used: %+v", p)
			}
			h1, h2 := l.Hosts[0], l.Hosts[1]
			b.learn(h1, h2)
			for i, engine := range walk {
				ctx := testContext(t)
				before := b.count("eth1", "redirected")
				stream, err := l.StartStream(ctx, h1, h2, lab.StreamOptions{})
				must(t, err)
				must(t, stream.WaitReceived(ctx, frames/2))
				if i > 0 {
					setEngine(b, engine)
				}
				now := stream.Progress()
				must(t, stream.WaitReceived(ctx, now.Received+frames/2))
				stream.Stop()
				stats, err := stream.Wait()
				must(t, err)
				redirected := b.count("eth1", "redirected") - before
				from := walk[max(i-1, 0)]
				late := 0
				if from != engine && (from == "native" || engine == "native") {
					late = bulkSize
				}
				if stats.Reordered > late {
					t.Errorf("%s to %s: %d frames overtaken, expected at most %d", from, engine, stats.Reordered, late)
				}
				stats.Reordered = 0
				if !stats.Perfect() || stats.Elsewhere > 0 {
					t.Errorf("%s to %s: %+v", from, engine, stats)
				}
				if redirected < uint64(stats.Sent)*99/100 {
					t.Errorf("%s to %s: only %d of %d frames redirected", from, engine, redirected, stats.Sent)
				}
				for _, p := range b.status().Ports {
					if p.State != api.Accelerating || p.Engine != engine || hooks[engine] != "" && p.Hook != hooks[engine] {
						t.Errorf("engine %s: %+v", engine, p)
					}
				}
				t.Logf("%-8s %d frames, %d redirected", engine, stats.Sent, redirected)
			}
		})
	}
}

// vethsTakeXDP reports whether a veth with GRO on takes what native XDP sends
// it, and keeps its queue when a program goes: Linux 5.13.
func vethsTakeXDP(t *testing.T) bool {
	var u unix.Utsname
	must(t, unix.Uname(&u))
	var major, minor int
	_, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor)
	must(t, err)
	return major > 5 || major == 5 && minor >= 13
}

// TestNativeNeedsAWayOut: a veth whose other end has neither GRO nor a program
// swallows what native XDP sends it. The kernel tells so, and tells when it
// changes.
func TestNativeNeedsAWayOut(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("native"))
	b.start()
	if err := l.Router.Do(func() error { _, err := netdev.XDP(1); return err }); errors.Is(err, netdev.ErrUnsupported) {
		t.Skipf("needs a kernel that tells what drivers can do, Linux 6.3 (%v)", err)
	}
	const why = "eth1 could not send what native XDP redirects there (veth)"
	p := b.portStatus("eth2")
	if p.State != api.Accelerating || p.Engine != "tc" || p.Engines["native"] != why || p.Reason != "not native: "+why {
		t.Errorf("without a way out: %+v", p)
	}
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b.learn(h1, h2)
	transfer(t, h1, h2, false)
	openWays(t, l)
	b.wait("native to be used", func() bool {
		return !slices.ContainsFunc(b.status().Ports, func(p api.PortStatus) bool { return p.Engine != "native" || p.Reason == "" })
	})
	transfer(t, h1, h2, false)
	must(t, l.Hosts[2].NS.Do(func() error { return netdev.SetFeature(l.Hosts[2].Dev(), netdev.GRO, false) }))
	b.wait("the ports that reach eth3 to leave native", func() bool {
		return b.portStatus("eth1").Engine == "tc" && b.portStatus("eth2").Engine == "tc" && b.portStatus("eth3").Engine == "native"
	})
	transfer(t, h1, h2, false)
}

// TestNativeSwallowed: the same where the kernel does not tell. Frames go in
// and none come out, and the port falls back.
func TestNativeSwallowed(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	takes := vethsTakeXDP(t)
	if takes {
		openWays(t, l)
	}
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b := newBox(t, l, confOf("native"))
	b.start("--no-xdp-features")
	events, err := b.client().Events(testContext(t))
	must(t, err)
	b.learn(h1, h2)
	if takes {
		transfer(t, h1, h2, false)
		must(t, h2.NS.Do(func() error { return netdev.SetFeature(h2.Dev(), netdev.GRO, false) }))
	}
	if p := b.portStatus("eth1"); p.Engine != "native" {
		t.Fatalf("native is not used: %+v", p)
	}
	sender, err := h1.Sender()
	must(t, err)
	got, err := h2.Capture()
	must(t, err)
	frame := ether.UDP(lab.Between(h1, h2))
	b.wait("the port to fall back", func() bool {
		must(t, sender.Send(frame))
		return b.portStatus("eth1").Engine == "tc"
	})
	const why = "native XDP was tried, and what it redirected to eth2 did not come out there"
	if p := b.portStatus("eth1"); p.Engines["native"] != why || p.State != api.Accelerating {
		t.Errorf("after the fall back: %+v", p)
	}
	got.Drain()
	must(t, sender.Send(frame))
	_, err = got.Expect(testContext(t), lab.Equal(frame))
	must(t, err)
	var e api.Event
	for e = range events {
		if e.Kind == api.EventEngine {
			break
		}
	}
	if e.Device != "eth1" && e.Device != "eth3" || e.Engine != "tc" || e.Before != "native" || e.Reason != why {
		t.Errorf("event %+v", e)
	}
	transfer(t, h1, h2, false)
	if n := b.portStatus("eth1").EngineChanges; n != 1 {
		t.Errorf("the engine was changed %d times", n)
	}
	// Somebody who asks again is heard.
	setEngine(b, "tc")
	setEngine(b, "native")
	if p := b.portStatus("eth1"); p.Engine != "native" {
		t.Errorf("asked again: %+v", p)
	}
}

// TestAutoLooksAgain: what auto may choose from follows what is there.
func TestAutoLooksAgain(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("auto"))
	b.start("--trust-frames")
	generic := func() string { return b.portStatus("eth1").Engines["generic"] }
	possible := generic()
	_, remove := shape(t, l.Router, "eth2")
	b.wait("generic to be ruled out by a shaper", func() bool {
		return generic() == "eth2 has a shaping qdisc (tbf), and XDP sends past it"
	})
	if why := b.portStatus("eth2").Engines["generic"]; why != possible {
		t.Errorf("eth2, whose frames do not leave there: %s", why)
	}
	remove()
	b.wait("generic to be possible again", func() bool { return generic() == possible })
}

// TestVirtualPorts: without being told to trust them, auto uses no XDP where
// frames may be unfinished, and who asks for it by name is told.
func TestVirtualPorts(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("auto"))
	b.start()
	const why = "eth1 is virtual (veth): its frames may have unfinished checksums, which XDP would send as they are"
	p := b.portStatus("eth1")
	if p.Engine != "tc" || p.Engines["generic"] != why || p.Engines["native"] != why || p.Reason != "" {
		t.Errorf("auto: %+v", p)
	}
	setEngine(b, "generic")
	if p := b.portStatus("eth1"); p.Engine != "generic" || p.State != api.Accelerating || p.Reason != why {
		t.Errorf("generic by name: %+v", p)
	}
}
