// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// realUCI returns the uci program to compare with, which a router has and a
// machine for development has not.
func realUCI(t *testing.T) string {
	t.Helper()
	path := os.Getenv("XDPL2_UCI")
	if path == "" {
		path = "uci"
	}
	path, err := exec.LookPath(path)
	if err != nil {
		t.Skipf("no uci program to compare with: %v (XDPL2_UCI names one)", err)
	}
	return path
}

// runUCI runs the program on the directories of a tree.
func runUCI(t *testing.T, program string, tree *Tree, args ...string) outcome {
	t.Helper()
	cmd := exec.Command(program, append([]string{"-c", tree.configDir, "-t", tree.saveDir}, args...)...)
	cmd.Args[0] = "uci" // the name in its messages
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcome{Exit: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}

// soup strings random pieces together.
func soup(r *rand.Rand, pieces []string, n int) string {
	var b strings.Builder
	for range r.Intn(n) {
		b.WriteString(pieces[r.Intn(len(pieces))])
	}
	return b.String()
}

var (
	filePieces = []string{
		"config", "option", "list", "package", "c", "o", "l", " ", " ", " ", "\t", "\n", "\n", "\n", "\r\n",
		"'", "'", "\"", "\\", "\\\n", ";", " ; ", "#", "a", "b", "xdpl2", "main", "cfg01614a", "port", "-", "\x00",
		"\nconfig port 'a'\n", "\nconfig port\n", "\n\toption a 'x'\n", "\n\tlist a 'y z'\n", "\n\toption b \"z\"\n",
		"\nconfig xdpl2 main\n", "ä", "\v", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "'x'", "''", "\n\toption c w\n",
	}
	stagedPieces = []string{
		"xdpl2.main.mode='x'\n", "xdpl2.main='port'\n", "+xdpl2.cfg04614a='port'\n", "+xdpl2.main='port'\n",
		"-xdpl2.main.mode\n", "-xdpl2.main.skip='1'\n", "-xdpl2.cfg02614a\n", "@xdpl2.main='other'\n",
		"@xdpl2.cfg02614a='main'\n", "@xdpl2.main.mode='skip'\n", "^xdpl2.main='2'\n", "^xdpl2.cfg03614a='0'\n",
		"|xdpl2.main.skip='c'\n", "|xdpl2.main.mode='c'\n", "~xdpl2.main.skip='a'\n", "xdpl2.cfg02614a.device='v'\n",
		"xdpl2.main.mode=''\n", "xdpl2.new='station'\n", "xdpl2.new.a='b'\n", "xdpl2.cfg02614a='longer'\n",
		"xdpl2.cfg02614a='four'\n", "\n", "'", "=", ".", "-", "#", ";", " ", "\\", "\\\n", "\x00", "x", "xdpl2.", "main", "\r\n",
	}
)

// TestSoup compares with the uci program what random files and staged changes
// mean, what commands make of them, and what a commit writes.
func TestSoup(t *testing.T) {
	program := realUCI(t)
	rounds := 300
	if s := os.Getenv("XDPL2_UCI_ROUNDS"); s != "" {
		rounds, _ = strconv.Atoi(s)
	}
	commands := []string{
		"set xdpl2.main.mode=y", "set xdpl2.@port[-1].device=q", "add xdpl2 port", "add_list xdpl2.main.skip=n",
		"del_list xdpl2.main.skip=a", "delete xdpl2.@port[0]", "delete xdpl2.main.skip=1", "reorder xdpl2.@[-1]=0",
		"rename xdpl2.@[0]=first", "set xdpl2.new=station", "set xdpl2.@[0]=wide", "revert xdpl2.main.mode",
		"set xdpl2.main.mode=", "get xdpl2.@[-1]", "revert xdpl2.main", "reorder xdpl2.main=1",
	}
	seed := rand.Int63()
	r := rand.New(rand.NewSource(seed))
	for i := range rounds {
		t.Run(fmt.Sprintf("%d/%d", seed, i), func(t *testing.T) {
			dir := t.TempDir()
			file, staged := fuzzConfig, ""
			switch i % 3 {
			case 0:
				file = soup(r, filePieces, 40)
			case 1:
				staged = soup(r, stagedPieces, 20)
			}
			trees := [2]*Tree{}
			for i := range trees {
				trees[i] = NewTree(filepath.Join(dir, fmt.Sprint("config", i)), filepath.Join(dir, fmt.Sprint("save", i)))
				for path, text := range map[string]string{trees[i].configDir: file, trees[i].saveDir: staged} {
					if err := os.Mkdir(path, 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(path, "xdpl2"), []byte(text), 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("file %q\nstaged %q", file, staged)
				}
			})
			compare := func(args ...string) {
				t.Helper()
				got, want := cli(trees[0], args), runUCI(t, program, trees[1], args...)
				got.Argv = nil
				equal(t, fmt.Sprintf("%q", args), got, want)
			}
			compare("show", "xdpl2")
			compare("-X", "show", "xdpl2")
			compare("changes", "xdpl2")
			if i%3 == 2 {
				for range r.Intn(8) {
					compare(strings.SplitN(commands[r.Intn(len(commands))], " ", 3)...)
				}
				compare("changes", "xdpl2")
			}
			if strings.Contains(staged, "=''") {
				// A staged line that sets to nothing, which uci never writes,
				// makes libuci delete once more, at the end of the commit,
				// and what was set in between is lost. Not here.
				return
			}
			compare("commit", "xdpl2")
			compare("-X", "show", "xdpl2")
			for i := range 2 {
				a, _ := os.ReadFile(filepath.Join([]string{trees[0].configDir, trees[0].saveDir}[i], "xdpl2"))
				b, _ := os.ReadFile(filepath.Join([]string{trees[1].configDir, trees[1].saveDir}[i], "xdpl2"))
				equal(t, "file", string(a), string(b))
			}
		})
	}
}
