// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// MaxFileSize is the size up to which a configuration file or a staged file is
// read. The largest that are in use on routers have a few hundred kilobytes.
const MaxFileSize = 4 << 20

// How long to wait for a lock, and how often to try. libuci waits for ever, but
// whoever may read a file can lock it, and a daemon must not hang on that.
var (
	lockTimeout = 10 * time.Second
	lockPoll    = 2 * time.Millisecond
)

// maxReopen is how often a file that was replaced is opened again.
const maxReopen = 1000

// lock takes a lock as libuci does: the advisory lock of flock on the file
// itself, unix.LOCK_SH to read and unix.LOCK_EX to write.
func lock(f *os.File, how int) error {
	deadline := time.Now().Add(lockTimeout)
	for {
		switch err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); {
		case err == nil || errors.Is(err, unix.ENOSYS):
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case !errors.Is(err, unix.EWOULDBLOCK):
			return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
		if time.Now().After(deadline) {
			return &fs.PathError{Op: "lock", Path: f.Name(), Err: ErrLocked}
		}
		time.Sleep(lockPoll)
	}
}

// readAll reads a file from its start, unless it is too large.
func readAll(f *os.File) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := st.Size()
	if size > MaxFileSize {
		return nil, tooLarge(f.Name(), size)
	}
	data := make([]byte, 0, size+1)
	r := io.NewSectionReader(f, 0, MaxFileSize+1)
	for {
		n, err := r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if len(data) > MaxFileSize {
			return nil, tooLarge(f.Name(), int64(len(data)))
		}
		if err == io.EOF {
			return data, nil
		}
		if err != nil {
			return nil, err
		}
		if len(data) == cap(data) {
			// The file has grown meanwhile.
			data = append(data, 0)[:len(data)]
		}
	}
}

func tooLarge(name string, size int64) error {
	return fmt.Errorf("%s: %w: %d bytes, at most %d are read", name, ErrTooLarge, size, MaxFileSize)
}

// kind names what a file is that is no regular one.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "not a regular file"
}

// openConfig opens and locks a configuration file. A symbolic link is followed.
// write opens it for writing too and takes the exclusive lock.
//
// A commit puts another file in the place of this one, so the lock may be on what
// has just been replaced. libuci does not care; here the file is opened again
// until what is locked is what the name stands for, or the file system turns out to
// have no lasting inode numbers.
func openConfig(path string, write bool) (*os.File, error) {
	flags, how := os.O_RDONLY, unix.LOCK_SH
	if write {
		flags, how = os.O_RDWR, unix.LOCK_EX
	}
	var waited time.Duration
	for tries := 0; ; tries++ {
		// Opening a device can have an effect, so look before.
		st, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() {
			return nil, fmt.Errorf("%s: %w: it is %s", path, ErrUnsafe, kind(st.Mode()))
		}
		f, err := os.OpenFile(path, flags|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		if err := lock(f, how); err != nil {
			f.Close()
			return nil, err
		}
		if waited < renameTimeout && renamePending(path) {
			f.Close()
			time.Sleep(lockPoll)
			waited += lockPoll
			tries = 0
			continue
		}
		st, err = f.Stat()
		now, err2 := os.Stat(path)
		switch {
		case err != nil || err2 != nil:
			err = errors.Join(err, err2)
		case !st.Mode().IsRegular():
			err = fmt.Errorf("%s: %w: it is %s", path, ErrUnsafe, kind(st.Mode()))
		case os.SameFile(st, now) || tries == maxReopen:
			return f, nil
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// A commit by libuci goes: lock the file, empty the staged file, write a temporary
// file, unlock, and only then rename. Between the last two the file is unlocked
// and outdated, and the changes are in the temporary file alone. Who reads then
// does not see them, and who writes then loses them.
var (
	// renameTimeout is how long to wait for that rename. As a rule it is a
	// matter of microseconds. It takes longer if libuci had to wait for a
	// commit of ours: then what it has locked is the file before that.
	renameTimeout = 3 * time.Second
	// renameStale is the age from which a temporary file is taken for one that a
	// crash has left. Its age counts from before it is flushed to flash.
	renameStale = time.Minute
)

// renamePending says whether a commit by libuci is about to replace the file.
func renamePending(path string) bool {
	dir, name := filepath.Split(path)
	found, err := filepath.Glob(escapeGlob(dir+"."+name+".uci-") + "??????")
	if err != nil {
		return false
	}
	for _, tmp := range found {
		if st, err := os.Lstat(tmp); err == nil && time.Since(st.ModTime()) < renameStale {
			return true
		}
	}
	return false
}

// escapeGlob makes s stand for itself in a pattern.
func escapeGlob(s string) string {
	var b []byte
	for i := range len(s) {
		switch s[i] {
		case '*', '?', '[', '\\':
			b = append(b, '\\')
		}
		b = append(b, s[i])
	}
	return string(b)
}
