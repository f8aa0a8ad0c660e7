// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/results"
)

func cell(unit results.Unit, mean, sd float64, n int) results.Cell {
	return results.Cell{Work: "x", Engine: "tc", Unit: unit, Mean: mean, SD: sd, N: n}
}

func TestVerdicts(t *testing.T) {
	ratio := func(c results.Cell, v, low, high float64) results.Cell {
		c.Ratio = &results.Ratio{Of: "bridge", Value: v, Low: low, High: high, N: 9}
		return c
	}
	other := ratio(cell(results.NsPerFrame, 100, 1, 9), 1.5, 1.4, 1.6)
	other.Ratio.Of = "tc"
	for _, c := range []struct {
		name          string
		before, after results.Cell
		want          Change
		change        float64
		by            string
	}{
		{"a cost that fell", cell(results.NsPerFrame, 100, 1, 9), cell(results.NsPerFrame, 80, 1, 9), Better, 1.25, "value"},
		{"a cost that rose", cell(results.NsPerFrame, 100, 1, 9), cell(results.NsPerFrame, 125, 1, 9), Worse, 0.8, "value"},
		{"a rate that rose", cell(results.BitsPerS, 100, 1, 9), cell(results.BitsPerS, 125, 1, 9), Better, 1.25, "value"},
		{"a rate that fell", cell(results.BitsPerS, 100, 1, 9), cell(results.BitsPerS, 80, 1, 9), Worse, 0.8, "value"},
		{"noise", cell(results.NsPerFrame, 100, 20, 9), cell(results.NsPerFrame, 98, 20, 9), Noise, 100.0 / 98, "value"},
		{"one run", cell(results.NsPerFrame, 100, 0, 1), cell(results.NsPerFrame, 50, 0, 1), Unsure, 2, "value"},
		{"about zero", cell(results.NsPerCall, 0.1, 3, 5), cell(results.NsPerCall, 0.2, 3, 5), Unsure, 0.5, "value"},
		{"zero", cell(results.Count, 0, 0, 5), cell(results.Count, 0, 0, 5), Unsure, 1, "value"},
		// The machine became twice as fast, and the way of forwarding stayed.
		{"pairs, same", ratio(cell(results.NsPerFrame, 100, 1, 9), 1.5, 1.45, 1.55), ratio(cell(results.NsPerFrame, 50, 1, 9), 1.51, 1.46, 1.56), Noise, 1.51 / 1.5, "ratio to bridge"},
		{"pairs, worse", ratio(cell(results.NsPerFrame, 100, 1, 9), 1.5, 1.45, 1.55), ratio(cell(results.NsPerFrame, 50, 1, 9), 1.2, 1.15, 1.25), Worse, 0.8, "ratio to bridge"},
		{"pairs with others", other, ratio(cell(results.NsPerFrame, 80, 1, 9), 1.2, 1.1, 1.3), Better, 1.25, "value"},
	} {
		older, newer := results.New(results.Meta{Command: "x"}), results.New(results.Meta{Command: "x"})
		older.Cells, newer.Cells = []results.Cell{c.before}, []results.Cell{c.after}
		d := Compare(older, newer).Differences[0]
		if d.Verdict != c.want || d.By != c.by || d.Change.Value < c.change-1e-9 || d.Change.Value > c.change+1e-9 {
			t.Errorf("%s: %s by %s, change %v, want %s by %s, %v", c.name, d.Verdict, d.By, d.Change, c.want, c.by, c.change)
		}
		if _, err := json.Marshal(d); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestCompare(t *testing.T) {
	older, newer := measured(t, 1), measured(t, 1.3)
	newer.Meta.Machine.Kernel = "6.19"
	newer.Meta.Set["rounds"] = "9"
	older.Meta.Audit[0].Passed = false
	older.Cells[len(older.Cells)-1].Engine = "vlan pop"
	c := Compare(older, newer)
	setting := strings.Join(c.Setting, "\n")
	for _, want := range []string{`kernel: "6.19", was "6.18"`, `rounds: "9", was "6"`, `the older run failed its check "floor"`} {
		if !strings.Contains(setting, want) {
			t.Errorf("no %q in\n%s", want, setting)
		}
	}
	if len(c.OnlyOld) != 1 || len(c.OnlyNew) != 1 || !strings.Contains(c.OnlyOld[0], "vlan pop") {
		t.Errorf("only in one: %q, %q", c.OnlyOld, c.OnlyNew)
	}
	if c.Count(Worse) != 3 || c.Count(Better) != 0 {
		t.Errorf("%s", c.Summary())
	}
	sorted := c.Sorted()
	if len(sorted) != len(c.Differences) || sorted[0].Verdict != Worse || sorted[2].Engine != "generic" {
		t.Errorf("first %+v", sorted[0])
	}
	if s := c.Summary(); !strings.Contains(s, "0 are better and 3 worse beyond the noise") || !strings.Contains(s, "by chance alone") {
		t.Error(s)
	}
	if s := Compare(results.New(results.Meta{}), newer).Summary(); s != "the two runs have no cell in common" {
		t.Error(s)
	}
}
