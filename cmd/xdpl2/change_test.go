// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// TestHostMoves: a host that appears on another port is reached again at once,
// and no frame goes to the old port after the bridge has learned the move. The
// old port stays up, as when a laptop changes from one access point to
// another: only the host's own frames tell.
func TestHostMoves(t *testing.T) {
	forNativeToo(t, lab.Options{Spares: 1, NoIPv6: true}, func(t *testing.T, w way, b *box) { hostMoves(t, w, b, true) })
}

// TestHostMovesAway: the same to a port that xdpl2 does not manage.
func TestHostMovesAway(t *testing.T) {
	forEachWay(t, lab.Options{Spares: 1, NoIPv6: true}, func(t *testing.T, w way, b *box) { hostMoves(t, w, b, false) })
}

func hostMoves(t *testing.T, w way, b *box, managed bool) {
	if managed {
		b.configure(confOf(w.engine) + "\nconfig port\n\toption device 'eth4'\n")
		reload(b)
	}
	ctx := testContext(t)
	h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
	b.learn(h1, h2)
	sender, err := h1.Sender()
	must(t, err)
	eth4, err := b.lab.Port(4)
	must(t, err)
	old, err := h2.Roam(ctx, eth4)
	must(t, err)
	atOld, err := h2.NS.Capture(old, lab.CaptureOptions{})
	must(t, err)
	atNew, err := h2.Capture()
	must(t, err)
	if managed {
		b.wait("eth4 to be accelerated", func() bool { return b.portStatus("eth4").State == api.Accelerating })
	}
	frame := ether.UDP(lab.Between(h1, h2))
	// Until it speaks, its frames go to the old port, as with the bridge.
	must(t, sender.Send(frame))
	_, err = atOld.Expect(ctx, lab.Equal(frame))
	must(t, err)
	moved, err := h2.Sender()
	must(t, err)
	must(t, moved.Send(ether.UDP(lab.Between(h2, h1))))
	must(t, b.lab.WaitStation(ctx, h2.MAC, eth4))
	atOld.Drain()
	frames := scaled(1000)
	const burst = 50 // what a busy machine's queues (netdev_max_backlog) hold
	for i := 0; i < frames; i += burst {
		for range burst {
			must(t, sender.Send(frame))
		}
		for range burst {
			if _, err := atNew.Expect(ctx, lab.Equal(frame)); err != nil {
				counters, _, _ := b.cli("counters", "--port", "eth1")
				t.Fatalf("after %d of %d frames, of which %d went to the old port: %v\n%s", i, frames, atOld.Count(lab.Equal(frame)), err, counters)
			}
		}
	}
	if n := atOld.Count(lab.Equal(frame)); n > 0 {
		t.Errorf("%d frames went to the old port after the bridge had learned the move", n)
	}
	if !managed {
		b.wait("the fast path to forget the host", func() bool { return !knows(b, h2) })
		if n := b.count("eth1", "pass_unknown_destination"); n < uint64(frames) {
			t.Errorf("%d frames passed for their receiver, want %d", n, frames)
		}
		return
	}
	b.waitStation(h2, "eth4")
	before := b.count("eth1", "redirected")
	must(t, sender.Send(frame))
	b.wait("the new way to be accelerated", func() bool { return b.count("eth1", "redirected") > before })
}

// TestReplug: the same with a cable that is pulled and put in elsewhere.
func TestReplug(t *testing.T) {
	forEachWay(t, lab.Options{Spares: 1}, func(t *testing.T, w way, b *box) {
		b.configure(confOf(w.engine) + "\nconfig port\n\toption device 'eth4'\n")
		reload(b)
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		b.learn(h1, h2)
		eth4, err := b.lab.Port(4)
		must(t, err)
		must(t, h2.Replug(testContext(t), eth4))
		b.ping(h2.NS, h1)
		b.ping(h1.NS, h2)
		b.waitStation(h2, "eth4")
	})
}

func TestLinkDownAndUp(t *testing.T) {
	forEachWay(t, lab.Options{}, func(t *testing.T, w way, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		b.learn(h1, h2)
		must(t, b.lab.SetPortUp(h2.Port(), false))
		b.wait("h2 to be forgotten", func() bool { return !knows(b, h2) })
		must(t, b.lab.SetPortUp(h2.Port(), true))
		must(t, b.lab.WaitForwarding(testContext(t), h2.Port()))
		b.ping(h1.NS, h2)
		b.learn(h2)
		transfer(t, h1, h2, false)
	})
}

func knows(b *box, h *lab.Host) bool {
	list, err := b.client().Stations(testContext(b.t), api.StationQuery{VLAN: -1})
	must(b.t, err)
	return slices.ContainsFunc(list.Stations, func(s api.Station) bool { return s.MAC == h.MAC.String() })
}

// TestDeviceComesBack deletes a port and makes it again: the same name with
// another ifindex. Its counters go on.
func TestDeviceComesBack(t *testing.T) {
	forEachWay(t, lab.Options{}, func(t *testing.T, w way, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		b.learn(h1, h2)
		transfer(t, h1, h2, false)
		before, err := b.lab.Index(h2.Port())
		must(t, err)
		counted := b.count("eth2", "redirected")
		must(t, b.lab.RecreatePort(testContext(t), h2.Port()))
		after, err := b.lab.Index(h2.Port())
		must(t, err)
		if before == after {
			t.Fatalf("the device has ifindex %d again", after)
		}
		// Frames that are in flight when a qdisc is added are lost, so not before.
		b.wait("eth2 to be accelerated again", func() bool { return b.portStatus("eth2").State == api.Accelerating })
		b.ping(h2.NS, h1)
		b.learn(h2)
		transfer(t, h1, h2, false)
		if n := b.count("eth2", "redirected"); n <= counted {
			t.Errorf("%d frames redirected, %d before", n, counted)
		}
	})
}

func TestDeviceAppearsLater(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	b := newBox(t, l, confOf("auto")+"\nconfig port\n\toption device 'eth4'\n")
	b.start()
	if p := b.portStatus("eth4"); p.State != api.Waiting || p.Reason == "" {
		t.Errorf("an absent device: %+v", p)
	}
	_, err := l.AddPort()
	must(t, err)
	b.wait("eth4 to be taken", func() bool { return b.portStatus("eth4").State == api.Accelerating })
}

// reload makes the daemon read its configuration and fails if it does not like it.
func reload(b *box) {
	b.t.Helper()
	if _, stderr, code := b.cli("reload"); code != exitFine {
		b.t.Fatalf("reload: exit code %d, %s", code, stderr)
	}
}

// TestReloadLosesNothing changes everything that can be changed while frames
// flow: none is lost, doubled or overtaken by one that was sent later.
func TestReloadLosesNothing(t *testing.T) {
	frames := scaled(10_000)
	wire := func(engine string) string {
		return fmt.Sprintf(`config xdpl2 'main'
	option enabled '1'
	option mode 'port'
	option engine '%s'
config port
	option device 'eth1'
	option target 'eth2'
config port
	option device 'eth2'
	option target 'eth1'
`, engine)
	}
	steps := []struct{ name, config string }{
		{"the same again", confOf("tc")},
		{"generic", confOf("generic")},
		{"tc", confOf("tc")},
		{"more stations", confOf("tc", "option max_stations '256'")},
		{"a wire by generic", wire("generic")},
		{"a wire by tc", wire("tc")},
		{"by address, generic", confOf("generic")},
		{"fewer stations", confOf("generic", "option max_stations '64'")},
		{"off", confOf("generic", "option enabled '0'")},
		{"on", confOf("tc")},
	}
	for _, clsact := range []bool{false, true} {
		if clsact && inGuest {
			continue // see ways
		}
		t.Run(fmt.Sprintf("clsact=%v", clsact), func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{NoIPv6: true})
			b := newBox(t, l, confOf("tc"))
			if clsact {
				b.start("--no-tcx")
			} else {
				b.start()
			}
			h1, h2 := l.Hosts[0], l.Hosts[1]
			b.learn(h1, h2)
			for _, step := range steps {
				before := b.count("eth1", "redirected")
				// Half of the frames before the reload, half after it.
				ctx := testContext(t)
				stream, err := l.StartStream(ctx, h1, h2, lab.StreamOptions{})
				must(t, err)
				must(t, stream.WaitReceived(ctx, frames/2))
				b.configure(step.config)
				reload(b)
				now := stream.Progress()
				must(t, stream.WaitReceived(ctx, now.Received+frames/2))
				stream.Stop()
				stats, err := stream.Wait()
				must(t, err)
				if stats.Lost() > 0 || stats.Duplicated > 0 || stats.Elsewhere > 0 || stats.Corrupt > 0 {
					t.Errorf("%s: %+v", step.name, stats)
				}
				t.Logf("%-22s %d redirected, %+v", step.name, b.count("eth1", "redirected")-before, stats)
			}
		})
	}
}

func TestReloadBySignalAndStagedChange(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	b := newBox(t, l, confOf("tc"))
	b.start()
	// As `uci set` does, without a commit.
	must(t, os.WriteFile(filepath.Join(b.dir, "save", "xdpl2"), []byte("xdpl2.main.engine='generic'\n"), 0o600))
	must(t, b.cmd.Process.Signal(syscall.SIGHUP))
	b.wait("the engine to change", func() bool { return b.portStatus("eth1").Engine == "generic" })
}

func TestBadReloadKeepsTheLastGoodConfiguration(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	b := newBox(t, l, confOf("tc"))
	b.start()
	b.configure(confOf("quick", "option mode 'mc'"))
	_, stderr, code := b.cli("reload")
	if code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	for _, want := range []string{"xdpl2:3: section xdpl2 'main': option engine 'quick': not valid; expected one of auto", "option mode 'mc'"} {
		contains(t, stderr, want)
	}
	s := b.status()
	if len(s.ConfigErrors) != 2 || s.Mode != "mac" || s.Ports[0].State != api.Accelerating || s.Ports[0].Engine != "tc" {
		t.Errorf("after a bad reload: %+v", s)
	}
	stdout, _, _ := b.cli("status")
	contains(t, stdout, "CONFIGURATION ERROR, the last good one is in force")
	must(t, os.Remove(filepath.Join(b.dir, "config", "xdpl2")))
	_, stderr, code = b.cli("reload")
	if code != exitFailed {
		t.Errorf("without a file: exit code %d", code)
	}
	contains(t, stderr, "no such file")
	b.configure(confOf("tc"))
	reload(b)
	if s := b.status(); len(s.ConfigErrors) != 0 {
		t.Errorf("errors after it was mended: %+v", s.ConfigErrors)
	}
}

// TestAgeing: stations that only the fast path hears stay in the bridge's
// database, silent ones leave it.
func TestAgeing(t *testing.T) {
	const ageing = 4 * time.Second
	l := lab.ForTest(t, lab.Options{NoIPv6: true, Bridge: lab.BridgeOptions{AgeingTime: ageing}})
	b := newBox(t, l, confOf("tc"))
	b.start()
	h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	b.learn(h1, h2, h3)
	ctx := testContext(t)
	// h1 and h2 talk, with frames that are all accelerated; h3 is silent.
	stop := make(chan struct{})
	talked := make(chan error, 1)
	go func() { talked <- talk(stop, h1, h2) }()
	must(t, l.Router.WaitUntil(ctx, "the silent host to age", func() (bool, error) {
		port, err := l.StationPort(h3.MAC)
		return port == "", err
	}))
	// Its end came by ageing, so at least that much time has gone by; as much
	// again must leave the others where they are.
	timer := time.NewTimer(2 * ageing)
	defer timer.Stop()
	gone := l.Router.WaitUntil
	done := make(chan error, 1)
	watch, cancel := contextWithCancel(ctx)
	go func() {
		done <- gone(watch, "a talking host to be forgotten", func() (bool, error) {
			for _, h := range []*lab.Host{h1, h2} {
				if port, err := l.StationPort(h.MAC); err != nil || port == "" {
					return true, err
				}
			}
			return false, nil
		})
	}()
	select {
	case err := <-done:
		t.Errorf("a host that talks through the fast path was forgotten (%v)", err)
	case <-timer.C:
		cancel()
		<-done
	}
	if knows(b, h3) {
		t.Error("the fast path still knows the silent host")
	}
	list, err := b.client().Stations(ctx, api.StationQuery{Port: "eth1", VLAN: -1})
	must(t, err)
	if len(list.Stations) != 1 || list.Stations[0].Seen < 0 || list.Stations[0].Seen > ageing.Seconds() {
		stdout, _, _ := b.cli("counters")
		t.Errorf("station %+v, counters:\n%s", list.Stations, stdout)
	}
	close(stop)
	must(t, <-talked)
}

// TestMoreStationsThanFit: those that do not fit are told of, and taken when
// there is room again.
func TestMoreStationsThanFit(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true, Bridge: lab.BridgeOptions{AgeingTime: 8 * time.Second}})
	b := newBox(t, l, confOf("tc", "option max_stations '16'"))
	b.start()
	h, err := l.Router.Handle()
	must(t, err)
	dev, err := l.Router.Link("eth2")
	must(t, err)
	entry := func(n byte) *netlink.Neigh {
		return &netlink.Neigh{LinkIndex: dev.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER,
			State: netlink.NUD_NOARP, HardwareAddr: net.HardwareAddr{2, 0xfe, 0, 0, 0, n}}
	}
	for n := range byte(30) {
		must(t, h.NeighSet(entry(n)))
	}
	b.wait("the overflow to be told of", func() bool { return b.status().Overflow > 10 })
	for n := range byte(25) {
		must(t, h.NeighDel(entry(n)))
	}
	b.wait("the others to be taken", func() bool { s := b.status(); return s.Overflow == 0 && s.Stations == 5 })
}
