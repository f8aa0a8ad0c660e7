// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

// measured is a file with all kinds of work; costs are multiplied by slower.
func measured(t *testing.T, slower float64) *results.File {
	t.Helper()
	f := results.New(results.Meta{
		Command: "forward", Tool: "1.0", Start: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), Seconds: 61,
		Machine: results.Machine{CPU: "Some CPU", Kernel: "6.18"},
		Set:     map[string]string{"rounds": "6"},
		Audit:   []results.Check{{Name: "floor", Value: "0.99 to 1.01", Expected: "spans 1", Passed: true}},
	})
	add := func(c results.Cell, base *results.Cell, values ...float64) results.Cell {
		c.Samples = values
		c.Summarize()
		if base != nil {
			if err := c.SetRatio(base); err != nil {
				t.Fatal(err)
			}
		}
		f.Cells = append(f.Cells, c)
		return c
	}
	scatter := func(v float64) []float64 {
		return []float64{v, v * 1.01, v * 0.99, v * 1.005, v * 0.995, v}
	}
	for _, size := range []int{60, 508, 1514} {
		c := results.Cell{Work: "forward", Input: results.Roomy, Size: size, Unit: results.NsPerFrame}
		c.Engine = results.EngineBridge
		bridge := add(c, nil, scatter(1200+0.2*float64(size))...)
		c.Engine = results.EngineDropXDP
		add(c, nil, scatter(400+0.05*float64(size))...)
		c.Engine = "generic"
		add(c, &bridge, scatter(slower*(700+0.3*float64(size)))...)
	}
	for _, flows := range []int{1, 4} {
		c := results.Cell{Work: "tcp", Flows: flows, Unit: results.BitsPerS, Engine: results.EngineBridge}
		bridge := add(c, nil, scatter(8e9)...)
		c.Engine = "tc"
		add(c, &bridge, scatter(8.1e9)...)
	}
	for i, e := range []string{"bridge", "tc"} {
		c := results.Cell{Work: "latency", Size: 98, Engine: e, Unit: results.Microsecond}
		c.SetQuantiles([]float64{20, 21, 25, 30, 900 + float64(i)})
		add(c, nil, 25, 26, 24)
	}
	for i, step := range []string{"null", "devmap redirect", "vlan push"} {
		add(results.Cell{Work: "calls", Engine: step, Unit: results.NsPerCall}, nil, float64(10*i)+0.1, float64(10*i)-0.1)
	}
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	return f
}

func reportOf(t *testing.T, f *results.File) *Report {
	t.Helper()
	a, err := model.Analyze(f, model.Options{Overhead: model.WireOverhead})
	if err != nil {
		t.Fatal(err)
	}
	return &Report{File: f, Analysis: a, Tool: "1.0"}
}

func names(charts []*Chart) (all []string) {
	for _, c := range charts {
		all = append(all, c.Name)
	}
	return all
}

func TestCharts(t *testing.T) {
	paper := reportOf(t, model.Paper())
	if got, want := names(paper.Charts()), []string{
		"throughput-2.5-gb-s", "gain-of-generic-over-the-bridge-2.5-gb-s", "round-trip-time-wire-2.5-gb-s",
		"cost-decomposition-wire-2.5-gb-s", "cost-by-frame-size-and-fitted-lines-wire-2.5-gb-s",
	}; !slices.Equal(got, want) {
		t.Errorf("of the paper: %q", got)
	}
	all := reportOf(t, measured(t, 1))
	if got, want := names(all.Charts()), []string{
		"throughput-roomy", "gain-of-generic-over-the-bridge-roomy", "tcp-throughput", "gain-of-tc-over-the-bridge-tcp",
		"round-trip-time-98-b", "distribution-of-latency-98-b", "what-a-step-costs",
		"cost-decomposition-forward-roomy", "cost-by-frame-size-and-fitted-lines-forward-roomy",
	}; !slices.Equal(got, want) {
		t.Errorf("of all kinds of work: %q", got)
	}
	for _, c := range slices.Concat(paper.Charts(), all.Charts()) {
		for _, theme := range []*Theme{Light, Dark} {
			svg, err := c.SVG(theme)
			if err != nil {
				t.Fatal(err)
			}
			if err := wellFormed(svg); err != nil {
				t.Errorf("%s: %v", c.Name, err)
			}
			if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
				t.Errorf("%s: not a number is drawn", c.Name)
			}
		}
		var out bytes.Buffer
		if err := c.WritePNG(&out, Light); err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(&out)
		if err != nil || img.Bounds().Dx() < 1000 || img.Bounds().Dy() < 500 {
			t.Errorf("%s: %v, %v", c.Name, img.Bounds(), err)
		}
	}
}

func wellFormed(text []byte) error {
	d := xml.NewDecoder(bytes.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// TestBars finds in the picture what the numbers are: twice as high a bar for
// twice the number, in the engine's colour.
func TestBars(t *testing.T) {
	f := results.New(results.Meta{Command: "tcp"})
	for i, e := range []string{"bridge", "tc"} {
		f.Cells = append(f.Cells, results.Cell{Work: "tcp", Flows: 1, Engine: e, Unit: results.BitsPerS, N: 1, Mean: float64(1+i) * 4e9})
		f.Cells = append(f.Cells, results.Cell{Work: "tcp", Flows: 2, Engine: e, Unit: results.BitsPerS, N: 1, Mean: 1e9})
	}
	var out bytes.Buffer
	if err := Charts(f, nil)[0].WritePNG(&out, Light); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	height := func(engine string) (most int) {
		r, g, b, _ := Light.engine(engine, 0).RGBA()
		for x := range img.Bounds().Dx() {
			n := 0
			for y := range img.Bounds().Dy() {
				if pr, pg, pb, _ := img.At(x, y).RGBA(); pr == r && pg == g && pb == b {
					n++
				}
			}
			most = max(most, n)
		}
		return most
	}
	// The legend's square is in the way of neither: it is above other columns.
	bridge, tc := height("bridge"), height("tc")
	if bridge < 100 || math.Abs(float64(tc)/float64(bridge)-2) > 0.05 {
		t.Errorf("bars of %d and %d pixels for 4 and 8 Gbit/s", bridge, tc)
	}
}

var external = regexp.MustCompile(`(?i)(src|href|action)\s*=|url\(|@import|<script|<link`)

func TestPage(t *testing.T) {
	f := measured(t, 1)
	r := reportOf(t, f)
	r.Comparison = Compare(measured(t, 1.2), f)
	var out bytes.Buffer
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, want := range []string{
		"<title>xdpl2-bench forward</title>", "Measured 2026-01-02 03:04 UTC, took 1m1s", "all 1 checks passed", "Some CPU", "6.18",
		"Against the older run", "forward roomy 60 B, generic (ns/frame)", "H1, generic: supported", "rounds", "prefers-color-scheme: dark",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in the page", want)
		}
	}
	if found := external.FindString(page); found != "" {
		t.Errorf("the page needs something else: %q", found)
	}
	if n := strings.Count(page, "<svg"); n != 2*len(r.Charts()) {
		t.Errorf("%d pictures of %d charts in two themes", n, len(r.Charts()))
	}
	f.Meta.Audit[0].Passed = false
	out.Reset()
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "1 of 1 checks failed") {
		t.Error("a failed check is not told")
	}
}

// TestEscaping has markup in every text that a results file can hold.
func TestEscaping(t *testing.T) {
	const evil = `<script>alert("x")</script><img src=x onerror=y>&`
	f := measured(t, 1)
	f.Meta.Source = evil
	f.Meta.Tool, f.Meta.Daemon = evil, evil
	f.Meta.Machine = results.Machine{CPU: evil, Arch: evil, Kernel: evil, System: evil, Clocksource: evil, Governor: evil, NIC: evil}
	f.Meta.Set["rounds"] = "<b>6</b>"
	f.Meta.LeftOut = []string{"<b>native</b>"}
	f.Meta.Audit = []results.Check{{Name: "<b>a</b>", Value: "<b>b</b>", Expected: "<b>c</b>"}}
	f.Cells[0].Note = "<b>note</b>"
	r := reportOf(t, f)
	r.Tool = evil
	older := measured(t, 1)
	older.Meta.Machine.CPU = "<b>old</b>"
	r.Comparison = Compare(older, f)
	var out bytes.Buffer
	if err := r.WriteHTML(&out); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, bad := range []string{"<script", "<img", "onerror=y>", "<b>a</b>", "<b>b</b>", "<b>c</b>", "<b>6", "<b>native", "<b>old", "<b>note"} {
		if strings.Contains(page, bad) {
			t.Errorf("%q is in the page as markup", bad)
		}
	}
	if n := strings.Count(page, "&lt;script&gt;"); n < 9 {
		t.Errorf("the texts appear %d times", n)
	}
	// Charts: their texts come from names, which cannot hold markup; if one did,
	// the picture would still not.
	c := engineChart("t", "", []string{evil, evil}, Charts(f, nil)[0].build)
	svg, err := c.SVG(Light)
	if err != nil || bytes.Contains(svg, []byte("<script")) || !bytes.Contains(svg, []byte("&lt;script&gt;")) {
		t.Errorf("a legend with markup: %v", err)
	}
}

func TestTicks(t *testing.T) {
	labels := func(low, high float64) (all []string) {
		for _, tick := range (shortTicks{}).Ticks(low, high) {
			all = append(all, tick.Label)
		}
		return all
	}
	for _, c := range []struct {
		low, high float64
		want      string
	}{
		{0, 204205, "0 50k 100k 150k 200k"},
		{-1e-12, 16, "0 2 4 6 8 10 12 14 16"},
		{426, 569, "440 460 480 500 520 540 560"},
		{-0.6, 0.7, "-0.6 -0.4 -0.2 0 0.2 0.4 0.6"},
		{0, 9.3e9, "0 2G 4G 6G 8G"},
	} {
		if got := strings.Join(labels(c.low, c.high), " "); got != c.want {
			t.Errorf("%v to %v: %s, want %s", c.low, c.high, got, c.want)
		}
	}
	for v, want := range map[float64]string{0: "0", 1234: "1234", 12345: "12.345k", 2e6: "2M", 1.5e9: "1.5G", -3e4: "-30k"} {
		if got := short(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 12.3456: "12.35", 999.4: "999.4", 1000: "1\u202f000", -1234567: "-1\u202f234\u202f567"} {
		if got := figure(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
