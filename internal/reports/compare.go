// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

// Change is what became of a number.
type Change string

// Changes.
const (
	Better Change = "better"
	Worse  Change = "worse"
	Noise  Change = "within the noise"
	Unsure Change = "cannot tell" // too few runs, or a number that is zero within its scatter
)

// Difference is a cell that both runs have.
type Difference struct {
	Work     string         `json:"work"`
	Input    string         `json:"input,omitempty"`
	Size     int            `json:"frame_bytes,omitempty"`
	Flows    int            `json:"flows,omitempty"`
	Stations int            `json:"stations,omitempty"`
	Engine   string         `json:"engine"`
	Unit     results.Unit   `json:"unit"`
	Before   float64        `json:"before"`
	After    float64        `json:"after"`
	By       string         `json:"compared_by"` // "ratio to bridge", or "value"
	Change   model.Estimate `json:"change"`      // above 1 is better
	Verdict  Change         `json:"verdict"`
	cell     *results.Cell
}

// Comparison is two runs beside each other.
type Comparison struct {
	// Setting lists what else differs: a change of these may be all there is
	// to a change of the numbers.
	Setting     []string     `json:"other_differences"`
	Differences []Difference `json:"cells"`
	OnlyOld     []string     `json:"only_old,omitempty"`
	OnlyNew     []string     `json:"only_new,omitempty"`
}

// Compare sets a run beside an older one. Where both have a cell's ratio to
// the same other engine, taken within each round, these are compared: they do
// not change with the machine's speed. Else it is the values.
func Compare(older, newer *results.File) *Comparison {
	c := &Comparison{Setting: settingDifferences(&older.Meta, &newer.Meta), Differences: []Difference{}}
	for i := range newer.Cells {
		cell := &newer.Cells[i]
		before := older.Find(cell.ID())
		if before == nil {
			c.OnlyNew = append(c.OnlyNew, cellName(cell))
			continue
		}
		c.Differences = append(c.Differences, differ(before, cell))
	}
	for i := range older.Cells {
		if newer.Find(older.Cells[i].ID()) == nil {
			c.OnlyOld = append(c.OnlyOld, cellName(&older.Cells[i]))
		}
	}
	return c
}

func differ(before, after *results.Cell) Difference {
	d := Difference{
		Work: after.Work, Input: after.Input, Size: after.Size, Flows: after.Flows, Stations: after.Stations,
		Engine: after.Engine, Unit: after.Unit, Before: before.Mean, After: after.Mean, By: "value", cell: after,
	}
	rb, ra := before.Ratio, after.Ratio
	switch {
	case rb != nil && ra != nil && rb.Of == ra.Of && rb.Low > 0 && ra.Low > 0:
		d.By = "ratio to " + ra.Of
		d.Before, d.After = rb.Value, ra.Value
		d.Change = ratioOfRatios(ra, rb)
	case before.Unit.MoreIsBetter():
		d.Change = model.Quotient(model.SampleOf(after), model.SampleOf(before))
	default:
		d.Change = model.Quotient(model.SampleOf(before), model.SampleOf(after))
	}
	// What is zero, or might be, has no quotient.
	if !(d.Change.Value > 0) || math.IsInf(d.Change.Value, 0) {
		d.Change = model.Estimate{Value: 1, Low: math.NaN(), High: math.NaN()}
	} else if d.Change.High > 10*d.Change.Value {
		d.Change.Low, d.Change.High = math.NaN(), math.NaN()
	}
	switch {
	case d.Change.Above(1):
		d.Verdict = Better
	case d.Change.Below(1):
		d.Verdict = Worse
	case d.Change.HasInterval():
		d.Verdict = Noise
	default:
		d.Verdict = Unsure
	}
	return d
}

// ratioOfRatios combines two independent intervals: on the scale of logarithms
// each side's widths add as squares.
func ratioOfRatios(a, b *results.Ratio) model.Estimate {
	v := math.Log(a.Value / b.Value)
	if a.N < 2 || b.N < 2 {
		return model.Estimate{Value: math.Exp(v), Low: math.NaN(), High: math.NaN()}
	}
	down := math.Hypot(math.Log(a.Value/a.Low), math.Log(b.High/b.Value))
	up := math.Hypot(math.Log(a.High/a.Value), math.Log(b.Value/b.Low))
	return model.Estimate{Value: math.Exp(v), Low: math.Exp(v - down), High: math.Exp(v + up)}
}

// Count returns how many cells have a verdict.
func (c *Comparison) Count(v Change) int {
	n := 0
	for _, d := range c.Differences {
		if d.Verdict == v {
			n++
		}
	}
	return n
}

// Summary says in a sentence what the comparison found.
func (c *Comparison) Summary() string {
	n := len(c.Differences)
	if n == 0 {
		return "the two runs have no cell in common"
	}
	text := fmt.Sprintf("of %d cells that both runs have, %d are better and %d worse beyond the noise, %d are within it",
		n, c.Count(Better), c.Count(Worse), c.Count(Noise))
	if few := c.Count(Unsure); few > 0 {
		text += fmt.Sprintf(", of %d it cannot be told", few)
	}
	if sure := n - c.Count(Unsure); sure >= 10 {
		text += fmt.Sprintf("; with intervals of 95%%, about %.0f of %d would be beyond the noise by chance alone", math.Ceil(0.05*float64(sure)), sure)
	}
	return text
}

// Sorted returns the differences, those beyond the noise first, the largest
// change first.
func (c *Comparison) Sorted() []Difference {
	all := slices.Clone(c.Differences)
	rank := map[Change]int{Worse: 0, Better: 1, Noise: 2, Unsure: 3}
	sort.SliceStable(all, func(i, j int) bool {
		if a, b := rank[all[i].Verdict], rank[all[j].Verdict]; a != b {
			return a < b
		}
		return math.Abs(math.Log(all[i].Change.Value)) > math.Abs(math.Log(all[j].Change.Value))
	})
	return all
}

// cellName tells which cell it is.
func cellName(c *results.Cell) string {
	text := c.Work
	if c.Input != "" && c.Input != c.Work {
		text += " " + c.Input
	}
	for _, d := range dimensions {
		if n := d.of(c); n > 0 {
			text += fmt.Sprintf(" %d %s", n, d.words)
		}
	}
	if c.Link > 0 {
		text += " " + model.Rate(c.Link)
	}
	return text + ", " + c.Engine + " (" + string(c.Unit) + ")"
}

func settingDifferences(older, newer *results.Meta) []string {
	var all []string
	note := func(what, a, b string) {
		if a != b {
			all = append(all, fmt.Sprintf("%s: %q, was %q", what, b, a))
		}
	}
	a, b := older.Machine, newer.Machine
	note("CPU", a.CPU, b.CPU)
	note("cores", fmt.Sprint(a.Cores), fmt.Sprint(b.Cores))
	note("kernel", a.Kernel, b.Kernel)
	note("system", a.System, b.System)
	note("clock", a.Clocksource, b.Clocksource)
	note("governor", a.Governor, b.Governor)
	note("NIC", a.NIC, b.NIC)
	note("xdpl2-bench", older.Tool, newer.Tool)
	note("xdpl2", older.Daemon, newer.Daemon)
	var keys []string
	for key := range older.Set {
		keys = append(keys, key)
	}
	for key := range newer.Set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		note(key, older.Set[key], newer.Set[key])
	}
	for _, m := range []*results.Meta{older, newer} {
		for _, check := range m.Failed() {
			which := "newer"
			if m == older {
				which = "older"
			}
			all = append(all, fmt.Sprintf("the %s run failed its check %q: %s, expected %s", which, check.Name, check.Value, check.Expected))
		}
	}
	return all
}

// Name tells which cell was compared.
func (d *Difference) Name() string { return cellName(d.cell) }
