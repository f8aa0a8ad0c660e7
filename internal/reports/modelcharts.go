// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

// decomposition stacks what each path pays besides on what all share.
func decomposition(s *model.Series) *Chart {
	if len(s.Split) == 0 {
		return nil
	}
	var engines, sizes []string
	for _, part := range s.Split[0].Parts {
		engines = append(engines, part.Engine)
	}
	for _, sp := range s.Split {
		sizes = append(sizes, fmt.Sprint(sp.Size))
	}
	shared, caption := "shared", "What a frame costs: receive and drop, which was measured and which every path pays, and what each path pays besides."
	if !s.SharedMeasured {
		shared = "at most shared"
		caption = "What a frame costs. The shared part was not measured: it is at most what the cheapest path costs, so the coloured parts show the differences."
	}
	labels := append([]string{shared}, engines...)
	return &Chart{
		Title: titled("Cost decomposition", s.Name), Caption: caption + " Error bars are intervals of 95%.", labels: labels,
		colours: func(t *Theme, i int) color.Color {
			if i == 0 {
				return sharedColour(t)
			}
			return t.engine(engines[i-1], i-1)
		},
		build: func(t *Theme) (*plot.Plot, error) {
			g := &grouped{ink: t.Ink, feet: true}
			for i, e := range engines {
				base, top := row{Color: sharedColour(t)}, row{Color: t.engine(e, i)}
				for _, sp := range s.Split {
					part := sp.Parts[i]
					// A path that costs less than what is shared (by noise) has no top.
					diff := max(part.Diff.Value, 0)
					base.Marks = append(base.Marks, mark{Value: part.Cost.Value - diff, Low: math.NaN(), High: math.NaN()})
					top.Marks = append(top.Marks, mark{Value: diff, Low: part.Diff.Low, High: part.Diff.High})
				}
				g.stack = append(g.stack, []row{base, top})
			}
			out := newPlot(t, "frame size (bytes)", "ns/frame")
			out.Add(g)
			categories(out, sizes)
			return out, nil
		},
	}
}

func sharedColour(t *Theme) color.Color { return mix(t.Background, t.Ink, 0.22) }

// lines draws the fitted costs and the measured ones.
func lines(s *model.Series) *Chart {
	if len(s.Paths) == 0 {
		return nil
	}
	var engines []string
	points := map[string]plotter.XYs{}
	for _, p := range s.Paths {
		engines = append(engines, p.Engine)
	}
	for _, b := range s.Bounds {
		points[b.Engine] = append(points[b.Engine], plotter.XY{X: float64(b.Size), Y: b.Cost.Value})
	}
	caption := "Dots are measured, lines are C(L) = a + bL by least squares. The axis does not begin at zero."
	c := engineChart(titled("Cost by frame size, and fitted lines", s.Name), caption, engines, func(t *Theme) (*plot.Plot, error) {
		out := newPlot(t, "frame size (bytes)", "ns/frame")
		out.X.Tick.Marker = shortTicks{}
		for i, p := range s.Paths {
			l, err := plotter.NewLine(plotter.XYs{{X: p.Line.From, Y: p.Line.At(p.Line.From)}, {X: p.Line.To, Y: p.Line.At(p.Line.To)}})
			if err != nil {
				return nil, err
			}
			l.Color, l.Width = t.engine(p.Engine, i), 1.5
			out.Add(l)
			if len(points[p.Engine]) == 0 {
				continue
			}
			dots, err := plotter.NewScatter(points[p.Engine])
			if err != nil {
				return nil, err
			}
			dots.Color, dots.Radius, dots.Shape = t.engine(p.Engine, i), 3, draw.CircleGlyph{}
			out.Add(dots)
		}
		return out, nil
	})
	return c
}

// distribution draws the quantiles of single values.
func distribution(p *panel) *Chart {
	at := p.places[len(p.places)-1]
	var engines []string
	for _, e := range p.engines {
		if c := p.cells[e][at]; c != nil && len(c.Quantiles) > 2 && c.Quantiles[0].Value > 0 {
			engines = append(engines, e)
		}
	}
	if len(engines) == 0 {
		return nil
	}
	conditions := p.conditions()
	if len(p.places) > 1 {
		conditions = fmt.Sprintf("%d %s", at, p.along.words)
		if c := p.conditions(); c != "" {
			conditions += ", " + c
		}
	}
	return engineChart(titled("Distribution of latency", conditions), "The value below which that share of all round trips lies; the last is the longest.", engines, func(t *Theme) (*plot.Plot, error) {
		out := newPlot(t, "share of the round trips", string(p.unit))
		out.Y.Scale, out.Y.Tick.Marker = plot.LogScale{}, logTicks{}
		var names []string
		for i, e := range engines {
			var xy plotter.XYs
			for n, q := range p.cells[e][at].Quantiles {
				xy = append(xy, plotter.XY{X: float64(n), Y: q.Value})
				if i == 0 {
					names = append(names, shareName(q.P))
				}
			}
			l, dots, err := plotter.NewLinePoints(xy)
			if err != nil {
				return nil, err
			}
			l.Color, l.Width = t.engine(e, i), 1.5
			dots.Color, dots.Radius, dots.Shape = t.engine(e, i), 2.5, draw.CircleGlyph{}
			out.Add(l, dots)
		}
		categories(out, names)
		return out, nil
	})
}

func shareName(p float64) string {
	if p == 1 {
		return "max"
	}
	return fmt.Sprintf("%g%%", math.Round(p*1e5)/1e3)
}

// logTicks are 1, 2 and 5 of each decade, with short labels.
type logTicks struct{}

func (logTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for decade := math.Pow(10, math.Floor(math.Log10(low))); decade <= high; decade *= 10 {
		for _, factor := range []float64{1, 2, 5} {
			if v := decade * factor; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: short(v)})
			}
		}
	}
	return ticks
}

// changes draws how the cells of two runs differ.
func changes(c *Comparison) []*Chart {
	var charts []*Chart
	byCell := map[*results.Cell]*Difference{}
	var cells []*results.Cell
	for i := range c.Differences {
		d := &c.Differences[i]
		if d.Verdict == Unsure {
			continue
		}
		byCell[d.cell] = d
		cells = append(cells, d.cell)
	}
	for _, p := range panels(cells) {
		charts = append(charts, p.bars("Change, "+p.work+", "+string(p.unit),
			"In percent against the older run; above the dashed line it is better. Error bars are intervals of 95%.", "percent better", grouped{dots: true, zero: true},
			func(cell *results.Cell) mark { return percentMark(byCell[cell].Change) }))
	}
	return uniquely(charts)
}
