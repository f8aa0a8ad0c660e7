// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/xdpl2/xdpl2/test/vm/guest"
	"github.com/xdpl2/xdpl2/test/vm/kernels"
	"github.com/xdpl2/xdpl2/test/vm/testlog"
)

// A setting is what is special about a kernel's guest.
type setting struct {
	cpus    int
	hideBTF bool
}

// settings are the special guests. OpenWrt's stock kernels have no BTF, and
// routers have several processors.
var settings = map[string]setting{
	"6.1":  {cpus: 2},
	"6.12": {cpus: 1, hideBTF: true},
}

// settingOf returns a kernel's setting.
func settingOf(kernel string) setting {
	if s, ok := settings[kernel]; ok {
		return s
	}
	return setting{cpus: 1}
}

// String is the setting in the table's words.
func (s setting) String() string {
	var parts []string
	if s.cpus > 1 {
		parts = append(parts, fmt.Sprintf("%d CPUs", s.cpus))
	}
	if s.hideBTF {
		parts = append(parts, "no BTF")
	}
	return strings.Join(parts, ", ")
}

// runMatrix builds the tests, boots every kernel and returns what happened. It
// fails only if there is nothing to run.
func (r *runner) runMatrix(ctx context.Context) (*report, error) {
	names := r.kernels
	if len(names) == 0 {
		for _, release := range kernels.Releases {
			names = append(names, release.Name)
		}
	}
	packages, err := r.findPackages(ctx)
	if err != nil {
		return nil, err
	}
	bundles, results, err := r.findKernels(ctx, names)
	if err != nil {
		return nil, err
	}
	r.out.progress("building the tests of %d packages for arm64", len(packages))
	if err := r.buildTests(ctx, packages); err != nil {
		return nil, err
	}
	built := slices.DeleteFunc(slices.Clone(packages), func(p *testPackage) bool { return p.err != nil })
	if len(built) > 0 {
		initBinary, err := r.build(ctx, "./test/vm/init")
		if err != nil {
			return nil, err
		}
		files, err := r.routerPackages(ctx, built)
		if err != nil {
			return nil, err
		}
		r.bootAll(ctx, bundles, results, built, initBinary, files)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	rep := newReport(packages, results)
	rep.complete = r.filter == "" && len(r.kernels) == 0
	return rep, nil
}

// findKernels finds the bundles, and a result for each kernel, that of a
// missing one saying why it is missing.
func (r *runner) findKernels(ctx context.Context, names []string) (map[string]kernels.Bundle, []*kernelResult, error) {
	source, err := r.source()
	if err != nil {
		return nil, nil, err
	}
	bundles := map[string]kernels.Bundle{}
	var results []*kernelResult
	for _, name := range names {
		result := &kernelResult{Kernel: name, Setting: settingOf(name).String()}
		results = append(results, result)
		b, err := source.Get(ctx, name)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if err != nil {
			result.Unavailable = err.Error()
			r.out.progress("%v", err)
			continue
		}
		bundles[name] = b
		r.out.progress("kernel %s: from %s", name, b.Origin)
	}
	if len(bundles) == 0 {
		return nil, nil, errors.New("there is no kernel to run the tests on")
	}
	return bundles, results, nil
}

// bootAll boots the guests, guestsAtOnce at a time.
func (r *runner) bootAll(ctx context.Context, bundles map[string]kernels.Bundle, results []*kernelResult, packages []*testPackage, initBinary string, files map[string]string) {
	slots := make(chan struct{}, guestsAtOnce)
	var wg sync.WaitGroup
	for _, result := range results {
		bundle, ok := bundles[result.Kernel]
		if !ok {
			continue
		}
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			fs := &initramfs{
				bundle:   bundle,
				init:     initBinary,
				plan:     r.plan(result.Kernel, packages),
				packages: packages,
				root:     r.module.root,
				files:    files,
			}
			r.runGuest(ctx, result, fs)
		})
	}
	wg.Wait()
}

// plan is what a guest is told to do.
func (r *runner) plan(kernel string, packages []*testPackage) *guest.Plan {
	p := &guest.Plan{
		Kernel:  kernel,
		HideBTF: settingOf(kernel).hideBTF,
		Env:     guestEnv(kernel),
		Args: []string{
			testlog.Flag,
			"-test.paniconexit0",
			// A test that hangs is cut by the testing package, which tells where
			// it hangs, before the guest is.
			"-test.timeout=" + (r.timeout * 9 / 10).String(),
		},
	}
	if r.filter != "" {
		p.Args = append(p.Args, "-test.run="+r.filter)
	}
	for _, t := range packages {
		dir := path.Join(guest.TestsDir, filepath.ToSlash(t.name))
		p.Packages = append(p.Packages, guest.Package{
			Path:   t.name,
			Dir:    dir,
			Binary: path.Join(dir, path.Base(t.name)+".test"),
		})
	}
	return p
}

// guestEnv is the environment of programs in a guest. XDPL2_GUEST tells tests
// where they are, XDPL2_GUEST_PORTS which network cards they may use,
// XDPL2_PACKAGES where the packages are that they install.
func guestEnv(kernel string) []string {
	return []string{
		"PATH=/bin",
		"HOME=/root",
		"TMPDIR=/tmp",
		"USER=root",
		"XDPL2_GUEST=" + kernel,
		"XDPL2_GUEST_PORTS=" + guestPorts,
		"XDPL2_PACKAGES=" + guest.PackagesDir,
	}
}
