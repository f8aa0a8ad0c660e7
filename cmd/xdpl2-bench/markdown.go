// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/results"
)

// markdown writes what was found as docs/benchmarks.md has it: where it comes
// from, the table, and what is slower than the bridge.
func markdown(f *results.File, all []finding) string {
	var b strings.Builder
	m := f.Meta.Machine
	fmt.Fprintf(&b, "%s, %d cores, Linux %s (%s), %s, %.0f s of measuring.\n\n",
		m.CPU, m.Cores, m.Kernel, m.Arch, f.Meta.Start.Format("2006-01-02"), f.Meta.Seconds)
	if f.Meta.Command == "gate" {
		gateTable(&b, all)
		slowerList(&b, all)
	} else {
		findingTable(&b, all)
	}
	for _, c := range f.Meta.Audit {
		fmt.Fprintf(&b, "\nThe %s: %s (expected %s).\n", c.Name, c.Value, c.Expected)
	}
	for _, why := range f.Meta.LeftOut {
		fmt.Fprintf(&b, "\nNot measured: %s.\n", why)
	}
	return b.String()
}

// findingTable has a row a finding.
func findingTable(b *strings.Builder, all []finding) {
	b.WriteString("| part | what | engine | value | 95% interval | rounds | bound | verdict |\n|---|---|---|---|---|---|---|---|\n")
	for _, x := range all {
		fmt.Fprintf(b, "| %s | %s | %s | %.2f | %s | %d | %s | %s |\n", x.Part, x.What, x.Engine, x.Value, x.intervalText(), x.Rounds, x.Bound, x.strong())
	}
}

// strong is the verdict, in bold if it is none to be content with.
func (f *finding) strong() string {
	text := f.verdictText()
	if f.Verdict == missed || f.Verdict == undecided {
		text = "**" + f.Verdict + "**" + strings.TrimPrefix(text, f.Verdict)
	}
	return text
}

// gateTable has a row for each kind of work and a column for each engine: how
// many times as good as the bridge, with the interval.
func gateTable(b *strings.Builder, all []finding) {
	type row struct{ part, what string }
	var rows []row
	var engines []string
	for _, x := range all {
		if r := (row{x.Part, x.What}); !slices.Contains(rows, r) {
			rows = append(rows, r)
		}
		if !slices.Contains(engines, x.Engine) {
			engines = append(engines, x.Engine)
		}
	}
	slices.SortFunc(engines, func(a, b string) int { return slices.Index(gateOrder, a) - slices.Index(gateOrder, b) })
	fmt.Fprintf(b, "| part | what | %s | bound | verdict |\n|---|---%s|---|---|\n", strings.Join(engines, " | "), strings.Repeat("|---", len(engines)))
	for _, r := range rows {
		cells := make([]string, len(engines))
		limit, verdict := "", ""
		for i := range all {
			x := &all[i]
			if x.Part != r.part || x.What != r.what {
				continue
			}
			cells[slices.Index(engines, x.Engine)] = fmt.Sprintf("%.2f (%s)", x.Value, x.intervalText())
			if x.Bound != "" {
				limit, verdict = x.Bound, x.strong()
			}
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", r.part, r.what, strings.Join(cells, " | "), limit, verdict)
	}
}

// slowerList names what is slower than the bridge with certainty.
func slowerList(b *strings.Builder, all []finding) {
	var slower []string
	for _, x := range all {
		if x.Engine != again && x.Rounds >= minForInterval && x.High < 1 && !strings.HasPrefix(x.What, "gain") {
			slower = append(slower, fmt.Sprintf("- %s, %s, %s: %.2f (%s)", x.Engine, x.Part, x.What, x.Value, x.intervalText()))
		}
	}
	slices.SortStableFunc(slower, func(a, b string) int {
		return strings.Compare(strings.SplitN(a, ",", 2)[0], strings.SplitN(b, ",", 2)[0])
	})
	b.WriteString("\nSlower than the bridge (the whole interval is below 1):\n\n")
	if len(slower) == 0 {
		b.WriteString("- nothing of what was measured\n")
		return
	}
	b.WriteString(strings.Join(slower, "\n") + "\n")
}
