// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

var update = flag.Bool("update", false, "write the samples in docs/benchmarks that are generated")

// benchmarks is where samples are shown to users.
const benchmarks = "../../docs/benchmarks"

// xdpl2Bench runs a command line.
func xdpl2Bench(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), args, &env{stdout: &out, stderr: &errs})
	return out.String(), errs.String(), code
}

// TestModelPaper compares all that the model says of the paper's table with
// the sample in the documents.
func TestModelPaper(t *testing.T) {
	got, stderr, code := xdpl2Bench(t, "model", "--paper")
	if code != exitFine || stderr != "" {
		t.Fatalf("exit code %d, stderr %q", code, stderr)
	}
	path := filepath.Join(benchmarks, "paper-model.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("not what %s says (go test -run ModelPaper -update writes it):\n%s", path, got)
	}
}

func TestModelJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "paper.json")
	if err := model.Paper().WriteFile(path); err != nil {
		t.Fatal(err)
	}
	// Options may follow the file.
	stdout, stderr, code := xdpl2Bench(t, "model", path, "--json", "--sizes", "300,1514", "--link", "1G,2.5Gb/s")
	var a struct {
		Series []struct {
			Contrasts []struct {
				PerByte struct{ Value, Low, High float64 } `json:"per_byte_ns"`
			}
			Predictions []struct {
				Size int     `json:"frame_bytes"`
				Link float64 `json:"link_bit_per_s"`
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &a); err != nil || code != exitFine {
		t.Fatalf("exit code %d, %v, stderr %q", code, err, stderr)
	}
	s := a.Series[0]
	if b := s.Contrasts[0].PerByte; b.Value > -0.35 || b.Value < -0.37 || b.Low >= b.Value || b.High <= b.Value {
		t.Errorf("per byte %+v", b)
	}
	if len(s.Predictions) != 8 || s.Predictions[1].Size != 1514 || s.Predictions[1].Link != 1e9 {
		t.Errorf("predictions %+v", s.Predictions)
	}
}

// TestModelForward has costs as the rig measures them: no link, a measured
// floor.
func TestModelForward(t *testing.T) {
	f := results.New(results.Meta{Command: "forward", Machine: results.Machine{CPU: "Some CPU", Kernel: "6.18"}})
	for engine, line := range map[string][2]float64{"bridge": {1200, 0.2}, "generic": {700, 0.3}, "drop xdp": {420, 0.05}} {
		for _, size := range []int{60, 508, 1514} {
			c := results.Cell{Work: "forward", Input: results.Roomy, Size: size, Engine: engine, Unit: results.NsPerFrame}
			for i := range 3 {
				c.Samples = append(c.Samples, line[0]+line[1]*float64(size)+float64(i))
			}
			c.Summarize()
			f.Cells = append(f.Cells, c)
		}
	}
	path := filepath.Join(t.TempDir(), "forward.json")
	if err := f.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	stdout, _, code := xdpl2Bench(t, "model", path, "--link", "1G")
	for _, want := range []string{
		"forward on Some CPU, Linux 6.18", "== forward, roomy", "Shared cost (measured: receive and drop)",
		"drop xdp", "H1, generic: SUPPORTED", "H2, generic: NOT TESTED", "no link was measured", "1 Gb/s",
	} {
		if code != exitFine || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, stdout)
		}
	}
}

func TestModelErrors(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte(`{"format": "xdpl2-bench results", "version": 9}`), 0o644); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.json")
	if err := results.New(results.Meta{Command: "tcp"}).WriteFile(empty); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"model", exitUsage, "one results file is needed"},
		{"model a b", exitUsage, "one results file is needed"},
		{"model --paper x.json", exitUsage, "either --paper or a file"},
		{"model --paper --sizes 64,x", exitUsage, `--sizes: "x": expected frames of 14 to 65535 bytes`},
		{"model --paper --sizes 70000", exitUsage, `--sizes: "70000"`},
		{"model --paper --link fast", exitUsage, `--link: link rate "fast": expected one like 2.5G`},
		{"model --paper --overhead -1", exitUsage, "--overhead -1: expected 0 to 1000"},
		{"model " + filepath.Join(dir, "none.json"), exitFailed, "none.json"},
		{"model " + broken, exitFailed, "broken.json: version: 9: expected 1"},
		{"model " + empty, exitFailed, "model: no cells that the model can use"},
	} {
		stdout, stderr, code := xdpl2Bench(t, strings.Fields(c.args)...)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d (want %d), stderr %q (want %q), stdout %q", c.args, code, c.code, stderr, c.want, stdout)
		}
	}
}
