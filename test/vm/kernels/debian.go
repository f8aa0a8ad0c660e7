// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Debian makes bundles from Debian's packages: with the machine's apt, its
// keyring, and the mirrors that it is set up with, but in folders of its own,
// so that the machine's lists and sources stay as they are.
type Debian struct {
	Log func(format string, args ...any) // what is being done
}

// The packages that a suite's kernel starts from.
const (
	kernelPackage  = "linux-image-cloud-arm64"
	busyboxPackage = "busybox-static"
)

// keyring is what Debian's own archives are signed with.
const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// Make makes the bundle b from a suite. It works in the folder work.
func (d *Debian) Make(ctx context.Context, suite string, b Bundle, work string) error {
	for _, program := range []string{"apt-get", "apt-cache", "dpkg-deb"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is missing: kernels can only be fetched on a Debian system", program)
		}
	}
	bases, err := mirrors(ctx)
	if err != nil {
		return err
	}
	a, err := d.open(ctx, bases, suite, work)
	if err != nil {
		return err
	}
	packages, err := a.kernelPackages(ctx, kernelPackage)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(packages[0], "linux-image-"+b.Name+".") {
		d.Log("kernel %s: %s has moved on, to %s", b.Name, suite, packages[0])
	}
	packages = append(packages, busyboxPackage)
	d.Log("kernel %s: downloading %s", b.Name, strings.Join(packages, " "))
	root, err := a.fetch(ctx, packages)
	if err != nil {
		return err
	}
	return assemble(ctx, root, b)
}

// mirrors lists the archives that the machine's apt is set up with. It does
// not need them to answer.
func mirrors(ctx context.Context) ([]string, error) {
	out, err := command(ctx, "", "apt-get", "update", "--print-uris")
	if err != nil {
		return nil, err
	}
	bases := parseMirrors(string(out))
	if len(bases) == 0 {
		return nil, errors.New("apt has no sources")
	}
	return bases, nil
}

// printed matches an archive's line of `apt-get update --print-uris`.
var printed = regexp.MustCompile(`(?m)^'([^']+)/dists/([^'/]+)/(?:InRelease|Release)' `)

// parseMirrors finds the archives, each once, those of whole suites before
// those of security updates.
func parseMirrors(uris string) []string {
	var whole, security []string
	for _, m := range printed.FindAllStringSubmatch(uris, -1) {
		if strings.HasSuffix(m[2], "-security") {
			security = append(security, m[1])
		} else {
			whole = append(whole, m[1])
		}
	}
	var all []string
	for _, base := range append(whole, security...) {
		if !slices.Contains(all, base) {
			all = append(all, base)
		}
	}
	return all
}

// An archive is an apt with folders of its own and one suite for arm64.
type archive struct {
	dir     string
	options []string
}

// open makes an archive from the first mirror that has the suite.
func (d *Debian) open(ctx context.Context, bases []string, suite, work string) (*archive, error) {
	var errs []error
	for i, base := range bases {
		a, err := newArchive(filepath.Join(work, fmt.Sprint("apt", i)), base, suite)
		if err != nil {
			return nil, err
		}
		d.Log("asking mirror %d of %d for %s", i+1, len(bases), suite)
		if _, err = a.run(ctx, "apt-get", "-q", "update", "--error-on=any"); err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("none of apt's mirrors has the suite %s: %w", suite, errors.Join(errs...))
}

// newArchive lays out apt's folders.
func newArchive(dir, base, suite string) (*archive, error) {
	for _, sub := range []string{"lists/partial", "cache/archives/partial", "debs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			return nil, err
		}
	}
	signed := ""
	if _, err := os.Stat(keyring); err == nil {
		signed = " signed-by=" + keyring
	}
	files := map[string]string{
		"sources.list": fmt.Sprintf("deb [arch=arm64%s] %s %s main\n", signed, base, suite),
		"status":       "",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return nil, err
		}
	}
	a := &archive{dir: dir}
	for _, option := range []string{
		"Dir::State=" + dir,
		"Dir::State::lists=" + filepath.Join(dir, "lists"),
		"Dir::State::status=" + filepath.Join(dir, "status"),
		"Dir::Cache=" + filepath.Join(dir, "cache"),
		"Dir::Etc::sourcelist=" + filepath.Join(dir, "sources.list"),
		"Dir::Etc::sourceparts=-",
		"Dir::Etc::preferences=-",
		"Dir::Etc::preferencesparts=-",
		"APT::Architecture=arm64",
		"APT::Architectures=arm64",
		"APT::Sandbox::User=root", // the folders above belong to the caller
		"Acquire::Languages=none",
		"Acquire::Retries=2",
		"Acquire::http::Timeout=20",
	} {
		a.options = append(a.options, "-o", option)
	}
	return a, nil
}

// run runs one of apt's programs in the archive.
func (a *archive) run(ctx context.Context, program string, args ...string) ([]byte, error) {
	return command(ctx, filepath.Join(a.dir, "debs"), program, append(slices.Clone(a.options), args...)...)
}

// part matches the packages into which Debian divides a kernel.
var part = regexp.MustCompile(`^linux-(image|binary|modules|base)-[0-9].*-cloud-arm64$`)

// kernelPackages follows a package's dependencies to all parts of the kernel.
func (a *archive) kernelPackages(ctx context.Context, first string) ([]string, error) {
	var found []string
	for queue := []string{first}; len(queue) > 0; queue = queue[1:] {
		record, err := a.run(ctx, "apt-cache", "show", "--no-all-versions", queue[0])
		if err != nil {
			return nil, err
		}
		for _, name := range parseDepends(string(record)) {
			if part.MatchString(name) && !slices.Contains(found, name) {
				found = append(found, name)
				queue = append(queue, name)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("package %s leads to no kernel", first)
	}
	return found, nil
}

// parseDepends finds the names of a package record's dependencies.
func parseDepends(record string) []string {
	var names []string
	for line := range strings.Lines(record) {
		key, value, _ := strings.Cut(line, ":")
		if key != "Depends" && key != "Pre-Depends" {
			continue
		}
		for item := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == ',' || r == '|' }) {
			name, _, _ := strings.Cut(strings.TrimSpace(item), " ")
			name, _, _ = strings.Cut(name, ":")
			names = append(names, name)
		}
	}
	return names
}

// fetch downloads packages and unpacks them into one folder.
func (a *archive) fetch(ctx context.Context, packages []string) (string, error) {
	if _, err := a.run(ctx, "apt-get", append([]string{"-q", "download"}, packages...)...); err != nil {
		return "", err
	}
	debs, err := filepath.Glob(filepath.Join(a.dir, "debs", "*.deb"))
	if err != nil {
		return "", err
	}
	if len(debs) < len(packages) {
		return "", fmt.Errorf("apt downloaded %d of %d packages", len(debs), len(packages))
	}
	root := filepath.Join(a.dir, "root")
	for _, deb := range debs {
		if _, err := command(ctx, "", "dpkg-deb", "-x", deb, root); err != nil {
			return "", err
		}
	}
	return root, nil
}

// assemble makes a bundle of unpacked packages.
func assemble(ctx context.Context, root string, b Bundle) error {
	kernel, err := only(root, "boot/vmlinuz-*", "usr/lib/modules/*/vmlinuz", "lib/modules/*/vmlinuz")
	if err != nil {
		return err
	}
	config, err := only(root, "boot/config-*", "usr/lib/modules/*/config", "lib/modules/*/config")
	if err != nil {
		return err
	}
	busybox, err := only(root, "bin/busybox", "usr/bin/busybox")
	if err != nil {
		return err
	}
	image, err := os.ReadFile(kernel)
	if err != nil {
		return err
	}
	if image, err = plainImage(image); err != nil {
		return fmt.Errorf("kernel %s: %w", filepath.Base(kernel), err)
	}
	if err := writeFile(b.Kernel(), 0o644, bytes.NewReader(image)); err != nil {
		return err
	}
	if err := decompress(ctx, config, filepath.Join(b.Dir, "config")); err != nil {
		return err
	}
	if err := decompress(ctx, busybox, b.Busybox()); err != nil {
		return err
	}
	tree, err := findModules(root)
	if err != nil {
		return err
	}
	return tree.install(ctx, wanted, filepath.Dir(b.ModuleOrder()))
}

// only finds the one file that matches the first pattern that has any.
func only(root string, patterns ...string) (string, error) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return "", err
		}
		switch len(found) {
		case 0:
			continue
		case 1:
			return found[0], nil
		default:
			return "", fmt.Errorf("the packages have %d files %s", len(found), pattern)
		}
	}
	return "", fmt.Errorf("the packages have no file %s", strings.Join(patterns, " or "))
}

// command runs a program in a folder and returns what it prints; its error
// holds what it complains about.
func command(ctx context.Context, dir, program string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w%s", program, err, detail(stderr.Bytes()))
	}
	return stdout.Bytes(), nil
}

// detail is what a program complained about, to be put behind an error: apt's
// first error, or the first line.
func detail(stderr []byte) string {
	lines := strings.Split(strings.TrimSpace(string(stderr)), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "E: ") })
	line := strings.TrimPrefix(lines[max(i, 0)], "E: ")
	if line == "" {
		return ""
	}
	return ": " + strings.TrimSpace(line)
}
