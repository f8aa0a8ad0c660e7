// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"net"
	"slices"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ether"
)

func ptr[T any](v T) *T { return &v }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// indexes returns the interface indexes of the bridge and of port eth1.
func indexes(t *testing.T, l *Lab) (br, eth1 int) {
	t.Helper()
	link, err := l.Router.Link(BridgeName)
	must(t, err)
	p, err := l.Port(1)
	must(t, err)
	eth1, err = l.Index(p)
	must(t, err)
	return link.Attrs().Index, eth1
}

func TestChangeBridgePort(t *testing.T) {
	l := ForTest(t, Options{Hosts: 1, NoIPv6: true})
	br, eth1 := indexes(t, l)
	attribute := func(path, want string) {
		t.Helper()
		got, err := l.Router.ReadSys("class/net/" + path)
		must(t, err)
		if got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	must(t, l.Router.ChangeBridgePort(eth1, BridgePortChange{State: ptr(PortListening), Isolated: ptr(true),
		Hairpin: ptr(true), Learning: ptr(false), Flood: ptr(false)}))
	for name, want := range map[string]string{"state": "1", "isolated": "1", "hairpin_mode": "1", "learning": "0", "unicast_flood": "0"} {
		attribute("eth1/brport/"+name, want)
	}
	// What is not named stays.
	must(t, l.Router.ChangeBridgePort(eth1, BridgePortChange{State: ptr(PortForwarding), Hairpin: ptr(false)}))
	for name, want := range map[string]string{"state": "3", "isolated": "1", "hairpin_mode": "0", "learning": "0", "unicast_flood": "0"} {
		attribute("eth1/brport/"+name, want)
	}
	must(t, l.Router.SetMTU(eth1, 1400))
	attribute("eth1/mtu", "1400")
	must(t, l.Router.ChangeBridge(br, BridgeChange{AgeingTicks: ptr(uint32(1234))}))
	attribute(BridgeName+"/bridge/ageing_time", "1234")
	if err := l.Router.ChangeBridgePort(br+1000, BridgePortChange{Flush: true}); err == nil {
		t.Error("no error for a port that does not exist")
	}
}

func TestFDB(t *testing.T) {
	l := ForTest(t, Options{Hosts: 1, NoIPv6: true})
	br, eth1 := indexes(t, l)
	entries := []FDBEntry{
		{MAC: [6]byte{2, 1}, Port: eth1},
		{MAC: [6]byte{2, 2}, Port: eth1, Static: true},
		{MAC: [6]byte{2, 3}, Port: eth1, Static: true, Sticky: true},
		{MAC: [6]byte{2, 4}, Port: eth1, Local: true, Static: true},
	}
	for _, e := range entries {
		must(t, l.Router.PutFDB(e))
	}
	listed := func() []FDBEntry {
		t.Helper()
		all, err := l.Router.FDB()
		must(t, err)
		return all
	}
	all := listed()
	for _, e := range entries {
		if !slices.Contains(all, e) {
			t.Errorf("%s is not among %v", e, all)
		}
	}
	if e := (FDBEntry{MAC: [6]byte(RouterMAC), Port: br, Local: true, Static: true}); !slices.Contains(all, e) {
		t.Errorf("the bridge's own address is not among %v", all)
	}
	must(t, l.Router.ChangeBridge(br, BridgeChange{Flush: true}))
	all = listed()
	for i, e := range entries {
		if has := slices.Contains(all, e); has != (i > 0) {
			t.Errorf("after a flush %s: %v", e, has)
		}
	}
	must(t, l.Router.DelFDB(entries[2]))
	if slices.Contains(listed(), entries[2]) {
		t.Errorf("%s was not removed", entries[2])
	}
	if err := l.Router.DelFDB(entries[2]); err == nil {
		t.Errorf("no error for an entry that does not exist")
	}
}

func TestPortVLANs(t *testing.T) {
	if !HasVLANFiltering() {
		t.Skip("needs VLAN filtering bridges (kernel without it)")
	}
	l := ForTest(t, Options{Hosts: 2, NoIPv6: true, NoTxVLAN: true, Bridge: BridgeOptions{VLANFiltering: true}})
	br, eth1 := indexes(t, l)
	p2, err := l.Port(2)
	must(t, err)
	eth2, err := l.Index(p2)
	must(t, err)
	must(t, l.Router.ChangeBridge(br, BridgeChange{VLANProtocol: ether.TypeSVLAN}))
	must(t, l.Router.AddPortVLANs(eth1, false, PortVLAN{VID: 10, PVID: true, Untagged: true}))
	must(t, l.Router.AddPortVLANs(eth2, false, PortVLAN{VID: 10}, PortVLAN{VID: 11}))
	must(t, l.Router.DelPortVLANs(eth2, false, PortVLAN{VID: 11}))
	must(t, l.Router.AddPortVLANs(br, true, PortVLAN{VID: 10}))
	h1, h2 := l.Hosts[0], l.Hosts[1]
	got, err := h2.Capture()
	must(t, err)
	own, err := l.Router.Capture(BridgeName, CaptureOptions{})
	must(t, err)
	s, err := h1.Sender()
	must(t, err)
	frame := ether.Frame(ether.Broadcast, h1.MAC, 0x88b5, []byte{1})
	must(t, s.Send(frame))
	for _, c := range []*Capture{got, own} {
		if _, err := c.Expect(testContext(t), Equal(ether.Tag(frame, ether.TypeSVLAN, 10))); err != nil {
			t.Error(err)
		}
	}
	list, err := l.Router.FDB()
	must(t, err)
	if e := (FDBEntry{MAC: [6]byte(h1.MAC), VLAN: 10, Port: eth1}); !slices.Contains(list, e) {
		t.Errorf("%s is not among %v", e, list)
	}
	// In one VLAN alone the port stops.
	must(t, l.Router.SetPortVLANState(eth2, 10, PortListening))
	must(t, s.Send(ether.Frame(ether.Broadcast, h1.MAC, 0x88b5, []byte{2})))
	must(t, l.Router.SetPortVLANState(eth2, 10, PortForwarding))
	last := ether.Frame(net.HardwareAddr{2, 9, 9, 9, 9, 9}, h1.MAC, 0x88b5, []byte{3})
	must(t, s.Send(last))
	if _, err := got.Expect(testContext(t), Equal(ether.Tag(last, ether.TypeSVLAN, 10))); err != nil {
		t.Error(err)
	}
	if n := got.Count(From(h1.MAC)); n > 0 {
		t.Errorf("%d frames left while the VLAN was not forwarding", n)
	}
}
