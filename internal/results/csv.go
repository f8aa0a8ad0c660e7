// SPDX-License-Identifier: Apache-2.0

package results

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// csvQuantiles are the quantiles that have a column.
var csvQuantiles = []float64{0.05, 0.5, 0.95, 0.99, 0.999, 1}

// csvColumns heads the CSV.
var csvColumns = []string{
	"work", "input", "frame_bytes", "flows", "stations", "link_bit_per_s", "engine", "unit",
	"n", "mean", "sd", "median", "median_low", "median_high", "p5", "p50", "p95", "p99", "p99.9", "max",
	"loss", "cpu", "ratio_of", "ratio", "ratio_low", "ratio_high", "ratio_pairs", "samples",
}

// WriteCSV writes a checked file's cells, a row each. What a cell does not
// have is an empty field; samples are separated by spaces.
func (f *File) WriteCSV(w io.Writer) error {
	if err := f.Validate(); err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.Write(csvColumns); err != nil {
		return err
	}
	for i := range f.Cells {
		if err := out.Write(f.Cells[i].row()); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func (c *Cell) row() []string {
	row := []string{
		c.Work, c.Input, count(c.Size), count(c.Flows), count(c.Stations), optional(nonZero(c.Link)), c.Engine, string(c.Unit),
		strconv.Itoa(c.N), decimal(c.Mean), decimal(c.SD), optional(c.Median),
	}
	if iv := c.Interval; iv != nil {
		row = append(row, decimal(iv.Low), decimal(iv.High))
	} else {
		row = append(row, "", "")
	}
	for _, p := range csvQuantiles {
		text := ""
		if v, ok := c.Quantile(p); ok {
			text = decimal(v)
		}
		row = append(row, text)
	}
	row = append(row, optional(c.Loss), optional(c.CPU))
	if r := c.Ratio; r != nil {
		row = append(row, r.Of, decimal(r.Value), decimal(r.Low), decimal(r.High), strconv.Itoa(r.N))
	} else {
		row = append(row, "", "", "", "", "")
	}
	var samples []string
	for _, v := range c.Samples {
		samples = append(samples, decimal(v))
	}
	return append(row, strings.Join(samples, " "))
}

func decimal(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

func optional(v *float64) string {
	if v == nil {
		return ""
	}
	return decimal(*v)
}

func nonZero(v float64) *float64 {
	if v == 0 {
		return nil
	}
	return &v
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}
