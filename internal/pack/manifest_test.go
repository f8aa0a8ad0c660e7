// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// sourceTree is the source tree that the tests lie in.
const sourceTree = "../.."

const sample = `# a comment
Package: sample
Title: A sample
Section: net
Architecture: any
Depends: libubus, kmod-veth
Description: First line
 and second.

0755 /usr/sbin/sample go:cmd/sample
0600 /etc/config/sample files/sample conf
auto /www/ htdocs/
0644 /usr/lib/x.lmo po:po/x.po
skip files/other not for routers
`

func TestParse(t *testing.T) {
	got, err := parseManifest(sample)
	if err != nil {
		t.Fatal(err)
	}
	want := &Manifest{
		Name: "sample", Title: "A sample", Section: "net", Description: "First line\nand second.",
		Depends: []string{"libubus", "kmod-veth"}, Skipped: []string{"files/other"},
		Rules: []Rule{
			{10, 0o755, "/usr/sbin/sample", "cmd/sample", GoProgram, false},
			{11, 0o600, "/etc/config/sample", "files/sample", PlainFile, true},
			{12, 0, "/www", "htdocs", Tree, false},
			{13, 0o644, "/usr/lib/x.lmo", "po/x.po", Translation, false},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestRefusedManifests(t *testing.T) {
	for line, want := range map[string]string{
		"Packages: x":                 `unknown field "Packages"`,
		"Package: X":                  `"X" is no package name`,
		"Depends: a b":                `"a b" is no package name`,
		"Architecture: arm":           `expected any or all`,
		" more":                       "continues no field",
		"755 /x y":                    `mode "755"`,
		"0999 /x y":                   `mode "0999"`,
		"4755 /x y":                   `mode "4755"`,
		"auto /x y":                   "mode auto is for folders",
		"0644 x y":                    `path "x"`,
		"0644 /x/../y z":              `path "/x/../y"`,
		"0644 /x y/":                  `path "/x"`,
		"0644 /x/ y":                  `path "/x/"`,
		"0644 /x ../y":                `source "../y"`,
		"0644 /x c:y":                 `unknown kind "c"`,
		"0644 /x y config":            "expected: MODE PATH SOURCE [conf]",
		"skip files/x":                "expected: skip SOURCE REASON",
		"Postinst: a\nDepends: A":     `16: Depends: "A"`,
		"Package:":                    `"" is no package name`,
		"0644 /etc/x files/x conf rm": "expected: MODE",
	} {
		if _, err := parseManifest(sample + line + "\n"); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "1") {
			t.Errorf("%q: %v; want %q and the line", line, err, want)
		}
	}
	if _, err := parseManifest("Package: x\n"); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without fields: %v", err)
	}
}

// TestEveryFileIsPackaged: what lies in files and luci-app is in a package, or
// left out with a reason. Whoever adds a file adds a line.
func TestEveryFileIsPackaged(t *testing.T) {
	manifests, err := LoadManifests(sourceTree)
	if err != nil {
		t.Fatal(err)
	}
	debian, err := LoadManifest(filepath.Join(sourceTree, "files", "debian", "xdpl2.manifest"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"files/debian/xdpl2.manifest": true}
	var folders []string
	for _, m := range append(manifests, debian) {
		for _, r := range m.Rules {
			known[r.Source] = true
			if r.Kind == Tree {
				folders = append(folders, r.Source+"/")
			}
			if _, err := os.Stat(filepath.Join(sourceTree, r.Source)); err != nil {
				t.Errorf("%s:%d: %v", m.Path, r.Line, err)
			}
		}
		for _, s := range m.Skipped {
			known[s] = true
			if _, err := os.Stat(filepath.Join(sourceTree, s)); err != nil {
				t.Errorf("%s: left out, but not there: %v", m.Path, err)
			}
		}
	}
	for _, root := range []string{"files", "luci-app"} {
		err := filepath.WalkDir(filepath.Join(sourceTree, root), func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(sourceTree, name)
			if err != nil || d.IsDir() {
				if rel == "luci-app/node_modules" || rel == "luci-app/test" || rel == "luci-app/tests" {
					return fs.SkipDir
				}
				return err
			}
			inFolder := slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(rel, f) })
			if !known[rel] && !inFolder {
				t.Errorf("%s is in no package: a manifest in openwrt/ must name it (0644 /PATH %s), or say why not (skip %s REASON)", rel, rel, rel)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
