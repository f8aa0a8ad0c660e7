// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/uci"
)

// Default returns what an empty file means.
func Default() *Config {
	var c Config
	applyDefaults(mainFields, &c.Main)
	applyDefaults(tuningFields, &c.Tuning)
	return &c
}

func applyDefaults[T any](fields []field[T], to *T) {
	for _, f := range fields {
		if f.Default == "" || f.List {
			continue
		}
		value, ok := f.parse(f.Default)
		if !ok {
			panic(fmt.Sprintf("option %s: default %q is not %s", f.Name, f.Default, f.Expected()))
		}
		f.store(to, value)
	}
}

// Load reads the configuration from the files in configDir with the changes
// staged in saveDir. It returns everything that is wrong, not the first thing;
// the configuration is nil if any of it is an Error.
func Load(configDir, saveDir string) (*Config, Problems) {
	path := filepath.Join(configDir, Package)
	tree := uci.NewTree(configDir, saveDir)
	pkg, err := tree.Package(Package)
	if err != nil {
		return nil, Problems{fileProblem(path, err)}
	}
	l := &loader{config: Default(), file: path}
	l.config.File = path
	for _, s := range pkg.Sections {
		l.section(s)
	}
	for _, e := range pkg.Ignored {
		l.add(&Problem{Severity: Warning, File: e.File, Line: e.Line,
			Message: "staged change without effect: " + e.Reason, Expected: e.Expected})
	}
	l.check()
	if len(l.problems.Errors()) > 0 {
		return nil, l.problems
	}
	return l.config, l.problems
}

func fileProblem(path string, err error) *Problem {
	p := &Problem{Severity: Error, File: path, Message: err.Error()}
	var parse *uci.ParseError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.Message = "no such file"
		p.Expected = "a UCI file; option --config-dir names its directory"
	case errors.As(err, &parse):
		p.File, p.Line = parse.File, parse.Line
		p.Message = fmt.Sprintf("byte %d: %s", parse.Column, parse.Reason)
		p.Expected = parse.Expected
	}
	return p
}

type loader struct {
	config   *Config
	problems Problems
	file     string
}

func (l *loader) add(p *Problem) {
	if p.File == "" {
		p.File = l.file
	}
	l.problems = append(l.problems, p)
}

// placeOf names a section as people do: by its name, or by type and number.
func placeOf(s *uci.Section) Place {
	name := fmt.Sprintf("%s '%s'", s.Type, s.Name)
	if s.Anonymous {
		name = fmt.Sprintf("@%s[%d]", s.Type, s.Index)
	}
	return Place{File: s.File, Line: s.Line, Section: name}
}

func (l *loader) section(s *uci.Section) {
	place := placeOf(s)
	name, known := sections[s.Type]
	switch {
	case !known:
		types := []string{"xdpl2", "port", "station", "tuning"}
		l.add(&Problem{Severity: Warning, File: s.File, Line: s.Line, Section: place.Section,
			Message:  "unknown section type" + suggestion(s.Type, types) + ", ignored",
			Expected: "one of " + strings.Join(types, ", ")})
		return
	case name != "" && s.Name != name:
		l.add(&Problem{Severity: Warning, File: s.File, Line: s.Line, Section: place.Section,
			Message:  "ignored: only one section of this type is read",
			Expected: fmt.Sprintf("config %s '%s'", s.Type, name)})
		return
	}
	switch s.Type {
	case "xdpl2":
		readSection(l, s, mainFields, &l.config.Main)
	case "port":
		p := Port{Place: place, Enabled: true}
		if readSection(l, s, portFields, &p) {
			l.config.Ports = append(l.config.Ports, p)
		}
	case "station":
		st := Station{Place: place}
		if readSection(l, s, stationFields, &st) {
			l.config.Stations = append(l.config.Stations, st)
		}
	case "tuning":
		readSection(l, s, tuningFields, &l.config.Tuning)
	}
}

// readSection stores a section's options and reports whether all of them were
// understood.
func readSection[T any](l *loader, s *uci.Section, fields []field[T], to *T) bool {
	place := placeOf(s)
	good := true
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	for _, o := range s.Options {
		i := slices.Index(names, o.Name)
		if i < 0 {
			l.add(&Problem{Severity: Warning, File: o.File, Line: o.Line, Section: place.Section, Option: o.Name,
				Value: strings.Join(o.Values, " "), Message: "unknown option" + suggestion(o.Name, names) + ", ignored"})
			continue
		}
		f := fields[i]
		values := o.Values
		if !f.List && len(values) > 0 {
			if len(values) > 1 {
				l.add(&Problem{Severity: Warning, File: o.File, Line: o.Line, Section: place.Section, Option: o.Name,
					Value: strings.Join(values, " "), Message: "a list, of which the last value counts", Expected: "one value"})
			}
			values = values[len(values)-1:]
		}
		if f.List && !o.List && len(values) == 1 {
			values = strings.Fields(values[0]) // option pass 'local group', as init scripts accept it
		}
		for _, value := range values {
			parsed, ok := f.parse(value)
			if !ok {
				good = false
				l.add(&Problem{Severity: Error, File: o.File, Line: o.Line, Section: place.Section, Option: o.Name,
					Value: value, Message: "not valid" + suggestion(value, f.Choices), Expected: f.Expected()})
				continue
			}
			if f.Ignored != "" && !f.isDefault(value) {
				l.add(&Problem{Severity: Warning, File: o.File, Line: o.Line, Section: place.Section, Option: o.Name,
					Value: value, Message: f.Ignored})
			}
			f.store(to, parsed)
		}
	}
	for _, f := range fields {
		if f.Required && s.Option(f.Name) == nil {
			good = false
			l.add(&Problem{Severity: Error, File: s.File, Line: s.Line, Section: place.Section, Option: f.Name,
				Message: "missing", Expected: f.Expected()})
		}
	}
	return good
}
