// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/test/vm/testlog"
)

// A kernelResult is what one guest told.
type kernelResult struct {
	Kernel      string           `json:"kernel"`
	Setting     string           `json:"setting,omitempty"`
	Release     string           `json:"release,omitempty"`
	Unavailable string           `json:"unavailable,omitempty"` // why there is no such kernel
	BootSeconds float64          `json:"boot_seconds,omitempty"`
	Seconds     float64          `json:"seconds,omitempty"`
	CPUSeconds  float64          `json:"cpu_seconds,omitempty"` // processor time of QEMU
	Packages    []*packageResult `json:"packages,omitempty"`
	Problems    []string         `json:"problems,omitempty"` // what makes it red besides failed tests
	Notes       []string         `json:"notes,omitempty"`
}

// A packageResult is what one test binary did in one guest.
type packageResult struct {
	Name    string          `json:"name"`
	Exit    string          `json:"exit,omitempty"` // empty: it did not come to its end
	Seconds float64         `json:"seconds"`
	Tests   []*testlog.Test `json:"tests,omitempty"`
}

// problem adds what makes the guest red.
func (k *kernelResult) problem(format string, args ...any) {
	k.Problems = append(k.Problems, fmt.Sprintf(format, args...))
}

func (k *kernelResult) newPackage(name string) *packageResult {
	p := &packageResult{Name: name}
	k.Packages = append(k.Packages, p)
	return p
}

// pkg returns a package's result, or nil.
func (k *kernelResult) pkg(name string) *packageResult {
	for _, p := range k.Packages {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// verdict is the guest's result in a word.
func (k *kernelResult) verdict() string {
	failed := len(k.Problems)
	for _, p := range k.Packages {
		failed += p.count().failed
	}
	if failed > 0 {
		return "red"
	}
	return "green"
}

// counts are numbers of tests. A test with subtests is not counted itself,
// unless it failed and none of them did.
type counts struct{ passed, failed, skipped, missing int }

func (c counts) String() string {
	if c == (counts{}) {
		return "no tests"
	}
	var parts []string
	for _, part := range []struct {
		n    int
		word string
	}{{c.passed, "ok"}, {c.failed, "FAILED"}, {c.skipped, "skipped"}, {c.missing, "not run"}} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprint(part.n, " ", part.word))
		}
	}
	return strings.Join(parts, ", ")
}

// count counts a package's tests.
func (p *packageResult) count() counts {
	var c counts
	for _, t := range p.Tests {
		switch {
		case t.Status == testlog.Failed || t.Status == testlog.Unfinished:
			if !p.hasFailedSubtest(t.Name) {
				c.failed++
			}
		case p.hasSubtest(t.Name):
		case t.Status == testlog.Passed:
			c.passed++
		case t.Status == testlog.Skipped:
			c.skipped++
		default:
			c.missing++
		}
	}
	return c
}

func (p *packageResult) hasSubtest(name string) bool {
	return slices.ContainsFunc(p.Tests, func(t *testlog.Test) bool { return strings.HasPrefix(t.Name, name+"/") })
}

func (p *packageResult) hasFailedSubtest(name string) bool {
	return slices.ContainsFunc(p.Tests, func(t *testlog.Test) bool {
		return strings.HasPrefix(t.Name, name+"/") && (t.Status == testlog.Failed || t.Status == testlog.Unfinished)
	})
}

// A report is what a whole run found.
type report struct {
	packages []*testPackage
	kernels  []*kernelResult
	complete bool // every kernel was asked for, with all tests
}

func newReport(packages []*testPackage, results []*kernelResult) *report {
	return &report{packages: packages, kernels: results}
}

// missingKernels are those that were not to be had.
func (r *report) missingKernels() []*kernelResult {
	return slices.DeleteFunc(slices.Clone(r.kernels), func(k *kernelResult) bool { return k.Unavailable == "" })
}

// booted are the kernels that could be had.
func (r *report) booted() []*kernelResult {
	return slices.DeleteFunc(slices.Clone(r.kernels), func(k *kernelResult) bool { return k.Unavailable != "" })
}

// problems are all that makes the run red besides failed tests.
func (r *report) problems() []string {
	var all []string
	for _, p := range r.packages {
		if p.err != nil {
			all = append(all, fmt.Sprintf("%s: its tests cannot be built: %v", p.name, p.err))
		}
	}
	for _, k := range r.kernels {
		for _, p := range k.Problems {
			all = append(all, k.Kernel+": "+p)
		}
	}
	if r.checksUnrun() {
		all = append(all, r.unrun()...)
	}
	if c := r.total(); c.passed+c.failed == 0 {
		all = append(all, "no test was run")
	}
	return all
}

// total counts the tests of all kernels.
func (r *report) total() counts {
	var c counts
	for _, k := range r.kernels {
		for _, p := range k.Packages {
			n := p.count()
			c.passed += n.passed
			c.failed += n.failed
			c.skipped += n.skipped
			c.missing += n.missing
		}
	}
	return c
}

// green tells whether everything is well.
func (r *report) green() bool {
	return r.total().failed == 0 && len(r.problems()) == 0
}

// checksUnrun tells whether tests that no kernel ran count: only if every
// kernel was there to run them.
func (r *report) checksUnrun() bool {
	return r.complete && len(r.missingKernels()) == 0
}

// unrun finds the tests and subtests that were skipped or missing wherever
// they could have run, except for those that are declared not to be for guests.
// A binary that ends early may miss many: these share a line.
func (r *report) unrun() []string {
	var found []string
	for _, p := range r.packages {
		var missing []string
		for _, t := range r.acrossKernels(p.name) {
			switch {
			case t.ran || declared(t.reasons):
			case len(t.reasons) == 0:
				missing = append(missing, t.name)
			default:
				found = append(found, fmt.Sprintf("%s %s: skipped on every kernel: %s", p.name, t.name, strings.Join(t.reasons, "; ")))
			}
		}
		if len(missing) > 0 {
			found = append(found, fmt.Sprintf("%s: ran on no kernel: %s", p.name, strings.Join(missing, " ")))
		}
	}
	return found
}

// testAcross is what all kernels did with one test.
type testAcross struct {
	name    string
	ran     bool
	reasons []string // of its skips, each once
}

// acrossKernels brings together what the kernels did with a package's tests.
func (r *report) acrossKernels(pkg string) []*testAcross {
	var tests []*testAcross
	byName := map[string]*testAcross{}
	for _, k := range r.kernels {
		result := k.pkg(pkg)
		if result == nil {
			continue
		}
		for _, t := range result.Tests {
			a := byName[t.Name]
			if a == nil {
				a = &testAcross{name: t.Name}
				byName[t.Name] = a
				tests = append(tests, a)
			}
			switch t.Status {
			case testlog.Missing:
			case testlog.Skipped:
				a.reasons = addOnce(a.reasons, t.Reason)
			default:
				a.ran = true
			}
		}
	}
	return tests
}

// declared tells whether every reason says that a test is not for guests.
func declared(reasons []string) bool {
	return len(reasons) > 0 && !slices.ContainsFunc(reasons, func(s string) bool {
		return !strings.Contains(s, testlog.NotForGuests)
	})
}

// printJSON writes the report for programs.
func (r *report) printJSON(w io.Writer) error {
	c := r.total()
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	err := out.Encode(struct {
		Green    bool            `json:"green"`
		Passed   int             `json:"passed"`
		Failed   int             `json:"failed"`
		Skipped  int             `json:"skipped"`
		NotRun   int             `json:"not_run"`
		Problems []string        `json:"problems"`
		Kernels  []*kernelResult `json:"kernels"`
	}{r.green(), c.passed, c.failed, c.skipped, c.missing, r.problems(), r.kernels})
	if err != nil {
		return fmt.Errorf("write JSON: %w", err)
	}
	return nil
}
