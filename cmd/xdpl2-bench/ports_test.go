// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
)

func verdict(name string, packets uint64) api.VerdictCount {
	return api.VerdictCount{Verdict: name, Words: "words of " + name, Count: api.Count{Packets: packets}}
}

func TestPortOf(t *testing.T) {
	p := portOf(api.PortStatus{Device: "eth1", State: api.Accelerating, Engine: "tc", Hook: "tcx"}, api.PortCounters{
		Device: "eth1", Verdicts: []api.VerdictCount{
			verdict("redirected", 10), verdict("reflected", 1), verdict("pass_vlan", 0), verdict("pass_group", 3),
			verdict("redirect_failed", 2),
		},
	})
	if p.Redirected != 11 || p.Passed != 5 || p.frames() != 16 || len(p.Verdicts) != 4 {
		t.Errorf("%+v", p)
	}
}

func TestTopReasons(t *testing.T) {
	got := topReasons([]api.VerdictCount{
		verdict("redirected", 1e6), verdict("pass_local", 2), verdict("pass_unknown_source", 3000), verdict("pass_group", 2),
		verdict("pass_mtu", 1),
	}, 3)
	if want := "unknown source 3,000, local 2, group 2, ..."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := topReasons([]api.VerdictCount{verdict("redirected", 5)}, 3); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestLiveRows(t *testing.T) {
	last := &sample{at: time.Second, ports: []port{{Device: "eth1", Redirected: 100}, {Device: "eth2", Redirected: 50}}}
	now := &sample{at: 3 * time.Second, ports: []port{
		{Device: "eth1", Engine: "tc", Redirected: 2099, Passed: 1, Verdicts: []api.VerdictCount{verdict("pass_group", 1)}},
		{Device: "eth2", Redirected: 3}, // its counters began anew
		{Device: "eth3", Engine: "generic", Redirected: 6},
	}}
	got := liveRows(last, now)
	want := [][]string{
		{"3 s", "eth1", "tc", "2,099", "1", "1,000", "99.9%", "group 1"},
		{"3 s", "eth2", "-", "3", "0", "0", "100.0%", ""},
		{"3 s", "eth3", "generic", "6", "0", "3", "100.0%", ""},
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Errorf("got %q, want %q", got[i], want[i])
		}
		if len(got[i]) != len(liveHead) {
			t.Errorf("%d columns, the head has %d", len(got[i]), len(liveHead))
		}
	}
	if got := liveRows(nil, now)[0][5]; got != "700" {
		t.Errorf("first rate: %s", got)
	}
}

func TestVerdictLines(t *testing.T) {
	lines := verdictLines([]port{
		{Device: "eth1", State: api.Accelerating, Engine: "tc", Hook: "tcx", Redirected: 5, Passed: 1,
			Verdicts: []api.VerdictCount{verdict("redirected", 5), verdict("pass_group", 1)}},
		{Device: "eth2", State: api.NotAccelerated, Reason: "it is a bridge"},
	})
	want := []string{
		"PORT  ENGINE    VERDICT          FRAMES  WHAT IT MEANS",
		"eth1  tc (tcx)  redirected            5  words of redirected",
		"                pass_group            1  words of pass_group",
		"eth2  -         not accelerated          it is a bridge",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestTrafficFailures(t *testing.T) {
	good := port{Device: "eth1", State: api.Accelerating, Redirected: 1}
	if got := trafficFailures([]flow{{Name: "ping", OK: true}}, []port{good}); got != nil {
		t.Errorf("got %q", got)
	}
	got := trafficFailures(
		[]flow{{Name: "ping", Sent: 10, Lost: 2, RTT: 100, RTT99: 200}, {Name: "TCP", Error: "reset"}},
		[]port{good, {Device: "eth2", State: api.Accelerating, Passed: 7}, {Device: "eth3", State: api.Failed, Reason: "why"}})
	want := []string{
		"ping: 10 sent, 2 lost, RTT 100 µs (99% within 200 µs)", "TCP: 0 sent; reset",
		"eth2: no frame was redirected", "eth3 is not accelerated: why",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFlowWords(t *testing.T) {
	for want, f := range map[string]flow{
		"1,000 sent (20,000 a second), 3 lost; 1 twice":       {Sent: 1000, Lost: 3, Rate: 20000, Comment: "1 twice"},
		"1.50 Gbit/s up, 900 Mbit/s down, every byte checked": {Up: 1.5e9, Down: 900e6},
		"5 sent, 5 lost": {Sent: 5, Lost: 5},
		"72 sent":        {Sent: 72},
	} {
		if got := f.words(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
