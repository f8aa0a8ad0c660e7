// SPDX-License-Identifier: Apache-2.0

// Package kernels finds the kernels that test guests run.
//
// A kernel comes as a bundle, a folder VERSION-arm64 with
//
//	vmlinuz        the kernel, a plain arm64 Image
//	config         how it was configured
//	busybox        a static busybox
//	modules/*.ko   what the tests need, not compressed
//	modules/order  the modules' names, dependencies first
//
// Bundles are looked for in a shared folder (there also as VERSION-arm64.tar.xz),
// then in a cache, and are made from Debian's packages at last.
package kernels

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// suffix follows the kernel's name in a bundle's name.
const suffix = "-arm64"

// A Release is a kernel that the tests run on, and the Debian suite that has it.
type Release struct {
	Name  string
	Suite string
}

// Releases are the kernels of the test matrix, the oldest first.
var Releases = []Release{
	{"5.10", "bullseye"}, // OpenWrt 22.03, iStoreOS 22.03
	{"6.1", "bookworm"},  // the Rockchip vendor kernel
	{"6.12", "trixie"},   // OpenWrt 25.12; the nearest to 24.10's 6.6
	{"7.2", "sid"},       // what comes next
}

// A Bundle is an unpacked kernel.
type Bundle struct {
	Name   string // such as "5.10"
	Dir    string
	Origin string // where it comes from, for people
}

// Kernel is the kernel's file.
func (b Bundle) Kernel() string { return filepath.Join(b.Dir, "vmlinuz") }

// Busybox is the static busybox.
func (b Bundle) Busybox() string { return filepath.Join(b.Dir, "busybox") }

// ModuleOrder is the file with the modules' names in the order of loading.
func (b Bundle) ModuleOrder() string { return filepath.Join(b.Dir, "modules", "order") }

// Module is the file of a module.
func (b Bundle) Module(name string) string {
	return filepath.Join(b.Dir, "modules", name+".ko")
}

// Modules are the modules' names in the order of loading.
func (b Bundle) Modules() ([]string, error) {
	order, err := os.ReadFile(b.ModuleOrder())
	if err != nil {
		return nil, fmt.Errorf("kernel %s: %w", b.Name, err)
	}
	return strings.Fields(string(order)), nil
}

// Check tells what is missing in a bundle.
func (b Bundle) Check() error {
	modules, err := b.Modules()
	if err != nil {
		return err
	}
	files := []string{b.Kernel(), b.Busybox()}
	for _, name := range modules {
		files = append(files, b.Module(name))
	}
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("kernel %s: incomplete: %w", b.Name, err)
		}
	}
	return nil
}

// Why a place gives no kernel.
var (
	errNone     = errors.New("not there")
	errNotAsked = errors.New("not asked")
)

// A Source knows the places of bundles. Empty folders are not looked at, and
// Debian may be nil.
type Source struct {
	Shared string  // folder of bundles that came with the project
	Cache  string  // folder of bundles made earlier
	Work   string  // where to unpack; the caller removes it
	Debian *Debian // makes bundles, and stores them in Cache
}

// Get finds a kernel. Its error tells every place that does not have it.
func (s *Source) Get(ctx context.Context, name string) (Bundle, error) {
	places := []struct {
		name string
		get  func(context.Context, string) (Bundle, error)
	}{
		{"the shared folder", s.fromShared},
		{"the cache", s.fromCache},
		{"Debian", s.fromDebian},
	}
	var reasons []string
	for _, place := range places {
		b, err := place.get(ctx, name)
		if err == nil {
			b.Name, b.Origin = name, place.name
			err = b.Check()
		}
		if err == nil {
			return b, nil
		}
		if ctx.Err() != nil {
			return Bundle{}, context.Cause(ctx)
		}
		reasons = append(reasons, fmt.Sprintf("%s: %v", place.name, err))
	}
	return Bundle{}, fmt.Errorf("kernel %s is not to be had (%s)", name, strings.Join(reasons, "; "))
}

// fromShared takes a bundle of the shared folder, which is never written to.
func (s *Source) fromShared(ctx context.Context, name string) (Bundle, error) {
	if s.Shared == "" {
		return Bundle{}, errNotAsked
	}
	dir := filepath.Join(s.Shared, name+suffix)
	if isFolder(dir) {
		return Bundle{Dir: dir}, nil
	}
	archive := dir + ".tar.xz"
	if _, err := os.Stat(archive); errors.Is(err, fs.ErrNotExist) {
		return Bundle{}, errNone
	}
	if err := unpack(ctx, archive, s.Work); err != nil {
		return Bundle{}, err
	}
	return Bundle{Dir: filepath.Join(s.Work, name+suffix)}, nil
}

// fromCache takes a bundle that was made by fromDebian.
func (s *Source) fromCache(_ context.Context, name string) (Bundle, error) {
	dir := filepath.Join(s.Cache, name+suffix)
	if s.Cache == "" || !isFolder(dir) {
		return Bundle{}, errNone
	}
	return Bundle{Dir: dir}, nil
}

// fromDebian makes a bundle and stores it in the cache.
func (s *Source) fromDebian(ctx context.Context, name string) (Bundle, error) {
	if s.Debian == nil {
		return Bundle{}, errNotAsked
	}
	suite := ""
	for _, r := range Releases {
		if r.Name == name {
			suite = r.Suite
		}
	}
	if suite == "" {
		return Bundle{}, errors.New("no suite is known to have it")
	}
	if err := os.MkdirAll(s.Cache, 0o755); err != nil {
		return Bundle{}, err
	}
	// In the cache's own folder, so that the finished bundle is only renamed.
	tmp, err := os.MkdirTemp(s.Cache, ".new-")
	if err != nil {
		return Bundle{}, err
	}
	defer os.RemoveAll(tmp)
	b := Bundle{Name: name, Dir: filepath.Join(tmp, name+suffix)}
	if err := s.Debian.Make(ctx, suite, b, filepath.Join(tmp, "work")); err != nil {
		return Bundle{}, err
	}
	if err := b.Check(); err != nil {
		return Bundle{}, err
	}
	dir := filepath.Join(s.Cache, name+suffix)
	if err := os.RemoveAll(dir); err != nil { // an incomplete one
		return Bundle{}, err
	}
	if err := os.Rename(b.Dir, dir); err != nil {
		return Bundle{}, err
	}
	return Bundle{Dir: dir}, nil
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
