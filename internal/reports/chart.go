// SPDX-License-Identifier: Apache-2.0

// Package reports shows results to people: charts as SVG and PNG, a page of
// HTML that needs nothing beside itself, and the comparison of two runs.
package reports

import (
	"bytes"
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Chart is one picture, drawn in any theme.
type Chart struct {
	Name    string // as a file's name
	Title   string
	Caption string
	labels  []string // of the legend, in its order
	colours func(*Theme, int) color.Color
	build   func(*Theme) (*plot.Plot, error)
}

const (
	chartWidth  = 640 * vg.Inch / 96
	chartHeight = 330 * vg.Inch / 96
	titleHeight = 20
	lineHeight  = 16
	pngDPI      = 192
)

// SVG returns the chart as an svg element.
func (c *Chart) SVG(t *Theme) ([]byte, error) {
	canvas := vgsvg.NewWith(vgsvg.UseWH(chartWidth, chartHeight))
	if err := c.draw(draw.New(canvas), t, false); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, fmt.Errorf("chart %s: %w", c.Name, err)
	}
	_, after, found := bytes.Cut(out.Bytes(), []byte("<svg"))
	if !found {
		return nil, fmt.Errorf("chart %s: the plotting library wrote no svg element", c.Name)
	}
	return append([]byte("<svg"), after...), nil
}

// WritePNG writes the chart with its title as PNG.
func (c *Chart) WritePNG(w io.Writer, t *Theme) error {
	canvas := vgimg.NewWith(vgimg.UseWH(chartWidth, chartHeight+titleHeight), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(t.Background))
	if err := c.draw(draw.New(canvas), t, true); err != nil {
		return err
	}
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	return err
}

func (c *Chart) draw(dc draw.Canvas, t *Theme, title bool) error {
	p, err := c.build(t)
	if err != nil {
		return fmt.Errorf("chart %s: %w", c.Name, err)
	}
	dc = draw.Crop(dc, 4, -8, 2, -4)
	if title {
		style := textStyle(t, 12)
		dc.FillText(style, vg.Point{X: dc.Min.X + 4, Y: dc.Max.Y - 13}, c.Title)
		dc = draw.Crop(dc, 0, 0, 0, -titleHeight)
	}
	// Marks shall not lie on the frame.
	if p.Y.Scale == plot.Normalizer(plot.LinearScale{}) {
		room := 0.05 * (p.Y.Max - p.Y.Min)
		p.Y.Max += room
		if p.Y.Min != 0 {
			p.Y.Min -= room
		}
	}
	p.Draw(draw.Crop(dc, 0, 0, 0, -c.legend(dc, t)))
	return nil
}

// legend draws what the colours mean above the plot, where it cannot lie on
// data, and returns how high it is.
func (c *Chart) legend(dc draw.Canvas, t *Theme) vg.Length {
	if len(c.labels) < 2 {
		return 0
	}
	style := textStyle(t, 10)
	x, y := dc.Min.X+4, dc.Max.Y-12
	for i, label := range c.labels {
		width := style.Width(label)
		if x+14+width > dc.Max.X && x > dc.Min.X+4 {
			x, y = dc.Min.X+4, y-lineHeight
		}
		dc.FillPolygon(c.colours(t, i), []vg.Point{{X: x, Y: y}, {X: x + 9, Y: y}, {X: x + 9, Y: y + 9}, {X: x, Y: y + 9}})
		dc.FillText(style, vg.Point{X: x + 13, Y: y}, label)
		x += width + 32
	}
	return dc.Max.Y - y + 6
}

func textStyle(t *Theme, size vg.Length) text.Style {
	return text.Style{
		Color: t.Ink, Font: font.From(plot.DefaultFont, size), Handler: plot.DefaultTextHandler,
	}
}

// newPlot is an empty plot in a theme.
func newPlot(t *Theme, xLabel, yLabel string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.Transparent
	sans := plot.DefaultFont
	sans.Variant = "Sans"
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Color, a.Label.TextStyle.Color, a.Tick.Color, a.Tick.Label.Color = t.Faint, t.Ink, t.Faint, t.Ink
		a.Label.TextStyle.Font, a.Tick.Label.Font = font.From(sans, 10), font.From(sans, 9)
		a.Width, a.Tick.Width = 0.5, 0.5
	}
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	p.Y.Tick.Marker = shortTicks{}
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color, grid.Horizontal.Width = t.Faint, 0.5
	p.Add(grid)
	return p
}

func init() {
	plot.DefaultFont.Variant = "Sans"
}

// shortTicks are some five round numbers with labels like 150k.
type shortTicks struct{}

func (shortTicks) Ticks(low, high float64) []plot.Tick {
	span := high - low
	if !(span > 0) || math.IsInf(span, 0) {
		return plot.DefaultTicks{}.Ticks(low, high)
	}
	step := math.Pow(10, math.Floor(math.Log10(span/4)))
	for _, factor := range []float64{5, 2} {
		if span/(step*factor) >= 4 {
			step *= factor
			break
		}
	}
	var ticks []plot.Tick
	for n := math.Ceil(low/step - 1e-9); n*step <= high+1e-9*span; n++ {
		v := n * step
		if math.Abs(v) < step/2 {
			v = 0 // not -0
		}
		ticks = append(ticks, plot.Tick{Value: v, Label: short(v)})
	}
	return ticks
}

// short writes a number in a few characters.
func short(v float64) string {
	switch size := math.Abs(v); {
	case size >= 1e9:
		return trimmed(v/1e9) + "G"
	case size >= 1e6:
		return trimmed(v/1e6) + "M"
	case size >= 1e4:
		return trimmed(v/1e3) + "k"
	}
	return trimmed(v)
}

func trimmed(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000, 'f', -1, 64)
}

// categories labels 0, 1, 2, ... with names.
func categories(p *plot.Plot, names []string) {
	p.NominalX(names...)
	p.X.Tick.Width = 0
	p.X.Padding, p.Y.Padding = 2, 0
	p.X.Min, p.X.Max = -0.5, float64(len(names))-0.5
}
