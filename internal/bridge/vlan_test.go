// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
)

func TestApplyVLANs(t *testing.T) {
	const tagged, untagged = vlanMember | VLAN(Forwarding)<<vlanStateAt, vlanMember | vlanUntagged | VLAN(Forwarding)<<vlanStateAt
	table := VLANs{}
	table.apply([]vlanRange{{1, 1, untagged, true}, {10, 19, tagged, false}}, false)
	if table.PVID != 1 || !table.By[1].Untagged() || table.By[15].Untagged() || !table.By[19].Member() || table.By[20].Member() ||
		table.By[10].State() != Forwarding {
		t.Fatalf("%d %v", table.PVID, table.By[:21])
	}
	// Another PVID: the kernel does not tell that the old one is none now.
	table.apply([]vlanRange{{12, 12, untagged, true}}, false)
	if table.PVID != 12 || !table.By[1].Member() {
		t.Fatalf("another PVID: %d", table.PVID)
	}
	table.apply([]vlanRange{{12, 12, tagged, false}}, false)
	if table.PVID != 0 || table.By[12].Untagged() {
		t.Fatalf("no PVID any more: %d", table.PVID)
	}
	table.apply([]vlanRange{{11, 11, untagged, true}}, false)
	table.apply([]vlanRange{{1, 4094, 0, false}}, true)
	if table != (VLANs{}) {
		t.Fatal("something is left after all was removed")
	}
}

func TestParseVLANsRefusesGarbage(t *testing.T) {
	for length := range 64 {
		data := make([]byte, length)
		for i := range data {
			data[i] = byte(255 - i)
		}
		_, _, _ = parseVLANs(data) // must not panic
	}
	entry := func(first uint16, more ...byte) []byte {
		data := []byte{7, 0, 0, 0, 1, 0, 0, 0}
		info := append([]byte{8, 0, vlanEntryInfo, 0, 0, 0}, byte(first), byte(first>>8))
		info = append(info, more...)
		return append(append(data, byte(len(info)+4), 0, vlanDBEntry, 0), info...)
	}
	for name, data := range map[string][]byte{
		"VLAN 0":    entry(0),
		"VLAN 4096": entry(4096),
		"a range":   entry(10, 6, 0, vlanEntryRange, 0, 0x00, 0x10, 0, 0),
	} {
		if _, ranges, err := parseVLANs(data); err == nil {
			t.Errorf("%s: no error, %v", name, ranges)
		}
	}
	if _, ranges, err := parseVLANs(entry(4095)); err != nil || len(ranges) != 1 || ranges[0].last != 4095 {
		t.Errorf("%v, %v", ranges, err)
	}
}

func TestMirrorFollowsVLANs(t *testing.T) {
	if !lab.HasVLANFiltering() {
		t.Skip("needs bridge VLAN filtering (CONFIG_BRIDGE_VLAN_FILTERING)")
	}
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true, Bridge: lab.BridgeOptions{VLANFiltering: true}})
	f := follow(t, l, nil)
	f.until("the first dump", func() bool { return f.resyncs == 1 })
	if br := f.link("br-lan").Bridge; !br.VLANFiltering || br.VLANAD || br.MST {
		t.Errorf("bridge %+v", br)
	}
	if v := f.link("eth1").VLANs; v == nil || v.PVID != 1 || !v.By[1].Untagged() {
		t.Fatalf("after the dump: %+v", v)
	}
	before := f.link("eth1").VLANs
	eth1, br := f.link("eth1").Index, f.link("br-lan").Index
	must(t, l.Router.AddPortVLANs(eth1, false, lab.PortVLAN{VID: 10, PVID: true}, lab.PortVLAN{VID: 20, Untagged: true}))
	f.until("VLANs 10 and 20", func() bool {
		v := f.link("eth1").VLANs
		return v.PVID == 10 && v.By[10].Member() && !v.By[10].Untagged() && v.By[20].Untagged() && v.By[1].Member()
	})
	if before.PVID != 1 || before.By[10].Member() {
		t.Error("a table that was handed out has changed")
	}
	must(t, l.Router.SetPortVLANState(eth1, 20, lab.PortLearning))
	f.until("the state of VLAN 20", func() bool { return f.link("eth1").VLANs.By[20].State() == Learning })
	must(t, l.Router.DelPortVLANs(eth1, false, lab.PortVLAN{VID: 10}))
	f.until("VLAN 10 to go", func() bool { v := f.link("eth1").VLANs; return v.PVID == 0 && !v.By[10].Member() })
	must(t, l.Router.ChangeBridge(br, lab.BridgeChange{VLANProtocol: unix.ETH_P_8021AD}))
	f.until("802.1ad", func() bool { return f.link("br-lan").Bridge.VLANAD })
	p, err := l.Port(1)
	must(t, err)
	must(t, l.SetBridged(p, false))
	f.until("eth1 to leave", func() bool { l := f.link("eth1"); return l.Master == 0 && l.VLANs == nil })
	must(t, l.SetBridged(p, true))
	f.until("eth1 to come back with the default", func() bool {
		l := f.link("eth1")
		return l.Master == br && l.VLANs != nil && l.VLANs.PVID == 1 && !l.VLANs.By[20].Member()
	})
}
