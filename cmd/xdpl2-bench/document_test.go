// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/results"
)

// TestBenchmarksDocument: the tables of docs/benchmarks.md are those of the
// results beside it, so no number there is older, or better, than what was
// measured. After a new run: go test ./cmd/xdpl2-bench -run TestBenchmarksDocument -update
func TestBenchmarksDocument(t *testing.T) {
	const document = "../../docs/benchmarks.md"
	text, err := os.ReadFile(document)
	if errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat("../../go.mod"); err != nil {
			t.Skip("not for guests: needs the sources")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	for name, judge := range map[string]func(*results.File) []finding{"budgets": judgeBudgets, "gate": judgeGate} {
		f, err := results.ReadFile("../../docs/benchmarks/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		begin := "<!-- " + name + ": generated -->\n"
		before, rest, ok := strings.Cut(want, begin)
		_, after, ok2 := strings.Cut(rest, "<!-- end -->")
		if !ok || !ok2 {
			t.Fatalf("no place for the table of %s", name)
		}
		want = before + begin + markdown(f, judge(f)) + "<!-- end -->" + after
	}
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/benchmarks.md differs from the results: go test ./cmd/xdpl2-bench -run TestBenchmarksDocument -update")
	}
}
