// SPDX-License-Identifier: Apache-2.0

package control

import (
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

func someLinks() links {
	return links{
		1:  {Index: 1, Name: "br-lan", Kind: "bridge", Up: true, Bridge: &bridge.Bridge{}},
		2:  {Index: 2, Name: "eth1", Master: 1, MasterKind: "bridge", MTU: 1500, Up: true, Carrier: true, Port: &bridge.Port{State: bridge.Forwarding, Learning: true}},
		3:  {Index: 3, Name: "bond0", Kind: "bond", Up: true},
		4:  {Index: 4, Name: "eth4", Master: 3, MasterKind: "bond", Up: true},
		5:  {Index: 5, Name: "br-wan", Kind: "bridge", Up: true, Bridge: &bridge.Bridge{}},
		6:  {Index: 6, Name: "eth6", Master: 5, MasterKind: "bridge", Up: true, Port: &bridge.Port{State: bridge.Forwarding}},
		7:  {Index: 7, Name: "eth7", Up: true},
		8:  {Index: 8, Name: "br-vlan", Kind: "bridge", Up: true, Bridge: &bridge.Bridge{VLANFiltering: true}},
		10: {Index: 10, Name: "lan1", Kind: "dsa", Parent: 12, Switch: "01", Master: 1, MasterKind: "bridge", Up: true, Port: &bridge.Port{}},
		11: {Index: 11, Name: "lan2", Kind: "dsa", Parent: 12, Switch: "01", Master: 1, MasterKind: "bridge", Up: true, Port: &bridge.Port{}},
		12: {Index: 12, Name: "conduit", Master: 1, MasterKind: "bridge", Up: true, Port: &bridge.Port{}},
		13: {Index: 13, Name: "alone", Switch: "02", Master: 1, MasterKind: "bridge", Up: true, Port: &bridge.Port{}},
		14: {Index: 14, Name: "wan", Switch: "02", Up: true},
		20: {Index: 20, Name: "br-mst", Kind: "bridge", Bridge: &bridge.Bridge{VLANFiltering: true, MST: true}},
		15: {Index: 15, Name: "eth15", Master: 20, MasterKind: "bridge", Up: true, Port: &bridge.Port{}},
		21: {Index: 21, Name: "br-arp", Kind: "bridge", Bridge: &bridge.Bridge{}},
		16: {Index: 16, Name: "eth16", Master: 21, MasterKind: "bridge", Up: true, Port: &bridge.Port{}},
		17: {Index: 17, Name: "eth17", Master: 21, MasterKind: "bridge", Up: true, Port: &bridge.Port{Answers: true}},
		9:  {Index: 9, Name: "eth9", Master: 8, MasterKind: "bridge", Up: true, Port: &bridge.Port{State: bridge.Forwarding}},
	}
}

func TestWhyNot(t *testing.T) {
	for _, c := range []struct{ bridge, device, want string }{
		{"br-lan", "eth1", ""},
		{"br-none", "eth1", "there is no bridge br-none"},
		{"eth7", "eth1", "there is no bridge eth7"},
		{"br-lan", "br-wan", "itself a bridge"},
		{"br-lan", "eth7", "eth7 is not a port of br-lan"},
		{"br-lan", "eth4", "member of a bond"},
		{"br-lan", "eth6", "eth6 is a port of br-wan, not of br-lan"},
		{"br-vlan", "eth9", ""},
		{"br-mst", "eth15", "mst_enabled"},
		{"br-arp", "eth16", "answers ARP or neighbour solicitations for stations behind eth17"},
		{"br-arp", "eth17", "answers ARP"},
		{"br-lan", "lan1", "lan1 and lan2 are ports of one hardware switch"},
		{"br-lan", "lan2", "lan2 and lan1 are ports of one hardware switch"},
		{"br-lan", "conduit", "connects a hardware switch"},
		{"br-lan", "alone", ""}, // its switch's other port is not in the bridge
	} {
		l, _ := someLinks().byName(c.device)
		got := whyNot(someLinks(), l, c.bridge)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s in %s: got %q, want %q", c.device, c.bridge, got, c.want)
		}
	}
}

func TestLivePort(t *testing.T) {
	const usual = datapath.PortEnabled | datapath.PortForwarding | datapath.PortLearns
	for _, c := range []struct {
		name   string
		change func(links, *bridge.Link)
		want   datapath.PortFlags
	}{
		{"usual", func(links, *bridge.Link) {}, usual},
		{"listening", func(_ links, l *bridge.Link) { l.Port.State = bridge.Listening }, datapath.PortEnabled},
		{"learning", func(_ links, l *bridge.Link) { l.Port.State = bridge.Learning }, datapath.PortEnabled | datapath.PortLearns},
		{"blocking", func(_ links, l *bridge.Link) { l.Port.State = bridge.Blocking }, datapath.PortEnabled},
		{"disabled", func(_ links, l *bridge.Link) { l.Port.State = bridge.Disabled }, datapath.PortEnabled},
		{"disabled for want of a carrier", func(_ links, l *bridge.Link) { l.Port.State, l.Carrier = bridge.Disabled, false }, datapath.PortEnabled | datapath.PortLearns},
		{"does not learn", func(_ links, l *bridge.Link) { l.Port.Learning = false }, usual &^ datapath.PortLearns},
		{"locked", func(_ links, l *bridge.Link) { l.Port.Locked = true }, usual | datapath.PortLocked},
		{"isolated", func(_ links, l *bridge.Link) { l.Port.Isolated = true }, usual | datapath.PortIsolated},
		{"down", func(_ links, l *bridge.Link) { l.Up = false }, datapath.PortEnabled | datapath.PortLearns},
		{"bridge down", func(ls links, _ *bridge.Link) { b := ls[1]; b.Up = false; ls[1] = b }, datapath.PortEnabled | datapath.PortLearns},
		{"VLAN device on it", func(ls links, l *bridge.Link) {
			ls[20] = bridge.Link{Index: 20, Name: "eth1.7", Kind: "vlan", Parent: l.Index}
		}, usual | datapath.PortPassTagged},
		{"VLAN device elsewhere", func(ls links, l *bridge.Link) {
			ls[20] = bridge.Link{Index: 20, Name: "eth7.7", Kind: "vlan", Parent: 7}
		}, usual},
	} {
		ls := someLinks()
		l := ls[2]
		c.change(ls, &l)
		got := livePort(ls, l)
		if want := (datapath.Port{Ifindex: 2, Flags: c.want, MaxLen: 1518}); got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}

func TestStationOf(t *testing.T) {
	slotOf := func(ifindex int) (uint32, bool) { return 7, ifindex == 2 }
	for _, c := range []struct {
		name  string
		mode  string
		entry bridge.Entry
		want  datapath.Station
		ok    bool
	}{
		{"behind a managed port", "mac", bridge.Entry{Port: 2}, datapath.Station{Slot: 7}, true},
		{"static", "mac", bridge.Entry{Port: 2, Static: true}, datapath.Station{Slot: 7}, true},
		{"sticky", "mac", bridge.Entry{Port: 2, Static: true, Sticky: true}, datapath.Station{Slot: 7, Stay: true}, true},
		{"behind another port", "mac", bridge.Entry{Port: 3}, datapath.Station{}, false},
		{"not authorised", "mac", bridge.Entry{Port: 2, Locked: true}, datapath.Station{}, false},
		{"the box", "mac", bridge.Entry{Port: 3, Local: true, Static: true}, datapath.Station{Local: true, Stay: true}, true},
		{"a wire has no stations", "port", bridge.Entry{Port: 2}, datapath.Station{}, false},
		{"but the box", "port", bridge.Entry{Port: 2, Local: true}, datapath.Station{Local: true, Stay: true}, true},
	} {
		if got, ok := stationOf(c.mode, c.entry, slotOf); got != c.want || ok != c.ok {
			t.Errorf("%s: got %+v, %v", c.name, got, ok)
		}
	}
}
