// SPDX-License-Identifier: Apache-2.0

package results

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// name is what engines and kinds of work may be called: they become columns,
// file names and keys.
var name = regexp.MustCompile(`^[a-z0-9][a-z0-9 _.+-]{0,39}$`)

// machinePath finds a path with at least two parts.
var machinePath = regexp.MustCompile(`(^|[\s=,:"'(])~?/[A-Za-z0-9._-]+/`)

// checker collects what is wrong.
type checker struct{ errs []error }

func (c *checker) wrong(field string, value any, expected string) {
	format := "%s: %v: expected %s"
	if _, ok := value.(string); ok {
		format = "%s: %q: expected %s"
	}
	c.errs = append(c.errs, fmt.Errorf(format, field, value, expected))
}

// number checks that a number is one, and in a range.
func (c *checker) number(field string, v, low, high float64) {
	if math.IsNaN(v) || v < low || v > high || math.IsInf(v, 0) {
		expected := fmt.Sprintf("a number from %g to %g", low, high)
		switch {
		case math.IsInf(low, -1) && math.IsInf(high, 1):
			expected = "a number"
		case math.IsInf(high, 1):
			expected = fmt.Sprintf("a number of at least %g", low)
		}
		c.wrong(field, v, expected)
	}
}

// shown checks a text for what must not be shown around.
func (c *checker) shown(field, text string) {
	if machinePath.MatchString(text) {
		c.wrong(field, text, "no path of the machine")
	}
}

// Validate tells everything that is wrong with a file, each error with its
// field.
func (f *File) Validate() error {
	c := &checker{}
	if f.Format != Format {
		c.wrong("format", f.Format, fmt.Sprintf("%q", Format))
	}
	if f.Version != Version {
		c.wrong("version", f.Version, fmt.Sprintf("%d, the version that this xdpl2-bench reads", Version))
	}
	f.Meta.check(c)
	seen := map[ID]int{}
	for i := range f.Cells {
		cell := &f.Cells[i]
		field := fmt.Sprintf("cells[%d]", i)
		cell.check(c, field)
		if first, twice := seen[cell.ID()]; twice {
			c.errs = append(c.errs, fmt.Errorf("%s: the same cell as cells[%d]: expected each cell once", field, first))
		}
		seen[cell.ID()] = i
	}
	return errors.Join(c.errs...)
}

func (m *Meta) check(c *checker) {
	if !name.MatchString(m.Command) {
		c.wrong("meta.command", m.Command, "the name of a command")
	}
	c.number("meta.seconds", m.Seconds, 0, math.Inf(1))
	if m.Machine.Cores < 0 {
		c.wrong("meta.machine.cores", m.Machine.Cores, "a number of cores")
	}
	for key, value := range m.Set {
		if !name.MatchString(key) {
			c.wrong("meta.settings", key, "names of lower-case letters, digits and _.+-")
		}
		c.shown("meta.settings."+key, value)
	}
	for i, text := range m.LeftOut {
		c.shown(fmt.Sprintf("meta.left_out[%d]", i), text)
	}
	for i, check := range m.Audit {
		field := fmt.Sprintf("meta.audit[%d]", i)
		for _, part := range []struct{ name, text string }{
			{"name", check.Name}, {"value", check.Value}, {"expected", check.Expected},
		} {
			if part.text == "" {
				c.wrong(field+"."+part.name, part.text, "a text")
			}
			c.shown(field+"."+part.name, part.text)
		}
	}
}

func (cell *Cell) check(c *checker, field string) {
	at := func(name string) string { return field + "." + name }
	for _, text := range []struct {
		name, value string
		optional    bool
	}{{"work", cell.Work, false}, {"engine", cell.Engine, false}, {"input", cell.Input, true}} {
		if !name.MatchString(text.value) && (text.value != "" || !text.optional) {
			c.wrong(at(text.name), text.value, "lower-case letters, digits, spaces and _.+-")
		}
	}
	if cell.Size != 0 && (cell.Size < 14 || cell.Size > 65535) {
		c.wrong(at("frame_bytes"), cell.Size, "14 to 65535, or none")
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"flows", cell.Flows}, {"stations", cell.Stations}} {
		if n.value < 0 {
			c.wrong(at(n.name), n.value, "a number of at least 0")
		}
	}
	if _, known := units[cell.Unit]; !known {
		var all []string
		for u := range units {
			all = append(all, string(u))
		}
		slices.Sort(all)
		c.wrong(at("unit"), string(cell.Unit), "one of "+strings.Join(all, ", "))
	}
	all := math.Inf(1)
	c.number(at("link_bit_per_s"), cell.Link, 0, all)
	c.number(at("mean"), cell.Mean, -all, all)
	c.number(at("sd"), cell.SD, 0, all)
	if cell.Median != nil {
		c.number(at("median"), *cell.Median, -all, all)
	}
	if iv := cell.Interval; iv != nil {
		c.number(at("interval.low"), iv.Low, -all, all)
		c.number(at("interval.high"), iv.High, iv.Low, all)
	}
	if cell.Loss != nil {
		c.number(at("loss"), *cell.Loss, 0, 1)
	}
	if cell.CPU != nil {
		c.number(at("cpu"), *cell.CPU, 0, all)
	}
	for i, v := range cell.Cores {
		c.number(fmt.Sprintf("%s[%d]", at("cpu_per_core"), i), v, 0, all)
	}
	cell.checkSamples(c, at)
	cell.checkQuantiles(c, at)
	if r := cell.Ratio; r != nil {
		if !name.MatchString(r.Of) {
			c.wrong(at("ratio.of"), r.Of, "the name of an engine")
		}
		c.number(at("ratio.value"), r.Value, 0, all)
		c.number(at("ratio.low"), r.Low, 0, r.Value)
		c.number(at("ratio.high"), r.High, r.Value, all)
	}
	c.shown(at("note"), cell.Note)
}

// checkSamples also finds a summary that is not that of the samples.
func (cell *Cell) checkSamples(c *checker, at func(string) string) {
	if cell.N < 1 || cell.N < len(cell.Samples) {
		c.wrong(at("n"), cell.N, fmt.Sprintf("at least 1, and no fewer than the %d samples", len(cell.Samples)))
	}
	if len(cell.Samples) == 0 {
		return
	}
	for i, v := range cell.Samples {
		c.number(fmt.Sprintf("%s[%d]", at("samples"), i), v, math.Inf(-1), math.Inf(1))
	}
	low, high := slices.Min(cell.Samples), slices.Max(cell.Samples)
	slack := 1e-9 * max(math.Abs(low), math.Abs(high))
	if cell.Mean < low-slack || cell.Mean > high+slack {
		c.wrong(at("mean"), cell.Mean, fmt.Sprintf("between the samples' lowest, %g, and highest, %g", low, high))
	}
}

func (cell *Cell) checkQuantiles(c *checker, at func(string) string) {
	for i, q := range cell.Quantiles {
		field := fmt.Sprintf("%s[%d]", at("quantiles"), i)
		c.number(field+".p", q.P, 0, 1)
		c.number(field+".value", q.Value, math.Inf(-1), math.Inf(1))
		if i > 0 {
			if before := cell.Quantiles[i-1]; q.P <= before.P || q.Value < before.Value {
				c.errs = append(c.errs, fmt.Errorf("%s: p %g: %g after p %g: %g: expected quantiles in rising order", field, q.P, q.Value, before.P, before.Value))
			}
		}
	}
}
