// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// stationsBehind is how many stations the fast path knows behind a port.
func (b *box) stationsBehind(device string) int {
	b.t.Helper()
	list, err := b.client().Stations(testContext(b.t), api.StationQuery{Port: device, VLAN: -1, Limit: 1})
	must(b.t, err)
	return list.Total
}

// TestOverrunOfTheDaemon has the bridge change more than the daemon's socket
// holds while the daemon does not run: it finds out, reads everything again,
// and ends where the bridge is.
func TestOverrunOfTheDaemon(t *testing.T) {
	if inGuest {
		t.Skip("not for guests: the mirror's own test overruns a small socket here: so many entries take a guest a minute")
	}
	const stations = 16384
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("tc", "option max_stations '20000'"))
	b.start()
	put := func(device string) {
		dev, err := l.Router.Link(device)
		must(t, err)
		for i := range stations {
			must(t, l.Router.PutFDB(lab.FDBEntry{Port: dev.Attrs().Index, MAC: [6]byte{2, 0xab, 0, 0, byte(i >> 8), byte(i)}}))
		}
	}
	put("eth2")
	b.wait("all stations", func() bool { return b.stationsBehind("eth2") == stations })
	before := b.status().Resyncs
	must(t, b.cmd.Process.Signal(syscall.SIGSTOP))
	put("eth3")
	// Told before the daemon goes on, and lost like the rest of what did not fit.
	p, err := l.Port(1)
	must(t, err)
	must(t, l.SetIsolated(p, true))
	began := time.Now()
	must(t, b.cmd.Process.Signal(syscall.SIGCONT))
	b.wait("all stations on the other port", func() bool { return b.stationsBehind("eth3") == stations && b.stationsBehind("eth2") == 0 })
	t.Logf("%d stations followed %v after the daemon went on", stations, time.Since(began))
	if b.status().Resyncs == before {
		t.Error("nothing overran, and this test shows nothing")
	}
	must(t, l.SetIsolated(p, false))
	b.learn(l.Hosts[0], l.Hosts[1])
	transfer(t, l.Hosts[0], l.Hosts[1], false)
}

// TestFlush: what the bridge forgets at once, so does the fast path, and frames
// are flooded as the bridge floods them.
func TestFlush(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		br, err := b.lab.Router.Link(lab.BridgeName)
		must(t, err)
		must(t, b.lab.Router.ChangeBridge(br.Attrs().Index, lab.BridgeChange{Flush: true}))
		b.wait("the fast path to forget", func() bool { return !knows(b, h1) && !knows(b, h2) && !knows(b, h3) })
		at2, err := h2.Capture()
		must(t, err)
		at3, err := h3.Capture()
		must(t, err)
		s, err := h1.Sender()
		must(t, err)
		frame := ether.UDP(lab.Between(h1, h2))
		must(t, s.Send(frame))
		for _, c := range []*lab.Capture{at2, at3} {
			_, err := c.Expect(testContext(t), lab.Equal(frame))
			must(t, err)
		}
		b.learn(h1, h2)
		before := b.count("eth1", "redirected")
		must(t, s.Send(frame))
		_, err = at2.Expect(testContext(t), lab.Equal(frame))
		must(t, err)
		if b.count("eth1", "redirected") == before {
			t.Error("not accelerated after the flush")
		}
	})
}

// TestTwoBridges: an address that both bridges know is followed in the chosen
// one alone, and no frame goes from one to the other.
func TestTwoBridges(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		h, err := b.lab.Router.Handle()
		must(t, err)
		other := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "br-two"}}
		must(t, h.LinkAdd(other))
		must(t, h.LinkSetUp(other))
		eth3, err := b.lab.Router.Link("eth3")
		must(t, err)
		must(t, h.LinkSetMaster(eth3, other))
		b.wait("eth3 to be given up", func() bool { return b.portStatus("eth3").State == api.NotAccelerated })
		contains(t, b.portStatus("eth3").Reason, "eth3 is a port of br-two, not of br-lan")
		must(t, b.lab.Router.PutFDB(lab.FDBEntry{Port: eth3.Attrs().Index, MAC: [6]byte(h2.MAC)}))
		at1, err := h1.Capture()
		must(t, err)
		at2, err := h2.Capture()
		must(t, err)
		s1, err := h1.Sender()
		must(t, err)
		s3, err := h3.Sender()
		must(t, err)
		astray := ether.UDP(lab.Between(h3, h1))
		must(t, s3.Send(astray))
		frame := ether.UDP(lab.Between(h1, h2))
		for range 100 {
			must(t, s1.Send(frame))
		}
		for range 100 {
			_, err := at2.Expect(testContext(t), lab.Equal(frame))
			must(t, err)
		}
		// Two ways for a frame that must not come: what was sent after it has come.
		back := ether.UDP(lab.Between(h2, h1))
		s2, err := h2.Sender()
		must(t, err)
		must(t, s2.Send(back))
		_, err = at1.Expect(testContext(t), lab.Equal(back))
		must(t, err)
		if at1.Count(lab.Equal(astray)) > 0 || at1.Count(lab.From(net.HardwareAddr(h3.MAC))) > 0 {
			t.Error("a frame came from the other bridge")
		}
		if n := b.count("eth1", "redirected"); n < 100 {
			t.Errorf("only %d frames redirected", n)
		}
		must(t, h.LinkSetMaster(eth3, mustLink(t, b.lab, lab.BridgeName)))
		b.wait("eth3 to be taken back", func() bool { return b.portStatus("eth3").State == api.Accelerating })
	})
}

func mustLink(t testing.TB, l *lab.Lab, name string) netlink.Link {
	t.Helper()
	link, err := l.Router.Link(name)
	must(t, err)
	return link
}
