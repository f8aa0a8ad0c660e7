// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/xdpl2/xdpl2/internal/pack"
)

// Where results go in the tree.
const (
	packagesDir = "build/packages"
	feedDir     = "build/feed"
	releaseDir  = "dist"
)

// apkDir holds the .apk files in a folder of packages, one folder an
// architecture: their names do not tell it.
const apkDir = "apk"

// buildPackages makes the packages of all manifests for all targets in a folder
// that is emptied first, and returns the sizes.
func (o *options) buildPackages(ctx context.Context, b *pack.Builder, out string) ([]pack.Size, error) {
	targets, err := pack.SelectTargets(o.archList())
	if err != nil {
		return nil, err
	}
	manifests, err := pack.LoadManifests(b.Root)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(out); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	apk, noAPK := pack.FindAPK(ctx)
	var sizes []pack.Size
	count := 0
	for _, m := range manifests {
		for i, t := range targets {
			if m.AnyArch && i > 0 {
				break
			}
			p, err := b.Package(ctx, m, t)
			if err != nil {
				return nil, err
			}
			ipk, err := p.IPK()
			if err != nil {
				return nil, err
			}
			if err := os.WriteFile(filepath.Join(out, p.FileName()), ipk, 0o644); err != nil {
				return nil, err
			}
			count++
			sizes = append(sizes, pack.Size{Name: "package " + p.Name, Arch: p.Arch, Bytes: int64(len(ipk))})
			sizes = append(sizes, programSizes(p)...)
			if noAPK != nil {
				continue
			}
			dir := filepath.Join(out, apkDir, p.Arch)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return nil, err
			}
			if err := apk.WriteAPK(ctx, p, dir); err != nil {
				return nil, err
			}
		}
	}
	if noAPK != nil {
		o.log("no .apk packages: %v", noAPK)
	}
	o.log("%d packages in %s", count, out)
	return sizes, nil
}

// programSizes are the sizes of the programs in a package.
func programSizes(p *pack.Package) []pack.Size {
	var sizes []pack.Size
	for _, r := range p.Rules {
		if r.Kind != pack.GoProgram {
			continue
		}
		for _, f := range p.Files {
			if f.Path == r.Path {
				sizes = append(sizes, pack.Size{Name: "program " + filepath.Base(r.Path), Arch: p.Arch, Bytes: int64(len(f.Data))})
			}
		}
	}
	return sizes
}

// copyFile copies a file to a new place.
func copyFile(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(to, data, 0o644); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}
