// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

func TestReport(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "paper.json")
	if err := model.Paper().WriteFile(file); err != nil {
		t.Fatal(err)
	}
	html, pngs, svgs := filepath.Join(dir, "r.html"), filepath.Join(dir, "png"), filepath.Join(dir, "svg")
	stdout, stderr, code := xdpl2Bench(t, "report", file, "--html", html, "--png", pngs, "--svg", svgs)
	if code != exitFine || stdout != "" || strings.Count(stderr, "wrote ") != 11 {
		t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if page, err := os.ReadFile(html); err != nil || !strings.Contains(string(page), "What forwarding costs: wire, 2.5 Gb/s") {
		t.Errorf("page: %v", err)
	}
	for dir, ending := range map[string]string{pngs: ".png", svgs: ".svg"} {
		if files, _ := filepath.Glob(filepath.Join(dir, "*"+ending)); len(files) != 5 {
			t.Errorf("%s: %q", ending, files)
		}
	}

	if stdout, _, code = xdpl2Bench(t, "report", file); code != exitFine || !strings.Contains(stdout, "204,205") || !strings.Contains(stdout, "Left out: receive and drop") {
		t.Errorf("table: exit code %d\n%s", code, stdout)
	}
	stdout, _, code = xdpl2Bench(t, "report", "--paper", "--csv")
	if rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll(); code != exitFine || err != nil || len(rows) != 43 {
		t.Errorf("CSV: exit code %d, %d rows, %v", code, len(rows), err)
	}
	stdout, _, code = xdpl2Bench(t, "report", "--paper", "--json")
	if back, err := results.Read(strings.NewReader(stdout), "stdout"); code != exitFine || err != nil || len(back.Cells) != 42 {
		t.Errorf("JSON: exit code %d, %v", code, err)
	}
}

func TestReportCompare(t *testing.T) {
	dir := t.TempDir()
	older := filepath.Join(dir, "older.json")
	f := model.Paper()
	for i := range f.Cells {
		if c := &f.Cells[i]; c.Work == "wire" && c.Engine == "generic" && c.Size == 64 {
			c.Mean /= 1.1 // since then a tenth better
		}
	}
	f.Meta.Machine.Kernel = "5.10.1"
	if err := f.WriteFile(older); err != nil {
		t.Fatal(err)
	}
	stdout, _, code := xdpl2Bench(t, "report", "--paper", "--compare", older)
	for _, want := range []string{"+10.0%", "1 are better and 0 worse beyond the noise, 41 are within it", `Also different: kernel: "5.10.221", was "5.10.1"`} {
		if code != exitFine || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, stdout)
		}
	}
	stdout, _, code = xdpl2Bench(t, "report", "--paper", "--compare", older, "--json")
	var c struct {
		Cells []struct {
			Verdict string
			Change  struct{ Value, Low, High float64 }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || code != exitFine || len(c.Cells) != 42 || c.Cells[0].Verdict != "better" || c.Cells[0].Change.Low < 1.09 {
		t.Errorf("exit code %d, %v, %+v", code, err, c.Cells)
	}
}

func TestReportErrors(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty.json")
	if err := results.New(results.Meta{Command: "tcp"}).WriteFile(empty); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"report", exitUsage, "one results file is needed"},
		{"report --paper --csv --json", exitUsage, "--csv goes with neither"},
		{"report --paper --compare " + dir + "/none.json", exitFailed, "none.json"},
		{"report --paper --html " + dir + "/no/such/x.html", exitFailed, "no/such/x.html"},
		{"report " + empty + " --png " + dir, exitFailed, "nothing in this file that a chart could show"},
	} {
		stdout, stderr, code := xdpl2Bench(t, strings.Fields(c.args)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d (want %d), stderr %q (want %q), stdout %q", c.args, code, c.code, stderr, c.want, stdout)
		}
	}
	// A file without numbers is shown as that.
	if stdout, _, code := xdpl2Bench(t, "report", empty); code != exitFine || !strings.Contains(stdout, "There are no numbers in it") {
		t.Errorf("exit code %d, %q", code, stdout)
	}
}
