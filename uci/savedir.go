// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// saveDir is an open save directory. It is checked once, and files are opened
// relative to it, so that nobody can put another one in its place meanwhile.
type saveDir struct {
	path string
	fd   int
}

// openSaveDir opens the save directory. It returns nil if there is none.
//
// What is staged there becomes the configuration of the system, which root acts
// on. So the directory has to be one that only root and the caller can write to.
// OpenWrt makes it with mode 0700 at boot, but /tmp is open to all, and who comes
// first could make it too.
func openSaveDir(path string) (*saveDir, error) {
	if path == "" {
		return nil, nil
	}
	path = filepath.Clean(path) // "link/" would be followed
	fd, err := retryOpen(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, nil
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR):
		what := "not a directory"
		if st, err := os.Lstat(path); err == nil && !st.IsDir() {
			what = kind(st.Mode())
			if st.Mode().IsRegular() {
				what = "a file"
			}
		}
		return nil, fmt.Errorf("save directory %s: %w: it is %s", path, ErrUnsafe, what)
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	d := &saveDir{path, fd}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		d.close()
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if why := distrust(st.Uid, st.Gid, uint32(st.Mode), os.Geteuid(), os.Getegid()); why != "" {
		d.close()
		return nil, fmt.Errorf("save directory %s: %w: %s", path, ErrUnsafe, why)
	}
	return d, nil
}

// distrust says why a directory is not one that only root and the caller can
// write to, or returns nothing. The group root and the caller's own count as
// they.
func distrust(uid, gid, mode uint32, euid, egid int) string {
	switch {
	case uid != 0 && int(uid) != euid:
		return fmt.Sprintf("it belongs to user %d", uid)
	case mode&unix.S_IWOTH != 0:
		return fmt.Sprintf("everybody can write to it (mode %04o)", mode&0o7777)
	case mode&unix.S_IWGRP != 0 && gid != 0 && int(gid) != egid:
		return fmt.Sprintf("group %d can write to it (mode %04o)", gid, mode&0o7777)
	}
	return ""
}

func (d *saveDir) close() {
	if d != nil {
		unix.Close(d.fd)
	}
}

// open opens the staged file of a package. It returns an error that wraps
// fs.ErrNotExist if there is none, and refuses what is not a regular file of root
// or the caller.
func (d *saveDir) open(name string, flags int, perm fs.FileMode) (*os.File, error) {
	path := filepath.Join(d.path, name)
	var st unix.Stat_t
	err := unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case errors.Is(err, unix.ENOENT) && flags&unix.O_CREAT != 0:
	case err != nil:
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	default:
		if err := checkStaged(path, &st); err != nil {
			return nil, err
		}
	}
	fd, err := retryOpen(func() (int, error) {
		return unix.Openat(d.fd, name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, uint32(perm.Perm()))
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	// What was looked at may not be what was opened.
	if err := unix.Fstat(fd, &st); err != nil {
		unix.Close(fd)
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	if err := checkStaged(path, &st); err != nil {
		unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

func checkStaged(path string, st *unix.Stat_t) error {
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("staged file %s: %w: it is %s", path, ErrUnsafe, kind(fileMode(st)))
	case st.Uid != 0 && int(st.Uid) != os.Geteuid():
		return fmt.Errorf("staged file %s: %w: it belongs to user %d", path, ErrUnsafe, st.Uid)
	case st.Size > MaxFileSize:
		return tooLarge(path, st.Size)
	}
	return nil
}

// fileMode translates the kind of a file.
func fileMode(st *unix.Stat_t) fs.FileMode {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return fs.ModeDir
	case unix.S_IFLNK:
		return fs.ModeSymlink
	case unix.S_IFIFO:
		return fs.ModeNamedPipe
	case unix.S_IFSOCK:
		return fs.ModeSocket
	case unix.S_IFCHR, unix.S_IFBLK:
		return fs.ModeDevice
	}
	return 0
}

// retryOpen repeats what a signal has interrupted.
func retryOpen(open func() (int, error)) (int, error) {
	for {
		fd, err := open()
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}
