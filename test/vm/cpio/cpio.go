// SPDX-License-Identifier: Apache-2.0

// Package cpio writes "newc" archives, the format of a Linux initramfs.
//
// Only what an initramfs needs is here: folders, files, symbolic links and
// device nodes, all owned by root and without times, so that the same content
// always gives the same archive.
package cpio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
)

// File types of the mode field, as the kernel's stat.h has them.
const (
	typeFolder  = 0o040000
	typeFile    = 0o100000
	typeSymlink = 0o120000
	typeDevice  = 0o020000 // character device
)

const (
	magic   = "070701"
	trailer = "TRAILER!!!"
)

// A Writer writes one archive. Parent folders are written by themselves, once
// each. Every method fails after the first failure, so that a caller may check
// only the error of Close.
type Writer struct {
	w       io.Writer
	written int64
	inode   uint32
	seen    map[string]bool
	err     error
}

// NewWriter returns a Writer that writes its archive to w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w, seen: map[string]bool{".": true}}
}

// Folder writes an empty folder.
func (w *Writer) Folder(name string, perm fs.FileMode) error {
	return w.entry(name, header{mode: typeFolder | uint32(perm.Perm())}, nil)
}

// File writes a file with the given content.
func (w *Writer) File(name string, perm fs.FileMode, content []byte) error {
	return w.entry(name, header{
		mode: typeFile | uint32(perm.Perm()),
		size: int64(len(content)),
	}, bytes.NewReader(content))
}

// FileFrom writes a file with the content of the file source.
func (w *Writer) FileFrom(name string, perm fs.FileMode, source string) error {
	if w.err != nil {
		return w.err
	}
	f, err := os.Open(source)
	if err != nil {
		return w.fail(name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return w.fail(name, err)
	}
	return w.entry(name, header{
		mode: typeFile | uint32(perm.Perm()),
		size: info.Size(),
	}, f)
}

// Symlink writes a symbolic link that points to target.
func (w *Writer) Symlink(name, target string) error {
	return w.entry(name, header{mode: typeSymlink | 0o777, size: int64(len(target))}, strings.NewReader(target))
}

// Device writes a character device node.
func (w *Writer) Device(name string, perm fs.FileMode, major, minor uint32) error {
	return w.entry(name, header{
		mode:  typeDevice | uint32(perm.Perm()),
		major: major,
		minor: minor,
	}, nil)
}

// Close writes the end mark. It does not close the underlying writer.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if err := w.write(trailer, header{}, nil); err != nil {
		return w.fail(trailer, err)
	}
	w.err = errors.New("cpio: archive is closed")
	return nil
}

// header is what differs between the entries of our archives.
type header struct {
	mode         uint32
	size         int64
	major, minor uint32
}

// entry writes one entry after the folders that lead to it.
func (w *Writer) entry(name string, h header, content io.Reader) error {
	if w.err != nil {
		return w.err
	}
	clean := path.Clean(strings.TrimPrefix(name, "/"))
	if clean == "." || clean == ".." || strings.HasPrefix(clean, "../") {
		return w.fail(name, errors.New("not a path below the root"))
	}
	if w.seen[clean] {
		if h.mode&^0o777 == typeFolder {
			return nil
		}
		return w.fail(name, fs.ErrExist)
	}
	if err := w.parents(clean); err != nil {
		return err
	}
	w.seen[clean] = true
	if h.size > math.MaxUint32 {
		return w.fail(name, errors.New("too large for the format (4 GiB)"))
	}
	if err := w.write(clean, h, content); err != nil {
		return w.fail(name, err)
	}
	return nil
}

// parents writes the folders above name that were not written yet.
func (w *Writer) parents(name string) error {
	parent := path.Dir(name)
	if w.seen[parent] {
		return nil
	}
	return w.Folder(parent, 0o755)
}

// write writes one entry with its padding: header and name, and then the
// content, each fill up to a multiple of four bytes.
func (w *Writer) write(name string, h header, content io.Reader) error {
	w.inode++
	links := 1
	fields := []any{
		w.inode, h.mode, 0, 0, links, 0, h.size,
		0, 0, h.major, h.minor, len(name) + 1, 0,
	}
	text := magic + fmt.Sprintf(strings.Repeat("%08x", len(fields)), fields...) + name + "\x00"
	if err := w.copy(strings.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	if content == nil {
		return nil
	}
	return w.copy(content, h.size)
}

// copy copies exactly size bytes and pads the archive.
func (w *Writer) copy(r io.Reader, size int64) error {
	n, err := io.CopyN(w.w, r, size)
	w.written += n
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if pad := -w.written & 3; pad > 0 {
		n, err := w.w.Write(make([]byte, pad))
		w.written += int64(n)
		return err
	}
	return nil
}

// fail keeps the first error for all later calls.
func (w *Writer) fail(name string, err error) error {
	w.err = fmt.Errorf("cpio: %s: %w", name, err)
	return w.err
}
