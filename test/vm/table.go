// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/xdpl2/xdpl2/test/vm/testlog"
)

// print prints the report for people: failures, skips with their reasons, the
// table, and the summary as the last line.
func (r *report) print(out *printer) {
	for _, section := range []struct {
		title string
		lines []string
	}{
		{"Failed tests", r.failures()},
		{"Skipped tests", r.skips()},
		{"Slowest tests", r.slowest()},
		{"Left behind by tests", r.notes()},
		{"Kernels that are not to be had", r.unavailable()},
		{"Problems", r.problems()},
	} {
		if len(section.lines) == 0 {
			continue
		}
		out.line("")
		out.line(section.title + ":")
		for _, line := range section.lines {
			out.line("  " + strings.ReplaceAll(line, "\n", "\n    "))
		}
	}
	out.line("")
	for _, line := range align(r.table()) {
		out.line(line)
	}
	if r.complete && !r.checksUnrun() {
		out.line("")
		out.line("Tests that no kernel ran are not looked for: a kernel is missing.")
	}
	out.line("")
	c := r.total()
	// A problem counts as a failure, so that no red run reads like a green one.
	out.line(fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed+len(r.problems()), c.skipped))
}

// table is kernel by package.
func (r *report) table() [][]string {
	kernels := r.booted()
	head, settings := []string{"package"}, []string{""}
	log, times, cpu := []string{"problems"}, []string{"boot / whole"}, []string{"CPU time"}
	for _, k := range kernels {
		head = append(head, k.Kernel)
		settings = append(settings, k.Setting)
		text := "none"
		if n := len(k.Problems); n > 0 {
			text = fmt.Sprint(n)
		}
		log = append(log, text)
		times = append(times, fmt.Sprintf("%.0f s / %.0f s", k.BootSeconds, k.Seconds))
		cpu = append(cpu, fmt.Sprintf("%.0f s", k.CPUSeconds))
	}
	rows := [][]string{head}
	if strings.Join(settings, "") != "" {
		rows = append(rows, settings)
	}
	for _, p := range r.packages {
		row := []string{p.name}
		for _, k := range kernels {
			row = append(row, cell(p, k.pkg(p.name)))
		}
		rows = append(rows, row)
	}
	return append(rows, log, times, cpu)
}

// cell is one package on one kernel.
func cell(p *testPackage, result *packageResult) string {
	switch {
	case p.err != nil:
		return "NOT BUILT"
	case result == nil:
		return "NOT RUN"
	case result.Exit == "":
		return result.count().String() + ", CUT"
	default:
		return result.count().String()
	}
}

// align fills up the cells of a table to columns.
func align(rows [][]string) []string {
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	var lines []string
	for _, row := range rows {
		var b strings.Builder
		for i, c := range row {
			fmt.Fprintf(&b, "%-*s   ", widths[i], c)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// failureLines is how much of a failed test's output is shown again.
const failureLines = 20

// failures names the failed tests, each with the last lines of its output.
func (r *report) failures() []string {
	var lines []string
	for _, k := range r.kernels {
		for _, p := range k.Packages {
			for _, t := range p.Tests {
				if t.Status != testlog.Failed && t.Status != testlog.Unfinished {
					continue
				}
				lines = append(lines, fmt.Sprintf("%s: %s %s: %s", k.Kernel, p.Name, t.Name, t.Status))
				for _, o := range t.Output[max(0, len(t.Output)-failureLines):] {
					lines = append(lines, "  "+printable(o))
				}
			}
		}
	}
	return lines
}

// skips groups the skipped tests by their reason.
func (r *report) skips() []string {
	type where struct{ kernels, tests []string }
	var order []string
	groups := map[string]*where{}
	for _, k := range r.kernels {
		for _, p := range k.Packages {
			for _, t := range p.Tests {
				if t.Status != testlog.Skipped {
					continue
				}
				g := groups[t.Reason]
				if g == nil {
					g = &where{}
					groups[t.Reason] = g
					order = append(order, t.Reason)
				}
				g.kernels = addOnce(g.kernels, k.Kernel)
				g.tests = addOnce(g.tests, p.Name+" "+t.Name)
			}
		}
	}
	var lines []string
	for _, reason := range order {
		g := groups[reason]
		lines = append(lines, fmt.Sprintf("%s: %s", strings.Join(g.kernels, ", "), printable(reason)))
		for _, t := range g.tests {
			lines = append(lines, "  "+t)
		}
	}
	return lines
}

// Slow tests are worth a look, since a guest's time is everybody's.
const (
	slowTests   = 8
	slowSeconds = 5
)

// slowest names the slowest tests, each with the kernel where it took longest.
func (r *report) slowest() []string {
	type slow struct {
		kernel, name string
		seconds      float64
	}
	var all []*slow
	byName := map[string]*slow{}
	for _, k := range r.kernels {
		for _, p := range k.Packages {
			for _, t := range p.Tests {
				name := p.Name + " " + t.Name
				s := byName[name]
				if t.Seconds < slowSeconds || strings.Contains(t.Name, "/") || s != nil && s.seconds >= t.Seconds {
					continue
				}
				if s == nil {
					s = &slow{name: name}
					byName[name] = s
					all = append(all, s)
				}
				s.kernel, s.seconds = k.Kernel, t.Seconds
			}
		}
	}
	slices.SortStableFunc(all, func(a, b *slow) int { return cmp.Compare(b.seconds, a.seconds) })
	var lines []string
	for _, s := range all[:min(slowTests, len(all))] {
		lines = append(lines, fmt.Sprintf("%5.1f s on %s: %s", s.seconds, s.kernel, s.name))
	}
	return lines
}

// notes are what the guests noted.
func (r *report) notes() []string {
	var lines []string
	for _, k := range r.kernels {
		for _, n := range k.Notes {
			lines = append(lines, k.Kernel+": "+printable(n))
		}
	}
	return lines
}

func (r *report) unavailable() []string {
	var lines []string
	for _, k := range r.missingKernels() {
		lines = append(lines, k.Unavailable)
	}
	return lines
}

func addOnce(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}
