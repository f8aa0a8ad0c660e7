// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/xdpl2/xdpl2/internal/pack/lmo"
)

// A Builder makes packages from a source tree.
type Builder struct {
	Root    string                           // of the tree
	Work    string                           // folder for programs; they are used again
	Tags    string                           // as for go build
	LDFlags string                           // as for go build
	Release int                              // of the same version
	Epoch   int64                            // see FindEpoch
	Log     func(format string, args ...any) // progress

	version  string
	programs map[string][]byte
}

// versionFormat is what both opkg and apk can compare.
var versionFormat = regexp.MustCompile(`^\d+(\.\d+){1,3}(_(alpha|beta|pre|rc)\d*)?$`)

// ReadVersion reads the file VERSION, which all versions come from.
func ReadVersion(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "VERSION"))
	if err != nil {
		return "", fmt.Errorf("read version: %w", err)
	}
	version := strings.TrimSpace(string(text))
	if !versionFormat.MatchString(version) {
		return "", fmt.Errorf("VERSION: %q (expected numbers such as 0.1.0, or 0.1.0_rc1)", version)
	}
	return version, nil
}

// FindEpoch is the time that is written into everything: SOURCE_DATE_EPOCH if it
// is set, else that of the tree's commit.
func FindEpoch(ctx context.Context, root string) (int64, error) {
	text, from := os.Getenv("SOURCE_DATE_EPOCH"), "SOURCE_DATE_EPOCH"
	if text == "" {
		from = "the commit's time"
		out, err := exec.CommandContext(ctx, "git", "-C", root, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return 0, fmt.Errorf("find the time of the sources: %w (outside of git, set SOURCE_DATE_EPOCH)", err)
		}
		text = strings.TrimSpace(string(out))
	}
	epoch, err := strconv.ParseInt(text, 10, 64)
	if err != nil || epoch < 0 {
		return 0, fmt.Errorf("%s: %q (expected seconds since 1970)", from, text)
	}
	return epoch, nil
}

// Package makes a package for an architecture; a package for all architectures
// is made for any of them.
func (b *Builder) Package(ctx context.Context, m *Manifest, t Target) (*Package, error) {
	if b.version == "" {
		version, err := ReadVersion(b.Root)
		if err != nil {
			return nil, err
		}
		b.version = version
	}
	p := &Package{Manifest: m, Version: fmt.Sprintf("%s-r%d", b.version, b.Release), Arch: t.Arch, Epoch: b.Epoch}
	if m.AnyArch {
		p.Arch = All
	}
	for _, r := range m.Rules {
		files, err := b.files(ctx, r, t)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", m.Path, r.Line, err)
		}
		p.Files = append(p.Files, files...)
	}
	slices.SortFunc(p.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	for i := 1; i < len(p.Files); i++ {
		if p.Files[i].Path == p.Files[i-1].Path {
			return nil, fmt.Errorf("%s: %s is installed twice", m.Path, p.Files[i].Path)
		}
	}
	if m.Postinst != "" {
		script, err := os.ReadFile(filepath.Join(b.Root, m.Postinst))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Path, err)
		}
		p.postinst = script
	}
	return p, nil
}

// files carries a rule out.
func (b *Builder) files(ctx context.Context, r Rule, t Target) ([]File, error) {
	source := filepath.Join(b.Root, filepath.FromSlash(r.Source))
	f := File{Path: r.Path, Mode: r.Mode, Conffile: r.Conffile}
	var err error
	switch r.Kind {
	case GoProgram:
		f.Data, err = b.program(ctx, r.Source, t)
	case Translation:
		if f.Data, err = os.ReadFile(source); err == nil {
			if f.Data, err = lmo.Compile(f.Data); err != nil {
				err = fmt.Errorf("%s: %w", r.Source, err)
			}
		}
	case Tree:
		return tree(source, r)
	default:
		f.Data, err = os.ReadFile(source)
	}
	return []File{f}, err
}

// tree takes a folder with all that is in it.
func tree(source string, r Rule) ([]File, error) {
	var files []File
	err := filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s: neither a file nor a folder", name)
		}
		rel, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		f := File{Path: path.Join("/", r.Path, filepath.ToSlash(rel)), Mode: r.Mode, Conffile: r.Conffile}
		if r.Mode == 0 {
			f.Mode = 0o644
			if info.Mode()&0o100 != 0 {
				f.Mode = 0o755
			}
		}
		if f.Data, err = os.ReadFile(name); err != nil {
			return err
		}
		files = append(files, f)
		return nil
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("%s: nothing in it", source)
	}
	return files, err
}

// program builds a Go program, once for all targets that run it.
func (b *Builder) program(ctx context.Context, pkg string, t Target) ([]byte, error) {
	name := path.Base(pkg)
	key := name + "," + t.key()
	if data, ok := b.programs[key]; ok {
		return data, nil
	}
	out := filepath.Join(b.Work, strings.ReplaceAll(t.key(), ",", "-"), name)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		return nil, err
	}
	b.Log("building %s (%s)", name, strings.ReplaceAll(t.key(), ",", " "))
	// Neither the place of the tree nor what git thinks of it may be in the file.
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", b.Tags, "-ldflags", b.LDFlags, "-o", out, "./"+pkg)
	cmd.Dir = b.Root
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=")
	cmd.Env = append(cmd.Env, t.Env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return nil, errors.Join(fmt.Errorf("go build ./%s for %s: %w", pkg, t.key(), err), errors.New(strings.TrimSpace(stderr.String())))
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return nil, err
	}
	if b.programs == nil {
		b.programs = map[string][]byte{}
	}
	b.programs[key] = data
	return data, nil
}

// Programs are the files of the programs that were built.
func (b *Builder) Programs() map[string][]byte { return b.programs }
