// SPDX-License-Identifier: Apache-2.0

// Package pack makes OpenWrt packages and feeds without OpenWrt's build system:
// .ipk for opkg in plain Go, .apk where apk-tools 3 are at hand. It runs when
// the project is built, and is no part of the router's programs.
//
// What a package is and what it installs is written in a manifest, a text file
// openwrt/FOLDER/PACKAGE.manifest:
//
//	Package: xdpl2                     fields, as in a control file; lines that
//	Description: a line                begin with a space continue the field
//	 and another one
//
//	0755 /usr/sbin/xdpl2 go:cmd/xdpl2  a program that is built
//	0600 /etc/config/x files/x conf    a file that belongs to the user once installed
//	0644 /usr/x.lmo po:luci-app/x.po   translations, compiled
//	auto /www/ luci-app/htdocs/        a folder with all that is in it: 0755 what
//	                                   can be executed, 0644 what cannot
//	skip files/x reason                a file that is in no package on purpose
//
// Everything is owned by root.
package pack

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Manifest describes a package.
type Manifest struct {
	Path        string // of the manifest itself
	Name        string
	Title       string
	Description string // lines
	Depends     []string
	Section     string
	AnyArch     bool   // without binaries, the same for all architectures
	Postinst    string // a script that runs after the usual steps, relative to the tree; may be ""
	Rules       []Rule
	Skipped     []string // files of the tree that are left out on purpose
}

// A Rule is a line that installs something.
type Rule struct {
	Line     int
	Mode     fs.FileMode // 0: as the source is (auto)
	Path     string
	Source   string // in the tree, without its kind
	Kind     SourceKind
	Conffile bool
}

// SourceKind says what is done with a source.
type SourceKind string

// The kinds of sources.
const (
	PlainFile   SourceKind = ""
	Tree        SourceKind = "tree"
	GoProgram   SourceKind = "go"
	Translation SourceKind = "po"
)

// LoadManifests reads all manifests of a source tree, sorted by package.
func LoadManifests(root string) ([]*Manifest, error) {
	names, err := filepath.Glob(filepath.Join(root, "openwrt", "*", "*.manifest"))
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no manifests in %s: not a source tree of xdpl2", filepath.Join(root, "openwrt"))
	}
	var all []*Manifest
	for _, name := range names {
		m, err := LoadManifest(name)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Manifest) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// LoadManifest reads one manifest.
func LoadManifest(name string) (*Manifest, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	m, err := parseManifest(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	m.Path = name
	if want := m.Name + ".manifest"; filepath.Base(name) != want {
		return nil, fmt.Errorf("%s: the file of package %s must be called %s", name, m.Name, want)
	}
	return m, nil
}

func parseManifest(text string) (*Manifest, error) {
	m := &Manifest{}
	var field string
	for i, line := range strings.Split(text, "\n") {
		var err error
		switch {
		case strings.TrimSpace(line) == "" || line[0] == '#':
			field = ""
			continue
		case line[0] == ' ':
			if field != "Description" {
				err = fmt.Errorf("%q continues no field (only Description has several lines)", line)
			}
			m.Description += "\n" + strings.TrimSpace(line)
		case fieldLine.MatchString(line):
			var value string
			field, value, _ = strings.Cut(line, ":")
			err = m.setField(field, strings.TrimSpace(value))
		default:
			err = m.addRule(i+1, strings.Fields(line))
		}
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i+1, err)
		}
	}
	for name, value := range map[string]string{"Package": m.Name, "Title": m.Title, "Section": m.Section, "Description": m.Description} {
		if value == "" {
			return nil, fmt.Errorf("1: field %s is missing", name)
		}
	}
	return m, nil
}

var (
	fieldLine   = regexp.MustCompile(`^[A-Z][A-Za-z-]*:`)
	packageName = regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*$`)
)

func (m *Manifest) setField(name, value string) error {
	list := func() (names []string, err error) {
		for _, n := range strings.Split(value, ",") {
			n = strings.TrimSpace(n)
			if !packageName.MatchString(n) {
				return nil, fmt.Errorf("%s: %q is no package name", name, n)
			}
			names = append(names, n)
		}
		return names, nil
	}
	var err error
	switch name {
	case "Package":
		if !packageName.MatchString(value) {
			return fmt.Errorf("field Package: %q is no package name", value)
		}
		m.Name = value
	case "Title":
		m.Title = value
	case "Description":
		m.Description = value
	case "Section":
		m.Section = value
	case "Depends":
		m.Depends, err = list()
	case "Architecture":
		if value != All && value != "any" {
			return fmt.Errorf("field Architecture is %q, expected any or all", value)
		}
		m.AnyArch = value == All
	case "Postinst":
		m.Postinst = value
	default:
		return fmt.Errorf("unknown field %q", name)
	}
	return err
}

// addRule takes a line of the list of files.
func (m *Manifest) addRule(line int, words []string) error {
	if words[0] == "skip" {
		if len(words) < 3 {
			return fmt.Errorf("expected: skip SOURCE REASON")
		}
		m.Skipped = append(m.Skipped, words[1])
		return nil
	}
	if len(words) < 3 || len(words) > 4 || len(words) == 4 && words[3] != "conf" {
		return fmt.Errorf("%q (expected: MODE PATH SOURCE [conf])", strings.Join(words, " "))
	}
	r := Rule{Line: line, Path: words[1], Source: words[2], Conffile: len(words) == 4}
	if kind, rest, ok := strings.Cut(r.Source, ":"); ok {
		r.Kind, r.Source = SourceKind(kind), rest
		if r.Kind != GoProgram && r.Kind != Translation {
			return fmt.Errorf("source %q: unknown kind %q (expected go or po)", words[2], kind)
		}
	} else if strings.HasSuffix(r.Source, "/") {
		r.Kind, r.Source = Tree, strings.TrimSuffix(r.Source, "/")
	}
	if !fs.ValidPath(r.Source) {
		return fmt.Errorf("source %q: expected a path inside the tree", words[2])
	}
	clean := strings.TrimSuffix(r.Path, "/")
	if !path.IsAbs(r.Path) || clean != "" && path.Clean(clean) != clean || (r.Kind == Tree) != strings.HasSuffix(r.Path, "/") {
		return fmt.Errorf("path %q: expected an absolute path, which ends with / if the source does", r.Path)
	}
	r.Path = clean
	if words[0] == "auto" {
		if r.Kind != Tree {
			return fmt.Errorf("mode auto is for folders")
		}
	} else {
		mode, err := strconv.ParseUint(words[0], 8, 32)
		if err != nil || len(words[0]) != 4 || mode > 0o777 || mode == 0 {
			return fmt.Errorf("mode %q: expected four octal digits, or auto for a folder", words[0])
		}
		r.Mode = fs.FileMode(mode)
	}
	m.Rules = append(m.Rules, r)
	return nil
}

// folder is the folder of the package's feed entry.
func (m *Manifest) folder() string { return filepath.Base(filepath.Dir(m.Path)) }
