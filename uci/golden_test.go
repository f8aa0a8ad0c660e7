// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// goldenDir returns the folder with all recorded cases. It is not part of the
// repository: where it is absent, the cases in testdata have to do.
func goldenDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("XDPL2_GOLDEN")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "golden")
	}
	dir = filepath.Join(dir, "uci")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("no recorded cases: %v (XDPL2_GOLDEN names the folder that has uci/ in it)", err)
	}
	return dir
}

// goldenCase is one recorded case: files, staged changes, and what uci said.
type goldenCase struct {
	dir      string
	Package  string
	Packages []string
	Delta    *string `json:"delta_source"`
	Result   string
	Commit   *outcome
}

// outcome is how a command ended.
type outcome struct {
	Argv      []string
	Path      string
	Exit      int
	Stdout    string
	Stderr    string
	StdoutB64 []byte `json:"stdout_b64"`
	StderrB64 []byte `json:"stderr_b64"`
}

// plain moves output that is no UTF-8, and therefore recorded in base64, to where
// the other is.
func (o outcome) plain() outcome {
	o.Stdout += string(o.StdoutB64)
	o.Stderr += string(o.StderrB64)
	o.StdoutB64, o.StderrB64 = nil, nil
	return o
}

func TestRecorded(t *testing.T) { testCases(t, goldenDir(t)) }

func TestRepresentative(t *testing.T) { testCases(t, filepath.Join("testdata", "golden")) }

func testCases(t *testing.T, dir string) {
	dirs, err := filepath.Glob(filepath.Join(dir, "*", "case.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	for _, d := range dirs {
		c := &goldenCase{dir: filepath.Dir(d)}
		t.Run(filepath.Base(c.dir), func(t *testing.T) {
			c.json(t, "case.json", c)
			c.run(t)
		})
	}
}

// file returns a file of the case, which may be compressed.
func (c *goldenCase) file(t *testing.T, name string) ([]byte, bool) {
	t.Helper()
	path := filepath.Join(c.dir, filepath.FromSlash(name))
	data, err := os.ReadFile(path)
	if err == nil {
		return data, true
	}
	for _, ext := range []string{".gz", ".gz.gz"} {
		if data, err = os.ReadFile(path + ext); err == nil {
			for range strings.Count(ext, ".gz") {
				z, err := gzip.NewReader(bytes.NewReader(data))
				if err != nil {
					break // named twice, packed once
				}
				if data, err = io.ReadAll(z); err != nil {
					t.Fatal(err)
				}
			}
			return data, true
		}
	}
	return nil, false
}

func (c *goldenCase) text(t *testing.T, name string) string {
	t.Helper()
	data, ok := c.file(t, name)
	if !ok {
		t.Fatalf("the case has no %s", name)
	}
	return string(data)
}

func (c *goldenCase) json(t *testing.T, name string, to any) {
	t.Helper()
	if err := json.Unmarshal([]byte(c.text(t, name)), to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// names lists the files in a folder of the case, without .gz.
func (c *goldenCase) names(t *testing.T, folder string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(c.dir, folder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".gz"))
	}
	return names
}

// tree makes a tree with the files of two folders of the case.
func (c *goldenCase) tree(t *testing.T, config, delta string) *Tree {
	t.Helper()
	dir := t.TempDir()
	tree := NewTree(filepath.Join(dir, "config"), filepath.Join(dir, "save"))
	for from, to := range map[string]string{config: tree.configDir, delta: tree.saveDir} {
		if err := os.Mkdir(to, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range c.names(t, from) {
			data := c.text(t, from+"/"+name)
			if err := os.WriteFile(filepath.Join(to, name), []byte(data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	return tree
}

func (c *goldenCase) run(t *testing.T) {
	tree := c.tree(t, "config", "delta")
	if c.Result == "error" {
		c.checkError(t, tree)
	} else {
		c.checkRead(t, tree)
	}
	c.checkLenient(t)
	c.checkCommands(t)
	c.checkCommit(t)
}

// checkCommands gives the recorded commands, and looks at the files after.
func (c *goldenCase) checkCommands(t *testing.T) {
	if _, ok := c.file(t, "commands.json"); !ok {
		return
	}
	initial := "config"
	if len(c.names(t, "initial")) > 0 {
		initial = "initial"
	}
	tree := c.tree(t, initial, "none")
	var commands []outcome
	c.json(t, "commands.json", &commands)
	for _, want := range commands {
		got := cli(tree, want.Argv)
		if want = want.plain(); want.Exit == 255 {
			want.Stderr = "" // how to use the program
		}
		equal(t, strings.Join(want.Argv, " "), got, want)
	}
	c.checkFolder(t, "config", tree.configDir)
	c.checkFolder(t, "delta", tree.saveDir)
}

// checkCommit commits everything, and looks at the files and what they say.
func (c *goldenCase) checkCommit(t *testing.T) {
	tree := c.tree(t, "config", "delta")
	if c.Commit == nil {
		// Without changes a commit changes nothing.
		cli(tree, []string{"commit"})
		c.checkFolder(t, "config", tree.configDir)
		return
	}
	equal(t, "commit", cli(tree, []string{"commit"}), outcome{
		Argv: []string{"commit"}, Exit: c.Commit.Exit, Stdout: c.Commit.Stdout, Stderr: c.Commit.Stderr,
	})
	c.checkFolder(t, "committed", tree.configDir)
	for _, name := range c.names(t, "delta") {
		left, err := os.ReadFile(filepath.Join(tree.saveDir, name))
		if err != nil {
			t.Fatal(err)
		}
		want, _ := c.file(t, "committed_delta/"+name)
		equal(t, "committed_delta/"+name, string(left), string(want))
	}
	got := cli(tree, []string{"-X", "show", c.Package})
	show := got.Stdout
	if got.Exit != 0 {
		show = fmt.Sprintf("exit %d\n%s", got.Exit, got.Stderr)
	}
	equal(t, "committed_show_x.txt", show, c.text(t, "committed_show_x.txt"))
}

// checkFolder compares a directory with a folder of the case.
func (c *goldenCase) checkFolder(t *testing.T, folder, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	equal(t, "files in "+folder, fmt.Sprint(names), fmt.Sprint(c.names(t, folder)))
	for _, name := range names {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		equal(t, folder+"/"+name, string(got), c.text(t, folder+"/"+name))
	}
}

func (c *goldenCase) checkError(t *testing.T, tree *Tree) {
	p, err := tree.Package(c.Package)
	if p != nil || err == nil {
		t.Fatalf("loaded: %v", p)
	}
	equal(t, "error.txt", fmt.Sprintf("1\nuci: %s\n", uciText(err)), c.text(t, "error.txt"))
}

func (c *goldenCase) checkRead(t *testing.T, tree *Tree) {
	p, err := tree.Package(c.Package)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "show.txt", p.Show(false), c.text(t, "show.txt"))
	equal(t, "show_x.txt", p.Show(true), c.text(t, "show_x.txt"))
	equal(t, "export.txt", p.Export(false), c.text(t, "export.txt"))
	equal(t, "export_n.txt", p.Export(true), c.text(t, "export_n.txt"))
	var changes string
	for _, name := range c.Packages {
		if p, err := tree.Package(name); err == nil {
			changes += p.Changes()
		}
	}
	equal(t, "changes.txt", changes, c.text(t, "changes.txt"))
	var lookups []outcome
	c.json(t, "lookup.json", &lookups)
	for _, l := range lookups {
		l.Argv, l.Path = []string{"get", l.Path}, ""
		equal(t, l.Argv[1], cli(tree, l.Argv), l.plain())
	}
}

func (c *goldenCase) checkLenient(t *testing.T) {
	want, ok := c.file(t, "lenient/show.txt")
	if !ok {
		return
	}
	path := filepath.Join("config", c.Package)
	p, errs := ParseLenient(c.Package, path, []byte(c.text(t, path)))
	equal(t, "lenient/show.txt", p.Show(false), string(want))
	equal(t, "lenient/show_x.txt", p.Show(true), c.text(t, "lenient/show_x.txt"))
	stderr := "0\n"
	for _, err := range errs {
		stderr += err.UCI() + "\n"
	}
	equal(t, "lenient/stderr.txt", stderr, c.text(t, "lenient/stderr.txt"))
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want)
	if s, ok := any(got).(string); ok {
		g, w = s, any(want).(string)
	}
	if g != w {
		t.Errorf("%s:\n--- got\n%s\n--- want\n%s", what, g, w)
	}
}
