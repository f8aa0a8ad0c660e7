// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sample is a file that uses every field.
func sample() *File {
	f := New(Meta{
		Command: "forward", Tool: "1.2.3", Daemon: "1.2.3", Source: "a run",
		Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Seconds: 61.5,
		Machine: Machine{CPU: "Some CPU", Cores: 8, Arch: "arm64", Kernel: "6.12.1", System: "OpenWrt", Clocksource: "arch_sys_counter", Governor: "performance", NIC: "r8169"},
		Set:     map[string]string{"rounds": "9", "slice": "50ms"},
		LeftOut: []string{"native: the driver cannot"},
		Audit: []Check{
			{"clock", "steady to 0.1%", "steady to 1%", true},
			{"floor", "0.90 to 0.95", "spans 1", false},
		},
	})
	bridge := Cell{Work: "forward", Input: Roomy, Size: 60, Engine: EngineBridge, Unit: NsPerFrame, Samples: []float64{1000, 1200, 1100}}
	bridge.Summarize()
	tc := Cell{Work: "forward", Input: Roomy, Size: 60, Engine: "tc", Unit: NsPerFrame, Samples: []float64{500, 800, 1000}, Loss: Pointer(0), CPU: Pointer(1)}
	tc.Summarize()
	tc.Interval = &Interval{500, 1000}
	if err := tc.SetRatio(&bridge); err != nil {
		panic(err)
	}
	rtt := Cell{Work: "latency", Engine: "tc", Flows: 4, Stations: 16, Link: 1e9, Unit: Microsecond, N: 1000, Mean: 50, SD: 3, Cores: []float64{0.2, 0.1}, Note: "spaced"}
	rtt.SetQuantiles([]float64{1, 2, 3, 4, 5})
	f.Cells = []Cell{bridge, tc, rtt}
	return f
}

func TestRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	f := sample()
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	back, err := ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(f, back) {
		t.Errorf("wrote %+v\nread %+v", f, back)
	}
	if failed := back.Meta.Failed(); len(failed) != 1 || failed[0].Name != "floor" {
		t.Errorf("failed checks: %v", failed)
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("files left: %v", entries)
	}
}

func TestSummaries(t *testing.T) {
	f := sample()
	c := f.Find(ID{Work: "forward", Input: Roomy, Size: 60, Engine: "tc", Unit: NsPerFrame})
	if c == nil {
		t.Fatal("not found")
	}
	if c.N != 3 || math.Abs(c.Mean-766.6667) > 1e-3 || math.Abs(c.SD-251.6611) > 1e-3 || *c.Median != 800 {
		t.Errorf("%+v", c)
	}
	// 1000/500, 1200/800, 1100/1000.
	if r := c.Ratio; r.Of != EngineBridge || r.Value != 1.5 || r.Low != 1.1 || r.High != 2 || r.N != 3 {
		t.Errorf("ratio %+v", r)
	}
	if f.Find(ID{Work: "forward"}) != nil {
		t.Error("found what is not there")
	}
	// For rates more is better, and the ratio is still above 1 for the better.
	slow := Cell{Engine: EngineBridge, Unit: FramesPerS, Samples: []float64{100, 100}}
	fast := Cell{Engine: "tc", Unit: FramesPerS, Samples: []float64{150, 150}}
	if err := fast.SetRatio(&slow); err != nil || fast.Ratio.Value != 1.5 {
		t.Errorf("%+v, %v", fast.Ratio, err)
	}
	slow.Samples = slow.Samples[1:]
	if err := fast.SetRatio(&slow); err == nil || !strings.Contains(err.Error(), "tc against bridge") {
		t.Errorf("unequal runs: %v", err)
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		change func(*File)
		want   string
	}{
		{func(f *File) { f.Version = 2 }, "version: 2: expected 1"},
		{func(f *File) { f.Format = "x" }, `format: "x": expected "xdpl2-bench results"`},
		{func(f *File) { f.Meta.Command = "" }, `meta.command: "": expected the name of a command`},
		{func(f *File) { f.Meta.Seconds = -1 }, "meta.seconds: -1: expected a number of at least 0"},
		{func(f *File) { f.Meta.Set["xdpl2"] = "/root/bin/xdpl2" }, `meta.settings.xdpl2: "/root/bin/xdpl2": expected no path of the machine`},
		{func(f *File) { f.Meta.Audit[0].Value = "see ~/out/x" }, "meta.audit[0].value"},
		{func(f *File) { f.Meta.Audit[1].Expected = "" }, "meta.audit[1].expected"},
		{func(f *File) { f.Cells[1].Engine = "<script>" }, `cells[1].engine: "<script>": expected lower-case letters`},
		{func(f *File) { f.Cells[1].Work = "" }, `cells[1].work: ""`},
		{func(f *File) { f.Cells[0].Size = 13 }, "cells[0].frame_bytes: 13: expected 14 to 65535"},
		{func(f *File) { f.Cells[0].Unit = "furlongs" }, `cells[0].unit: "furlongs": expected one of bit/s, bytes`},
		{func(f *File) { f.Cells[0].Mean = math.NaN() }, "cells[0].mean: NaN: expected a number"},
		{func(f *File) { f.Cells[0].Mean = 1201 }, "cells[0].mean: 1201: expected between the samples' lowest, 1000, and highest, 1200"},
		{func(f *File) { f.Cells[0].Samples[1] = math.Inf(1) }, "cells[0].samples[1]: +Inf"},
		{func(f *File) { f.Cells[0].N = 2 }, "cells[0].n: 2: expected at least 1, and no fewer than the 3 samples"},
		{func(f *File) { f.Cells[0].SD = -1 }, "cells[0].sd: -1"},
		{func(f *File) { f.Cells[1].Loss = Pointer(1.5) }, "cells[1].loss: 1.5: expected a number from 0 to 1"},
		{func(f *File) { f.Cells[1].Interval.High = 1 }, "cells[1].interval.high: 1: expected a number of at least 500"},
		{func(f *File) { f.Cells[1].Ratio.Low = 9 }, "cells[1].ratio.low: 9"},
		{func(f *File) { f.Cells[2].Quantiles[1].Value = 0 }, "cells[2].quantiles[1]: p 0.05: 0 after p 0.01"},
		{func(f *File) { f.Cells[2].Quantiles[0].P = -1 }, "cells[2].quantiles[0].p: -1"},
		{func(f *File) { f.Cells[1] = f.Cells[0] }, "cells[1]: the same cell as cells[0]: expected each cell once"},
	} {
		f := sample()
		c.change(f)
		if err := f.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if err := f.Write(&bytes.Buffer{}); err == nil {
			t.Errorf("written in spite of %s", c.want)
		}
	}
	if err := sample().Validate(); err != nil {
		t.Error(err)
	}
}

func TestReadErrors(t *testing.T) {
	var good bytes.Buffer
	if err := sample().Write(&good); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, want string }{
		{"", "x.json: line 1: unexpected end of JSON input"},
		{"[1]", "x.json: line 1: array: expected an object with format, version, meta and cells"},
		{"{\n\n\"format\": 5}", "x.json: line 3: format: number: expected string"},
		{`{"format": "other"}`, "x.json: format: \"other\": expected"},
		{strings.Replace(good.String(), `"version": 1`, `"version": 7, "new": {}`, 1), "x.json: version: 7: expected 1"},
		{strings.Replace(good.String(), `"cpu"`, `"host_name"`, 1), `x.json: json: unknown field "host_name"`},
		{strings.Replace(good.String(), `"mean": 1100`, `"mean": "x"`, 1), "mean: string: expected float64"},
		{strings.Replace(good.String(), `"sd": 100`, `"sd": -100`, 1), "x.json: cells[0].sd: -100"},
		{good.String()[:300], "x.json: "},
	} {
		if _, err := Read(strings.NewReader(c.text), "x.json"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := ReadFile(filepath.Join(t.TempDir(), "none.json")); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Errorf("%v", err)
	}
}

func TestCSV(t *testing.T) {
	var out bytes.Buffer
	if err := sample().WriteCSV(&out); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&out).ReadAll()
	if err != nil || len(rows) != 4 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	want := []string{
		"forward", "roomy", "60", "", "", "", "tc", "ns/frame", "3", "766.6666666666666", "251.6611478423583", "800", "500", "1000",
		"", "", "", "", "", "", "0", "1", "bridge", "1.5", "1.1", "2", "3", "500 800 1000",
	}
	if !reflect.DeepEqual(rows[2], want) {
		t.Errorf("got  %q\nwant %q", rows[2], want)
	}
	if got := rows[3][14:20]; !reflect.DeepEqual(got, []string{"1.2", "3", "4.8", "4.96", "4.996", "5"}) {
		t.Errorf("quantiles %q", got)
	}
}

// TestWriteFileFails shows that a file that cannot be written whole leaves the
// old one.
func TestWriteFileFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "r.json")
	if err := sample().WriteFile(path); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	bad := sample()
	bad.Cells[0].SD = -1
	if err := bad.WriteFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file changed")
	}
	if entries, _ := os.ReadDir(filepath.Dir(path)); len(entries) != 1 {
		t.Errorf("files left: %v", entries)
	}
}
