// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/reports"
	"github.com/xdpl2/xdpl2/internal/results"
)

// shown is what the report command makes of a file.
type shown struct {
	html, png, svg, older string
	csv                   bool
}

func reportCommand() *command {
	var in input
	var o shown
	return &command{
		name: "report", args: "[FILE.json]", json: true, mixed: true,
		short: "Show results: as a table, a page with charts, pictures, CSV, or against an older run",
		long: "The report takes the results file of any command. Without options it prints the numbers\n" +
			"as a table, with the machine, the audit and what was left out. --html makes one page with\n" +
			"everything in it, charts too, that needs no other file and no network.\n\n" +
			"  xdpl2-bench report forward.json --html forward.html\n" +
			"  xdpl2-bench report forward.json --compare old.json\n" +
			"  xdpl2-bench report --paper --csv",
		flags: func(fs *flag.FlagSet) {
			in.flags(fs)
			fs.StringVar(&o.html, "html", "", "write a page with charts and tables to this `FILE`")
			fs.StringVar(&o.png, "png", "", "write each chart as PNG into this `DIRECTORY`")
			fs.StringVar(&o.svg, "svg", "", "write each chart as SVG into this `DIRECTORY`")
			fs.BoolVar(&o.csv, "csv", false, "print CSV, a row for each number")
			fs.StringVar(&o.older, "compare", "", "tell what became better or worse since this older `FILE`")
		},
		run: func(_ context.Context, e *env, args []string) error {
			if o.csv && (e.json || o.older != "") {
				return usagef("report: --csv goes with neither --json nor --compare")
			}
			f, err := in.read("report", args)
			if err != nil {
				return err
			}
			return o.run(e, f)
		},
	}
}

func (o *shown) run(e *env, f *results.File) error {
	r := &reports.Report{File: f, Tool: version}
	// What the model cannot use has a report without it.
	if a, err := model.Analyze(f, model.Options{Overhead: model.WireOverhead}); err == nil {
		r.Analysis = a
	}
	if o.older != "" {
		older, err := results.ReadFile(o.older)
		if err != nil {
			return err
		}
		r.Comparison = reports.Compare(older, f)
	}
	written, err := o.write(r)
	for _, path := range written {
		fmt.Fprintf(e.stderr, "wrote %s\n", path)
	}
	if err != nil {
		return err
	}
	switch {
	case o.csv:
		return f.WriteCSV(e.stdout)
	case e.json && r.Comparison != nil:
		return e.printJSON(r.Comparison)
	case e.json:
		return f.Write(e.stdout)
	case r.Comparison != nil:
		return printLines(e.stdout, comparisonLines(r.Comparison))
	case len(written) == 0:
		return printLines(e.stdout, resultLines(f))
	}
	return nil
}

func printLines(w io.Writer, lines []string) error {
	_, err := fmt.Fprintln(w, strings.Join(lines, "\n"))
	return err
}

// write writes the files that were asked for.
func (o *shown) write(r *reports.Report) (written []string, err error) {
	to := func(path string, write func(io.Writer) error) error {
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		if err := errors.Join(write(file), file.Close()); err != nil {
			return fmt.Errorf("write %s: %w", path, err)
		}
		written = append(written, path)
		return nil
	}
	if o.html != "" {
		if err := to(o.html, r.WriteHTML); err != nil {
			return written, err
		}
	}
	for _, kind := range []struct {
		dir, ending string
		write       func(*reports.Chart, io.Writer) error
	}{
		{o.png, ".png", func(c *reports.Chart, w io.Writer) error { return c.WritePNG(w, reports.Light) }},
		{o.svg, ".svg", func(c *reports.Chart, w io.Writer) error {
			text, err := c.SVG(reports.Light)
			if err == nil {
				_, err = w.Write(text)
			}
			return err
		}},
	} {
		if kind.dir == "" {
			continue
		}
		if err := os.MkdirAll(kind.dir, 0o755); err != nil {
			return written, err
		}
		charts := r.Charts()
		if len(charts) == 0 {
			return written, errors.New("report: nothing in this file that a chart could show")
		}
		for _, c := range charts {
			err := to(filepath.Join(kind.dir, c.Name+kind.ending), func(w io.Writer) error { return kind.write(c, w) })
			if err != nil {
				return written, err
			}
		}
	}
	return written, nil
}

// resultLines is a file for people.
func resultLines(f *results.File) []string {
	m := f.Meta
	lines := []string{"Numbers: " + sourceWords(f)}
	if !m.Start.IsZero() {
		lines = append(lines, fmt.Sprintf("Measured %s, took %.0f s", m.Start.UTC().Format("2006-01-02 15:04 MST"), m.Seconds))
	}
	rows := [][]string{{"WORK", "INPUT", "BYTES", "FLOWS", "STATIONS", "ENGINE", "MEAN", "SD", "UNIT", "N", "LOSS", "CPU", "TIMES", "95%"}}
	for i := range f.Cells {
		rows = append(rows, cellRow(&f.Cells[i]))
	}
	if len(f.Cells) == 0 {
		lines = append(lines, "", "There are no numbers in it.")
	} else {
		lines = append(lines, "")
		lines = append(lines, newTable("llrrrlrrlrrrrl").lines(rows...)...)
	}
	if len(m.Audit) > 0 {
		failed := len(m.Failed())
		lines = append(lines, "", fmt.Sprintf("Audit: %d checks, %d failed", len(m.Audit), failed))
		lines = append(lines, indentLines(auditLines(m.Audit))...)
	}
	for _, text := range m.LeftOut {
		lines = append(lines, "", "Left out: "+text)
	}
	return lines
}

func auditLines(audit []results.Check) []string {
	var rows [][]string
	for _, c := range audit {
		verdict := "PASS"
		if !c.Passed {
			verdict = "FAIL"
		}
		rows = append(rows, []string{verdict, c.Name, c.Value, "expected: " + c.Expected})
	}
	return newTable("llll").lines(rows...)
}

func cellRow(c *results.Cell) []string {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return fmt.Sprint(n)
	}
	share := func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("%.2f%%", 100**v)
	}
	times, around := "", ""
	if r := c.Ratio; r != nil {
		times, around = fmt.Sprintf("%.3f", r.Value), fmt.Sprintf("%.3f to %.3f of %s", r.Low, r.High, r.Of)
	}
	return []string{
		c.Work, c.Input, number(c.Size), number(c.Flows), number(c.Stations), c.Engine,
		value(c.Mean), value(c.SD), string(c.Unit), fmt.Sprint(c.N), share(c.Loss), share(c.CPU), times, around,
	}
}

// value writes a number with what digits matter.
func value(v float64) string {
	if v >= 1000 || v <= -1000 {
		return grouped(int64(v))
	}
	return fmt.Sprintf("%.4g", v)
}

// comparisonLines is a comparison for people.
func comparisonLines(c *reports.Comparison) []string {
	rows := [][]string{{"CELL", "COMPARED BY", "BEFORE", "AFTER", "CHANGE", "95%", ""}}
	for _, d := range c.Sorted() {
		around := ""
		if d.Change.HasInterval() {
			around = fmt.Sprintf("%+.1f%% to %+.1f%%", 100*(d.Change.Low-1), 100*(d.Change.High-1))
		}
		rows = append(rows, []string{
			d.Name(), d.By, value(d.Before), value(d.After), fmt.Sprintf("%+.1f%%", 100*(d.Change.Value-1)), around, string(d.Verdict),
		})
	}
	var lines []string
	if len(c.Differences) > 0 {
		lines = append(lines, newTable("llrrrrl").lines(rows...)...)
		lines = append(lines, "", "Change: above zero is better, whatever the unit.")
	}
	lines = append(lines, "In short: "+c.Summary()+".")
	for _, text := range c.Setting {
		lines = append(lines, "Also different: "+text)
	}
	for _, text := range c.OnlyOld {
		lines = append(lines, "Only in the older run: "+text)
	}
	for _, text := range c.OnlyNew {
		lines = append(lines, "Only in the newer run: "+text)
	}
	return lines
}
