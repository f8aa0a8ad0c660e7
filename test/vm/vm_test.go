// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/xdpl2/xdpl2/test/vm/kernels"
)

// The tests in this file boot guests, as a user would: through the command.

// selftest is where the packages lie that they run.
const selftest = "./test/vm/testdata/selftest/"

// available names the kernels that can be had without the network.
var available = sync.OnceValues(func() ([]string, error) {
	ctx := context.Background()
	m, err := findModule(ctx)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "xdpl2-vm-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	source, err := (&runner{config: &config{noDownload: true}, module: m, work: work}).source()
	if err != nil {
		return nil, err
	}
	var names []string
	for _, r := range kernels.Releases {
		if _, err := source.Get(ctx, r.Name); err == nil {
			names = append(names, r.Name)
		}
	}
	return names, nil
})

// needGuests skips a test where guests cannot be booted, and returns the
// kernels.
func needGuests(t *testing.T) []string {
	t.Helper()
	if testing.Short() {
		t.Skip("boots guests, which takes too long for -short")
	}
	if _, err := findQEMU(); err != nil {
		t.Skip(err)
	}
	names, err := available()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		t.Skip("no kernel: there is no ../shared/kernels, and the cache is empty (a run of the command fills it)")
	}
	return names
}

// command runs the command and checks that it leaves nothing.
func command(t *testing.T, stdin io.Reader, args ...string) (string, error) {
	t.Helper()
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	var out bytes.Buffer
	err := run(t.Context(), append(args, "--no-download"), stdin, &out, &out)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the command printed:\n%s", out.String())
		}
	})
	checkNothingLeft(t, tmp)
	return out.String(), err
}

// checkNothingLeft looks for files, and for programs that were given them.
func checkNothingLeft(t *testing.T, tmp string) {
	t.Helper()
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range lines {
		if line, err := os.ReadFile(file); err == nil && bytes.Contains(line, []byte(tmp)) {
			t.Errorf("a program is left: %q", line)
		}
	}
}

// wantRed checks that a run was carried out and is red, and what it says.
func wantRed(t *testing.T, out string, err error, want ...string) {
	t.Helper()
	if !errors.Is(err, errRed) {
		t.Errorf("error is %v, want %v", err, errRed)
	}
	if strings.Contains(out, ", 0 failed,") {
		t.Error("the summary of a red run reads like a green one")
	}
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("output lacks %q", w)
		}
	}
}

func TestGuestRed(t *testing.T) {
	kernel := needGuests(t)[0]
	out, err := command(t, nil, "--kernel", kernel, "--packages", selftest+"red")
	wantRed(t, out, err,
		kernel+": test/vm/testdata/selftest/red TestFails/sub: failed",
		"red_test.go:36: fails on purpose",
		": skipped on purpose\n",
		"WARNING: renamed from red0",
		"left running: sleep 1000",
		"left behind: network device WARNING",
		"6 ok, 1 FAILED, 2 skipped",
		// One failed test and one warning of the kernel: the words of programs
		// do not count.
		"\n6 passed, 2 failed, 2 skipped\n",
	)
}

// Tests that no kernel runs are found when every kernel runs.
func TestGuestSkippedEverywhere(t *testing.T) {
	names := needGuests(t)
	if len(names) < len(kernels.Releases) {
		t.Skipf("needs every kernel, there is only %s", strings.Join(names, ", "))
	}
	out, err := command(t, nil, "--packages", selftest+"skipped")
	wantRed(t, out, err,
		"selftest/skipped TestSkips: skipped on every kernel: skipped on every kernel on purpose",
		"\n4 passed, 1 failed, 8 skipped\n",
	)
	if strings.Contains(out, "TestRig: skipped on every kernel") {
		t.Error("a test that is declared not to be for guests counts")
	}
	for _, name := range names {
		if !strings.Contains(out, name+": ready after") {
			t.Errorf("kernel %s was not booted", name)
		}
	}
}

// A kernel that is not to be had is named, and the others are run.
func TestGuestGreen(t *testing.T) {
	kernel := needGuests(t)[0]
	out, err := command(t, nil, "--kernel", kernel+",2.4",
		"--packages", "./test/vm/cpio,./test/vm/testlog", "--run", "^TestWriter|^TestParser$")
	if err != nil {
		t.Errorf("error is %v", err)
	}
	for _, want := range []string{" 0 failed, 0 skipped\n", "\n  kernel 2.4 is not to be had"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q", want)
		}
	}
}

func TestGuestPanic(t *testing.T) {
	kernel := needGuests(t)[0]
	out, err := command(t, nil, "--kernel", kernel, "--packages", selftest+"panic")
	wantRed(t, out, err,
		"TestPanic: unfinished",
		"Kernel panic - not syncing: sysrq triggered crash",
		"the guest ended without its exit line, in test/vm/testdata/selftest/panic",
		"last 50 lines:",
		"1 FAILED, CUT",
	)
}

func TestGuestPowerOff(t *testing.T) {
	kernel := needGuests(t)[0]
	out, err := command(t, nil, "--kernel", kernel, "--packages", selftest+"poweroff")
	wantRed(t, out, err,
		"TestPowerOff: unfinished",
		"the guest ended without its exit line, in test/vm/testdata/selftest/poweroff",
	)
}

func TestGuestHang(t *testing.T) {
	kernel := needGuests(t)[0]
	out, err := command(t, nil, "--kernel", kernel, "--timeout", "8s", "--packages", selftest+"hang")
	wantRed(t, out, err,
		"TestHang: unfinished",
		kernel+": hang: the tests were cut at the limit of 8s",
		"last 50 lines:",
		kernel+" > line 99 before the hang",
	)
	if strings.Contains(out, kernel+" > line 30 before the hang") {
		t.Error("more than the last 50 lines are shown")
	}
}

func TestGuestShell(t *testing.T) {
	kernel := needGuests(t)[0]
	programs := shellPrograms // building them is not tested here
	shellPrograms = nil
	t.Cleanup(func() { shellPrograms = programs })
	out, err := command(t, strings.NewReader("echo $((6*7)) answers\n"), "--kernel", kernel, "--shell")
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{"leaves", "42 answers"} {
		if !strings.Contains(out, want) {
			t.Errorf("output lacks %q", want)
		}
	}
}

// interrupter is a terminal at which somebody hits Ctrl-C once a text appears.
type interrupter struct {
	text string
	hit  context.CancelFunc
	all  bytes.Buffer
}

func (i *interrupter) Write(p []byte) (int, error) {
	n, err := i.all.Write(p)
	if strings.Contains(i.all.String(), i.text) {
		i.hit()
	}
	return n, err
}

func TestGuestInterrupted(t *testing.T) {
	kernel := needGuests(t)[0]
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &interrupter{text: "line 99", hit: cancel}
	err := run(ctx, []string{"--kernel", kernel, "--packages", selftest + "hang", "--no-download"}, nil, out, out)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	checkNothingLeft(t, tmp)
}

func TestNoKernel(t *testing.T) {
	if _, err := findQEMU(); err != nil {
		t.Skip(err)
	}
	if _, err := command(t, nil, "--kernel", "2.4"); err == nil || !strings.Contains(err.Error(), "no kernel") {
		t.Errorf("error is %v", err)
	}
}
