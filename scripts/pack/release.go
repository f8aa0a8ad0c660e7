// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/pack"
)

// release makes everything that a release consists of, from what is committed:
// the tree is taken out of git anew, so that nothing else gets in.
func release(ctx context.Context, o *options, args []string) error {
	if err := o.noMore(args); err != nil {
		return err
	}
	if err := o.committed(ctx); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "xdpl2-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	version, err := pack.ReadVersion(o.root)
	if err != nil {
		return err
	}
	out := o.outDir(releaseDir)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	name := "xdpl2-" + version
	archive := filepath.Join(out, name+".tar.gz")
	if err := o.command(ctx, "git", "-C", o.root, "archive", "--format=tar.gz", "--prefix="+name+"/", "-o", abs(archive), "HEAD"); err != nil {
		return err
	}
	if err := o.command(ctx, "tar", "-xzf", archive, "-C", work); err != nil {
		return err
	}
	b, err := o.builder(ctx, filepath.Join(work, name))
	if err != nil {
		return err
	}
	b.Work = filepath.Join(work, "programs")
	packages := filepath.Join(out, "packages")
	sizes, err := o.buildPackages(ctx, b, packages)
	if err != nil {
		return err
	}
	if err := o.makeFeed(ctx, packages, filepath.Join(out, "feed"), version, b.Epoch); err != nil {
		return err
	}
	if err := plainArchives(b, version, out); err != nil {
		return err
	}
	bom, err := pack.SBOM(version, b.Programs(), b.Epoch)
	if err != nil {
		return err
	}
	for file, data := range map[string][]byte{
		name + ".cdx.json": bom,
		"sizes":            []byte(pack.FormatSizes(version, slices.Clone(sizes))),
	} {
		if err := os.WriteFile(filepath.Join(out, file), data, 0o644); err != nil {
			return err
		}
	}
	if err := writeChecksums(out); err != nil {
		return err
	}
	o.log("the release is in %s; copy its file sizes to %s and commit that", out, o.sizes)
	return o.printSizes(sizes)
}

// committed fails if the tree differs from its commit.
func (o *options) committed(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, "git", "-C", o.root, "status", "--porcelain").Output()
	if err != nil {
		return fmt.Errorf("git status: %w", err)
	}
	if len(out) > 0 {
		return fmt.Errorf("a release is made of what is committed, and this is not:\n%s", out)
	}
	return nil
}

func (o *options) command(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

func abs(name string) string {
	if full, err := filepath.Abs(name); err == nil {
		return full
	}
	return name
}

// plainArchives packs the programs for a router without opkg and apk: one
// archive per kind of processor, to be unpacked over its root.
func plainArchives(b *pack.Builder, version, out string) error {
	m, err := pack.LoadManifest(filepath.Join(b.Root, "files", "debian", "xdpl2.manifest"))
	if err != nil {
		return err
	}
	for _, t := range pack.PlainTargets {
		p, err := b.Package(context.Background(), m, t)
		if err != nil {
			return err
		}
		archive, err := p.PlainArchive()
		if err != nil {
			return err
		}
		name := fmt.Sprintf("xdpl2-%s-linux-%s.tar.gz", version, t.Arch)
		if err := os.WriteFile(filepath.Join(out, name), archive, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// writeChecksums writes SHA256SUMS for everything in a folder, for `sha256sum -c`.
func writeChecksums(dir string) error {
	var list strings.Builder
	const name = "SHA256SUMS"
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == name {
			return err
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(data), filepath.ToSlash(rel))
		return nil
	})
	if err != nil {
		return fmt.Errorf("checksums: %w", err)
	}
	return os.WriteFile(filepath.Join(dir, name), []byte(list.String()), 0o644)
}
