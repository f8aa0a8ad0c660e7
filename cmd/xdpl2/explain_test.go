// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
)

const explainConfig = `
config xdpl2 'main'
	option enabled '1'
	option engine 'tc'

config port
	option device 'eth1'

config port
	option device 'eth2'

config port
	option device 'eth3'
	option enabled '0'
`

func TestExplain(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 3, Spares: 1, NoIPv6: true})
	b := newBox(t, l, explainConfig)
	b.start()
	h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	eth := func(n int) *lab.Port {
		p, err := l.Port(n)
		must(t, err)
		return p
	}
	if got := explain(b, api.ExplainQuery{Device: "eth1", Destination: h2.MAC.String()}); !strings.Contains(got.Text, "no sender is known behind eth1") {
		t.Errorf("before anything is known: %+v", got)
	}
	for _, h := range l.Hosts {
		b.ping(h.NS, nil)
	}
	b.wait("the stations", func() bool { return b.status().Stations >= 2 })
	const stranger = "02:00:00:00:77:77"
	for _, q := range []struct {
		name            string
		change, undo    func()
		device, src     string
		dst             string
		vlan            int
		verdict, egress string
		says            []string
	}{
		{name: "fast", device: "eth1", dst: h2.MAC.String(), verdict: "redirected", egress: "eth2",
			says: []string{"a frame to " + h2.MAC.String() + " (from " + h1.MAC.String() + ", say) that arrives at eth1 leaves by eth2, sent by the fast path (engine tc)"}},
		{name: "fast, source given", device: "eth2", src: h2.MAC.String(), dst: h1.MAC.String(), verdict: "redirected", egress: "eth1"},
		{name: "the box", device: "eth1", dst: lab.RouterMAC.String(), verdict: "pass_local", says: []string{"an address of the box itself"}},
		{name: "broadcast", device: "eth1", dst: "ff:ff:ff:ff:ff:ff", verdict: "pass_group", says: []string{"floods it"}},
		{name: "control", device: "eth1", dst: "01:80:c2:00:00:0e", verdict: "pass_control"},
		{name: "unknown receiver", device: "eth1", dst: stranger, verdict: "pass_unknown_destination", says: []string{"does not know " + stranger + " and floods the frame"}},
		{name: "receiver elsewhere", device: "eth1", dst: h3.MAC.String(), verdict: "pass_unknown_destination", says: []string{"behind eth3, which is not accelerated"}},
		{name: "unknown sender", device: "eth1", src: stranger, dst: h2.MAC.String(), verdict: "pass_unknown_source", says: []string{stranger + " is not known behind eth1 yet"}},
		{name: "sender behind a port that is not managed", device: "eth1", src: h3.MAC.String(), dst: h2.MAC.String(), verdict: "pass_unknown_source", says: []string{"known behind eth3, which xdpl2 does not manage"}},
		{name: "moved sender", device: "eth1", src: h2.MAC.String(), dst: h1.MAC.String(), verdict: "pass_moved_source", says: []string{"is known behind eth2"}},
		{name: "same port", device: "eth1", src: h1.MAC.String(), dst: h1.MAC.String(), verdict: "pass_same_port"},
		{name: "switched off", device: "eth3", dst: h1.MAC.String(), verdict: "pass_disabled", says: []string{"eth3 is not accelerated", "switched off (option enabled of its section)"}},
		{name: "no port of ours", device: "eth4", dst: h1.MAC.String(), verdict: "pass_disabled", says: []string{"eth4 is no port of xdpl2"}},
		{name: "isolated", device: "eth1", dst: h2.MAC.String(), verdict: "pass_isolated", says: []string{"eth1 and eth2 are both isolated"},
			change: func() { must(t, l.SetIsolated(eth(1), true)); must(t, l.SetIsolated(eth(2), true)) },
			undo:   func() { must(t, l.SetIsolated(eth(1), false)); must(t, l.SetIsolated(eth(2), false)) }},
		{name: "blocked here", device: "eth1", src: h1.MAC.String(), dst: h2.MAC.String(), verdict: "pass_blocked", says: []string{"eth1 is listening (spanning tree)"},
			change: func() { must(t, l.SetPortState(eth(1), lab.PortListening)) },
			undo:   func() { must(t, l.SetPortState(eth(1), lab.PortForwarding)) }},
		{name: "blocked there", device: "eth1", src: h1.MAC.String(), dst: h2.MAC.String(), verdict: "pass_blocked", says: []string{"it would leave by eth2, but eth2 is listening"},
			change: func() { must(t, l.SetPortState(eth(2), lab.PortListening)) },
			undo:   func() { must(t, l.SetPortState(eth(2), lab.PortForwarding)) }},
	} {
		t.Run(q.name, func(t *testing.T) {
			query := api.ExplainQuery{Device: q.device, Source: q.src, Destination: q.dst, VLAN: q.vlan}
			if q.change != nil {
				q.change()
				defer func() {
					q.undo()
					b.wait("the mirror to see it undone", func() bool { return explain(b, query).Verdict == "redirected" })
				}()
			}
			if q.change != nil { // and the mirror has seen it
				b.wait(q.verdict, func() bool { return explain(b, query).Verdict == q.verdict })
			}
			got := explain(b, query)
			if got.Verdict != q.verdict || got.Egress != q.egress {
				t.Errorf("got %+v, want %s by %q", got, q.verdict, q.egress)
			}
			for _, part := range q.says {
				if !strings.Contains(got.Text, part) {
					t.Errorf("says %q, want %q in it", got.Text, part)
				}
			}
		})
	}
}

func TestExplainRefuses(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 1, NoIPv6: true})
	b := newBox(t, l, explainConfig)
	b.start()
	const mac = "02:00:00:00:00:01"
	for _, bad := range []struct {
		query api.ExplainQuery
		says  string
	}{
		{api.ExplainQuery{Destination: mac}, "device is missing"},
		{api.ExplainQuery{Device: "eth77", Destination: mac}, "device 'eth77': expected one of br-lan, eth1"},
		{api.ExplainQuery{Device: "eth1"}, "destination is missing"},
		{api.ExplainQuery{Device: "eth1", Destination: "somewhere"}, "destination 'somewhere': expected an address"},
		{api.ExplainQuery{Device: "eth1", Destination: mac, Source: "02:00:00:00:00:01:02:03"}, "source '02:00:00:00:00:01:02:03': expected"},
		{api.ExplainQuery{Device: "eth1", Destination: mac, VLAN: 4095}, "vlan '4095': expected a number from 0 to 4094"},
	} {
		_, err := b.client().Explain(testContext(t), bad.query)
		if err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%+v: %v, want %q", bad.query, err, bad.says)
		}
	}
}

// TestExplainVLANs asks about a VLAN-aware bridge.
func TestExplainVLANs(t *testing.T) {
	if !lab.HasVLANFiltering() {
		t.Skip("needs bridge VLAN filtering (CONFIG_BRIDGE_VLAN_FILTERING)")
	}
	l := lab.ForTest(t, lab.Options{Hosts: 3, NoIPv6: true, Bridge: lab.BridgeOptions{VLANFiltering: true}})
	eth := func(n int) int { return index(t, l, n) }
	must(t, l.Router.AddPortVLANs(eth(1), false, lab.PortVLAN{VID: 10, PVID: true, Untagged: true}, lab.PortVLAN{VID: 20}))
	must(t, l.Router.AddPortVLANs(eth(2), false, lab.PortVLAN{VID: 10}))
	b := newBox(t, l, explainConfig)
	b.start()
	h1, h2 := l.Hosts[0], l.Hosts[1]
	h, err := l.Router.Handle()
	must(t, err)
	for port, hosts := range map[int][]*lab.Host{1: {h1}, 2: {h2}} {
		for _, vlan := range []int{10, 20} {
			if port == 2 && vlan == 20 {
				continue
			}
			must(t, h.NeighSet(&netlink.Neigh{LinkIndex: eth(port), Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER,
				State: netlink.NUD_NOARP, Vlan: vlan, HardwareAddr: hosts[0].MAC}))
		}
	}
	b.wait("the stations", func() bool { return b.status().Stations >= 3 })
	for _, q := range []struct {
		name, device    string
		dst             string
		vlan            int
		verdict, egress string
		says            string
	}{
		{"push", "eth1", h2.MAC.String(), 0, "redirected", "eth2", "in VLAN 10 leaves by eth2, with a tag for VLAN 10"},
		{"pop", "eth2", h1.MAC.String(), 10, "redirected", "eth1", "in VLAN 10 leaves by eth1, without its VLAN tag"},
		{"not known there", "eth1", h2.MAC.String(), 20, "pass_unknown_destination", "", "does not know " + h2.MAC.String() + " in VLAN 20"},
		{"no member", "eth2", h1.MAC.String(), 20, "pass_vlan", "", "eth2 is not in VLAN 20"},
	} {
		t.Run(q.name, func(t *testing.T) {
			got := explain(b, api.ExplainQuery{Device: q.device, Destination: q.dst, VLAN: q.vlan})
			if got.Verdict != q.verdict || got.Egress != q.egress || !strings.Contains(got.Text, q.says) {
				t.Errorf("got %+v, want %s by %q, saying %q", got, q.verdict, q.egress, q.says)
			}
		})
	}
}

func explain(b *box, q api.ExplainQuery) *api.Explanation {
	b.t.Helper()
	got, err := b.client().Explain(testContext(b.t), q)
	must(b.t, err)
	return got
}

func TestExplainCommand(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("tc"))
	for _, args := range [][]string{{"explain"}, {"explain", "--device", "eth1"}, {"explain", "--dst", "02:00:00:00:00:01"}} {
		if _, stderr, code := b.cli(args...); code != exitUsage || !strings.Contains(stderr, "--device and --dst are needed") {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
	ask := []string{"explain", "--device", "eth1", "--dst", l.Hosts[1].MAC.String()}
	if _, _, code := b.cli(ask...); code != exitNotRunning {
		t.Errorf("without a daemon: exit code %d", code)
	}
	b.start()
	b.learn(l.Hosts...)
	stdout, _, code := b.cli(ask...)
	if code != exitFine {
		t.Errorf("exit code %d", code)
	}
	contains(t, stdout, "redirected: a frame to 02:00:00:00:01:02")
	stdout, _, _ = b.cli(append(ask, "--json")...)
	contains(t, stdout, `"egress": "eth2"`)
	before := b.count("eth1", "redirected")
	for range 10 {
		b.cli(ask...)
	}
	if n := b.count("eth1", "redirected"); n != before {
		t.Errorf("questions were counted: %d, before %d", n, before)
	}
	if _, stderr, code := b.cli("explain", "--device", "eth9", "--dst", "02:00:00:00:00:01"); code == exitFine || !strings.Contains(stderr, "device 'eth9': expected one of br-lan") {
		t.Errorf("unknown device: exit code %d, %s", code, stderr)
	}
}
