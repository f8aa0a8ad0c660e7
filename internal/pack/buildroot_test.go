// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A buildroot runs a package's Makefile in the stand-in for OpenWrt's build
// system.
type buildroot struct {
	t      *testing.T
	folder string // of the package
	out    string
}

func newBuildroot(t *testing.T, m *Manifest) *buildroot {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make here")
	}
	folder, err := filepath.Abs(filepath.Dir(m.Path))
	must(t, err)
	return &buildroot{t, folder, t.TempDir()}
}

func (b *buildroot) make(target string) string {
	b.t.Helper()
	top, err := filepath.Abs("testdata/buildroot")
	must(b.t, err)
	cmd := exec.Command("make", "-s", "-r", "--no-print-directory", "-C", b.folder, "TOPDIR="+top, "OUT="+b.out, target)
	// What a make around the test exports must not get in.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "MAKE") || strings.HasPrefix(s, "MFLAGS") || strings.HasPrefix(s, "GNUMAKEFLAGS")
	})
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("make %s in %s: %v: %s", target, b.folder, err, out)
	}
	return string(out)
}

// feedPackages are the manifests that have a Makefile of their own; translations
// belong to their application's.
func feedPackages(t *testing.T) []*Manifest {
	t.Helper()
	all, err := LoadManifests(sourceTree)
	must(t, err)
	return slices.DeleteFunc(all, func(m *Manifest) bool { return m.folder() != m.Name })
}

// TestMakefilesSayTheSame: the feed's Makefiles and the manifests, which make
// packages goes by, describe the same packages.
func TestMakefilesSayTheSame(t *testing.T) {
	version, err := ReadVersion(sourceTree)
	must(t, err)
	for _, m := range feedPackages(t) {
		t.Run(m.Name, func(t *testing.T) {
			said := map[string]string{}
			for _, line := range strings.Split(newBuildroot(t, m).make("describe"), "\n") {
				name, value, _ := strings.Cut(line, " ")
				said[name] = value
			}
			depends := slices.Clone(m.Depends)
			slices.Sort(depends)
			var conffiles []string
			program := ""
			for _, r := range m.Rules {
				if r.Conffile {
					conffiles = append(conffiles, r.Path)
				}
				if r.Kind == GoProgram {
					program = r.Source
				}
			}
			want := map[string]string{
				"package": m.Name, "version": version + "-r1", "title": m.Title, "section": m.Section,
				"depends": strings.Join(depends, " "), "conffiles": strings.Join(conffiles, " "),
				"description": strings.ReplaceAll(m.Description, "\n", " "),
			}
			if program != "" {
				want["postinst"] = postinstText(t, m)
				want["go"] = "github.com/xdpl2/xdpl2/" + program
				want["tags"] = "nethttpomithttp2"
				want["ldflags"] = "main.version=" + version
			}
			for name, value := range want {
				if got := strings.Join(strings.Fields(said[name]), " "); got != value {
					t.Errorf("%s: the Makefile says %q, the manifest %q", name, got, value)
				}
			}
		})
	}
}

// postinstText is a manifest's script without comments, in one line.
func postinstText(t *testing.T, m *Manifest) string {
	t.Helper()
	if m.Postinst == "" {
		return ""
	}
	text, err := os.ReadFile(filepath.Join(sourceTree, m.Postinst))
	must(t, err)
	lines := slices.DeleteFunc(strings.Split(string(text), "\n"), func(l string) bool { return strings.HasPrefix(l, "#") })
	return strings.Join(strings.Fields(strings.Join(lines, " ")), " ")
}

// TestMakefilesInstallTheSame runs prepare and install of each Makefile and
// compares what is there with the package of the same manifest.
func TestMakefilesInstallTheSame(t *testing.T) {
	for _, m := range feedPackages(t) {
		t.Run(m.Name, func(t *testing.T) {
			b := newBuildroot(t, m)
			builder := &Builder{Root: sourceTree, programs: map[string][]byte{}}
			b.make("prepare")
			for _, r := range m.Rules {
				if r.Kind != GoProgram {
					continue
				}
				name := filepath.Base(r.Source)
				builder.programs[name+","+Targets[0].key()] = []byte("the program " + name)
				found, err := filepath.Glob(filepath.Join(b.out, "*", "go.mod"))
				if err != nil || len(found) != 1 {
					t.Fatalf("prepared: %v, %v", found, err)
				}
				build := filepath.Dir(found[0])
				embedded(t, b, build)
				must(t, os.MkdirAll(filepath.Join(build, "bin"), 0o755))
				must(t, os.WriteFile(filepath.Join(build, "bin", name), []byte("the program "+name), 0o600))
			}
			b.make("install-" + m.Name)
			p, err := builder.Package(t.Context(), m, Targets[0])
			must(t, err)
			var want []string
			for _, f := range p.Files {
				want = append(want, fmt.Sprintf("%v %s %q", f.Mode, f.Path, f.Data))
			}
			var got []string
			root := filepath.Join(b.out, "root")
			must(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				info, err := d.Info()
				if err != nil {
					return err
				}
				data, err := os.ReadFile(name)
				got = append(got, fmt.Sprintf("%v %s %q", info.Mode(), strings.TrimPrefix(name, root), data))
				return err
			}))
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("the Makefile installs\n%s\nthe manifest lists\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		})
	}
}

// embedded checks that what the Go programs embed is brought along: the Go feed
// drops files that are not Go's, unless GO_PKG_INSTALL_EXTRA matches them.
func embedded(t *testing.T, b *buildroot, build string) {
	t.Helper()
	_, rest, _ := strings.Cut(b.make("describe"), "\nextra ")
	pattern, _, _ := strings.Cut(rest, "\n")
	var extra []*regexp.Regexp
	for _, p := range strings.Fields(pattern) { // as golang-build.sh has it
		if strings.ContainsAny(p, "|+?(){}") {
			t.Errorf("GO_PKG_INSTALL_EXTRA: %s means something else as a basic regular expression", p)
		}
		extra = append(extra, regexp.MustCompile(p))
	}
	for _, arch := range []string{"arm64", "mips"} { // both byte orders
		cmd := exec.Command("go", "list", "-deps", "-f", `{{if not .Standard}}{{range .EmbedFiles}}{{$.ImportPath}}/{{.}}{{"\n"}}{{end}}{{end}}`, "./cmd/...")
		cmd.Dir = sourceTree
		cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+arch)
		out, err := cmd.Output()
		must(t, err)
		files := strings.Fields(string(out))
		if len(files) == 0 {
			t.Errorf("%s: nothing embedded; the BPF object at least should be", arch)
		}
		for _, file := range files {
			rel, ours := strings.CutPrefix(file, "github.com/xdpl2/xdpl2/")
			if !ours {
				continue
			}
			if !slices.ContainsFunc(extra, func(p *regexp.Regexp) bool { return p.MatchString(rel) }) {
				t.Errorf("%s is embedded, and GO_PKG_INSTALL_EXTRA (%s) does not match it", rel, pattern)
			}
			if _, err := os.Stat(filepath.Join(build, rel)); err != nil {
				t.Error(err)
			}
		}
	}
}
