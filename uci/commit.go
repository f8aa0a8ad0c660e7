// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Commit writes the packages that this tree has staged changes for to their files,
// with everything that is staged for them. Like "uci commit" it tells nobody.
func (t *Tree) Commit() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var errs []error
	for _, name := range t.touchedConfigs() {
		errs = append(errs, t.commit(name, true))
	}
	return errors.Join(errs...)
}

// CommitConfig writes one package, whoever has staged the changes. If none of the
// staged lines applies, neither the file nor what is staged is touched.
//
// The file is replaced by a new one, and only then the staged changes are dropped:
// a crash leaves the old file or the new one, never a part, and at worst changes
// that are staged and committed both.
//
// One case is left in which a change can get lost, because libuci's own locks
// have a gap: a "uci commit" that waits while this commit replaces the file locks
// the old one afterwards, and what is staged in the instant between its reading
// and its emptying of the staged file is gone.
//
// A result that would not load any more (libuci lets a section take the name of
// another) is an error, and nothing is written.
func (t *Tree) CommitConfig(name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.commit(name, true)
}

func (t *Tree) touchedConfigs() []string {
	return slices.Sorted(maps.Keys(t.touched))
}

func (t *Tree) commit(name string, mustLoad bool) error {
	if err := t.write(name, mustLoad); err != nil {
		return fmt.Errorf("uci: commit %s: %w", name, err)
	}
	delete(t.touched, name)
	delete(t.loaded, name) // to be read when it is asked for
	return nil
}

func (t *Tree) write(name string, mustLoad bool) error {
	s, err := t.begin(name, true)
	if err != nil {
		return err
	}
	defer s.close()
	p, applied, err := s.read()
	if err != nil || applied == 0 {
		return err
	}
	text := []byte(p.Text())
	if mustLoad {
		if _, err := Parse(name, s.path, text); err != nil {
			return fmt.Errorf("the result would not load: %w", err)
		}
	}
	if len(text) > MaxFileSize {
		return tooLarge(s.path, int64(len(text)))
	}
	if err := s.replace(text); err != nil {
		return err
	}
	return s.staged.Truncate(0)
}

// replace puts a new file in the place of the configuration file.
func (s *session) replace(text []byte) error {
	path, err := filepath.EvalSymlinks(s.path)
	if err != nil {
		return err
	}
	dir, base := filepath.Split(path)
	// Only who holds the lock makes such a file, so one that is there is left
	// from a crash. libuci's own are called otherwise and mean something else.
	prefix := "." + base + ".new-"
	old, _ := filepath.Glob(escapeGlob(dir+prefix) + "*")
	for _, left := range old {
		os.Remove(left)
	}
	tmp, err := os.CreateTemp(dir, prefix+"*")
	if err != nil {
		return err
	}
	err = fill(tmp, s.config, text)
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
		return err
	}
	s.renew(text)
	return syncDir(dir)
}

// fill writes the new file, with mode and owner of the old one, to the disk.
func fill(tmp, old *os.File, text []byte) error {
	err := func() error {
		if _, err := tmp.Write(text); err != nil {
			return err
		}
		st, err := old.Stat()
		if err != nil {
			return err
		}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			// Only root can give files away; for others it is theirs.
			if err := tmp.Chown(int(sys.Uid), int(sys.Gid)); err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
		if err := tmp.Chmod(st.Mode()); err != nil {
			return err
		}
		return tmp.Sync()
	}()
	return errors.Join(err, tmp.Close())
}

// renew writes the new text to the file that has just been replaced as well. Its
// name is gone, but a uci that is waiting for our lock has it open: it is going to
// read it, and, if it commits, to write back what it has read.
func (s *session) renew(text []byte) {
	var st unix.Stat_t
	if unix.Fstat(int(s.config.Fd()), &st) != nil || st.Nlink > 0 {
		return // it has another name, where it must stay as it is
	}
	before, err := readAll(s.config)
	if err != nil {
		return
	}
	write := func(text []byte) error {
		if _, err := s.config.WriteAt(text, 0); err != nil {
			return err
		}
		return s.config.Truncate(int64(len(text)))
	}
	if write(text) != nil {
		// Better outdated than half a file.
		_ = write(before)
	}
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return &fs.PathError{Op: "sync", Path: dir, Err: err}
	}
	return nil
}
