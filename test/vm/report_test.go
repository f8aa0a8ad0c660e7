// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/test/vm/guest"
	"github.com/xdpl2/xdpl2/test/vm/testlog"
)

// results reads "Name status reason" lines.
func results(lines ...string) []*testlog.Test {
	var tests []*testlog.Test
	for _, line := range lines {
		name, rest, _ := strings.Cut(line, " ")
		status, reason, _ := strings.Cut(rest, " ")
		tests = append(tests, &testlog.Test{Name: name, Status: testlog.Status(status), Reason: reason})
	}
	return tests
}

// onKernel is a result of the package internal/lab.
func onKernel(kernel string, lines ...string) *kernelResult {
	return &kernelResult{
		Kernel: kernel,
		Packages: []*packageResult{
			{Name: "internal/lab", Exit: guest.Exited, Tests: results(lines...)},
		},
	}
}

func complete(kernels ...*kernelResult) *report {
	r := newReport([]*testPackage{{name: "internal/lab"}}, kernels)
	r.complete = true
	return r
}

func TestCount(t *testing.T) {
	tests := []struct {
		name  string
		tests []string
		want  string
	}{
		{"nothing", nil, "no tests"},
		{"one of each", []string{"TestA passed", "TestB failed", "TestC skipped x", "TestD missing", "TestE unfinished"},
			"1 ok, 2 FAILED, 1 skipped, 1 not run"},
		{"subtests instead of their test", []string{"TestA passed", "TestA/x passed", "TestA/y skipped x"}, "1 ok, 1 skipped"},
		{"subtests of a failed test", []string{"TestA failed", "TestA/x failed", "TestA/y passed"}, "1 ok, 1 FAILED"},
		{"a test that failed beside its subtests", []string{"TestA failed", "TestA/x passed"}, "1 ok, 1 FAILED"},
		{"deep", []string{"TestA failed", "TestA/x failed", "TestA/x/y failed"}, "1 FAILED"},
		{"a name that only begins alike", []string{"TestA passed", "TestAB passed"}, "2 ok"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := packageResult{Tests: results(tt.tests...)}
			if got := p.count().String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestUnrun(t *testing.T) {
	skips := "TestTCX skipped needs tcx"
	missing := &kernelResult{Kernel: "7.2", Unavailable: "kernel 7.2 is not to be had"}
	tests := []struct {
		name   string
		report *report
		want   []string // problems
	}{
		{"ran on one kernel", complete(onKernel("5.10", skips), onKernel("6.12", "TestTCX passed")), nil},
		{"failed on one kernel", complete(onKernel("5.10", skips), onKernel("6.12", "TestTCX failed")), nil},
		{"skipped on every kernel", complete(onKernel("5.10", "TestA passed", skips), onKernel("6.12", "TestA passed", skips)),
			[]string{"internal/lab TestTCX: skipped on every kernel: needs tcx"}},
		{"for different reasons", complete(onKernel("5.10", "TestA passed", skips), onKernel("6.12", "TestA passed", "TestTCX skipped no root")),
			[]string{"internal/lab TestTCX: skipped on every kernel: needs tcx; no root"}},
		{"missing on every kernel", complete(onKernel("5.10", "TestA passed", "TestB missing"), onKernel("6.12", "TestA passed", "TestB missing")),
			[]string{"internal/lab: ran on no kernel: TestB"}},
		{"several missing on every kernel", complete(onKernel("5.10", "TestA unfinished", "TestB missing", "TestC missing")),
			[]string{"internal/lab: ran on no kernel: TestB TestC"}},
		{"skipped here, missing there", complete(onKernel("5.10", "TestA passed", skips), onKernel("6.12", "TestA passed", "TestTCX missing")),
			[]string{"internal/lab TestTCX: skipped on every kernel: needs tcx"}},
		{"subtest", complete(onKernel("5.10", "TestA passed", "TestA/x passed", "TestA/y skipped z"), onKernel("6.12", "TestA skipped z")),
			[]string{"internal/lab TestA/y: skipped on every kernel: z"}},
		{"declared", complete(onKernel("5.10", "TestA passed", "TestRig skipped not for guests: a rig")), nil},
		{"declared on one kernel only", complete(
			onKernel("5.10", "TestA passed", "TestRig skipped not for guests: a rig"),
			onKernel("6.12", "TestA passed", "TestRig skipped no memory")),
			[]string{"internal/lab TestRig: skipped on every kernel: not for guests: a rig; no memory"}},
		{"a kernel is missing", complete(onKernel("5.10", "TestA passed", skips), missing), nil},
		{"not all was asked for", newReport([]*testPackage{{name: "internal/lab"}}, []*kernelResult{onKernel("5.10", "TestA passed", skips)}), nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, want := fmt.Sprintf("%q", tt.report.problems()), fmt.Sprintf("%q", tt.want); got != want {
				t.Errorf("problems are %s, want %s", got, want)
			}
		})
	}
}

func TestGreen(t *testing.T) {
	broken := complete(onKernel("5.10", "TestA passed"))
	broken.packages[0].err = errors.New("go test: exit status 1")
	problem := complete(onKernel("5.10", "TestA passed"))
	problem.kernels[0].problem("kernel log: WARNING: x")
	tests := []struct {
		name    string
		report  *report
		green   bool
		summary string
	}{
		{"passed", complete(onKernel("5.10", "TestA passed"), onKernel("6.1", "TestA passed")), true, "2 passed, 0 failed, 0 skipped"},
		{"failed", complete(onKernel("5.10", "TestA passed", "TestB failed")), false, "1 passed, 1 failed, 0 skipped"},
		{"problem", problem, false, "1 passed, 1 failed, 0 skipped"},
		{"not built", broken, false, "1 passed, 1 failed, 0 skipped"},
		{"skipped everywhere", complete(onKernel("5.10", "TestA passed", "TestB skipped x")), false, "1 passed, 1 failed, 1 skipped"},
		{"no test", complete(onKernel("5.10")), false, "0 passed, 1 failed, 0 skipped"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.report.green(); got != tt.green {
				t.Errorf("green is %v", got)
			}
			var out bytes.Buffer
			tt.report.print(newPrinter(&out))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if got := lines[len(lines)-1]; got != tt.summary {
				t.Errorf("last line is %q, want %q", got, tt.summary)
			}
		})
	}
}

func TestReportPrint(t *testing.T) {
	old := onKernel("5.10", "TestA passed", "TestTCX skipped needs tcx", "TestRig skipped not for guests: a rig")
	old.BootSeconds, old.Seconds, old.CPUSeconds = 4.4, 21, 20.4
	old.Packages[0].Tests[0].Seconds = 12.34
	young := onKernel("6.12", "TestA failed", "TestTCX passed", "TestRig skipped not for guests: a rig")
	young.Setting = "no BTF"
	young.Packages[0].Exit = ""
	young.Packages[0].Tests[0].Output = []string{"    a_test.go:1: bad"}
	young.problem("kernel log: WARNING: x")
	young.Notes = []string{"internal/lab: left running: sleep"}
	gone := &kernelResult{Kernel: "7.2", Unavailable: "kernel 7.2 is not to be had (x)"}
	r := complete(old, young, gone)
	r.packages = append(r.packages, &testPackage{name: "bpf"}, &testPackage{name: "cmd/xdpl2", err: errors.New("no\nbuild")})
	var out bytes.Buffer
	r.print(newPrinter(&out))
	const want = `
Failed tests:
  6.12: internal/lab TestA: failed
        a_test.go:1: bad

Skipped tests:
  5.10: needs tcx
    internal/lab TestTCX
  5.10, 6.12: not for guests: a rig
    internal/lab TestRig

Slowest tests:
   12.3 s on 5.10: internal/lab TestA

Left behind by tests:
  6.12: internal/lab: left running: sleep

Kernels that are not to be had:
  kernel 7.2 is not to be had (x)

Problems:
  cmd/xdpl2: its tests cannot be built: no
    build
  6.12: kernel log: WARNING: x

package        5.10              6.12
                                 no BTF
internal/lab   1 ok, 2 skipped   1 ok, 1 FAILED, 1 skipped, CUT
bpf            NOT RUN           NOT RUN
cmd/xdpl2      NOT BUILT         NOT BUILT
problems       none              1
boot / whole   4 s / 21 s        0 s / 0 s
CPU time       20 s              0 s

Tests that no kernel ran are not looked for: a kernel is missing.

2 passed, 3 failed, 3 skipped
`
	if got := out.String(); got != want {
		t.Errorf("printed\n%s\nwant\n%s", got, want)
	}
}

func TestReportJSON(t *testing.T) {
	var out bytes.Buffer
	if err := complete(onKernel("5.10", "TestA passed", "TestB skipped x")).printJSON(&out); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Green                   bool
		Passed, Failed, Skipped int
		Problems                []string
		Kernels                 []struct {
			Kernel   string
			Packages []struct{ Name string }
		}
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Green || got.Passed != 1 || got.Skipped != 1 || len(got.Problems) != 1 ||
		len(got.Kernels) != 1 || got.Kernels[0].Packages[0].Name != "internal/lab" {
		t.Errorf("got %+v", got)
	}
}
