// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf"
)

// The world of a VLAN-aware bridge: slot 0 (in) and the others in VLAN 10
// untagged, which is also their PVID, and in VLAN 20 tagged; VLAN 30 is on out1
// alone, VLAN 40 is blocked on out1 and learning on in, VLAN 50 leaves out1
// untagged. Stations a (in), b (out1) and c (out2) are known in 10, 20, 40 and 50.
const everywhere = VLANMember | VLANForwards | VLANLearns

func vlanWorld(t testing.TB) *Datapath {
	d := world(t)
	var v [3]VLANs
	for slot := range v {
		v[slot][10] = everywhere | VLANUntagged
		v[slot][20] = everywhere
		v[slot][50] = everywhere
	}
	v[out1][30] = everywhere
	v[in][40], v[out1][40] = VLANMember|VLANLearns, VLANMember
	v[out1][40] = VLANMember
	v[out2][40] = everywhere
	v[out1][50] |= VLANUntagged
	for slot := range v {
		must(t, d.SetPortVLANs(uint32(slot), &v[slot]))
		must(t, d.SetPort(uint32(slot), Port{Ifindex: loopback, Flags: usual, MaxLen: mtu1500, PVID: 10}))
	}
	d.Stations(func(k StationKey, _ Station) bool { d.DeleteStation(k); return true })
	for _, vid := range []uint16{10, 20, 40, 50} {
		must(t, d.PutStation(StationKey{a, vid}, Station{Slot: in}))
		must(t, d.PutStation(StationKey{b, vid}, Station{Slot: out1}))
		must(t, d.PutStation(StationKey{c, vid}, Station{Slot: out2}))
		must(t, d.PutStation(StationKey{box, vid}, Station{Slot: in, Local: true}))
	}
	return d
}

func noPVID(slot uint32) func(testing.TB, *Datapath) {
	return func(t testing.TB, d *Datapath) {
		must(t, d.SetPort(slot, Port{Ifindex: loopback, Flags: usual, MaxLen: mtu1500}))
	}
}

func knownIn(mac [6]byte, vid uint16, want bool) func(testing.TB, *Datapath) {
	return func(t testing.TB, d *Datapath) {
		t.Helper()
		_, ok := d.Station(StationKey{mac, vid})
		if ok != want {
			t.Errorf("station in VLAN %d known: %v, want %v", vid, ok, want)
		}
	}
}

func TestVLANDecisions(t *testing.T) {
	q := Program{Slot: in, Mode: ModeMAC, VLANs: true}
	ad := Program{Slot: in, Mode: ModeMAC, VLANs: true, VLANAD: true}
	plain := frame(b, a, ip4, 64)
	const prio = 5<<13 | 1<<12 // PCP 5 and DEI
	cases := []struct {
		name    string
		program Program
		change  func(testing.TB, *Datapath)
		frame   []byte
		want    Decision // Here is not compared
		after   func(testing.TB, *Datapath)
	}{
		{name: "untagged to untagged", program: q, frame: plain, want: Decision{Slot: out1, VLAN: 10}},
		{name: "tagged to tagged", program: q, frame: tag(qTag, 20, plain), want: Decision{Slot: out1, VLAN: 20}},
		{name: "PCP and DEI stay", program: q, frame: tag(qTag, prio|20, plain), want: Decision{Slot: out1, VLAN: 20}},
		{name: "tagged to untagged", program: q, frame: tag(qTag, 50, plain), want: Decision{Slot: out1, VLAN: 50, Tag: TagPop}},
		{name: "tagged with the PVID to untagged", program: q, frame: tag(qTag, 10, plain), want: Decision{Slot: out1, VLAN: 10, Tag: TagPop}},
		{name: "untagged to tagged", program: q, frame: plain, want: Decision{Slot: out1, VLAN: 20, Tag: TagPush, TCI: 20},
			change: func(t testing.TB, d *Datapath) {
				must(t, d.SetPort(in, Port{Ifindex: loopback, Flags: usual, PVID: 20}))
			}},
		{name: "priority tag to untagged", program: q, frame: tag(qTag, prio, plain), want: Decision{Slot: out1, VLAN: 10, Tag: TagPop}},
		{name: "priority tag to tagged", program: q, frame: tag(qTag, prio, plain), want: Decision{Slot: out1, VLAN: 20, Tag: TagSet, TCI: prio | 20},
			change: func(t testing.TB, d *Datapath) {
				must(t, d.SetPort(in, Port{Ifindex: loopback, Flags: usual, PVID: 20}))
			}},
		{name: "an 802.1ad tag is payload to an 802.1Q bridge", program: q, frame: tag(adTg, 20, plain), want: Decision{Slot: out1, VLAN: 10}},
		{name: "an 802.1Q tag is payload to an 802.1ad bridge", program: ad, frame: tag(qTag, 20, plain), want: Decision{Slot: out1, VLAN: 10}},
		{name: "802.1ad", program: ad, frame: tag(adTg, 50, tag(qTag, 7, plain)), want: Decision{Slot: out1, VLAN: 50, Tag: TagPop}},
		{name: "two tags, the outer counts", program: q, frame: tag(qTag, 20, tag(qTag, 30, plain)), want: Decision{Slot: out1, VLAN: 20}},
		{name: "VLAN 4095", program: q, frame: tag(qTag, 4095, plain), want: Decision{Verdict: PassVLAN, VLAN: 4095},
			after: knownIn(a, 10, true)},
		{name: "the source is not known in this VLAN", program: q, frame: tag(qTag, 30, plain), want: Decision{Verdict: PassUnknownSource, VLAN: 30},
			change: func(t testing.TB, d *Datapath) {
				must(t, d.SetPortVLANs(in, &VLANs{30: everywhere}))
			}},
		{name: "the port is not in the VLAN", program: q, frame: tag(qTag, 30, plain), want: Decision{Verdict: PassVLAN, VLAN: 30},
			change: func(t testing.TB, d *Datapath) { must(t, d.PutStation(StationKey{a, 30}, Station{Slot: in})) }},
		{name: "no PVID", program: q, change: all(noPVID(in), func(t testing.TB, d *Datapath) {
			must(t, d.PutStation(StationKey{a, 0}, Station{Slot: in}))
		}), frame: plain, want: Decision{Verdict: PassVLAN}},
		{name: "no PVID, but a tag", program: q, change: noPVID(in), frame: tag(qTag, 20, plain), want: Decision{Slot: out1, VLAN: 20}},
		{name: "no PVID and a priority tag", program: q, change: all(noPVID(in), func(t testing.TB, d *Datapath) {
			must(t, d.PutStation(StationKey{a, 0}, Station{Slot: in}))
		}), frame: tag(qTag, prio, plain), want: Decision{Verdict: PassVLAN}},
		{name: "the VLAN is blocked where it comes in", program: q, frame: tag(qTag, 40, frame(c, a, ip4, 64)),
			want: Decision{Verdict: PassBlocked, VLAN: 40}},
		{name: "the VLAN is blocked where it would leave", program: q, frame: tag(qTag, 40, plain),
			change: func(t testing.TB, d *Datapath) { must(t, d.SetPortVLANs(in, &VLANs{40: everywhere})) },
			want:   Decision{Verdict: PassBlocked, Slot: out1, VLAN: 40}},
		{name: "the port it would leave by is not in the VLAN", program: q, frame: tag(qTag, 20, plain),
			change: func(t testing.TB, d *Datapath) { must(t, d.SetPortVLANs(out1, &VLANs{})) },
			want:   Decision{Verdict: PassVLAN, Slot: out1, VLAN: 20}},
		{name: "a station that moved in one VLAN", program: q, frame: tag(qTag, 20, frame(b, c, ip4, 64)),
			want:  Decision{Verdict: PassMovedSource, VLAN: 20},
			after: func(t testing.TB, d *Datapath) { knownIn(c, 20, false)(t, d); knownIn(c, 10, true)(t, d) }},
		{name: "in a VLAN that does not learn", program: q, frame: tag(qTag, 20, frame(b, c, ip4, 64)),
			change: func(t testing.TB, d *Datapath) {
				must(t, d.SetPortVLANs(in, &VLANs{20: VLANMember}))
			},
			want: Decision{Verdict: PassMovedSource, VLAN: 20}, after: knownIn(c, 20, true)},
		{name: "in a VLAN that learns only", program: q, frame: tag(qTag, 40, frame(b, c, ip4, 64)),
			want: Decision{Verdict: PassMovedSource, VLAN: 40}, after: knownIn(c, 40, false)},
		{name: "in no VLAN", program: q, frame: tag(qTag, 30, frame(b, c, ip4, 64)),
			change: func(t testing.TB, d *Datapath) { must(t, d.PutStation(StationKey{c, 30}, Station{Slot: out2})) },
			want:   Decision{Verdict: PassMovedSource, VLAN: 30}, after: knownIn(c, 30, true)},
		{name: "the box itself", program: q, frame: tag(qTag, 20, frame(box, a, ip4, 64)), want: Decision{Verdict: PassLocal, VLAN: 20}},
		{name: "tagged broadcast", program: q, frame: tag(qTag, 20, frame(bcast, a, arp, 64)), want: Decision{Verdict: PassGroup, VLAN: 20}},
		{name: "tagged EAPOL", program: q, frame: tag(qTag, 20, frame(b, a, 0x888e, 64)), want: Decision{Verdict: PassControl, VLAN: 20}},
		{name: "a tag cut off", program: q, frame: tag(qTag, 20, frame(b, a, ip4, 14))[:16], want: Decision{Verdict: PassMalformed}},
		{name: "tag and little more", program: q, frame: tag(qTag, 50, frame(b, a, ip4, 16)), want: Decision{Slot: out1, VLAN: 50, Tag: TagPop}},
		{name: "VLAN devices on the port", program: q, frame: tag(qTag, 20, plain),
			change: func(t testing.TB, d *Datapath) {
				must(t, d.SetPort(in, Port{Ifindex: loopback, Flags: usual | PortPassTagged, PVID: 10}))
			}, want: Decision{Verdict: PassVLAN, VLAN: 20}},
	}
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		t.Run(string(engine), func(t *testing.T) {
			for _, c := range cases {
				t.Run(c.name, func(t *testing.T) {
					d := vlanWorld(t)
					if c.change != nil {
						c.change(t, d)
					}
					got, err := d.run(engine, c.program, c.frame, nil)
					must(t, err)
					got.Here = 0
					if got != c.want {
						t.Errorf("got %+v, want %+v", got, c.want)
					}
					if c.after != nil {
						c.after(t, d)
					}
				})
			}
		})
	}
}

// XDP changes the tag in the data: what BPF_PROG_TEST_RUN returns is the frame
// as it would leave. (tc changes it beside the data; tests with real devices
// look at that.)
func TestXDPChangesTags(t *testing.T) {
	d := vlanWorld(t)
	plain := frame(b, a, ip4, 64)
	const prio = 5<<13 | 1<<12
	cases := []struct {
		name      string
		pvid      uint16
		ad        bool
		in, leave []byte
	}{
		{"keep untagged", 10, false, plain, plain},
		{"keep tagged", 10, false, tag(qTag, prio|20, plain), tag(qTag, prio|20, plain)},
		{"pop", 10, false, tag(qTag, prio|50, plain), plain},
		{"pop the shortest", 10, false, tag(qTag, 50, plain[:16]), plain[:16]},
		{"pop the outer of two", 10, false, tag(qTag, 50, tag(qTag, 7, plain)), tag(qTag, 7, plain)},
		{"push", 20, false, plain, tag(qTag, 20, plain)},
		{"push to the shortest", 20, false, plain[:14], tag(qTag, 20, plain[:14])},
		{"push before a tag of the other kind", 20, false, tag(adTg, 9, plain), tag(qTag, 20, tag(adTg, 9, plain))},
		{"push 802.1ad", 20, true, tag(qTag, 9, plain), tag(adTg, 20, tag(qTag, 9, plain))},
		{"set", 20, false, tag(qTag, prio, plain), tag(qTag, prio|20, plain)},
		{"passed frames stay", 20, false, tag(qTag, 30, plain), tag(qTag, 30, plain)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			must(t, d.SetPort(in, Port{Ifindex: loopback, Flags: usual, MaxLen: mtu1500, PVID: c.pvid}))
			prog, err := d.load(EngineGeneric, Program{Slot: in, Mode: ModeMAC, VLANs: true, VLANAD: c.ad})
			must(t, err)
			defer prog.Close()
			out := make([]byte, 256)
			opts := &ebpf.RunOptions{Data: c.in, DataOut: out}
			_, err = prog.Run(opts)
			must(t, err)
			if !bytes.Equal(opts.DataOut, c.leave) {
				t.Errorf("leaves as % x, want % x", opts.DataOut, c.leave)
			}
		})
	}
}

// The longest frame: what is pushed counts, what is popped does not.
func TestXDPTagsAndLength(t *testing.T) {
	d := vlanWorld(t)
	q := Program{Slot: in, Mode: ModeMAC, VLANs: true}
	for _, c := range []struct {
		name   string
		pvid   uint16
		frame  []byte
		longer bool // than may leave
	}{
		{"keep", 10, frame(b, a, ip4, mtu1500), false},
		{"keep one more", 10, frame(b, a, ip4, mtu1500+1), true},
		{"pop", 10, tag(qTag, 50, frame(b, a, ip4, mtu1500)), false},
		{"pop one more", 10, tag(qTag, 50, frame(b, a, ip4, mtu1500+1)), true},
		{"push", 20, frame(b, a, ip4, mtu1500-4), false},
		{"push one more", 20, frame(b, a, ip4, mtu1500-3), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			must(t, d.SetPort(in, Port{Ifindex: loopback, Flags: usual, MaxLen: mtu1500, PVID: c.pvid}))
			got, err := d.run(EngineGeneric, q, c.frame, nil)
			must(t, err)
			if (got.Verdict == PassMTU) != c.longer {
				t.Errorf("%d bytes: %s", len(c.frame), got.Verdict)
			}
		})
	}
}

// In a VLAN-aware bridge a hidden tag could put the frame in any VLAN.
func TestHiddenTagsInAVLANAwareBridge(t *testing.T) {
	d := vlanWorld(t)
	must(t, d.SetPort(in, Port{Ifindex: loopback, Flags: usual | PortHidesTags, MaxLen: mtu1500, PVID: 10}))
	q := Program{Slot: in, Mode: ModeMAC, VLANs: true}
	for engine, want := range map[Engine]Verdict{EngineGeneric: PassVLAN, EngineTC: Redirected} {
		got, err := d.run(engine, q, frame(b, a, ip4, 64), nil)
		must(t, err)
		if got.Verdict != want {
			t.Errorf("%s: %s, want %s", engine, got.Verdict, want)
		}
	}
}
