// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

// frame is shorthand for a frame of a script.
func frame(kind guest.Kind, subject, text string) guest.Frame {
	return guest.Frame{Kind: kind, Subject: subject, Text: text}
}

// script replays what a guest tells and returns its result and what was
// printed.
func script(t *testing.T, c *config, frames ...guest.Frame) (*kernelResult, string) {
	t.Helper()
	var out bytes.Buffer
	result := &kernelResult{Kernel: "5.10"}
	g := &guestRun{runner: &runner{config: c, out: newPrinter(&out)}, result: result}
	for _, f := range frames {
		g.take(f)
	}
	g.conclude()
	return result, out.String()
}

// whole are the frames of a guest that comes to its end, around those given.
func whole(frames ...guest.Frame) []guest.Frame {
	all := []guest.Frame{frame(guest.Hello, "5.10.0-test", ""), frame(guest.Ready, "", "")}
	return append(append(all, frames...), frame(guest.Done, "", ""))
}

// tested are the frames of one package.
func tested(output, exit string) []guest.Frame {
	return []guest.Frame{
		frame(guest.Begin, "internal/lab", ""),
		frame(guest.List, "internal/lab", "TestA\nTestB\nBenchmarkC\nok\n"),
		frame(guest.Output, "internal/lab", output),
		frame(guest.End, "internal/lab", exit),
	}
}

const (
	passA = "\x16=== RUN   TestA\n\x16--- PASS: TestA (0.00s)\n"
	passB = "\x16=== RUN   TestB\n\x16--- PASS: TestB (0.00s)\n"
	failB = "\x16=== RUN   TestB\n    b_test.go:1: bad\n\x16--- FAIL: TestB (0.00s)\n"
	skipB = "\x16=== RUN   TestB\n    b_test.go:1: no tcx\n\x16--- SKIP: TestB (0.00s)\n"
)

func TestGuestVerdict(t *testing.T) {
	warning := "[    1.0] WARNING: CPU: 0 PID: 1 at net/core/dev.c:1"
	tests := []struct {
		name     string
		frames   []guest.Frame
		counts   string
		problems []string
	}{
		{"all well", whole(tested(passA+passB, guest.Exited)...), "2 ok", nil},
		{"a failed test", whole(tested(passA+failB, "exit status 1")...), "1 ok, 1 FAILED", nil},
		{"a skipped test", whole(tested(passA+skipB, guest.Exited)...), "1 ok, 1 skipped", nil},
		{"a test that is not there", whole(tested(passA, guest.Exited)...), "1 ok, 1 not run", nil},
		{"output in pieces", whole(
			frame(guest.Begin, "internal/lab", ""),
			frame(guest.List, "internal/lab", "Tes"), frame(guest.List, "internal/lab", "tA\n"),
			frame(guest.Output, "internal/lab", passA[:9]), frame(guest.Output, "internal/lab", passA[9:]),
			frame(guest.End, "internal/lab", guest.Exited)), "1 ok", nil},
		{"exit without a failed test", whole(tested(passA+passB, "exit status 2")...), "2 ok",
			[]string{"internal/lab: exit status 2 without a failed test"}},
		{"killed in a test", whole(tested("\x16=== RUN   TestA\n", "signal: killed")...), "1 FAILED, 1 not run", nil},
		{"nothing printed", whole(tested("", guest.Exited)...), "2 not run", nil},
		{"no exit line", append([]guest.Frame{frame(guest.Ready, "", "")}, tested(passA+passB, guest.Exited)...), "2 ok",
			[]string{"the guest ended without its exit line, between packages"}},
		{"no exit line, in a package", append([]guest.Frame{frame(guest.Ready, "", "")}, tested(passA, guest.Exited)[:3]...), "1 ok, 1 not run",
			[]string{"the guest ended without its exit line, in internal/lab"}},
		{"nothing at all", nil, "",
			[]string{"the guest ended without its exit line, before any test"}},
		{"kernel warning", whole(frame(guest.Log, guest.FromKernel, warning)), "", []string{"kernel log: " + warning}},
		{"kernel warning twice", whole(frame(guest.Log, guest.FromKernel, warning), frame(guest.Raw, "", warning)), "",
			[]string{"kernel log: " + warning}},
		{"a program's warning", whole(frame(guest.Log, guest.FromUser, warning)), "", nil},
		{"a test's warning", whole(tested(warning+"\n"+passA+passB, guest.Exited)...), "2 ok", nil},
		{"panic on the console", whole(frame(guest.Raw, "", "[    1.0] Kernel panic - not syncing: x")), "",
			[]string{"kernel log: [    1.0] Kernel panic - not syncing: x"}},
		{"dying init", whole(frame(guest.Raw, "", "init: read plan: x")), "", []string{"kernel log: init: read plan: x"}},
		{"harmless text on the console", whole(frame(guest.Raw, "", "[    1.0] random: crng init done")), "", nil},
		{"damaged frame", whole(frame(guest.Damaged, "", "deadbeef")), "",
			[]string{`a line of the console is damaged: "deadbeef"`}},
		{"problem of the guest", whole(frame(guest.Problem, "", "load module veth: x")), "", []string{"load module veth: x"}},
		{"note", whole(frame(guest.Note, "internal/lab", "left running: x")), "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			result, _ := script(t, &config{}, tt.frames...)
			if got, want := fmt.Sprintf("%q", result.Problems), fmt.Sprintf("%q", tt.problems); got != want {
				t.Errorf("problems are %s, want %s", got, want)
			}
			counts := ""
			if p := result.pkg("internal/lab"); p != nil {
				counts = p.count().String()
			}
			if counts != tt.counts {
				t.Errorf("counts are %q, want %q", counts, tt.counts)
			}
			red := len(tt.problems) > 0 || strings.Contains(tt.counts, "FAILED")
			if (result.verdict() == "red") != red {
				t.Errorf("verdict is %s", result.verdict())
			}
		})
	}
}

// With a filter, tests that do not match are not missing.
func TestGuestFilter(t *testing.T) {
	result, _ := script(t, &config{filter: "TestA"}, whole(tested(passA, guest.Exited)...)...)
	if got := result.pkg("internal/lab").count().String(); got != "1 ok" {
		t.Errorf("counts are %q", got)
	}
}

func TestGuestOutput(t *testing.T) {
	frames := whole(append(tested("printed\x1b[31m\n"+passA+failB, "exit status 1"),
		frame(guest.Log, guest.FromKernel, "[    1.0] device veth0 entered promiscuous mode"),
		frame(guest.Log, guest.FromKernel, "[    2.0] Internal error: Oops: 96000004"))...)
	for _, tt := range []struct {
		name      string
		verbose   bool
		want, not []string
	}{
		{"plain", false, []string{
			"5.10 | printed?[31m\n", "5.10 | --- PASS: TestA", "5.10 |     b_test.go:1: bad\n",
			"5.10 # [    2.0] Internal error", "5.10: ready after", "1 ok, 1 FAILED",
		}, []string{"=== RUN", "promiscuous"}},
		{"verbose", true, []string{"5.10 | === RUN   TestA", "5.10 # [    1.0] device veth0"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, out := script(t, &config{verbose: tt.verbose}, frames...)
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("%q is not printed:\n%s", want, out)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(out, not) {
					t.Errorf("%q is printed:\n%s", not, out)
				}
			}
		})
	}
}

// A guest that ends too early shows its last lines, those of the kernel and of
// the tests in their order.
func TestGuestLastLines(t *testing.T) {
	frames := []guest.Frame{frame(guest.Begin, "p", "")}
	for i := range 100 {
		frames = append(frames, frame(guest.Output, "p", fmt.Sprintf("line %d\n", i)))
	}
	frames = append(frames, frame(guest.Raw, "", "[    9.0] Kernel panic"), frame(guest.Output, "p", "half a line"))
	_, out := script(t, &config{}, frames...)
	_, last, found := strings.Cut(out, "last 50 lines:\n")
	if !found {
		t.Fatalf("no last lines:\n%s", out)
	}
	lines := strings.Split(strings.TrimSuffix(last, "\n"), "\n")
	if len(lines) != 50 || lines[0] != "5.10 > line 52" ||
		lines[48] != "5.10 > [    9.0] Kernel panic" || lines[49] != "5.10 > half a line" {
		t.Errorf("last lines are %q", lines)
	}
}

func TestTrouble(t *testing.T) {
	for text, want := range map[string]bool{
		"BUG: unable to handle page fault":                     true,
		"kernel BUG at net/core/skbuff.c:100!":                 true,
		"watchdog: BUG: soft lockup - CPU#0 stuck":             true,
		"Internal error: Oops: 96000004 [#1] SMP":              true,
		"Internal error: synchronous external abort: 96000210": true,
		"WARNING: CPU: 0 PID: 1 at kernel/softirq.c:1":         true,
		"Kernel panic - not syncing: Attempted to kill init!":  true,
		"Initramfs unpacking failed: write error":              true,
		"Out of memory: Killed process 9 (lab.test)":           true,
		"DEBUG: nothing":                  false,
		"BUGS are welcome":                false,
		"8021q: 802.1Q VLAN Support v1.8": false,
		"bridge: filtering via arp/ip/ip6tables is no longer on": false,
		"Run /init as init process":                              false,
	} {
		if got := trouble("[    1.000000] " + text); got != want {
			t.Errorf("trouble(%q) is %v", text, got)
		}
	}
}
