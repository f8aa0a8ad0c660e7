// SPDX-License-Identifier: Apache-2.0

package uci

import "slices"

// Package is one configuration file with the staged changes applied. What a Tree
// hands out is a snapshot: it is never changed afterwards, and must not be
// changed by its reader.
type Package struct {
	// Name is the name of the file.
	Name string
	// Sections holds the sections in their order.
	Sections []*Section
	// Ignored lists the staged lines that had no effect, because they are
	// malformed or what they are about is not there: the first hundred, if
	// there are more.
	Ignored []*ParseError

	secs list[*Section]
	// count is how many sections the package has been given. Generated names
	// use it; deleting a section does not lower it.
	count  int
	staged []change
}

// Section is one section of a package.
type Section struct {
	// Name is the name in the file, or the generated one.
	Name string
	// Type is the word after "config".
	Type string
	// Anonymous says that the file has no name for the section.
	Anonymous bool
	// Index is the n of @type[n]. Named sections count.
	Index int
	// Options holds options and lists in their order.
	Options []*Option
	// File and Line say where the section was made, or renamed or given
	// another type: in the configuration file or in the staged one.
	File string
	Line int

	opts list[*Option]
}

// Option is one option, or one list, of a section.
type Option struct {
	// Name is the name of the option.
	Name string
	// List says that it was written as a list. A list may have one value, or
	// none when staged changes have removed all.
	List bool
	// Values holds the value, or the items of the list.
	Values []string
	// File and Line say where the option was changed last: in the
	// configuration file or in the staged one.
	File string
	Line int

	places []place // where each item of a list comes from
}

// place is a line of a file.
type place struct {
	file string
	line int
}

// Section returns the section with a name, which may be generated or of the form
// @type[n]. It returns nil if there is none.
func (p *Package) Section(name string) *Section {
	s, err := p.section(name)
	if err != nil {
		return nil
	}
	return s
}

// Option returns the option or list with a name, or nil.
func (s *Section) Option(name string) *Option {
	return s.opts.find(name)
}

// Last returns the value of an option or the last item of a list, and "" for an
// empty list.
func (o *Option) Last() string {
	if len(o.Values) == 0 {
		return ""
	}
	return o.Values[len(o.Values)-1]
}

// Place says where the item of a list with an index comes from. For what is no
// list it is File and Line.
func (o *Option) Place(index int) (file string, line int) {
	if index >= 0 && index < len(o.places) {
		return o.places[index].file, o.places[index].line
	}
	return o.File, o.Line
}

func (s *Section) key() string { return s.Name }
func (o *Option) key() string  { return o.Name }

func (s *Section) at(w place) { s.File, s.Line = w.file, w.line }
func (o *Option) at(w place)  { o.File, o.Line = w.file, w.line }

// finish makes what the caller sees from what the parsers have gathered.
func (p *Package) finish() {
	p.Sections = p.secs.items
	index := make(map[string]int)
	for _, s := range p.Sections {
		s.Options = s.opts.items
		s.Index = index[s.Type]
		index[s.Type]++
	}
}

// addSection appends a section. Without a name it gets a generated one, which
// may be one that is taken: libuci does not look.
func (p *Package) addSection(name, typ string, w place) *Section {
	p.count++
	s := &Section{Name: name, Type: typ}
	if name == "" {
		s.Anonymous = true
		s.Name = generatedName(p.count, typ)
	}
	s.at(w)
	p.secs.add(s)
	return s
}

// setType gives a section another type. libuci makes a new section with the name
// of the old if the types differ in length, and so anonymous ones get a name.
func (s *Section) setType(typ string, w place) {
	if len(typ) != len(s.Type) {
		s.Anonymous = false
	}
	s.Type = typ
	s.at(w)
}

// set makes an option of one value, in the place of an option or list that is
// there already.
func (s *Section) set(name, value string, w place) {
	o := s.opts.find(name)
	if o == nil {
		o = &Option{Name: name}
		s.opts.add(o)
	}
	o.List = false
	o.Values = []string{value}
	o.places = nil
	o.at(w)
}

// addItem appends to a list. An option becomes a list with its value as the
// first item.
func (s *Section) addItem(name, value string, w place) {
	o := s.opts.find(name)
	if o == nil {
		o = &Option{Name: name}
		s.opts.add(o)
	}
	if !o.List && len(o.Values) > 0 {
		o.places = []place{{o.File, o.Line}}
	}
	o.List = true
	o.Values = append(o.Values, value)
	o.places = append(o.places, w)
	o.at(w)
}

// deleteItem removes the item of a list with an index that exists.
func (o *Option) deleteItem(index int, w place) {
	o.Values = slices.Delete(o.Values, index, index+1)
	o.places = slices.Delete(o.places, index, index+1)
	o.at(w)
}

// deleteItems removes all items of a list with a value.
func (o *Option) deleteItems(value string, w place) {
	for i := len(o.Values) - 1; i >= 0; i-- {
		if o.Values[i] == value {
			o.deleteItem(i, w)
		}
	}
}
