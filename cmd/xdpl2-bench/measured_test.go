// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// roundOf is a round with two equal slices for each variant.
func roundOf(costs ...float64) rig.Round {
	var r rig.Round
	for _, c := range costs {
		r = append(r, []rig.Sample{{NsPerFrame: c}, {NsPerFrame: c}})
	}
	return r
}

func names() (all []string) {
	for _, v := range variants {
		all = append(all, v.name)
	}
	return all
}

func TestMeasured(t *testing.T) {
	m := newMeasured("64 B", rig.Load{Input: rig.Roomy, Length: 60}, 1)
	if r, err := m.result(); err != nil || len(r.Variants) != 0 {
		t.Errorf("nothing measured: %+v, %v", r, err)
	}
	for i := range 6 {
		speed := 1 + float64(i%3) // the machine changes, the ratios do not
		m.add(&rig.Comparison{Load: m.load, Variants: names(), Rounds: []rig.Round{roundOf(1000*speed, 800*speed, 500*speed, 1000*speed)}})
	}
	m.shares["xdpl2 tc"] = &share{frames: 1000, redirected: 990}
	r, err := m.result()
	if err != nil {
		t.Fatal(err)
	}
	if r.Rounds != 6 || r.Input != "roomy" || r.Length != 60 || len(r.Variants) != 4 {
		t.Errorf("%+v", r)
	}
	tc, generic := r.Variants[1], r.Variants[2]
	if tc.Ratio != 1.25 || tc.Low != 1.25 || generic.Ratio != 2 || tc.Share != 0.99 {
		t.Errorf("tc %+v, generic %+v", tc, generic)
	}
	if math.Abs(tc.Rate*tc.Cost-1e9) > 1 {
		t.Errorf("%v frames/s at %v ns", tc.Rate, tc.Cost)
	}
	text := strings.Join(compareLines([]*loadResult{r}), "\n")
	for _, part := range []string{"64 B (6 turns)", "xdpl2 generic", "1.25 to 1.25", "99.0%", "2.00"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if got, want := m.progressLine(), "64 B: bridge 500,000 frames/s, xdpl2 tc 1.25 times that, xdpl2 generic 2.00 times that"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAgainst(t *testing.T) {
	l := &loadResult{Rounds: minForInterval, Variants: []variantResult{
		{Name: viaBridge, Ratio: 1, Low: 1, High: 1}, {Name: again, Ratio: 1, Low: 0.97, High: 1.04},
	}}
	for _, c := range []struct {
		low, high float64
		want      int
	}{{1.05, 1.2, 1}, {1.03, 1.2, 0}, {0.9, 1.1, 0}, {0.98, 0.99, 0}, {0.8, 0.96, -1}} {
		if got := l.against(&variantResult{Low: c.low, High: c.high}); got != c.want {
			t.Errorf("%.2f to %.2f: %d, want %d", c.low, c.high, got, c.want)
		}
	}
	l.Rounds--
	if got := l.against(&variantResult{Low: 2, High: 3}); got != 0 {
		t.Errorf("with too few turns: %d", got)
	}
}

func TestNext(t *testing.T) {
	var all []*measured
	for _, l := range loads {
		all = append(all, newMeasured(l.name, l.load, l.weight))
	}
	one := &rig.Comparison{Rounds: []rig.Round{{}}}
	for range 30 {
		next(all).add(&rig.Comparison{Rounds: one.Rounds})
	}
	if a, b, c := all[0].rounds(), all[1].rounds(), all[2].rounds(); a != 12 || b != 10 || c != 8 {
		t.Errorf("%d, %d and %d turns", a, b, c)
	}
}

func TestWanted(t *testing.T) {
	status := func(state, engine string) *api.Status {
		p := api.PortStatus{State: state, Engine: engine}
		return &api.Status{Ports: []api.PortStatus{p, p}}
	}
	if err := wanted(status(api.Accelerating, "tc"), "tc", 2); err != nil {
		t.Error(err)
	}
	if err := wanted(status(api.Off, ""), "", 2); err != nil {
		t.Error(err)
	}
	if err := wanted(status(api.Accelerating, "generic"), "auto", 2); err != nil {
		t.Error(err)
	}
	oneWay := status(api.Accelerating, "native")
	oneWay.Ports[1].Engine = "tc"
	if err := wanted(oneWay, "native", 2); err != nil {
		t.Error(err)
	}
	oneWay.Ports[0], oneWay.Ports[1] = oneWay.Ports[1], oneWay.Ports[0]
	if wanted(oneWay, "native", 2) == nil {
		t.Error("tc where the frames arrive passed for native")
	}
	for _, c := range []struct {
		s      *api.Status
		engine string
	}{
		{status(api.Accelerating, "tc"), "generic"}, {status(api.Accelerating, "tc"), ""}, {status(api.Failed, ""), "tc"},
		{status(api.Off, ""), "tc"}, {&api.Status{}, "tc"}, {status(api.Off, ""), "auto"},
	} {
		if wanted(c.s, c.engine, 2) == nil {
			t.Errorf("%+v passed for %q", c.s.Ports, c.engine)
		}
	}
}

func TestSummary(t *testing.T) {
	r := result{
		Seconds: 21.4,
		Ports: []port{
			{Device: "eth1", State: api.Accelerating, Engine: "tc", Redirected: 995, Passed: 5},
			{Device: "eth2", State: api.Failed},
		},
		Comparison: []*loadResult{{Name: "64 B", Rounds: 9, Variants: []variantResult{
			{Name: viaBridge, Ratio: 1, Low: 1, High: 1},
			{Name: "xdpl2 tc", Ratio: 0.9, Low: 0.88, High: 0.93},
			{Name: "xdpl2 generic", Ratio: 1.6, Low: 1.5, High: 1.7},
			{Name: again, Ratio: 1, Low: 0.97, High: 1.02},
		}}, {Name: "tight", Rounds: 9, Variants: []variantResult{
			{Name: "xdpl2 tc", Ratio: 1.01, Low: 0.99, High: 1.03},
		}}, {Name: "1518 B", Rounds: 3, Variants: []variantResult{
			{Name: "xdpl2 tc", Ratio: 0.8, Low: 0.7, High: 0.9},
		}}},
	}
	text := strings.Join(r.summary(), "\n")
	for _, part := range []string{
		"yes, 1 of 2 ports (engine tc): 99.5% of all frames",
		"64 B: xdpl2 tc 0.90 times the bridge, xdpl2 generic 1.60 times the bridge (the bridge against itself: 0.97 to 1.02)",
		"slower?      xdpl2 tc at 64 B (0.90); within the noise: xdpl2 tc at tight (1.01); too few turns to be certain: xdpl2 tc at 1518 B (0.80)",
		"yes, in 21 s",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	r.Comparison, r.Ports, r.Failures = nil, nil, []string{"x"}
	text = strings.Join(r.summary(), "\n")
	for _, part := range []string{"accelerating?      no", "fast?                not measured", "slower?      not measured", "no, 1 things did not"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}
