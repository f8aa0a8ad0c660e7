// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/results"
)

func TestCallsUsage(t *testing.T) {
	for args, want := range map[string]string{
		"calls --pairs 5":         "--pairs 5: expected 6 to 10000",
		"calls --rounds 3":        "--rounds 3: expected 0, or 6 to 10000",
		"calls --stations 15":     `--stations: "15": expected powers of two from 2 to 65536`,
		"calls --stations 131072": `--stations: "131072"`,
		"calls --stations 64,16":  "--stations: 16: expected rising sizes",
		"calls x":                 `calls: unexpected argument "x"`,
	} {
		stdout, stderr, code := xdpl2Bench(t, strings.Fields(args)...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, stderr %q, want %q", args, code, stderr, want)
		}
	}
}

// TestCallsLines lays out both ways and the audit.
func TestCallsLines(t *testing.T) {
	f := results.New(results.Meta{
		Command: "calls", Tool: "1.0", Machine: results.Machine{CPU: "Some CPU", Kernel: "6.18"},
		LeftOut: []string{"cycles: none"},
		Audit: []results.Check{
			{Name: "counts match", Value: "6 runs, 0 wrong", Expected: "all", Passed: true},
			{Name: "clock steady", Value: "40%", Expected: "10%"},
		},
	})
	for work, v := range map[string]float64{"calls": 30.4, "calls-run": 14.3, "calls-frames": 29.5, "calls-first": 360} {
		c := results.Cell{Work: work, Input: "far", Stations: 65536, Engine: "station", Unit: results.NsPerCall, Samples: []float64{v, v + 1, v - 1}}
		c.Summarize()
		c.Interval = &results.Interval{Low: v - 1, High: v + 1}
		if work == "calls-frames" {
			c.Note = "THE TWO WAYS DO NOT AGREE"
		}
		f.Cells = append(f.Cells, c)
	}
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(callsLines(f), "\n")
	for _, want := range []string{
		"station    65,536  far     30.40  29.40 to 31.40  ns/call",
		"station    65,536  far         14.30         29.50  28.50 to 30.50            360.00  359.00 to 361.00  THE TWO WAYS DO NOT AGREE",
		"FAIL clock steady: 40%", "1 of 2 checks passed", "Left out: cycles: none",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if checks := strings.Join(checksText(f), "\n"); !strings.Contains(checks, "xdpl2-bench 1.0 calls") || !strings.Contains(checks, "PASS counts match") {
		t.Errorf("CHECKS.txt:\n%s", checks)
	}
}
