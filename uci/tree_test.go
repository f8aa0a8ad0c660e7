// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const treeConfig = `# comment
config xdpl2 'main'
	option enabled 'on'
	option mode 'mac'
	list skip 'a'
	list skip 'b c'

config port
	option device 'eth1'

config port 'wan'
	option device 'eth2'
`

// newTree makes a tree with one package, xdpl2, and a staged file for it unless
// staged is empty.
func newTree(t testing.TB, config, staged string) *Tree {
	t.Helper()
	dir := t.TempDir()
	tree := NewTree(filepath.Join(dir, "config"), filepath.Join(dir, "save"))
	write(t, filepath.Join(tree.configDir, "xdpl2"), config)
	if staged != "" {
		write(t, filepath.Join(tree.saveDir, "xdpl2"), staged)
	}
	return tree
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestGet(t *testing.T) {
	tree := newTree(t, treeConfig, "xdpl2.main.mode='port'\n")
	for _, tc := range []struct {
		section, option string
		want            []string
	}{
		{"main", "mode", []string{"port"}},
		{"main", "skip", []string{"a", "b c"}},
		{"@port[0]", "device", []string{"eth1"}},
		{"@port[-1]", "device", []string{"eth2"}},
		{"@port[1]", "device", []string{"eth2"}},
		{"@[0]", "enabled", []string{"on"}},
		{"cfg02614a", "device", []string{"eth1"}},
		{"main", "nosuch", nil},
		{"nosuch", "mode", nil},
		{"@port[2]", "device", nil},
		{"@port", "device", nil},
	} {
		got, ok := tree.Get("xdpl2", tc.section, tc.option)
		if !slices.Equal(got, tc.want) || ok != (tc.want != nil) {
			t.Errorf("Get(%s, %s) = %q, %v, want %q", tc.section, tc.option, got, ok, tc.want)
		}
		last, ok := tree.GetLast("xdpl2", tc.section, tc.option)
		if ok != (tc.want != nil) || ok && last != tc.want[len(tc.want)-1] {
			t.Errorf("GetLast(%s, %s) = %q, %v, want the last of %q", tc.section, tc.option, last, ok, tc.want)
		}
	}
	if _, ok := tree.Get("nosuch", "main", "mode"); ok {
		t.Error("there is no package nosuch")
	}
	if v, ok := tree.GetBool("xdpl2", "main", "enabled"); !v || !ok {
		t.Errorf("GetBool = %v, %v", v, ok)
	}
	if v, ok := tree.GetBool("xdpl2", "main", "mode"); v || ok {
		t.Errorf("GetBool of no truth value = %v, %v", v, ok)
	}
	if names, ok := tree.GetSections("xdpl2", "port"); !ok || !slices.Equal(names, []string{"cfg02614a", "wan"}) {
		t.Errorf("GetSections = %q, %v", names, ok)
	}
	if names, ok := tree.GetSections("xdpl2", "nosuch"); !ok || len(names) != 0 {
		t.Errorf("GetSections of no type there is = %q, %v", names, ok)
	}
	if _, ok := tree.GetSections("nosuch", "port"); ok {
		t.Error("there is no package nosuch")
	}
	if names, err := tree.Configs(); err != nil || !slices.Equal(names, []string{"xdpl2"}) {
		t.Errorf("Configs = %q, %v", names, err)
	}
}

func TestParseBool(t *testing.T) {
	for value, words := range map[bool]string{true: "1 yes on true enabled", false: "0 no off false disabled"} {
		for _, w := range strings.Fields(words) {
			if got, ok := ParseBool(w); got != value || !ok {
				t.Errorf("ParseBool(%q) = %v, %v", w, got, ok)
			}
		}
	}
	for _, w := range []string{"", "2", "Yes", "ON", " 1", "y"} {
		if got, ok := ParseBool(w); got || ok {
			t.Errorf("ParseBool(%q) = %v, %v", w, got, ok)
		}
	}
}

// TestPackage checks the view that validating code works on: everything with the
// place where it was set.
func TestPackage(t *testing.T) {
	tree := newTree(t, treeConfig, "xdpl2.main.mode='port'\n|xdpl2.main.skip='d'\n\n# no change\nxdpl2.wan='lan'\n"+
		"+xdpl2.cfg04614a='port'\nxdpl2.cfg04614a.device='x\ny'\nxdpl2.nosuch.a='b'\n^xdpl2.wan='0'\nbad line\n")
	p, err := tree.Package("xdpl2")
	if err != nil {
		t.Fatal(err)
	}
	file, staged := filepath.Join(tree.configDir, "xdpl2"), filepath.Join(tree.saveDir, "xdpl2")
	place := func(f string, line int) string {
		return fmt.Sprintf("%s:%d", map[string]string{file: "file", staged: "staged"}[f], line)
	}
	var b strings.Builder
	for _, s := range p.Sections {
		fmt.Fprintf(&b, "%s %s %d %v %s\n", s.Type, s.Name, s.Index, s.Anonymous, place(s.File, s.Line))
		for _, o := range s.Options {
			fmt.Fprintf(&b, " %s %v %q %s", o.Name, o.List, o.Values, place(o.File, o.Line))
			for i := range o.Values {
				fmt.Fprintf(&b, " %s", place(o.Place(i)))
			}
			b.WriteByte('\n')
		}
	}
	equal(t, "package", b.String(), `lan wan 0 false staged:5
 device false ["eth2"] file:12 file:12
xdpl2 main 0 false file:2
 enabled false ["on"] file:3 file:3
 mode false ["port"] staged:1 staged:1
 skip true ["a" "b c" "d"] staged:2 file:5 file:6 staged:2
port cfg02614a 0 true file:8
 device false ["eth1"] file:9 file:9
port cfg04614a 1 true staged:6
 device false ["x\ny"] staged:7 staged:7
`)
	var ignored []string
	for _, err := range p.Ignored {
		ignored = append(ignored, strings.TrimPrefix(err.Error(), staged))
	}
	equal(t, "ignored", strings.Join(ignored, "\n"), ":9:1: change has no effect: section nosuch: entry not found\n"+
		":11:5: text after the value: expected the end of the line right after the closing quote")
}

func TestParseErrorPlace(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       string
		uci        string
	}{
		{"command", "config a b\n\toptoin x y\n", "f:2:2: invalid command: expected config, option, list or package", "Parse error (invalid command) at line 2, byte 1"},
		{"extra", "config a b\n option x y z", "f:2:13: too many arguments: expected the end of the line", "Parse error (too many arguments) at line 1, byte 13"},
		{"quote", "config a b\n\toption x 'y\n\toption z\n", "f:2:11: EOF with unterminated ': expected a closing '", "Parse error (EOF with unterminated ') at line 3, byte 23"},
		{"after value of lines", "config a b\noption x \"1\n\\\"2\" 3\n", "f:3:6: too many arguments: expected the end of the line", ""},
		{"missing", "config a b\noption \n", "f:2:8: insufficient arguments: expected the name of an option (letters, digits and _)", ""},
		{"type", "config a b\n\nconfig c b\n", "f:3:10: section of different type overwrites prior section with same name: expected type a as before, or another name", ""},
		{"name", "config a b\nlist  x-y 1", "f:2:7: invalid character in name field: expected the name of an option (letters, digits and _)", ""},
		{"no section", "\n\noption a b\n", "f:3:1: option/list command found before the first section: expected config", ""},
		{"nul", "config a b\noption a 'x\x00\noption b\n\n' c", "f:5:3: too many arguments: expected the end of the line", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := Parse("x", "f", []byte(tc.text))
			var parse *ParseError
			if p != nil || !errors.As(err, &parse) {
				t.Fatalf("loaded %v, %v", p, err)
			}
			equal(t, "error", err.Error(), tc.want)
			if tc.uci != "" {
				equal(t, "as uci words it", parse.UCI(), tc.uci)
			}
		})
	}
}

func TestLoadConfig(t *testing.T) {
	tree := newTree(t, treeConfig, "")
	path := filepath.Join(tree.configDir, "xdpl2")
	mode := func(want string) {
		t.Helper()
		if got, _ := tree.GetLast("xdpl2", "main", "mode"); got != want {
			t.Errorf("mode is %q, want %q", got, want)
		}
	}
	mode("mac")
	write(t, path, "config xdpl2 main\noption mode new")
	if err := tree.LoadConfig("xdpl2", false); err != nil {
		t.Fatal(err)
	}
	mode("mac")
	if err := tree.LoadConfig("xdpl2", true); err != nil {
		t.Fatal(err)
	}
	mode("new")

	write(t, path, "config xdpl2 main\noption mode newer\nbroken")
	var parse *ParseError
	if err := tree.LoadConfig("xdpl2", true); !errors.As(err, &parse) || parse.File != path || parse.Line != 3 {
		t.Errorf("broken file: %v", err)
	}
	mode("new")

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := tree.LoadConfig("xdpl2", true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := NewTree(tree.configDir, "").Package("xdpl2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	for _, name := range []string{"", "../xdpl2", "a/b", "a.b", ".", "a\x00"} {
		if err := tree.LoadConfig(name, true); !errors.Is(err, ErrInvalid) {
			t.Errorf("package %q: %v", name, err)
		}
	}
}

func TestOverrideDir(t *testing.T) {
	tree := newTree(t, treeConfig, "xdpl2.main.enabled='0'\n")
	override := filepath.Join(filepath.Dir(tree.configDir), "override")
	tree.SetOverrideDir(override)
	if v, _ := tree.GetLast("xdpl2", "main", "mode"); v != "mac" {
		t.Errorf("without an override mode is %q", v)
	}
	write(t, filepath.Join(override, "xdpl2"), "config xdpl2 main\noption mode port")
	if err := tree.LoadConfig("xdpl2", true); err != nil {
		t.Fatal(err)
	}
	p, err := tree.Package("xdpl2")
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "package", p.Show(false), "xdpl2.main=xdpl2\nxdpl2.main.mode='port'\nxdpl2.main.enabled='0'\n")
}

// TestSnapshot makes sure that a package that was handed out stays as it was.
func TestSnapshot(t *testing.T) {
	tree := newTree(t, treeConfig, "")
	p, err := tree.Package("xdpl2")
	if err != nil {
		t.Fatal(err)
	}
	before := p.Show(true)
	for _, err := range []error{
		tree.Set("xdpl2", "main", "mode", "port"),
		tree.Set("xdpl2", "main", "skip", "x", "y"),
		tree.DelSection("xdpl2", "wan"),
		tree.Commit(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	equal(t, "package", p.Show(true), before)
	q, err := tree.Package("xdpl2")
	if err != nil {
		t.Fatal(err)
	}
	if q == p || q.Show(true) == before {
		t.Error("the tree does not see its own changes")
	}
}
