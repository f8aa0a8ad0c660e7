// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"image/color"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// mark is a value at a place on the x axis. Its ends are NaN if they are not
// known; missing marks are not drawn.
type mark struct {
	Value, Low, High float64
	Missing          bool
}

// missing is a mark that is not there.
var missing = mark{Value: math.NaN(), Missing: true}

// row is a mark for each place, in one colour.
type row struct {
	Color color.Color
	Marks []mark
}

// grouped draws rows of marks side by side at each place: as bars or as dots,
// with their error bars. The plotting library's own bars are placed in lengths
// and its error bars in data, so they do not meet.
type grouped struct {
	rows  []row
	stack [][]row // in place of rows: segments, the lowest first
	feet  bool    // of stacks: in the colour of the highest segment
	dots  bool
	zero  bool // with a line at zero
	ink   color.Color
}

// draw adds rows to a plot.
func (g grouped) draw(p *plot.Plot, t *Theme, rows []row) {
	g.rows, g.ink = rows, t.Ink
	if g.zero {
		p.Add(level{0, t.Ink})
	}
	p.Add(&g)
}

// layers returns the rows that lie on each other at each of the places in a
// group.
func (g *grouped) layers() [][]row {
	if g.stack != nil {
		return g.stack
	}
	var all [][]row
	for _, r := range g.rows {
		all = append(all, []row{r})
	}
	return all
}

// Plot implements plot.Plotter.
func (g *grouped) Plot(c draw.Canvas, p *plot.Plot) {
	trX, trY := p.Transforms(&c)
	layers := g.layers()
	width := 0.78 / float64(len(layers))
	for i, segments := range layers {
		left := -0.39 + float64(i)*width
		for place := range segments[0].Marks {
			base, x0, x1 := 0.0, float64(place)+left+width*0.06, float64(place)+left+width*0.94
			for _, seg := range segments {
				m := seg.Marks[place]
				if m.Missing {
					break
				}
				middle := trX((x0 + x1) / 2)
				if g.dots {
					c.DrawGlyph(draw.GlyphStyle{Color: seg.Color, Radius: 3, Shape: draw.CircleGlyph{}}, vg.Point{X: middle, Y: trY(m.Value)})
				} else {
					low, high := trY(base), trY(base+m.Value)
					c.FillPolygon(seg.Color, c.ClipPolygonXY([]vg.Point{
						{X: trX(x0), Y: low}, {X: trX(x1), Y: low}, {X: trX(x1), Y: high}, {X: trX(x0), Y: high},
					}))
				}
				ink := g.ink
				if g.dots {
					ink = seg.Color
				}
				errorBar(&c, ink, middle, trY, base+m.Low, base+m.High)
				base += m.Value
			}
			if g.feet && !segments[0].Marks[place].Missing {
				y := trY(0)
				c.FillPolygon(segments[len(segments)-1].Color, []vg.Point{
					{X: trX(x0), Y: y}, {X: trX(x1), Y: y}, {X: trX(x1), Y: y + 3}, {X: trX(x0), Y: y + 3},
				})
			}
		}
	}
}

// errorBar draws what its ends enclose; none if one is not known.
func errorBar(c *draw.Canvas, ink color.Color, x vg.Length, trY func(float64) vg.Length, low, high float64) {
	if math.IsNaN(low) || math.IsNaN(high) {
		return
	}
	style := draw.LineStyle{Color: ink, Width: 0.9}
	y0, y1 := trY(low), trY(high)
	c.StrokeLines(style, c.ClipLinesXY(
		[]vg.Point{{X: x, Y: y0}, {X: x, Y: y1}},
		[]vg.Point{{X: x - 2.5, Y: y0}, {X: x + 2.5, Y: y0}},
		[]vg.Point{{X: x - 2.5, Y: y1}, {X: x + 2.5, Y: y1}})...)
}

// DataRange implements plot.DataRanger. Bars begin at zero.
func (g *grouped) DataRange() (xmin, xmax, ymin, ymax float64) {
	ymin, ymax = math.Inf(1), math.Inf(-1)
	if !g.dots {
		ymin, ymax = 0, 0
	}
	places := 0
	for _, segments := range g.layers() {
		places = max(places, len(segments[0].Marks))
		for place := range segments[0].Marks {
			base := 0.0
			for _, seg := range segments {
				m := seg.Marks[place]
				if m.Missing {
					break
				}
				for _, v := range []float64{m.Value, m.Low, m.High} {
					if !math.IsNaN(v) {
						ymin, ymax = min(ymin, base+v), max(ymax, base+v)
					}
				}
				base += m.Value
			}
		}
	}
	return -0.5, float64(places) - 0.5, ymin, ymax
}

// level is a horizontal line across the plot.
type level struct {
	at  float64
	ink color.Color
}

// Plot implements plot.Plotter.
func (l level) Plot(c draw.Canvas, p *plot.Plot) {
	_, trY := p.Transforms(&c)
	c.StrokeLine2(draw.LineStyle{Color: l.ink, Width: 1, Dashes: []vg.Length{4, 3}}, c.Min.X, trY(l.at), c.Max.X, trY(l.at))
}

// DataRange implements plot.DataRanger.
func (l level) DataRange() (xmin, xmax, ymin, ymax float64) {
	return math.Inf(1), math.Inf(-1), l.at, l.at
}
