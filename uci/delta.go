// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
)

// op is what a staged line does: the character that it starts with, 0 for none.
type op byte

const (
	opSet      op = 0   // set an option, or make a section or give it a type
	opAdd      op = '+' // the same for a section without a name
	opDelete   op = '-'
	opRename   op = '@'
	opReorder  op = '^'
	opAddItem  op = '|'
	opDelItems op = '~'
)

// change is one staged line.
type change struct {
	op       op
	section  string
	option   string // empty if it is about the section
	value    string
	hasValue bool // only a delete can do without
}

// append adds the staged line for the change to b.
func (c change) append(b []byte, pkg string) []byte {
	if c.op != opSet {
		b = append(b, byte(c.op))
	}
	b = append(b, pkg...)
	b = append(b, '.')
	b = append(b, c.section...)
	if c.option != "" {
		b = append(b, '.')
		b = append(b, c.option...)
	}
	if c.hasValue {
		b = append(b, '=')
		b = appendQuoted(b, c.value)
	}
	return append(b, '\n')
}

// stagedLine is one line of a staged file, which may span several in an editor.
type stagedLine struct {
	raw       []byte
	line, col int
	change    change
	blank     bool        // nothing or a comment; change does not count
	err       *ParseError // the line is malformed; change does not count
}

// stagedReader reads the lines of a staged file one after the other.
type stagedReader struct {
	*scanner
	pkg string
}

func newStagedReader(pkg, file string, data []byte) *stagedReader {
	return &stagedReader{newScanner(file, data), pkg}
}

// next returns the next line that is not empty.
func (r *stagedReader) next() (stagedLine, bool) {
	for {
		start := r.off
		if !r.nextLine() {
			return stagedLine{}, false
		}
		if len(r.buf) == 0 {
			continue
		}
		var l stagedLine
		l.line, l.col = r.place(0)
		text, at, err := r.arg()
		switch {
		case err != nil:
			l.err = err
		case r.cur() != 0:
			l.err = r.fail(r.pos, "text after the value", "the end of the line right after the closing quote")
		case len(text) == 0:
			l.blank = true
		default:
			l.change, l.err = r.change(string(text), at)
		}
		l.raw = r.data[start:r.off]
		return l, true
	}
}

// change takes the one word of a line apart.
func (r *stagedReader) change(text string, at int) (change, *ParseError) {
	var c change
	if text != "" {
		switch o := op(text[0]); o {
		case opAdd, opDelete, opRename, opReorder, opAddItem, opDelItems:
			c.op = o
			text = text[1:]
		}
	}
	fail := func(reason, expected string) (change, *ParseError) {
		return change{}, r.fail(at, reason, expected)
	}
	t, ok := parsePath(text)
	switch {
	case !ok:
		return fail("not a change", "package.section.option='value'")
	case t.section == "":
		return fail("change without a section", "package.section.option='value'")
	case !validName(t.section):
		return fail(fmt.Sprintf("section %q in a staged change", t.section), "the name of a section, not @type[n]")
	case !t.hasValue && c.op != opDelete:
		return fail("change without a value", "='value' after the name")
	case c.op == opReorder && t.option != "":
		return fail("change of the order of an option", "the name of a section")
	case c.op == opRename && !validName(t.value):
		return fail("invalid new name", "letters, digits and _")
	case (c.op == opAddItem || c.op == opDelItems) && t.option == "":
		return fail("list item without an option", "package.section.option='value'")
	case t.pkg != r.pkg:
		return fail("change of package "+t.pkg, "package "+r.pkg)
	}
	c.section, c.option, c.value, c.hasValue = t.section, t.option, t.value, t.hasValue
	return c, nil
}

// maxIgnored is how many of the lines that were skipped are kept to report.
const maxIgnored = 100

// applyStaged applies the lines of a staged file. It returns how many had no
// error, which is what libuci goes by when it decides whether to commit.
func (p *Package) applyStaged(file string, data []byte) (applied int) {
	r := newStagedReader(p.Name, file, data)
	for l, ok := r.next(); ok; l, ok = r.next() {
		if p.applyLine(file, l) {
			applied++
		}
	}
	return applied
}

// applyLine applies one line, and says whether it was without error.
func (p *Package) applyLine(file string, l stagedLine) bool {
	if l.blank {
		return false
	}
	err := l.err
	if err == nil {
		p.staged = append(p.staged, l.change)
		if why := p.apply(l.change, place{file, l.line}); why != nil {
			err = &ParseError{
				File: file, Line: l.line, Column: l.col,
				Reason: "change has no effect: " + why.Error(),
			}
		}
	}
	if err != nil && len(p.Ignored) < maxIgnored {
		p.Ignored = append(p.Ignored, err)
	}
	return err == nil
}

var errType = errors.New("not the type of a section")

// apply carries out one change. A change that has nothing to do is no error.
func (p *Package) apply(c change, w place) error {
	sec := p.secs.find(c.section)
	var opt *Option
	if sec != nil && c.option != "" {
		opt = sec.opts.find(c.option)
	}
	found := sec != nil && (c.option == "" || opt != nil)
	missing := func() error {
		if sec == nil {
			return fmt.Errorf("section %s: %w", c.section, ErrNotFound)
		}
		return fmt.Errorf("option %s.%s: %w", c.section, c.option, ErrNotFound)
	}

	switch c.op {
	case opSet, opAdd:
		return p.applySet(c, sec, found, w)
	case opAddItem:
		if sec == nil {
			return missing()
		}
		sec.addItem(c.option, c.value, w)
		return nil
	case opDelItems:
		if sec == nil {
			return missing()
		}
		if opt != nil && opt.List {
			opt.deleteItems(c.value, w)
		}
		return nil
	}

	if !found {
		return missing()
	}
	switch c.op {
	case opDelete:
		p.applyDelete(c, sec, opt, w)
	case opRename:
		if opt != nil {
			sec.opts.rename(opt, func() { opt.Name = c.value })
			opt.at(w)
		} else {
			p.secs.rename(sec, func() { sec.Name = c.value })
			sec.Anonymous = false
			sec.at(w)
		}
	case opReorder:
		n, _ := leadingInt(c.value)
		p.secs.move(sec, int(int32(n)))
	}
	return nil
}

// applySet sets an option, or makes a section or gives it another type.
func (p *Package) applySet(c change, sec *Section, found bool, w place) error {
	switch {
	case sec == nil && c.option != "":
		return fmt.Errorf("section %s: %w", c.section, ErrNotFound)
	case c.option == "" && c.value != "" && !validType(c.value):
		return fmt.Errorf("%q: %w", c.value, errType)
	case c.value == "":
		// Setting to nothing deletes, and is fine where there is nothing.
		if found {
			p.applyDelete(change{}, sec, sec.opts.find(c.option), w)
		}
		return nil
	case c.option != "":
		sec.set(c.option, c.value, w)
		return nil
	case sec == nil:
		sec = p.addSection(c.section, c.value, w)
	case sec.Type != c.value:
		sec.setType(c.value, w)
	}
	if c.op == opAdd {
		sec.Anonymous = true
	}
	return nil
}

// applyDelete removes a section, an option, or the item of a list that the value
// counts to.
func (p *Package) applyDelete(c change, sec *Section, opt *Option, w place) {
	if opt == nil {
		p.secs.remove(sec)
		return
	}
	if !opt.List || c.value == "" {
		sec.opts.remove(opt)
		return
	}
	n, used := leadingInt(c.value)
	if i := int(int32(n)); used > 0 && i >= 0 && i < len(opt.Values) {
		opt.deleteItem(i, w)
	}
}
