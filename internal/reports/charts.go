// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

// Charts makes the pictures that a file has the numbers for. The analysis may
// be nil.
func Charts(f *results.File, a *model.Analysis) []*Chart {
	var cells []*results.Cell
	for i := range f.Cells {
		cells = append(cells, &f.Cells[i])
	}
	all := panels(cells)
	var charts []*Chart
	add := func(more ...*Chart) {
		for _, c := range more {
			if c != nil {
				charts = append(charts, c)
			}
		}
	}
	for _, p := range all {
		if forwards(p) {
			add(throughput(p), gain(p))
		}
	}
	for _, p := range all {
		switch {
		case forwards(p), p.work == "offered":
		case p.unit == results.Microsecond || p.unit == results.Millisecond:
			add(roundTrips(p), distribution(p))
		default:
			add(plain(p), gain(p))
		}
	}
	if a != nil {
		for i := range a.Series {
			add(decomposition(&a.Series[i]), lines(&a.Series[i]))
		}
	}
	return uniquely(charts)
}

// uniquely gives charts of the same title different names.
func uniquely(charts []*Chart) []*Chart {
	seen := map[string]int{}
	for _, c := range charts {
		c.Name = slug(c.Title)
		seen[c.Name]++
		if n := seen[c.Name]; n > 1 {
			c.Name += fmt.Sprintf("-%d", n)
		}
	}
	return charts
}

func forwards(p *panel) bool {
	return (p.work == "forward" || p.work == "wire") && (p.unit == results.NsPerFrame || p.unit == results.FramesPerS)
}

// engineChart is a chart whose colours are engines.
func engineChart(title, caption string, engines []string, build func(*Theme) (*plot.Plot, error)) *Chart {
	return &Chart{
		Title: title, Caption: caption, labels: engines, build: build,
		colours: func(t *Theme, i int) color.Color { return t.engine(engines[i], i) },
	}
}

// marks makes a row for each engine.
func (p *panel) marks(t *Theme, engines []string, value func(*results.Cell) mark) []row {
	var rows []row
	for i, e := range engines {
		r := row{Color: t.engine(e, i)}
		for _, place := range p.places {
			m := missing
			if c := p.cells[e][place]; c != nil {
				m = value(c)
			}
			r.Marks = append(r.Marks, m)
		}
		rows = append(rows, r)
	}
	return rows
}

// flatMarks makes a row of engines.
func (p *panel) flatMarks(t *Theme, value func(*results.Cell) mark) []row {
	rows := make([]row, len(p.engines))
	for i, e := range p.engines {
		rows[i].Color = t.engine(e, i)
		rows[i].Marks = make([]mark, len(p.engines))
		for j := range rows[i].Marks {
			rows[i].Marks[j] = missing
		}
		rows[i].Marks[i] = value(p.cells[e][p.places[0]])
	}
	return rows
}

// bars is a chart of a panel.
func (p *panel) bars(title, caption, yLabel string, g grouped, value func(*results.Cell) mark) *Chart {
	if p.flat() {
		c := engineChart(titled(title, p.conditions()), caption, p.engines, func(t *Theme) (*plot.Plot, error) {
			out := newPlot(t, "", yLabel)
			// Each engine has a place of its own, and all of it.
			for _, r := range p.flatMarks(t, value) {
				g.draw(out, t, []row{r})
			}
			categories(out, p.engines)
			return out, nil
		})
		c.labels = nil
		return c
	}
	return engineChart(titled(title, p.conditions()), caption, p.engines, func(t *Theme) (*plot.Plot, error) {
		out := newPlot(t, p.along.name, yLabel)
		g.draw(out, t, p.marks(t, p.engines, value))
		categories(out, p.names())
		return out, nil
	})
}

// spread is a mean with one standard deviation to both sides.
func spread(mean, sd float64, n int) mark {
	if n < 2 {
		return mark{Value: mean, Low: math.NaN(), High: math.NaN()}
	}
	return mark{Value: mean, Low: mean - sd, High: mean + sd}
}

const deviations = "Error bars are one standard deviation to each side."

func throughput(p *panel) *Chart {
	return p.forwarding().bars("Throughput", "Frames a second that one core forwards. "+deviations, "frames/s", grouped{}, func(c *results.Cell) mark {
		if c.Unit == results.FramesPerS {
			return spread(c.Mean, c.SD, c.N)
		}
		rate := 1e9 / c.Mean
		return spread(rate, rate*c.SD/c.Mean, c.N)
	})
}

func plain(p *panel) *Chart {
	title := map[string]string{"tcp": "TCP throughput", "calls": "What a step costs", "forward": "Forwarding", "wire": "Forwarding"}[p.work]
	if title == "" {
		title = p.work
	}
	if p.unit != results.BitsPerS && p.work != "calls" {
		title += ", " + string(p.unit)
	}
	return p.bars(title, deviations, string(p.unit), grouped{}, func(c *results.Cell) mark { return spread(c.Mean, c.SD, c.N) })
}

func roundTrips(p *panel) *Chart {
	return p.bars(map[bool]string{true: "Round trip time", false: "Round trip time, " + p.work}[p.work == "rtt" || p.work == "latency"],
		"Mean. "+deviations+" The axis does not begin at zero.", string(p.unit), grouped{dots: true},
		func(c *results.Cell) mark { return spread(c.Mean, c.SD, c.N) })
}

// gain compares to the bridge, or to what the cells' own ratios name.
func gain(p *panel) *Chart {
	values := map[*results.Cell]model.Estimate{}
	var engines []string
	of := results.EngineBridge
	for _, e := range p.forwarding().engines {
		found := false
		for place, c := range p.cells[e] {
			switch base := p.cells[results.EngineBridge][place]; {
			case c.Ratio != nil:
				of = c.Ratio.Of
				values[c] = model.Estimate{Value: c.Ratio.Value, Low: c.Ratio.Low, High: c.Ratio.High}
			case base != nil && base != c && p.unit.MoreIsBetter():
				values[c] = model.Quotient(model.SampleOf(c), model.SampleOf(base))
			case base != nil && base != c:
				values[c] = model.Quotient(model.SampleOf(base), model.SampleOf(c))
			default:
				continue
			}
			found = true
		}
		if found {
			engines = append(engines, e)
		}
	}
	if len(values) == 0 || p.flat() && len(values) < 2 {
		return nil
	}
	title := "Gain over the " + of
	if len(engines) == 1 {
		title = "Gain of " + engines[0] + " over the " + of
	}
	if !forwards(p) {
		title += ", " + p.work
	}
	return engineChart(titled(title, p.conditions()), "In percent; below the dashed line it is slower. Error bars are intervals of 95%.", engines, func(t *Theme) (*plot.Plot, error) {
		out := newPlot(t, p.along.name, "percent")
		grouped{dots: true, zero: true}.draw(out, t, p.marks(t, engines, func(c *results.Cell) mark {
			e, ok := values[c]
			if !ok {
				return missing
			}
			return percentMark(e)
		}))
		categories(out, p.names())
		return out, nil
	})
}

// percentMark is a quotient as a change in percent.
func percentMark(e model.Estimate) mark {
	return mark{Value: 100 * (e.Value - 1), Low: 100 * (e.Low - 1), High: 100 * (e.High - 1)}
}
