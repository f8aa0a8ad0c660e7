// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/xdpl2/xdpl2/internal/results"
)

// markdown writes what was found as docs/benchmarks.md has it: where it comes
// from, then a table.
func markdown(f *results.File, all []finding) string {
	var b strings.Builder
	m := f.Meta.Machine
	fmt.Fprintf(&b, "%s, %d cores, Linux %s (%s), xdpl2-bench %s, %s, %.0f s of measuring.\n\n",
		m.CPU, m.Cores, m.Kernel, m.Arch, f.Meta.Tool, f.Meta.Start.Format("2006-01-02"), f.Meta.Seconds)
	b.WriteString("| part | what | engine | value | 95% interval | rounds | bound | verdict |\n|---|---|---|---|---|---|---|---|\n")
	for _, x := range all {
		verdict := x.verdictText()
		if x.Verdict == missed || x.Verdict == undecided {
			verdict = "**" + x.Verdict + "**" + strings.TrimPrefix(verdict, x.Verdict)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.2f | %s | %d | %s | %s |\n", x.Part, x.What, x.Engine, x.Value, x.intervalText(), x.Rounds, x.Bound, verdict)
	}
	for _, why := range f.Meta.LeftOut {
		fmt.Fprintf(&b, "\nNot measured: %s.\n", why)
	}
	return b.String()
}
