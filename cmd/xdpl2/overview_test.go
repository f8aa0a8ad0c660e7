// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// TestOneAnswerForAnOverview: the status alone tells of each port what it is
// and carries, and of all frames what became of them, as ports and counters do.
func TestOneAnswerForAnOverview(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("tc"))
	b.start()
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b.learn(h1, h2)
	transfer(t, h1, h2, false)

	s := b.status()
	sums := map[string]uint64{}
	for _, v := range s.Verdicts {
		sums[v.Verdict] = v.Packets
	}
	var redirected, stations uint64
	for _, p := range s.Ports {
		redirected += p.Redirected.Packets
		stations += uint64(p.Stations)
		if !p.Up || !p.Carrier {
			t.Errorf("%s is up and has carrier: %+v", p.Device, p)
		}
	}
	if sums["redirected"] < 100 || sums["redirected"] != redirected || sums["pass_group"] == 0 {
		t.Errorf("verdicts %v, ports redirected %d", sums, redirected)
	}
	if int(stations) != s.Stations || stations < 2 {
		t.Errorf("%d stations in all, %d behind the ports", s.Stations, stations)
	}
	// Later answers count no less.
	ports, err := b.client().Ports(testContext(t))
	must(t, err)
	if len(ports) != len(s.Ports) {
		t.Fatalf("%d ports, %d in the status", len(ports), len(s.Ports))
	}
	for i, p := range ports {
		if p.Device != s.Ports[i].Device || p.Redirected.Packets < s.Ports[i].Redirected.Packets || p.Ifindex == 0 {
			t.Errorf("port %+v, in the status %+v", p, s.Ports[i])
		}
	}
}

// TestStationSearch finds stations by a part of the address, in whatever case,
// and by their port.
func TestStationSearch(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("tc"))
	b.start()
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b.learn(h1, h2)
	for _, test := range []struct {
		search string
		want   []*lab.Host
	}{
		{h1.MAC.String()[6:], []*lab.Host{h1}},
		{strings.ToUpper(h2.MAC.String()), []*lab.Host{h2}},
		{"ETH2", []*lab.Host{h2}},
		{"nothing like it", nil},
	} {
		list, err := b.client().Stations(testContext(t), api.StationQuery{Search: test.search, VLAN: -1})
		must(t, err)
		if list.Total != len(test.want) || len(list.Stations) != len(test.want) {
			t.Errorf("%q: %+v", test.search, list)
			continue
		}
		for i, h := range test.want {
			if list.Stations[i].MAC != h.MAC.String() {
				t.Errorf("%q: %+v, want %s", test.search, list.Stations[i], h.MAC)
			}
		}
	}
	if out, _, code := b.cli("stations", "--search", "eth1"); code != 0 || !strings.Contains(out, h1.MAC.String()) || strings.Contains(out, h2.MAC.String()) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
