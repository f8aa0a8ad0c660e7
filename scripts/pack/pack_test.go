// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/pack"
)

const sourceTree = "../.."

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command runs a program and returns what it prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// do runs the command and returns what it prints.
func do(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(context.Background(), args, &out, io.Discard)
	return out.String(), err
}

// packagesToCheck are those that `make packages` made, if CI says where, else
// fresh ones for one architecture.
func packagesToCheck(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("XDPL2_PACKAGES"); dir != "" {
		return dir
	}
	dir := filepath.Join(t.TempDir(), "packages")
	if _, err := do(t, "packages", "--root", sourceTree, "--arch", "aarch64_generic", "--out", dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// machines are the processors by the architectures' names.
var machines = map[string]struct {
	machine elf.Machine
	order   elf.Data
}{
	"aarch64_generic":          {elf.EM_AARCH64, elf.ELFDATA2LSB},
	"aarch64_cortex-a53":       {elf.EM_AARCH64, elf.ELFDATA2LSB},
	"aarch64_cortex-a72":       {elf.EM_AARCH64, elf.ELFDATA2LSB},
	"x86_64":                   {elf.EM_X86_64, elf.ELFDATA2LSB},
	"arm_cortex-a7_neon-vfpv4": {elf.EM_ARM, elf.ELFDATA2LSB},
	"mips_24kc":                {elf.EM_MIPS, elf.ELFDATA2MSB},
	"mipsel_24kc":              {elf.EM_MIPS, elf.ELFDATA2LSB},
	"riscv64_generic":          {elf.EM_RISCV, elf.ELFDATA2LSB},
}

// TestPackages unpacks every package with tar and gzip, and compares it with its
// manifest.
func TestPackages(t *testing.T) {
	manifests, err := pack.LoadManifests(sourceTree)
	must(t, err)
	ipks, err := filepath.Glob(filepath.Join(packagesToCheck(t), "*.ipk"))
	must(t, err)
	checked := map[string]bool{}
	for _, ipk := range ipks {
		name, _, _ := strings.Cut(filepath.Base(ipk), "_")
		i := slices.IndexFunc(manifests, func(m *pack.Manifest) bool { return m.Name == name })
		if i < 0 {
			t.Errorf("%s has no manifest", ipk)
			continue
		}
		checked[name] = true
		t.Run(filepath.Base(ipk), func(t *testing.T) { checkPackage(t, ipk, manifests[i]) })
	}
	for _, m := range manifests {
		if !checked[m.Name] {
			t.Errorf("there is no package %s", m.Name)
		}
	}
}

func checkPackage(t *testing.T, ipk string, m *pack.Manifest) {
	dir := t.TempDir()
	if _, err := exec.LookPath("ar"); err != nil {
		t.Log("no ar here, which must not be able to read the package")
	} else if err := exec.Command("ar", "t", ipk).Run(); err == nil {
		t.Error("ar can read it; opkg's packages are compressed tar archives")
	}
	command(t, "gzip", "-t", "-S", ".ipk", ipk)
	command(t, "tar", "-xzf", ipk, "-C", dir)
	control := filepath.Join(dir, "control")
	must(t, os.Mkdir(control, 0o700))
	command(t, "tar", "-xzf", filepath.Join(dir, "control.tar.gz"), "-C", control)
	data := filepath.Join(dir, "data.tar.gz")
	var got []string
	for _, line := range strings.Split(strings.TrimSpace(command(t, "tar", "-tvzf", data, "--numeric-owner")), "\n") {
		words := strings.Fields(line) // mode owner size date time name
		if words[1] != "0/0" {
			t.Errorf("not owned by root: %s", line)
		}
		if strings.HasPrefix(words[0], "d") {
			if words[0] != "drwxr-xr-x" {
				t.Errorf("mode of a folder: %s", line)
			}
			continue
		}
		got = append(got, words[0]+" "+strings.TrimPrefix(words[5], "."))
	}
	want := listed(t, m)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("in the package:\n%s\nin the manifest:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}

	fields, err := os.ReadFile(filepath.Join(control, "control"))
	must(t, err)
	packages, err := pack.ParseIndex(string(fields))
	must(t, err)
	arch := packages[0]["Architecture"]
	if name := m.Name + "_" + packages[0]["Version"] + "_" + arch + ".ipk"; name != filepath.Base(ipk) {
		t.Errorf("the control file says %s", name)
	}
	unpacked := command(t, "sh", "-c", "gzip -dc \"$1\" | wc -c", "sh", data)
	if packages[0]["Installed-Size"] != strings.TrimSpace(unpacked) {
		t.Errorf("Installed-Size %s, unpacked %s", packages[0]["Installed-Size"], unpacked)
	}
	root := filepath.Join(dir, "root")
	must(t, os.Mkdir(root, 0o700))
	command(t, "tar", "-xzf", data, "-C", root, "--no-same-owner")
	for _, r := range m.Rules {
		if r.Kind == pack.GoProgram {
			checkProgram(t, filepath.Join(root, r.Path), arch)
		}
	}
}

// listed is what the manifest wants in the package, as `tar -tv` prints it.
func listed(t *testing.T, m *pack.Manifest) []string {
	t.Helper()
	var lines []string
	for _, r := range m.Rules {
		if r.Kind != pack.Tree {
			lines = append(lines, fmt.Sprintf("%v %s", r.Mode, r.Path))
			continue
		}
		find := command(t, "sh", "-c", `cd "$1" && find . -type f -printf '%m %P\n'`, "sh", filepath.Join(sourceTree, r.Source))
		for _, line := range strings.Split(strings.TrimSpace(find), "\n") {
			mode, name, _ := strings.Cut(line, " ")
			text := "-rw-r--r--"
			if strings.ContainsAny(mode[:1], "1357") {
				text = "-rwxr-xr-x"
			}
			lines = append(lines, text+" "+r.Path+"/"+name)
		}
	}
	slices.Sort(lines)
	return lines
}

// checkProgram: for the right processor, static, stripped.
func checkProgram(t *testing.T, name, arch string) {
	t.Helper()
	f, err := elf.Open(name)
	must(t, err)
	defer f.Close()
	want, ok := machines[arch]
	if !ok {
		t.Fatalf("architecture %s", arch)
	}
	if f.Machine != want.machine || f.Data != want.order {
		t.Errorf("%s is for %v, %v; want %v, %v", name, f.Machine, f.Data, want.machine, want.order)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Errorf("%s needs a dynamic loader", name)
		}
	}
	if f.Section(".symtab") != nil || f.Section(".debug_info") != nil {
		t.Errorf("%s is not stripped", name)
	}
}

// copyTree copies what git knows of the source tree, as it is now.
func copyTree(t *testing.T, to string) {
	t.Helper()
	must(t, os.MkdirAll(to, 0o755))
	command(t, "sh", "-c", `cd "$1" && git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$2"`, "sh", sourceTree, to)
}

// TestReproducible builds the same package in two folders of different names and
// ages, under another umask.
func TestReproducible(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	base := t.TempDir()
	var made [2][]byte
	for i, name := range []string{"a", "another/and/deeper"} {
		tree := filepath.Join(base, name)
		copyTree(t, tree)
		if i == 1 {
			command(t, "sh", "-c", `find "$1" -exec touch -h -d 2001-01-01 {} +; chmod -R go-rwx "$1"`, "sh", tree)
		}
		if _, err := do(t, "packages", "--root", tree, "--arch", "x86_64"); err != nil {
			t.Fatal(err)
		}
		var err error
		made[i], err = os.ReadFile(filepath.Join(tree, packagesDir, "xdpl2_"+version(t)+"-r1_x86_64.ipk"))
		must(t, err)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Errorf("two builds of the same sources differ: %d and %d bytes", len(made[0]), len(made[1]))
	}
}

func version(t *testing.T) string {
	t.Helper()
	v, err := pack.ReadVersion(sourceTree)
	must(t, err)
	return v
}

// TestRelease makes a release of a repository with the tree's present state.
func TestRelease(t *testing.T) {
	tree := filepath.Join(t.TempDir(), "tree")
	copyTree(t, tree)
	git := func(args ...string) {
		command(t, "git", append([]string{"-C", tree, "-c", "user.name=x", "-c", "user.email=x@x", "-c", "commit.gpgsign=false"}, args...)...)
	}
	git("init", "-q")
	git("add", "-A")
	git("commit", "-q", "-m", "x")
	keys := filepath.Join(t.TempDir(), "keys")
	args := []string{"release", "--root", tree, "--arch", "x86_64", "--keys", keys, "--url", "http://feed.example/"}
	must(t, os.WriteFile(filepath.Join(tree, "more"), nil, 0o600))
	if _, err := do(t, args...); err == nil || !strings.Contains(err.Error(), "?? more") {
		t.Errorf("with a file that is not committed: %v", err)
	}
	must(t, os.Remove(filepath.Join(tree, "more")))
	if _, err := do(t, args...); err != nil {
		t.Fatal(err)
	}
	dist := filepath.Join(tree, releaseDir)
	command(t, "sh", "-c", `cd "$1" && sha256sum -c --quiet SHA256SUMS`, "sh", dist)
	v := version(t)
	sums, err := os.ReadFile(filepath.Join(dist, "SHA256SUMS"))
	must(t, err)
	for _, name := range []string{
		"xdpl2-" + v + ".tar.gz", "xdpl2-" + v + ".cdx.json", "sizes",
		"xdpl2-" + v + "-linux-arm64.tar.gz", "xdpl2-" + v + "-linux-amd64.tar.gz",
		"packages/xdpl2_" + v + "-r1_x86_64.ipk", "packages/luci-app-xdpl2_" + v + "-r1_all.ipk",
		"feed/index.html", "feed/" + opkgKeyName, "feed/opkg/x86_64/Packages.sig",
	} {
		if !strings.Contains(string(sums), "  "+name+"\n") {
			t.Errorf("the release has no %s:\n%s", name, sums)
		}
	}
	plain := command(t, "tar", "-tzf", filepath.Join(dist, "xdpl2-"+v+"-linux-amd64.tar.gz"))
	if !strings.Contains(plain, "./etc/systemd/system/xdpl2.service\n") {
		t.Errorf("for a router with systemd:\n%s", plain)
	}
	page, err := os.ReadFile(filepath.Join(dist, "feed", "index.html"))
	must(t, err)
	for _, want := range []string{"src/gz xdpl2 http://feed.example/opkg/$DISTRIB_ARCH", "opkg install xdpl2", "<code>x86_64</code>"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}

	feed, key := filepath.Join(dist, "feed", "opkg", "x86_64"), filepath.Join(dist, "feed", opkgKeyName)
	if out, err := do(t, "verify", "--key", key, feed); err != nil || !strings.Contains(out, "unchanged") {
		t.Errorf("verify: %q, %v", out, err)
	}
	index := filepath.Join(feed, pack.IndexName)
	text, err := os.ReadFile(index)
	must(t, err)
	text[len(text)/2] ^= 1
	must(t, os.WriteFile(index, text, 0o600))
	if _, err := do(t, "verify", "--key", key, feed); err == nil {
		t.Error("verify accepts a changed index")
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{{"nothing"}, {"packages", "more"}, {"verify"}, {"packages", "--arch"}} {
		if _, err := do(t, args...); err == nil || !strings.Contains(err.Error(), errUsage.Error()) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := do(t, "packages", "--root", sourceTree, "--arch", "arm64", "--out", t.TempDir()); err == nil || !strings.Contains(err.Error(), "expected one of aarch64_generic, ") {
		t.Errorf("unknown architecture: %v", err)
	}
	if out, err := do(t, "--help"); err != nil || !strings.Contains(out, "release") {
		t.Errorf("help: %q, %v", out, err)
	}
}
