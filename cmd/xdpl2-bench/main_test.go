// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// The end-to-end tests run the real program: the test binary turns into it
// when it is started with this variable.
const asProgram = "XDPL2_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	code := m.Run()
	if buildDir != "" {
		os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

// buildDir is where programs that tests build are; made when the first one is.
var buildDir string

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"version", exitFine, "xdpl2-bench " + version, ""},
		{"version --json", exitFine, `"version": "` + version + `"`, ""},
		{"help", exitFine, "Usage: xdpl2-bench COMMAND", ""},
		{"--help", exitFine, "demo", ""},
		{"help demo", exitFine, "--xdpl2 PATH", ""},
		{"demo --help", exitFine, "Usage: xdpl2-bench demo [OPTION]...", ""},
		{"", exitUsage, "", "a command is missing"},
		{"nonsense", exitUsage, "", `unknown command "nonsense"`},
		{"demo --nonsense", exitUsage, "", "demo: flag provided but not defined"},
		{"demo x", exitUsage, "", `demo: unexpected argument "x"`},
		{"demo --shell --json", exitUsage, "", "--shell goes with neither"},
		{"inside x", exitUsage, "", "a namespace and a program are needed"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), strings.Fields(c.args), &env{stdout: &stdout, stderr: &stderr})
		if code != c.code || !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%q: exit code %d (want %d)\nstdout %q (want %q)\nstderr %q (want %q)",
				c.args, code, c.code, stdout.String(), c.stdout, stderr.String(), c.stderr)
		}
		if c.code == exitFine && stderr.Len() > 0 || strings.Contains(stdout.String(), "inside") {
			t.Errorf("%q: stdout %q, stderr %q", c.args, stdout.String(), stderr.String())
		}
	}
}

// TestMissing shows that what is missing is told at once, and nothing is
// started.
func TestMissing(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"demo", "--xdpl2", "/nonexistent/xdpl2"}, &env{stdout: &stdout, stderr: &stderr})
	if code != exitFailed || stdout.Len() > 0 || !strings.Contains(stderr.String(), "The demo cannot run here:") ||
		!strings.Contains(stderr.String(), "/nonexistent/xdpl2") {
		t.Errorf("exit code %d\nstdout %q\nstderr %q", code, stdout.String(), stderr.String())
	}
	if os.Geteuid() != 0 && !strings.Contains(stderr.String(), "run it with sudo") {
		t.Errorf("stderr %q", stderr.String())
	}
}
