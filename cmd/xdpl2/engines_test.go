// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/api"
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

// TestEveryChangeOfEngines changes from each engine to each other one while
// frames flow: none is lost, doubled or overtaken.
func TestEveryChangeOfEngines(t *testing.T) {
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
			requireNative(t, b)
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
				if !stats.Perfect() || stats.Elsewhere > 0 {
					t.Errorf("%s to %s: %+v", walk[max(i-1, 0)], engine, stats)
				}
				if redirected < uint64(stats.Sent)*99/100 {
					t.Errorf("%s to %s: only %d of %d frames redirected", walk[max(i-1, 0)], engine, redirected, stats.Sent)
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

// requireNative skips a test if veths cannot take what native XDP sends.
func requireNative(t *testing.T, b *box) {
	t.Helper()
	if p := b.portStatus("eth1"); p.Engine != "native" {
		t.Skipf("needs veths that take frames from XDP (Linux 5.13): %s", p.Engines["native"])
	}
}

var _ = netlink.LinkByName
