// SPDX-License-Identifier: Apache-2.0

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// opkg installs and removes packages as the real one does, as far as packages of
// this project can tell: the order of steps, what scripts are given, and what
// becomes of configuration files.
type opkg struct {
	root string
	run  func(script string, env []string, args ...string) error
	sums map[string][32]byte // of configuration files as the package brought them
}

// ipk is an unpacked package.
type ipk struct {
	name    string
	control map[string][]byte
	files   []*tar.Header
	data    map[string][]byte
}

// readIPK unpacks a package.
func readIPK(content []byte) (*ipk, error) {
	_, outer, err := untar(content)
	if err != nil {
		return nil, err
	}
	p := &ipk{}
	if _, p.control, err = untar(outer["/control.tar.gz"]); err != nil {
		return nil, fmt.Errorf("control: %w", err)
	}
	if p.files, p.data, err = untar(outer["/data.tar.gz"]); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	for _, line := range strings.Split(string(p.control["/control"]), "\n") {
		if name, ok := strings.CutPrefix(line, "Package: "); ok {
			p.name = name
		}
	}
	if p.name == "" {
		return nil, errors.New("the control file names no package")
	}
	return p, nil
}

// untar unpacks a compressed tar archive; names become absolute.
func untar(content []byte) ([]*tar.Header, map[string][]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, nil, err
	}
	var headers []*tar.Header
	data := map[string][]byte{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return headers, data, nil
		}
		if err != nil {
			return nil, nil, err
		}
		h.Name = path.Join("/", h.Name)
		headers = append(headers, h)
		if data[h.Name], err = io.ReadAll(t); err != nil {
			return nil, nil, err
		}
	}
}

func (o *opkg) path(name string) string { return filepath.Join(o.root, name) }

func (o *opkg) info(name, suffix string) string {
	return o.path("/usr/lib/opkg/info/" + name + "." + suffix)
}

// conffiles are the package's files that belong to the user.
func (p *ipk) conffiles() []string { return strings.Fields(string(p.control["/conffiles"])) }

// install installs a package, or replaces another version of it.
func (o *opkg) install(content []byte) error {
	p, err := readIPK(content)
	if err != nil {
		return err
	}
	_, err = os.Stat(o.info(p.name, "control"))
	upgrade := err == nil
	env := []string{"PKG_UPGRADE=0"}
	if upgrade {
		env = []string{"PKG_UPGRADE=1"}
		if err := o.script(p.name, "prerm", env, "upgrade", "version"); err != nil {
			return err
		}
		if err := o.removeFiles(p.name, p); err != nil {
			return err
		}
	}
	var list strings.Builder
	for _, h := range p.files {
		if h.Typeflag == tar.TypeDir {
			if err := os.MkdirAll(o.path(h.Name), h.FileInfo().Mode().Perm()); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintln(&list, h.Name)
		to := h.Name
		if o.changed(h.Name) {
			to += "-opkg"
		}
		// A running program's file cannot be written to, only replaced.
		if err := os.Remove(o.path(to)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(o.path(to), p.data[h.Name], h.FileInfo().Mode().Perm()); err != nil {
			return err
		}
	}
	for _, name := range p.conffiles() {
		o.sums[name] = sha256.Sum256(p.data[name])
	}
	p.control["/list"] = []byte(list.String())
	if err := os.MkdirAll(filepath.Dir(o.info("", "")), 0o755); err != nil {
		return err
	}
	for name, text := range p.control {
		if name == "/" {
			continue
		}
		if err := os.WriteFile(o.info(p.name, name[1:]), text, 0o755); err != nil {
			return err
		}
	}
	return o.script(p.name, "postinst", env, "configure")
}

// changed tells whether a file is the user's by now.
func (o *opkg) changed(name string) bool {
	sum, known := o.sums[name]
	now, err := os.ReadFile(o.path(name))
	return known && err == nil && sha256.Sum256(now) != sum
}

// remove removes a package.
func (o *opkg) remove(name string) error {
	if err := o.script(name, "prerm", []string{"PKG_UPGRADE=0"}, "remove"); err != nil {
		return err
	}
	if err := o.removeFiles(name, nil); err != nil {
		return err
	}
	files, err := filepath.Glob(o.info(name, "*"))
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Remove(f); err != nil {
			return err
		}
	}
	return nil
}

// removeFiles removes a package's files but for those that the user has changed,
// and those that a new version has, too; and folders that are empty then.
func (o *opkg) removeFiles(name string, by *ipk) error {
	list, err := os.ReadFile(o.info(name, "list"))
	if err != nil {
		return err
	}
	for _, file := range strings.Fields(string(list)) {
		if by != nil && by.data[file] != nil || o.changed(file) {
			continue
		}
		if err := os.Remove(o.path(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for dir := path.Dir(file); dir != "/" && os.Remove(o.path(dir)) == nil; dir = path.Dir(dir) {
		}
	}
	return nil
}

// script runs a package's script if it has one.
func (o *opkg) script(name, script string, env []string, args ...string) error {
	if _, err := os.Stat(o.info(name, script)); err != nil {
		return nil
	}
	if err := o.run("/usr/lib/opkg/info/"+name+"."+script, env, args...); err != nil {
		return fmt.Errorf("package %s: %s: %w", name, script, err)
	}
	return nil
}
