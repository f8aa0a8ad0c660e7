// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/xdpl2/xdpl2/test/vm/cpio"
	"github.com/xdpl2/xdpl2/test/vm/guest"
	"github.com/xdpl2/xdpl2/test/vm/kernels"
)

// An initramfs is what a guest finds when it boots: it has no disk.
type initramfs struct {
	bundle   kernels.Bundle
	init     string // the built /init
	plan     *guest.Plan
	packages []*testPackage
	root     string            // the module, for the folders that tests read
	files    map[string]string // path in the guest: file to copy, executable
}

// small files that every system has.
var etcFiles = map[string]string{
	"etc/passwd":   "root:x:0:0:root:/root:/bin/sh\n",
	"etc/group":    "root:x:0:\n",
	"etc/hosts":    "127.0.0.1 localhost\n::1 localhost\n",
	"etc/hostname": guest.Hostname + "\n",
}

// write writes the archive, not compressed: the guest's emulated processor
// would need longer to unpack it than to copy it.
func (a *initramfs) write(name string) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	defer func() {
		if cerr := f.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("write initramfs: %w", cerr)
		}
	}()
	buffered := bufio.NewWriterSize(f, 1<<20)
	w := cpio.NewWriter(buffered)
	if err := a.fill(w); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("write initramfs: %w", err)
	}
	return nil
}

// fill writes the archive's members. The Writer keeps its first error, so that
// those of single members need not be looked at.
func (a *initramfs) fill(w *cpio.Writer) error {
	plan, err := json.Marshal(a.plan)
	if err != nil {
		return err
	}
	w.Device("dev/console", 0o600, 5, 1) // the kernel opens it for /init
	w.FileFrom("init", 0o755, a.init)
	w.File(guest.PlanPath, 0o644, plan)
	w.Folder("root", 0o700)
	w.Folder("var", 0o755)
	w.Symlink("var/run", "/run")
	w.Symlink("var/tmp", "/tmp")
	for name, content := range etcFiles {
		w.File(name, 0o644, []byte(content))
	}
	w.FileFrom(guest.Busybox, 0o755, a.bundle.Busybox())
	modules, err := a.bundle.Modules()
	if err != nil {
		return err
	}
	w.FileFrom(path.Join(guest.ModulesDir, guest.ModuleOrder), 0o644, a.bundle.ModuleOrder())
	for _, name := range modules {
		w.FileFrom(path.Join(guest.ModulesDir, name+".ko"), 0o644, a.bundle.Module(name))
	}
	for name, file := range a.files {
		w.FileFrom(name, 0o755, file)
	}
	return a.fillTests(w)
}

// fillTests writes each test binary into its package's folder, beside the
// package's test data.
func (a *initramfs) fillTests(w *cpio.Writer) error {
	for i, p := range a.packages {
		w.FileFrom(a.plan.Packages[i].Binary, 0o755, p.binary)
		if err := addTree(w, filepath.Join(p.dir, "testdata"), path.Join(a.plan.Packages[i].Dir, "testdata")); err != nil {
			return err
		}
	}
	if len(a.packages) == 0 {
		return nil
	}
	for _, folder := range testedFolders {
		if err := addTree(w, filepath.Join(a.root, folder), path.Join(guest.TestsDir, folder)); err != nil {
			return err
		}
	}
	return nil
}

// addTree copies a folder with all that is in it; a missing one is no error.
func addTree(w *cpio.Writer, source, target string) error {
	if _, err := os.Stat(source); os.IsNotExist(err) {
		return nil
	}
	return filepath.WalkDir(source, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		inGuest := path.Join(target, filepath.ToSlash(rel))
		switch {
		case d.IsDir():
			return w.Folder(inGuest, info.Mode())
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(name)
			if err != nil {
				return err
			}
			return w.Symlink(inGuest, link)
		default:
			return w.FileFrom(inGuest, info.Mode(), name)
		}
	})
}
