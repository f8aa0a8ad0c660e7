// SPDX-License-Identifier: Apache-2.0

package reports

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

//go:embed page.html
var pageText string

// The template escapes every text. Only the charts are markup already: the
// plotting library escapes what they say.
var pageTemplate = template.Must(template.New("page").Parse(pageText))

// Report is everything about a file, ready to be shown.
type Report struct {
	File       *results.File
	Analysis   *model.Analysis // nil if the model cannot use the file
	Comparison *Comparison     // nil without an older file
	Tool       string          // version of xdpl2-bench that makes the report
}

// Charts returns the pictures of the report.
func (r *Report) Charts() []*Chart {
	all := Charts(r.File, r.Analysis)
	if r.Comparison != nil {
		all = append(changes(r.Comparison), all...)
	}
	return all
}

// word is a field of a table.
type word struct {
	Text   string
	Number bool
}

// table is for the page.
type table struct {
	Title string
	Head  []word
	Rows  [][]word
}

// newTable takes the columns' names; those with a leading # hold numbers.
func newTable(title string, columns ...string) *table {
	t := &table{Title: title}
	for _, c := range columns {
		name, number := strings.CutPrefix(c, "#")
		t.Head = append(t.Head, word{name, number})
	}
	return t
}

func (t *table) add(fields ...string) {
	var row []word
	for i, f := range fields {
		row = append(row, word{f, i < len(t.Head) && t.Head[i].Number})
	}
	t.Rows = append(t.Rows, row)
}

type pageChart struct {
	Title, Caption string
	Light, Dark    template.HTML
}

type pageHypothesis struct {
	Title, Says string
	Evidence    []string
}

type pageSeries struct {
	Name       string
	Findings   []string
	Hypotheses []pageHypothesis
	Tables     []*table
	Notes      []string
}

type pageDifference struct {
	Cell, By, Before, After, Change, Interval, Verdict, Class string
}

type pageComparison struct {
	Summary string
	Setting []string
	Changed []pageDifference // beyond the noise
	Rest    []pageDifference
	Only    []string
}

// page is what the template shows.
type page struct {
	Title, Source, When string
	Audit               []results.Check
	Failed              int
	LeftOut             []string
	Machine, Settings   *table
	Charts              []pageChart
	Series              []pageSeries
	Remarks             []model.Remark
	Comparison          *pageComparison
	Cells               *table
	Tool                string
}

// WriteHTML writes the report as a page that needs nothing beside itself.
func (r *Report) WriteHTML(w io.Writer) error {
	m := &r.File.Meta
	p := page{
		Title: "xdpl2-bench " + m.Command, Source: m.Source, When: when(m), Audit: m.Audit, Failed: len(m.Failed()), LeftOut: m.LeftOut,
		Machine: machineTable(m), Settings: settingsTable(m), Cells: cellTable(r.File), Tool: r.Tool,
	}
	for _, c := range r.Charts() {
		pc := pageChart{Title: c.Title, Caption: c.Caption}
		for theme, to := range map[*Theme]*template.HTML{Light: &pc.Light, Dark: &pc.Dark} {
			svg, err := c.SVG(theme)
			if err != nil {
				return err
			}
			*to = template.HTML(svg)
		}
		p.Charts = append(p.Charts, pc)
	}
	if r.Analysis != nil {
		p.Remarks = r.Analysis.Remarks
		for i := range r.Analysis.Series {
			p.Series = append(p.Series, seriesPart(&r.Analysis.Series[i]))
		}
	}
	if r.Comparison != nil {
		p.Comparison = comparisonPart(r.Comparison)
	}
	return pageTemplate.Execute(w, &p)
}

func when(m *results.Meta) string {
	var parts []string
	if !m.Start.IsZero() {
		parts = append(parts, "Measured "+m.Start.UTC().Format("2006-01-02 15:04 MST"))
	}
	if m.Seconds > 0 {
		parts = append(parts, "took "+time.Duration(m.Seconds*float64(time.Second)).Round(time.Second).String())
	}
	return strings.Join(parts, ", ")
}

func machineTable(m *results.Meta) *table {
	t := &table{}
	for _, row := range [][2]string{
		{"CPU", m.Machine.CPU}, {"Cores", countText(m.Machine.Cores)}, {"Architecture", m.Machine.Arch}, {"Kernel", m.Machine.Kernel},
		{"System", m.Machine.System}, {"Clock", m.Machine.Clocksource}, {"Frequency governor", m.Machine.Governor},
		{"NIC driver", m.Machine.NIC}, {"xdpl2-bench", m.Tool}, {"xdpl2", m.Daemon},
	} {
		if row[1] != "" {
			t.add(row[0], row[1])
		}
	}
	return t
}

func settingsTable(m *results.Meta) *table {
	if len(m.Set) == 0 {
		return nil
	}
	var keys []string
	for key := range m.Set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	t := &table{}
	for _, key := range keys {
		t.add(key, m.Set[key])
	}
	return t
}

func cellTable(f *results.File) *table {
	t := newTable("", "work", "input", "#bytes", "#flows", "#stations", "engine", "#n", "#mean", "#sd", "#median", "#p99", "unit", "#loss", "#CPU", "#ratio", "of")
	for i := range f.Cells {
		c := &f.Cells[i]
		p99, ratio, of := "", "", ""
		if v, ok := c.Quantile(0.99); ok {
			p99 = figure(v)
		}
		if r := c.Ratio; r != nil {
			ratio, of = fmt.Sprintf("%.3f (%.3f to %.3f)", r.Value, r.Low, r.High), r.Of
		}
		t.add(c.Work, c.Input, countText(c.Size), countText(c.Flows), countText(c.Stations), c.Engine, fmt.Sprint(c.N), figure(c.Mean), figure(c.SD),
			optionalText(c.Median, figure), p99, string(c.Unit), optionalText(c.Loss, percentText), optionalText(c.CPU, percentText), ratio, of)
	}
	return t
}

func seriesPart(s *model.Series) pageSeries {
	out := pageSeries{Name: s.Name, Findings: s.Findings, Notes: s.Notes}
	for _, h := range s.Hypotheses {
		out.Hypotheses = append(out.Hypotheses, pageHypothesis{
			Title: fmt.Sprintf("%s, %s: %s", h.Name, h.Engine, h.Verdict), Says: h.Says, Evidence: h.Evidence,
		})
	}
	fits := newTable("C(L) = a + bL", "path", "#a (ns)", "#95%", "#b (ns/B)", "#95%", "#R²", "#off the line (ns)")
	for _, p := range s.Paths {
		l := p.Line
		fits.add(p.Engine, fmt.Sprintf("%.0f", l.A.Value), rangeText(l.A, 0), fmt.Sprintf("%.2f", l.B.Value), rangeText(l.B, 2),
			fmt.Sprintf("%.2f", l.R2), fmt.Sprintf("%.0f", l.Residual))
	}
	for i := range s.Contrasts {
		c := &s.Contrasts[i]
		fits.add("bridge - "+c.Engine, fmt.Sprintf("%.0f", c.Fixed.Value), rangeText(c.Fixed, 0), fmt.Sprintf("%.2f", c.PerByte.Value), rangeText(c.PerByte, 2),
			"", fmt.Sprintf("%.0f", c.Line().Residual))
	}
	bounds := newTable("Which bound holds", "#bytes", "path", "#cost (ns)", "#R_cpu", "#R_link", "#link used", "#headroom", "bound", "#over the bridge")
	for _, b := range s.Bounds {
		gain := ""
		if b.Gain != nil {
			gain = model.PercentGain(*b.Gain)
		}
		bounds.add(fmt.Sprint(b.Size), b.Engine, fmt.Sprintf("%.0f", b.Cost.Value), figure(b.Core.Value),
			optionalText(b.Link, figure), optionalText(b.Used, percentText), optionalText(b.Room, func(v float64) string { return fmt.Sprintf("%.2f", v) }),
			string(b.Regime), gain)
	}
	out.Tables = []*table{fits, bounds}
	if len(s.Predictions) > 0 {
		t := newTable("Predicted by the lines", "path", "#bytes", "#link", "#frames/s", "#Mb/s", "bound", "#over the bridge", "#95%", "")
		for _, p := range s.Predictions {
			gain, link, note := "", "none", ""
			if p.Engine != results.EngineBridge {
				gain = fmt.Sprintf("%+.1f%%", 100*p.Gain.Value)
			}
			if p.Link > 0 {
				link = model.Rate(p.Link)
			}
			if p.Outside {
				note = "outside of what was measured"
			}
			percent := model.Estimate{Value: 100 * p.Gain.Value, Low: 100 * p.Gain.Low, High: 100 * p.Gain.High}
			t.add(p.Engine, fmt.Sprint(p.Size), link, figure(p.Rate.Value), figure(p.Bits/1e6), string(p.Regime), gain, rangeText(percent, 1), note)
		}
		out.Tables = append(out.Tables, t)
	}
	return out
}

func comparisonPart(c *Comparison) *pageComparison {
	out := &pageComparison{Summary: c.Summary(), Setting: c.Setting}
	for _, d := range c.Sorted() {
		class := map[Change]string{Better: "good", Worse: "bad"}[d.Verdict]
		interval := ""
		if d.Change.HasInterval() {
			interval = fmt.Sprintf("%+.1f%% to %+.1f%%", 100*(d.Change.Low-1), 100*(d.Change.High-1))
		}
		list := &out.Rest
		if d.Verdict == Better || d.Verdict == Worse {
			list = &out.Changed
		}
		*list = append(*list, pageDifference{
			Cell: d.Name(), By: d.By, Before: figure(d.Before), After: figure(d.After),
			Change: fmt.Sprintf("%+.1f%%", 100*(d.Change.Value-1)), Interval: interval, Verdict: string(d.Verdict), Class: class,
		})
	}
	for _, name := range c.OnlyOld {
		out.Only = append(out.Only, name+": only in the older run")
	}
	for _, name := range c.OnlyNew {
		out.Only = append(out.Only, name+": only in the newer run")
	}
	return out
}

// figure writes a number with four digits or all that it has before the point,
// with narrow spaces between the thousands.
func figure(v float64) string {
	size := math.Abs(v)
	if size >= 1000 {
		digits := fmt.Sprintf("%.0f", size)
		for i := len(digits) - 3; i > 0; i -= 3 {
			digits = digits[:i] + "\u202f" + digits[i:]
		}
		if v < 0 {
			digits = "-" + digits
		}
		return digits
	}
	return fmt.Sprintf("%.4g", v)
}

func countText(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func optionalText(v *float64, write func(float64) string) string {
	if v == nil {
		return ""
	}
	return write(*v)
}

func percentText(v float64) string { return fmt.Sprintf("%.3g%%", 100*v) }

func rangeText(e model.Estimate, digits int) string {
	if !e.HasInterval() {
		return ""
	}
	return fmt.Sprintf("%.*f to %.*f", digits, e.Low, digits, e.High)
}
