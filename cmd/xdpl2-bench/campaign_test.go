// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		b         bound
		low, high float64
		n         int
		want      string
	}{
		{bound{atLeast: 1.15}, 1.15, 1.3, 9, met},
		{bound{atLeast: 1.15}, 1.14, 1.3, 9, undecided},
		{bound{atLeast: 1.15}, 1.0, 1.14, 9, missed},
		{bound{atLeast: 1.15}, 1.2, 1.3, minForInterval - 1, undecided},
		{bound{atMost: 1.10}, 1.0, 1.10, 9, met},
		{bound{atMost: 1.10}, 1.0, 1.11, 9, undecided},
		{bound{atMost: 1.10}, 1.11, 1.2, 9, missed},
		{bound{}, 0, 9, 9, ""},
	} {
		if got := c.b.judge(rig.Interval{Median: (c.low + c.high) / 2, Low: c.low, High: c.high, N: c.n}); got != c.want {
			t.Errorf("%v, %v to %v, %d rounds: %q, want %q", c.b, c.low, c.high, c.n, got, c.want)
		}
	}
}

func TestOutcome(t *testing.T) {
	for want, all := range map[string][]finding{
		"":                    {{Verdict: met}, {}},
		"nothing was judged":  {{}},
		"1 bounds undecided":  {{Verdict: met}, {Verdict: undecided}},
		"1 bounds missed":     {{Verdict: met}, {Verdict: undecided}, {Verdict: missed}},
		"nothing was judged ": nil,
	} {
		err := outcome(all)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v: %v, want %q", all, err, want)
		}
	}
}

// fileOf makes a results file with samples of a steady machine that becomes
// slower: ratios within a round are exact.
func fileOf(t *testing.T, command string, cells map[results.ID]float64) *results.File {
	t.Helper()
	f := results.New(results.Meta{Command: command, Machine: results.Machine{CPU: "x", Kernel: "6.18"}})
	for id, value := range cells {
		c := results.Cell{Work: id.Work, Input: id.Input, Size: id.Size, Flows: id.Flows, Stations: id.Stations, Engine: id.Engine, Unit: id.Unit}
		for i := range 12 {
			c.Samples = append(c.Samples, value*(1+float64(i)/10))
		}
		c.Summarize()
		f.Cells = append(f.Cells, c)
	}
	for i := range f.Cells {
		id := f.Cells[i].ID()
		if id.Engine = viaBridge; f.Cells[i].Engine != viaBridge && f.Find(id) != nil {
			if err := f.Cells[i].SetRatio(f.Find(id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	return f
}

// findOne returns the only finding with these words.
func findOne(t *testing.T, all []finding, what, engine string) finding {
	t.Helper()
	var found []finding
	for _, f := range all {
		if strings.Contains(f.What, what) && f.Engine == engine {
			found = append(found, f)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%d findings with %q for %s among %+v", len(found), what, engine, all)
	}
	return found[0]
}

func TestJudgeBudgets(t *testing.T) {
	forward := func(engine string, stations int) results.ID {
		return results.ID{Work: workForward, Input: results.Roomy, Size: 60, Stations: stations, Engine: engine, Unit: results.NsPerFrame}
	}
	program := func(work, engine string) results.ID {
		return results.ID{Work: work, Size: 60, Stations: 2, Engine: engine, Unit: results.NsPerCall}
	}
	f := fileOf(t, "budgets", map[results.ID]float64{
		forward(viaBridge, 2): 1000, forward(cellName(withFilter), 2): 1300,
		forward("generic", 2): 520, forward("bare generic", 2): 500, forward("tc", 2): 800, forward("bare tc", 2): 700,
		program(workProgram, "generic"): 60, program(workProgram, "bare generic"): 30,
		program(workProgram, "tc"): 100, program(workProgram, "bare tc"): 30,
		forward("generic", fewStations): 500, forward("generic", manyStations): 1000,
		program(workProgram+oneCore, "generic"): 60, program(workProgram+twoCores, "generic"): 61,
		program(workProgram+oneCore, "tc"): 60, program(workProgram+twoCores, "tc"): 90,
		program(workProgram+oneCore, "bare tc"): 30, program(workProgram+twoCores, "bare tc"): 44,
	})
	all := judgeBudgets(f)
	for _, c := range []struct {
		what, engine string
		value        float64
		verdict      string
	}{
		{"in times a bare redirect's", "generic", 1.04, met},
		{"in times a bare redirect's", "XDP", 2, met},
		{"time per frame, in times", "tc", 8.0 / 7, missed},
		{"time of a run", "tc", 10.0 / 3, missed},
		{"times as fast as the bridge", "tc", 1.25, missed},
		{"that calls iptables", "tc", 1.625, met},
		{"that calls iptables", "generic", 2.5, met},
		{"16,384 stations", "generic", 2, missed},
		{"the program alone: two cores", "generic", 120.0 / 61, met},
		// A bare redirect does not scale either: that is the machine.
		{"the program alone: two cores", "tc", 120.0 / 90, undecided},
	} {
		var got finding
		switch c.what {
		case "times as fast as the bridge":
			for _, f := range all {
				if f.What == c.what && f.Engine == c.engine {
					got = f
				}
			}
		default:
			got = findOne(t, all, c.what, c.engine)
		}
		if math.Abs(got.Value-c.value) > 1e-9 || got.Verdict != c.verdict {
			t.Errorf("%s, %s: %.3f %s, want %.3f %s", c.what, c.engine, got.Value, got.Verdict, c.value, c.verdict)
		}
	}
}

func TestJudgeGate(t *testing.T) {
	forward := func(input, engine string, size int) results.ID {
		return results.ID{Work: workForward, Input: input, Size: size, Stations: 2, Engine: engine, Unit: results.NsPerFrame}
	}
	tcp := func(work, engine string, unit results.Unit) results.ID {
		return results.ID{Work: work, Flows: 1, Engine: engine, Unit: unit}
	}
	f := fileOf(t, "gate", map[results.ID]float64{
		forward("roomy", viaBridge, 60): 1000, forward("roomy", "tc", 60): 800, forward("roomy", auto, 60): 500,
		forward("roomy", viaBridge, 1514): 1000, forward("roomy", "tc", 1514): 850, forward("roomy", auto, 1514): 1100,
		forward("tight", viaBridge, 60): 1000, forward("tight", auto, 60): 900,
		tcp(workTCP, viaBridge, results.BitsPerS): 8e9, tcp(workTCP, auto, results.BitsPerS): 8e9, tcp(workTCP, "generic", results.BitsPerS): 4e9,
		tcp(costOf(workTCP), viaBridge, results.NsPerKiB): 300, tcp(costOf(workTCP), auto, results.NsPerKiB): 600,
	})
	all := judgeGate(f)
	for _, c := range []struct {
		part, what, engine, verdict string
		value                       float64
	}{
		{"roomy", "64 B, 1 station", auto, met, 2},
		{"roomy", "1514 B, 1 station", auto, missed, 10.0 / 11},
		{"tight", "64 B, 1 station", auto, missed, 10.0 / 9},
		{"tcp", "1 stream, throughput", auto, met, 1},
		{"tcp", "1 stream, throughput", "generic", "", 0.5},
		{"tcp", "1 stream, forwarding", auto, missed, 0.5},
		{"roomy", "gain at 1514 B over", "tc", met, (1/0.85 - 1) / 0.25},
	} {
		var part []finding
		for _, f := range all {
			if f.Part == c.part && strings.HasPrefix(f.What, c.what) {
				part = append(part, f)
			}
		}
		got := findOne(t, part, c.what, c.engine)
		if math.Abs(got.Value-c.value) > 1e-9 || got.Verdict != c.verdict {
			t.Errorf("%s, %s, %s: %.3f %q, want %.3f %q", c.part, c.what, c.engine, got.Value, got.Verdict, c.value, c.verdict)
		}
	}
}

func TestGainKept(t *testing.T) {
	short, long := []float64{1.2, 1.22, 1.18, 1.2, 1.21, 1.19, 1.2}, []float64{1.1, 1.11, 1.09, 1.1, 1.1, 1.1, 1.1}
	iv := gainKept(short, long)
	if math.Abs(iv.Median-0.5) > 1e-9 || iv.Low >= 0.5 || iv.High <= 0.5 || iv.Low < 0.3 || iv.High > 0.8 || iv.N != 7 {
		t.Errorf("%v of %d", iv, iv.N)
	}
	if none := gainKept([]float64{1, 0.99, 1.01, 1, 1, 1}, long); keepsItsShare.judge(none) != undecided {
		t.Errorf("a share of no gain: %v", none)
	}
}

// TestCampaign runs parts that measure nothing: what is chosen runs, the file
// is gone on with, and the verdict is the exit code.
func TestCampaign(t *testing.T) {
	ran := ""
	measure := func(engine string, cost float64) func(*campaign) error {
		return func(c *campaign) error {
			ran += engine
			s := newSeries(viaBridge, results.Cell{Work: workForward, Input: results.Tight, Size: 60, Stations: 2, Unit: results.NsPerFrame})
			for range 8 {
				s.add(viaBridge, 1000)
				s.add(engine, cost)
			}
			c.progress("%d rounds, %s", s.rounds(), s.standing())
			return c.put(s)
		}
	}
	parts := []part{
		{"one", "first", time.Second, time.Second, measure("tc", 800)},
		{"two", "second", time.Second, time.Second, measure(auto, 800)},
		{"slow", "third", time.Second, time.Second, measure(auto, 1200)},
	}
	file := filepath.Join(t.TempDir(), "results.json")
	try := func(only string) (text string, err error) {
		t.Helper()
		ran = ""
		var out bytes.Buffer
		chosen, err := choose(parts, only)
		if err != nil {
			return "", err
		}
		c := &campaign{ctx: context.Background(), o: campaignOptions{out: file}, screen: newScreen(&out)}
		if err := c.open("gate"); err != nil {
			return "", err
		}
		if err := c.runParts(chosen); err != nil {
			return "", err
		}
		err = c.tell(&env{stdout: &out, stderr: &out}, judgeGate)
		return out.String(), err
	}
	if _, err := try("one,nonsense"); err == nil || !strings.Contains(err.Error(), `"nonsense": expected some of one, two, slow`) {
		t.Errorf("an unknown part: %v", err)
	}
	if _, err := try("one"); err == nil || ran != "tc" {
		t.Errorf("one: ran %q, %v; without auto nothing is judged", ran, err)
	}
	text, err := try("two")
	if err != nil || ran != auto || !strings.Contains(text, ">= 1.15") {
		t.Errorf("two: ran %q, %v\n%s", ran, err, text)
	}
	f, err := results.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Cells) != 3 {
		t.Errorf("%d cells in the file of both parts, expected 3", len(f.Cells))
	}
	if text, err = try("slow"); err == nil || !strings.Contains(err.Error(), "1 bounds missed") {
		t.Errorf("slow: %v\n%s", err, text)
	}
	doc := markdown(f, judgeGate(f))
	for _, part := range []string{
		"| part | what | tc | auto | bound | verdict |",
		"| tight | 64 B, 1 station a side | 1.25 (1.25 to 1.25) | 1.25 (1.25 to 1.25) | >= 1.15 | met |",
		"- nothing of what was measured",
	} {
		if !strings.Contains(doc, part) {
			t.Errorf("no %q in\n%s", part, doc)
		}
	}
	if f, err = results.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	doc = markdown(f, judgeGate(f))
	for _, part := range []string{"| >= 1.15 | **missed** |", "- auto, tight, 64 B, 1 station a side: 0.83 (0.83 to 0.83)"} {
		if !strings.Contains(doc, part) {
			t.Errorf("no %q in\n%s", part, doc)
		}
	}
	if err := os.WriteFile(file, []byte(`{"format": "other"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := try("two"); err == nil || !strings.Contains(err.Error(), "format") {
		t.Errorf("a file of another kind: %v", err)
	}
}

func TestCampaignUsage(t *testing.T) {
	for want, args := range map[string][]string{
		`no part "x"`:               {"gate", "--only", "x"},
		"--in goes with none of":    {"budgets", "--in", "f", "--only", "cores"},
		"--json or --markdown":      {"gate", "--json", "--markdown"},
		"unexpected argument \"y\"": {"budgets", "y"},
	} {
		var out, errs bytes.Buffer
		if code := run(context.Background(), args, &env{stdout: &out, stderr: &errs}); code != exitUsage || !strings.Contains(errs.String(), want) {
			t.Errorf("%v: exit code %d, %s; want %q", args, code, errs.String(), want)
		}
	}
	var out bytes.Buffer
	if code := run(context.Background(), []string{"gate", "--help"}, &env{stdout: &out, stderr: &out}); code != exitFine || !strings.Contains(out.String(), "latency") {
		t.Errorf("exit code %d, %s", code, out.String())
	}
}

func TestTrail(t *testing.T) {
	var tr trail
	tr.saw("tc")
	if got := tr.words(); got != "used tc" {
		t.Errorf("%q", got)
	}
	tr.saw("generic")
	tr.settled = 1500 * time.Millisecond
	if got := tr.words(); got != "used generic 50%, tc 50% after 1.5 s of load" {
		t.Errorf("%q", got)
	}
}

func TestRoundsUntil(t *testing.T) {
	c := &campaign{ctx: context.Background()}
	more := c.roundsUntil(time.Now().Add(-time.Hour))
	if !more() || more() {
		t.Error("without time there is one round")
	}
	n := 0
	for more := c.roundsUntil(time.Now().Add(20 * time.Millisecond)); more(); n++ {
		time.Sleep(time.Millisecond)
	}
	if n < 1 || n > 20 {
		t.Errorf("%d rounds of a millisecond in 20", n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if c.ctx = ctx; c.roundsUntil(time.Now().Add(time.Hour))() {
		t.Error("goes on although interrupted")
	}
}

// TestCampaignsMeasure runs a part of every kind for as short as it can be, with the real
// daemon, and looks at what the numbers are of, not at their size.
func TestCampaignsMeasure(t *testing.T) {
	rig.Require(t)
	s := newStage(t)
	t.Setenv("TMPDIR", s.temp)
	for _, campaign := range []struct {
		name  string
		cells map[string][]string // by the part's name, parts of what is found
	}{
		{"budgets", map[string][]string{"forward": {"bare redirect's"}, "program": {"time of a run"}, "cores": {"two cores do"}}},
		{"gate", map[string][]string{"tight": {"64 B, 1 station", "1514 B"}, "routed": {"to the other", "from the other"}}},
	} {
		var out, errs bytes.Buffer
		for part, want := range campaign.cells {
			t.Run(campaign.name+" "+part, func(t *testing.T) {
				out.Reset()
				errs.Reset()
				args := []string{campaign.name, "--only", part, "--quick", "--for", "1s", "--json", "--xdpl2", s.daemon}
				code := run(t.Context(), args, &env{stdout: &out, stderr: &errs})
				if code != exitFailed && code != exitFine { // a round or two decide nothing
					t.Errorf("exit code %d", code)
				}
				var got judgement
				if err := json.Unmarshal(out.Bytes(), &got); err != nil {
					t.Fatalf("%v\n%s\n%s", err, out.String(), errs.String())
				}
				for _, w := range want {
					if !slices.ContainsFunc(got.Findings, func(f finding) bool { return strings.Contains(f.What, w) && f.Value > 0 }) {
						t.Errorf("nothing found of %q among %+v", w, got.Findings)
					}
				}
			})
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.temp, "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAudit(t *testing.T) {
	cell := func(engine string, size int) results.ID {
		return results.ID{Work: workForward, Input: results.Tight, Size: size, Stations: 2, Engine: engine, Unit: results.NsPerFrame}
	}
	f := fileOf(t, "gate", map[results.ID]float64{
		cell(viaBridge, 60): 1000, cell(again, 60): 1020, cell(viaBridge, 128): 1000, cell(again, 128): 990, cell("tc", 60): 500,
	})
	checks := auditOf(f)
	if len(checks) != 1 || !checks[0].Passed || checks[0].Value != "0.98 to 1.01 in 2 cells" {
		t.Errorf("%+v", checks)
	}
	f = fileOf(t, "gate", map[results.ID]float64{cell(viaBridge, 60): 1000, cell(again, 60): 1100})
	if checks := auditOf(f); len(checks) != 1 || checks[0].Passed {
		t.Errorf("%+v", checks)
	}
	if checks := auditOf(fileOf(t, "gate", map[results.ID]float64{cell("tc", 60): 500})); len(checks) != 0 {
		t.Errorf("nothing to audit: %+v", checks)
	}
}
