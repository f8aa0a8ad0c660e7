// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"
)

// The directories that libuci uses if it is not told others.
const (
	DefaultConfigDir   = "/etc/config"
	DefaultSaveDir     = "/tmp/.uci"
	DefaultOverrideDir = "/var/run/uci"
)

// Tree is the configuration in a directory, with the changes staged in another.
// It is safe for concurrent use.
//
// A package is read when it is asked for first, and then kept: what others change
// is seen after LoadConfig with forceReload. What the tree itself changes it sees
// at once. A change is staged immediately, as "uci set" does, and Commit writes
// what is staged to the configuration files.
type Tree struct {
	configDir, saveDir, overrideDir string

	mu      sync.Mutex
	loaded  map[string]*Package
	touched map[string]bool // packages with changes that this tree has staged
}

// NewTree returns the tree of the files in configDir, with changes staged in
// saveDir. Nothing is read yet, and neither has to exist. With an empty saveDir
// there are no staged changes, and none can be made.
func NewTree(configDir, saveDir string) *Tree {
	return &Tree{
		configDir: configDir,
		saveDir:   saveDir,
		loaded:    make(map[string]*Package),
		touched:   make(map[string]bool),
	}
}

// SetOverrideDir names a directory whose files take the place of those with the
// same name in the configuration directory. Recent versions of libuci use
// DefaultOverrideDir; older ones know nothing of the kind. To be called before
// anything is read.
func (t *Tree) SetOverrideDir(dir string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.overrideDir = dir
}

// LoadConfig reads a package. If it has been read already, it is read again only
// if forceReload is set. If that fails, the tree keeps what it had. A file that
// does not exist is an error that wraps fs.ErrNotExist, one that does not parse a
// *ParseError.
func (t *Tree) LoadConfig(name string, forceReload bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loaded[name] != nil && !forceReload {
		return nil
	}
	_, err := t.load(name)
	return err
}

// Package returns a package as it was read last, and reads it if it has not been
// read yet. It must not be changed.
func (t *Tree) Package(name string) (*Package, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.loaded[name]; p != nil {
		return p, nil
	}
	return t.load(name)
}

// Configs returns the names of the packages in the configuration directory, in
// order. As for libuci, a file with a dot in its name is none.
func (t *Tree) Configs() ([]string, error) {
	entries, err := os.ReadDir(t.configDir)
	if err != nil {
		return nil, fmt.Errorf("uci: %w", err)
	}
	var names []string
	for _, e := range entries {
		if st, err := os.Stat(filepath.Join(t.configDir, e.Name())); err == nil && !st.IsDir() && validConfig(e.Name()) {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// path returns where the file of a package is.
func (t *Tree) path(name string) (string, error) {
	if !validConfig(name) {
		return "", fmt.Errorf("package %q: %w: expected the name of a file in %s", name, ErrInvalid, t.configDir)
	}
	if t.overrideDir != "" {
		if path := filepath.Join(t.overrideDir, name); exists(path) {
			return path, nil
		}
	}
	return filepath.Join(t.configDir, name), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// load reads a package with its staged changes and keeps it.
func (t *Tree) load(name string) (*Package, error) {
	p, err := t.read(name)
	if err != nil {
		return nil, fmt.Errorf("uci: load %s: %w", name, err)
	}
	t.loaded[name] = p
	return p, nil
}

func (t *Tree) read(name string) (*Package, error) {
	path, err := t.path(name)
	if err != nil {
		return nil, err
	}
	// The lock on the configuration file is held until the staged file has
	// been read: no commit can come between the two.
	f, err := openConfig(path, false)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := parseFile(name, path, f)
	if err != nil {
		return nil, err
	}
	dir, err := openSaveDir(t.saveDir)
	if err != nil {
		return nil, err
	}
	defer dir.close()
	if dir != nil {
		staged, err := readStaged(dir, name)
		if err != nil {
			return nil, err
		}
		p.applyStaged(filepath.Join(dir.path, name), staged)
	}
	p.finish()
	return p, nil
}

// parseFile reads a configuration file that is open and locked. What it returns
// is not finished.
func parseFile(name, path string, f *os.File) (*Package, error) {
	data, err := readAll(f)
	if err != nil {
		return nil, err
	}
	p, errs := parse(name, path, data, false)
	if errs != nil {
		return nil, errs[0]
	}
	return p, nil
}

// readStaged reads the staged file of a package; one that is missing is empty.
func readStaged(dir *saveDir, name string) ([]byte, error) {
	f, err := dir.open(name, unix.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := lock(f, unix.LOCK_SH); err != nil {
		return nil, err
	}
	return readAll(f)
}
