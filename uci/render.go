// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"strconv"
	"strings"
)

// Export returns the package as "uci export" prints it. With names, sections
// without a name are given their generated one, as "uci -n export" does.
func (p *Package) Export(names bool) string {
	b := append([]byte("package "), escape(p.Name)...)
	b = append(b, '\n')
	return string(p.appendSections(b, names))
}

// Text returns the package as a commit writes it. Comments are not part of a
// package and get lost. A section type with a quote, a backslash, a # or a
// semicolon is written as libuci writes it, which does not read back.
func (p *Package) Text() string {
	return string(p.appendSections(nil, false))
}

func (p *Package) appendSections(b []byte, names bool) []byte {
	for _, s := range p.secs.items {
		b = append(b, "\nconfig "...)
		b = append(b, escape(s.Type)...)
		if !s.Anonymous || names {
			b = append(b, ' ')
			b = appendQuoted(b, s.Name)
		}
		b = append(b, '\n')
		for _, o := range s.opts.items {
			word := "\toption "
			if o.List {
				word = "\tlist "
			}
			for _, v := range o.Values {
				b = append(b, word...)
				b = append(b, o.Name...)
				b = append(b, ' ')
				b = appendQuoted(b, v)
				b = append(b, '\n')
			}
		}
	}
	return append(b, '\n')
}

// Show returns the package as "uci show" prints it. With names, sections without
// a name are called by their generated one, as "uci -X show" does, instead of
// @type[n].
func (p *Package) Show(names bool) string {
	var b []byte
	for _, s := range p.Sections {
		ref := s.Name
		if s.Anonymous && !names {
			ref = "@" + s.Type + "[" + strconv.Itoa(s.Index) + "]"
		}
		prefix := p.Name + "." + ref
		b = append(b, prefix...)
		b = append(b, '=')
		b = append(b, s.Type...)
		b = append(b, '\n')
		for _, o := range s.Options {
			b = append(b, prefix...)
			b = append(b, '.')
			b = append(b, o.Name...)
			b = append(b, '=')
			for i, v := range o.Values {
				if i > 0 {
					b = append(b, ' ')
				}
				b = appendQuoted(b, v)
			}
			b = append(b, '\n')
		}
	}
	return string(b)
}

// Changes returns the staged changes as "uci changes" prints them: every line that
// is well-formed, even if it has no effect.
func (p *Package) Changes() string {
	var b []byte
	for _, c := range p.staged {
		if c.op == opDelete {
			b = append(b, '-')
		}
		b = append(b, p.Name...)
		b = append(b, '.')
		b = append(b, c.section...)
		if c.option != "" {
			b = append(b, '.')
			b = append(b, c.option...)
		}
		switch c.op {
		case opDelete:
		case opAddItem:
			b = append(b, "+="...)
			b = appendQuoted(b, c.value)
		case opDelItems:
			b = append(b, "-="...)
			b = appendQuoted(b, c.value)
		default:
			b = append(b, '=')
			b = appendQuoted(b, c.value)
		}
		b = append(b, '\n')
	}
	return string(b)
}

// appendQuoted adds a value in single quotes.
func appendQuoted(b []byte, s string) []byte {
	b = append(b, '\'')
	b = append(b, escape(s)...)
	return append(b, '\'')
}

// escape closes the quotes, adds an escaped one and opens them again.
func escape(s string) string {
	return strings.ReplaceAll(s, "'", `'\''`)
}
