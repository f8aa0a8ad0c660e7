// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// session is a package that is being changed, with its files open and locked:
// first the configuration file, then the staged one, which is the order that
// libuci has too. Both stay locked until everything is written.
type session struct {
	name   string
	path   string   // of the configuration file
	config *os.File // nil if not opened
	dir    *saveDir // nil if there is none
	staged *os.File // nil if there is none
	data   []byte   // what is staged
}

func (s *session) close() {
	if s.staged != nil {
		s.staged.Close()
	}
	if s.config != nil {
		s.config.Close()
	}
	s.dir.close()
}

// begin opens and locks the files of a package; write says that the configuration
// file is going to be replaced.
//
// To stage a change, libuci takes no lock on the configuration file. Here it is
// taken: it keeps the change from being lost to a commit by libuci, which reads
// the staged file, unlocks it, and only then locks it again to empty it.
func (t *Tree) begin(name string, write bool) (*session, error) {
	if t.saveDir == "" {
		return nil, fmt.Errorf("%w: there is no save directory", ErrInvalid)
	}
	path, err := t.path(name)
	if err != nil {
		return nil, err
	}
	s := &session{name: name, path: path}
	if s.config, err = openConfig(path, write); err == nil {
		err = s.openStaged(t.saveDir)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// openStaged opens, locks and reads the staged file, if there is one.
func (s *session) openStaged(saveDir string) (err error) {
	if s.dir == nil {
		if s.dir, err = openSaveDir(saveDir); err != nil || s.dir == nil {
			return err
		}
	}
	for {
		f, err := s.dir.open(s.name, unix.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		s.staged = f
		if err := lock(f, unix.LOCK_EX); err != nil {
			return err
		}
		// Who clears the directory by hand does not care for locks: what
		// was locked may be gone, and another in its place.
		var st unix.Stat_t
		if err := unix.Fstat(int(f.Fd()), &st); err != nil {
			return &fs.PathError{Op: "stat", Path: f.Name(), Err: err}
		}
		if st.Nlink > 0 {
			s.data, err = readAll(f)
			return err
		}
		f.Close()
		s.staged = nil
	}
}

// makeStaged makes the save directory and an empty staged file, which it opens
// and reads: somebody else may have been faster.
func (s *session) makeStaged(saveDir string) error {
	if s.dir == nil {
		// Not with the mode of the configuration directory, as libuci
		// does, but with the one that OpenWrt gives it at boot.
		if err := os.Mkdir(saveDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		var err error
		if s.dir, err = openSaveDir(saveDir); err != nil {
			return err
		}
		if s.dir == nil {
			return &fs.PathError{Op: "open", Path: saveDir, Err: fs.ErrNotExist}
		}
	}
	st, err := s.config.Stat()
	if err != nil {
		return err
	}
	f, err := s.dir.open(s.name, unix.O_RDWR|unix.O_CREAT, st.Mode().Perm()&^0o022)
	if err != nil {
		return err
	}
	f.Close()
	return s.openStaged(saveDir)
}

// read returns the package with what is staged, not finished, and the number of
// staged lines that were applied.
func (s *session) read() (*Package, int, error) {
	p, err := parseFile(s.name, s.path, s.config)
	if err != nil {
		return nil, 0, err
	}
	applied := 0
	if s.staged != nil {
		applied = p.applyStaged(s.staged.Name(), s.data)
	}
	return p, applied, nil
}

// stage stages the changes that plan comes up with for the package as it is now.
func (t *Tree) stage(config string, plan func(p *Package) ([]change, error)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, err := t.begin(config, false)
	if err != nil {
		return err
	}
	defer s.close()
	for {
		p, _, err := s.read()
		if err != nil {
			return err
		}
		changes, err := plan(p)
		if err != nil {
			return err
		}
		if len(changes) > 0 {
			if s.staged == nil {
				// Plan again, for what is there then.
				if err := s.makeStaged(t.saveDir); err != nil {
					return err
				}
				continue
			}
			if err := s.append(p, changes); err != nil {
				return err
			}
			t.touched[config] = true
		}
		p.finish()
		t.loaded[config] = p
		return nil
	}
}

// append adds lines for the changes to the staged file, and applies them to the
// package.
func (s *session) append(p *Package, changes []change) error {
	var add []byte
	if n := len(s.data); n > 0 && s.data[n-1] != '\n' {
		add = append(add, '\n')
	}
	lines := make([]string, len(changes))
	for i, c := range changes {
		lines[i] = string(c.append(nil, s.name))
		add = append(add, lines[i]...)
	}
	if size := int64(len(s.data) + len(add)); size > MaxFileSize {
		return tooLarge(s.staged.Name(), size)
	}
	if err := s.check(p, append(bytes.Clone(s.data), add...), lines); err != nil {
		return err
	}
	if _, err := s.staged.WriteAt(add, int64(len(s.data))); err != nil {
		// Half a line would spoil what is staged next.
		return errors.Join(err, s.staged.Truncate(int64(len(s.data))))
	}
	return nil
}

// check makes sure that what is going to be the staged file ends with the lines
// that were added, and applies them to the package. A quote that somebody has left
// open there would swallow them.
func (s *session) check(p *Package, data []byte, lines []string) error {
	var all []stagedLine
	r := newStagedReader(s.name, s.staged.Name(), data)
	for l, ok := r.next(); ok; l, ok = r.next() {
		all = append(all, l)
	}
	tail := all[max(0, len(all)-len(lines)):]
	for i, line := range lines {
		if i < len(tail) && string(tail[i].raw) == line {
			p.applyLine(s.staged.Name(), tail[i])
			continue
		}
		last := all[len(all)-1]
		err := last.err
		if err == nil {
			err = &ParseError{File: s.staged.Name(), Line: last.line, Column: last.col, Reason: "staged line does not end"}
		}
		return fmt.Errorf("nothing can be staged behind a damaged line: %w", err)
	}
	return nil
}

// Revert drops the staged changes of packages, without names those of all packages
// that this tree has staged changes for. It drops what others have staged there
// too, as "uci revert" does.
func (t *Tree) Revert(configs ...string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(configs) == 0 {
		configs = t.touchedConfigs()
	}
	var errs []error
	for _, name := range configs {
		err := t.revert(name, nil)
		if err != nil {
			errs = append(errs, fmt.Errorf("uci: revert %s: %w", name, err))
			continue
		}
		delete(t.touched, name)
	}
	return errors.Join(errs...)
}

// RevertChanges drops the staged changes to one section with its options, or, if
// option is not empty, to one option. Lines that are malformed stay.
func (t *Tree) RevertChanges(config, section, option string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	name := section
	if !validName(section) {
		p, err := t.load(config)
		if err != nil {
			return err
		}
		s, err := p.section(section)
		if err != nil {
			return fmt.Errorf("uci: revert %s: %w", config, err)
		}
		name = s.Name
	}
	err := t.revert(config, func(c change) bool {
		return c.section == name && (option == "" || c.option == option)
	})
	if err != nil {
		return fmt.Errorf("uci: revert %s: %w", config, err)
	}
	return nil
}

// revert drops the staged lines that drop says yes to, all if it is nil. The file stays, even if it
// gets empty: others may be waiting to lock it.
func (t *Tree) revert(name string, drop func(change) bool) error {
	s, err := t.begin(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		// Without a configuration file there can be a staged one.
		path, _ := t.path(name)
		s = &session{name: name, path: path}
		if err = s.openStaged(t.saveDir); err != nil {
			s.close()
		}
	}
	if err != nil {
		return err
	}
	defer s.close()
	if s.staged != nil {
		if err := s.keep(drop); err != nil {
			return err
		}
	}
	delete(t.loaded, name) // to be read when it is asked for
	return nil
}

func (s *session) keep(drop func(change) bool) error {
	var kept []byte
	if drop != nil {
		r := newStagedReader(s.name, s.staged.Name(), s.data)
		for l, ok := r.next(); ok; l, ok = r.next() {
			if l.blank || l.err != nil || !drop(l.change) {
				kept = append(kept, l.raw...)
			}
		}
	}
	if len(kept) == len(s.data) {
		return nil
	}
	if _, err := s.staged.WriteAt(kept, 0); err != nil {
		return err
	}
	return s.staged.Truncate(int64(len(kept)))
}
