// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// follower keeps what a mirror tells.
type follower struct {
	t       *testing.T
	lab     *lab.Lab
	mirror  *Mirror
	updates chan Update
	links   map[int]Link
	fdb     map[Key]Entry
	resyncs int
}

// follow runs a mirror in the lab's router.
func follow(t *testing.T, l *lab.Lab, tune func(*Mirror)) *follower {
	t.Helper()
	f := &follower{t: t, lab: l, updates: make(chan Update, 1024), fdb: map[Key]Entry{}}
	ctx, cancel := context.WithCancel(context.Background())
	opened, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		ended <- l.Router.Do(func() error {
			m, err := Open()
			if tune != nil && err == nil {
				tune(m)
			}
			f.mirror = m
			opened <- err
			if err != nil {
				return nil
			}
			return m.Run(ctx, func(u Update) { f.updates <- u })
		})
	}()
	if err := <-opened; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return f
}

// until applies updates until cond holds.
func (f *follower) until(what string, cond func() bool) {
	f.t.Helper()
	deadline := time.After(20 * time.Second)
	for !cond() {
		select {
		case u := <-f.updates:
			f.apply(u)
		case <-deadline:
			f.t.Fatalf("waited in vain for %s; %d links, %d entries, %d resyncs", what, len(f.links), len(f.fdb), f.resyncs)
		}
	}
}

func (f *follower) apply(u Update) {
	if u.Resync {
		f.resyncs++
		clear(f.fdb)
	}
	if u.Links != nil {
		f.links = u.Links
	}
	for _, c := range u.FDB {
		if c.Gone {
			delete(f.fdb, c.Key)
		} else {
			f.fdb[c.Key] = c.Entry
		}
	}
}

func (f *follower) link(name string) Link {
	for _, l := range f.links {
		if l.Name == name {
			return l
		}
	}
	return Link{}
}

func (f *follower) entry(mac net.HardwareAddr) (Entry, bool) {
	e, ok := f.fdb[Key{Bridge: f.link("br-lan").Index, MAC: [6]byte(mac)}]
	return e, ok
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (f *follower) addStation(mac net.HardwareAddr, port string, state int) {
	f.t.Helper()
	h, err := f.lab.Router.Handle()
	must(f.t, err)
	must(f.t, h.NeighSet(&netlink.Neigh{LinkIndex: f.link(port).Index, Family: unix.AF_BRIDGE,
		Flags: netlink.NTF_MASTER, State: state, HardwareAddr: mac}))
}

func TestMirrorFollowsPorts(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2, Spares: 1, NoIPv6: true, Bridge: lab.BridgeOptions{AgeingTime: 77 * time.Second}})
	f := follow(t, l, nil)
	eth := func(n int) *lab.Port {
		p, err := l.Port(n)
		must(t, err)
		return p
	}
	f.until("the first dump", func() bool { return f.resyncs == 1 })
	br, p := f.link("br-lan"), f.link("eth1")
	if br.Kind != "bridge" || br.Bridge == nil || br.Bridge.AgeingTime != 77*time.Second || br.Bridge.VLANFiltering || !br.Up {
		t.Errorf("bridge %+v %+v", br, br.Bridge)
	}
	if p.Kind != "veth" || p.Master != br.Index || p.MasterKind != "bridge" || p.MTU != 1500 || !p.Up || !p.Carrier ||
		p.Port == nil || p.Port.State != Forwarding || !p.Port.Learning || p.Port.Isolated || p.Parent != 0 {
		t.Errorf("port %+v %+v", p, p.Port)
	}
	must(t, l.SetPortState(eth(1), lab.PortListening))
	f.until("eth1 listening", func() bool { return f.link("eth1").Port.State == Listening })
	must(t, l.SetPortState(eth(1), lab.PortForwarding))
	must(t, l.SetIsolated(eth(1), true))
	must(t, l.SetHairpin(eth(1), true))
	f.until("eth1 isolated and hairpin", func() bool {
		p := f.link("eth1").Port
		return p.State == Forwarding && p.Isolated && p.Hairpin
	})
	must(t, l.SetPortUp(eth(2), false))
	f.until("eth2 down", func() bool { return !f.link("eth2").Up && f.link("eth2").Port.State == Disabled })
	must(t, l.SetPortUp(eth(2), true))
	f.until("eth2 up", func() bool { return f.link("eth2").Up && f.link("eth2").Port.State == Forwarding })
	must(t, l.SetBridged(eth(1), false))
	f.until("eth1 out of the bridge", func() bool { l := f.link("eth1"); return l.Master == 0 && l.Port == nil && l.Index != 0 })
	must(t, l.SetBridged(eth(1), true))
	f.until("eth1 back", func() bool { return f.link("eth1").Master == br.Index && f.link("eth1").Port != nil })
	before := f.link("eth3").Index
	must(t, l.DeletePort(eth(3)))
	f.until("eth3 gone", func() bool { return f.link("eth3").Index == 0 })
	_, err := l.AddPort()
	must(t, err)
	f.until("eth3 back", func() bool { i := f.link("eth3").Index; return i != 0 && i != before })
	h, err := l.Router.Handle()
	must(t, err)
	dev, err := l.Router.Link("eth1")
	must(t, err)
	must(t, h.LinkSetMTU(dev, 1400))
	f.until("the MTU", func() bool { return f.link("eth1").MTU == 1400 })
	if f.resyncs != 1 {
		t.Errorf("%d resyncs", f.resyncs)
	}
}

func TestMirrorFollowsStations(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true})
	f := follow(t, l, nil)
	f.until("the first dump", func() bool { return f.resyncs == 1 })
	if e, ok := f.entry(lab.RouterMAC); !ok || !e.Local {
		t.Errorf("the bridge's own address: %+v, %v", e, ok)
	}
	h1, h2 := l.Hosts[0], l.Hosts[1]
	_, err := h1.Ping(context.Background(), h2.IP4, lab.PingOptions{})
	must(t, err)
	f.until("both hosts", func() bool {
		a, ok1 := f.entry(h1.MAC)
		b, ok2 := f.entry(h2.MAC)
		return ok1 && ok2 && a == Entry{Port: f.link("eth1").Index} && b == Entry{Port: f.link("eth2").Index}
	})
	// A frame with h1's address from the other port moves it, and Refresh keeps
	// it where it is.
	s, err := h2.Sender()
	must(t, err)
	frame := ether.UDP(lab.Between(h1, h2))
	must(t, s.Send(frame))
	f.until("h1 to move", func() bool { e, _ := f.entry(h1.MAC); return e.Port == f.link("eth2").Index })
	static := net.HardwareAddr{2, 0, 0, 0, 9, 1}
	f.addStation(static, "eth1", netlink.NUD_NOARP)
	f.until("a static entry", func() bool { e, ok := f.entry(static); return ok && e.Static && !e.Local })
	// Forget removes an entry from the port that it names, and from no other.
	key := Key{Bridge: f.link("br-lan").Index, MAC: [6]byte(h1.MAC)}
	forget := func(port string) {
		must(t, l.Router.Do(func() error { return f.mirror.Forget(key, f.link(port).Index) }))
	}
	forget("eth1")
	if _, ok, err := lookup(l, f.mirror, key); err != nil || !ok {
		t.Errorf("forgotten on a port where it is not: %v, %v", ok, err)
	}
	forget("eth2")
	f.until("h1 to be forgotten", func() bool { _, ok := f.entry(h1.MAC); return !ok })
	must(t, l.SetPortUp(h2.Port(), false))
	f.until("the hosts behind eth2 to go", func() bool {
		_, ok1 := f.entry(h1.MAC)
		_, ok2 := f.entry(h2.MAC)
		return !ok1 && !ok2
	})
}

func lookup(l *lab.Lab, m *Mirror, k Key) (e Entry, ok bool, err error) {
	err = l.Router.Do(func() error { e, ok, err = m.Lookup(k); return err })
	return e, ok, err
}

func TestRefreshKeepsAStation(t *testing.T) {
	const ageing = 2 * time.Second
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true, Bridge: lab.BridgeOptions{AgeingTime: ageing}})
	f := follow(t, l, nil)
	f.until("the first dump", func() bool { return f.resyncs == 1 })
	kept, left := net.HardwareAddr{2, 0, 0, 0, 9, 1}, net.HardwareAddr{2, 0, 0, 0, 9, 2}
	f.addStation(kept, "eth1", netlink.NUD_REACHABLE)
	f.addStation(left, "eth1", netlink.NUD_REACHABLE)
	f.until("both stations", func() bool { _, a := f.entry(kept); _, b := f.entry(left); return a && b })
	key := Key{Bridge: f.link("br-lan").Index, MAC: [6]byte(kept)}
	port := f.link("eth1").Index
	stop, refreshed := make(chan struct{}), make(chan error, 1)
	go func() {
		refreshed <- l.Router.Do(func() error {
			tick := time.NewTicker(ageing / 8)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return nil
				case <-tick.C:
					if err := f.mirror.Refresh(key, port); err != nil {
						return err
					}
				}
			}
		})
	}()
	f.until("the silent station to age", func() bool { _, ok := f.entry(left); return !ok })
	if _, ok := f.entry(kept); !ok {
		t.Error("the refreshed station aged as well")
	}
	close(stop)
	must(t, <-refreshed)
	f.until("the other one to age when it is no longer refreshed", func() bool { _, ok := f.entry(kept); return !ok })
}

// TestOverrun floods a subscription that is not read: what did not fit is
// found again by reading everything anew.
func TestOverrun(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true})
	f := follow(t, l, func(m *Mirror) { must(t, m.sock.SetReceiveBufferSize(4096, false)) })
	f.until("the first dump", func() bool { return f.resyncs == 1 })
	// The mirror is held up in handing over updates.
	for full := false; !full; {
		select {
		case f.updates <- Update{}:
		default:
			full = true
		}
	}
	h, err := l.Router.Handle()
	must(t, err)
	dev, err := l.Router.Link("eth1")
	must(t, err)
	const stations = 2000
	for i := range stations {
		must(t, h.NeighSet(&netlink.Neigh{LinkIndex: dev.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER,
			State: netlink.NUD_REACHABLE, HardwareAddr: net.HardwareAddr{2, 1, 0, 0, byte(i >> 8), byte(i)}}))
	}
	f.until("all stations after an overrun", func() bool {
		n := 0
		for k := range f.fdb {
			if k.MAC[1] == 1 && k.VLAN == 0 { // with VLAN support the kernel adds one in VLAN 1, too
				n++
			}
		}
		return n == stations
	})
	if f.resyncs < 2 {
		t.Errorf("%d resyncs: nothing overran, and this test shows nothing", f.resyncs)
	}
}

func TestParseRefusesGarbage(t *testing.T) {
	for length := range 64 {
		data := make([]byte, length)
		for i := range data {
			data[i] = byte(255 - i)
		}
		// Must not panic; an error is fine.
		_, _, _ = parseLink(data)
		data = append([]byte{unix.AF_BRIDGE}, data...)
		_, _, _, _ = parseNeigh(data)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte{7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 10, 0, 2, 0, 1, 2, 3, 4, 5, 6, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _, _ = parseLink(data)
		_, _, _, _ = parseNeigh(data)
	})
}

// TestLookup asks for single entries, as the controller does before it trusts
// what it was told.
func TestLookup(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true})
	br, err := l.Router.Link(lab.BridgeName)
	if err != nil {
		t.Fatal(err)
	}
	p2, err := l.Port(2)
	if err != nil {
		t.Fatal(err)
	}
	eth2, err := l.Index(p2)
	if err != nil {
		t.Fatal(err)
	}
	static := [6]byte{2, 9, 9, 9, 9, 9}
	if err := l.Router.PutFDB(lab.FDBEntry{MAC: static, Port: eth2, Static: true, Sticky: true}); err != nil {
		t.Fatal(err)
	}
	err = l.Router.Do(func() error {
		m, err := Open()
		if err != nil {
			return err
		}
		defer m.Close()
		all, err := m.Entries()
		if err != nil {
			return err
		}
		for mac, want := range map[[6]byte]Entry{
			static:                 {Port: eth2, Static: true, Sticky: true},
			[6]byte(lab.RouterMAC): {Port: br.Attrs().Index, Local: true, Static: true},
		} {
			key := Key{Bridge: br.Attrs().Index, MAC: mac}
			got, ok, err := m.Lookup(key)
			if err != nil || !ok || got != want {
				t.Errorf("%x: %+v, %v, %v, want %+v", mac, got, ok, err, want)
			}
			if all[key] != want {
				t.Errorf("%x among all: %+v, want %+v", mac, all[key], want)
			}
		}
		if got, ok, err := m.Lookup(Key{Bridge: br.Attrs().Index, MAC: [6]byte{2, 8, 8, 8, 8, 8}}); err != nil || ok {
			t.Errorf("an address that is not there: %+v, %v, %v", got, ok, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
