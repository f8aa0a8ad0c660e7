// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

// testedPackages are the packages whose tests carry work for a kernel. A
// folder that is not there, or has no tests, is left out.
var testedPackages = []string{
	"./bpf/...",
	"./internal/netdev",
	"./internal/topology",
	"./internal/netns",
	"./internal/lab",
	"./internal/datapath",
	"./internal/bridge",
	"./internal/filters",
	"./internal/control",
	"./internal/parity",
	"./cmd/xdpl2",
	installTests,
}

// installTests are the tests that install the daemon's OpenWrt package, which is
// made for them.
const installTests = "./test/install"

// testedFolders are folders of the module that tests of these packages read
// besides their own testdata.
var testedFolders = []string{"files"}

// A module is the Go module that this command belongs to.
type module struct {
	path string
	root string
}

// findModule asks the go command for the module around the working folder.
func findModule(ctx context.Context) (module, error) {
	if _, err := exec.LookPath("go"); err != nil {
		return module{}, errors.New("go is missing: the tests are built with it")
	}
	out, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Path}}\n{{.Dir}}")
	if err != nil {
		return module{}, err
	}
	name, root, ok := strings.Cut(strings.TrimSpace(out), "\n")
	if !ok {
		return module{}, errors.New("not called inside the module")
	}
	return module{path: name, root: root}, nil
}

// short is a package's name inside the module.
func (m module) short(importPath string) string {
	return strings.TrimPrefix(strings.TrimPrefix(importPath, m.path), "/")
}

// A testPackage is a package with tests, and its test binary once it is built.
type testPackage struct {
	name   string // inside the module
	dir    string
	binary string
	err    error // why it could not be built
}

// findPackages lists the packages to be tested. Those of the command line must
// have tests, the declared ones need not.
func (r *runner) findPackages(ctx context.Context) ([]*testPackage, error) {
	patterns := r.packages
	if len(patterns) == 0 {
		patterns = existing(r.module.root, testedPackages)
	}
	if len(patterns) == 0 {
		return nil, errors.New("none of the declared packages exists")
	}
	const format = "{{.ImportPath}}\t{{.Dir}}\t{{if or .TestGoFiles .XTestGoFiles}}tests{{end}}"
	out, err := goCommand(ctx, r.module.root, append([]string{"list", "-e", "-f", format}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var found []*testPackage
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("go list: unexpected line %q", line)
		}
		if fields[2] == "tests" {
			found = append(found, &testPackage{name: r.module.short(fields[0]), dir: fields[1]})
		} else if len(r.packages) > 0 {
			return nil, fmt.Errorf("package %s has no tests", fields[0])
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no tests in %s", strings.Join(patterns, " "))
	}
	return found, nil
}

// existing keeps the patterns whose folder exists.
func existing(root string, patterns []string) []string {
	var kept []string
	for _, p := range patterns {
		if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(p, "/..."))); err == nil {
			kept = append(kept, p)
		}
	}
	return kept
}

// buildTests builds every test binary; what cannot be built is noted in the
// package, so that the others can still be run.
func (r *runner) buildTests(ctx context.Context, packages []*testPackage) error {
	for i, p := range packages {
		began := time.Now()
		p.binary = filepath.Join(r.work, fmt.Sprintf("%d-%s.test", i, path.Base(p.name)))
		args := append([]string{"test", "-c", "-o", p.binary}, buildFlags...)
		_, p.err = goCommand(ctx, r.module.root, append(args, "./"+p.name)...)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p.err != nil {
			r.out.progress("cannot build the tests of %s: %v", p.name, p.err)
			continue
		}
		r.out.progress("built the tests of %s (%.1f s)", p.name, time.Since(began).Seconds())
	}
	return nil
}

// build builds a command for the guests.
func (r *runner) build(ctx context.Context, pkg string) (string, error) {
	binary := filepath.Join(r.work, path.Base(pkg))
	args := append([]string{"build", "-o", binary}, buildFlags...)
	if _, err := goCommand(ctx, r.module.root, append(args, pkg)...); err != nil {
		return "", err
	}
	return binary, nil
}

// buildFlags make binaries small: they lie in a guest's memory.
var buildFlags = []string{"-trimpath", "-ldflags=-s -w"}

// goCommand runs the go command for the guests' system and architecture.
func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=arm64", "PWD="+dir)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// routerPackages makes two releases of the daemon's OpenWrt package for the guests,
// if tests to be run install them, and returns their places there and the files;
// else nothing.
func (r *runner) routerPackages(ctx context.Context, packages []*testPackage) (map[string]string, error) {
	if !slices.ContainsFunc(packages, func(p *testPackage) bool { return "./"+p.name == installTests }) {
		return nil, nil
	}
	files := map[string]string{}
	for _, release := range []string{"1", "2"} {
		out := filepath.Join(r.work, "packages-"+release)
		r.out.progress("making the daemon's package, release %s", release)
		cmd := exec.CommandContext(ctx, "go", "run", "./scripts/pack", "packages", "--arch", "aarch64_generic", "--release", release, "--out", out)
		cmd.Dir = r.module.root
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("make packages: %w\n%s", err, strings.TrimSpace(string(text)))
		}
		found, err := filepath.Glob(filepath.Join(out, "xdpl2_*.ipk"))
		if err != nil || len(found) != 1 {
			return nil, fmt.Errorf("expected one package of the daemon in %s, got %v (%v)", out, found, err)
		}
		files[path.Join(guest.PackagesDir, filepath.Base(found[0]))] = found[0]
	}
	return files, nil
}
