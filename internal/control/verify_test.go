// SPDX-License-Identifier: Apache-2.0

package control

import (
	"slices"
	"testing"

	"github.com/xdpl2/xdpl2/internal/datapath"
)

// TestVerifier: who swallows frames is found, and nobody else.
func TestVerifier(t *testing.T) {
	a, b, c := &port{device: "a"}, &port{device: "b"}, &port{device: "c"}
	// What one port has redirected and sent when it is looked at.
	type look map[*port][2]uint64
	native := func(p *port) passage { return passage{up: true, engine: datapath.EngineNative} }
	for _, test := range []struct {
		name  string
		looks []look // the first one is where it begins
		tc    []*port
		down  []*port
		empty []*port // native XDP redirects nothing there
		want  []string
	}{
		{name: "all comes out", looks: []look{{}, {a: {1000, 10}, b: {0, 1000}}, {a: {9000, 20}, b: {0, 9000}}}},
		{name: "nothing comes out", looks: []look{{}, {a: {100, 0}, c: {0, 5}}, {a: {200, 0}, c: {0, 10}}},
			want: []string{"b"}}, // a has sent nothing, and was sent nothing
		{name: "nothing comes out at two", looks: []look{{}, {a: {100, 0}, b: {50, 0}}, {a: {200, 0}, b: {100, 0}}}, want: []string{"a", "b"}},
		{name: "nothing comes out at one", looks: []look{{}, {a: {100, 90}, b: {90, 0}}, {a: {200, 180}, b: {180, 0}}}, want: []string{"b"}},
		{name: "floods come out", looks: []look{{}, {a: {1000, 1000}, b: {1000, 2}}, {a: {2000, 2000}, b: {2000, 4}}}, want: []string{"b"}},
		{name: "a quiet network", looks: []look{{}, {a: {5, 0}}, {a: {15, 0}}}},
		{name: "once, and no traffic then", looks: []look{{}, {a: {100, 0}}, {a: {105, 0}}, {a: {110, 0}}}},
		{name: "slowly", looks: []look{{}, {a: {10, 0}}, {a: {20, 0}}, {a: {30, 0}}, {a: {40, 0}}}, want: []string{"b"}},
		{name: "a driver counts what it sent when it sends again", looks: []look{{}, {a: {100, 0}}, {a: {200, 0}, b: {0, 100}}, {a: {300, 0}, b: {0, 200}}}},
		{name: "a driver that is behind, and a silent port", looks: []look{{}, {a: {100, 90}, b: {20, 0}, c: {90, 0}}, {a: {200, 190}, b: {40, 110}, c: {190, 0}}, {a: {300, 290}, b: {60, 200}, c: {290, 0}}}},
		{name: "a slower port", looks: []look{{}, {a: {1000, 0}, b: {0, 400}}, {a: {2000, 0}, b: {0, 800}}}},
		{name: "a port that was all right and is no more", looks: []look{{}, {a: {1000, 900}, b: {900, 1000}}, {a: {1100, 990}, b: {990, 1001}}, {a: {1200, 1080}, b: {1080, 1002}}},
			want: []string{"b"}},
		{name: "other ports' engine", tc: []*port{a, b, c}, looks: []look{{}, {a: {100, 0}}, {a: {200, 0}}}},
		{name: "no carrier", down: []*port{b}, looks: []look{{}, {a: {100, 90}, b: {90, 0}}, {a: {200, 180}, b: {180, 0}}}},
		{name: "nobody is there", empty: []*port{a, c}, looks: []look{{}, {a: {100, 0}, b: {0, 50}}, {a: {200, 0}, b: {0, 100}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			v := newVerifier()
			var got []string
			for i, l := range test.looks {
				now := map[*port]passage{}
				for _, p := range []*port{a, b, c} {
					s := native(p)
					if slices.Contains(test.tc, p) {
						s.engine = datapath.EngineTC
					}
					s.up = !slices.Contains(test.down, p)
					s.redirected, s.sent = l[p][0], l[p][1]
					now[p] = s
				}
				if i == 0 {
					v.begin(now)
					continue
				}
				if !comparable(v.base, now) {
					t.Fatalf("look %d cannot be compared", i)
				}
				g := group{in: []*port{a, b, c}, out: []*port{a, b, c}}
				for _, p := range v.compare(g, now, func(p *port) bool { return p != c && !slices.Contains(test.empty, p) }) {
					got = append(got, p.device)
				}
			}
			v.timer.Stop()
			if !slices.Equal(got, test.want) {
				t.Errorf("found %v, want %v", got, test.want)
			}
		})
	}
}

// TestComparable: counters say nothing across a change.
func TestComparable(t *testing.T) {
	p := &port{}
	base := passage{ifindex: 3, up: true, engine: datapath.EngineNative, redirected: 10, sent: 10}
	for name, change := range map[string]func(*passage){
		"another device": func(s *passage) { s.ifindex++ },
		"link down":      func(s *passage) { s.up = false },
		"another engine": func(s *passage) { s.engine = datapath.EngineTC },
		"counters reset": func(s *passage) { s.sent = 0 },
	} {
		now := base
		change(&now)
		if comparable(map[*port]passage{p: base}, map[*port]passage{p: now}) {
			t.Errorf("%s: compared", name)
		}
	}
	if comparable(map[*port]passage{}, map[*port]passage{p: base}) {
		t.Error("a new port: compared")
	}
	if !comparable(map[*port]passage{p: base}, map[*port]passage{p: base}) {
		t.Error("the same: not compared")
	}
}
