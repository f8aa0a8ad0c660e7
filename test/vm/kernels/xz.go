// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// unxz calls read with the decompressed content of an .xz file. The xz program
// does the work: every Debian has it.
func unxz(ctx context.Context, file string, read func(io.Reader) error) error {
	program, err := exec.LookPath("xz")
	if err != nil {
		return errors.New("xz is missing: install the Debian package xz-utils")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-dc", "--", file)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := read(out); err != nil {
		cancel()
		cmd.Wait()
		return fmt.Errorf("unpack %s: %w%s", filepath.Base(file), err, detail(stderr.Bytes()))
	}
	if _, err := io.Copy(io.Discard, out); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("unpack %s: %w%s", filepath.Base(file), err, detail(stderr.Bytes()))
	}
	return nil
}

// unpack unpacks a .tar.xz into a folder.
func unpack(ctx context.Context, archive, dir string) error {
	return unxz(ctx, archive, func(r io.Reader) error { return untar(r, dir) })
}

// untar writes folders and files below dir, and nothing else.
func untar(r io.Reader, dir string) error {
	tr := tar.NewReader(r)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(h.Name) {
			return fmt.Errorf("member %q is outside", h.Name)
		}
		target := filepath.Join(dir, h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(target, 0o755)
		case tar.TypeReg:
			err = writeFile(target, h.FileInfo().Mode(), tr)
		default:
			err = fmt.Errorf("member %q is neither file nor folder", h.Name)
		}
		if err != nil {
			return err
		}
	}
}

// writeFile writes a file and the folders above it.
func writeFile(path string, mode fs.FileMode, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode.Perm()|0o200)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
