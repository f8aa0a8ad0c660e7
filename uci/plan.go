// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// The plan functions say which lines have to be staged to bring a change about.
// They stage what the uci program stages, and nothing where it stages nothing.

// target finds what a change is about. The option is nil if it is not there.
func (p *Package) target(section, option string) (*Section, *Option, error) {
	s, err := p.section(section)
	if err != nil || option == "" {
		return s, nil, err
	}
	if !validName(option) {
		return nil, nil, fmt.Errorf("option %q: %w: expected letters, digits and _", option, ErrInvalid)
	}
	return s, s.opts.find(option), nil
}

// existing is target for a change to something that has to be there.
func (p *Package) existing(section, option string) (*Section, *Option, error) {
	s, o, err := p.target(section, option)
	if err == nil && option != "" && o == nil {
		err = fmt.Errorf("option %s.%s: %w", section, option, ErrNotFound)
	}
	return s, o, err
}

func checkText(value string) error {
	if !validText(value) {
		return fmt.Errorf("value %q: %w: it has control characters", value, ErrInvalid)
	}
	return nil
}

func checkType(typ string) error {
	if !validType(typ) {
		return fmt.Errorf("type %q: %w: expected printable ASCII without blanks", typ, ErrInvalid)
	}
	return nil
}

// planSet sets an option to one value; to none, it deletes the option.
func (p *Package) planSet(section, option, value string) ([]change, error) {
	if err := checkText(value); err != nil {
		return nil, err
	}
	s, o, err := p.target(section, option)
	switch {
	case err != nil:
		return nil, err
	case option == "":
		return nil, fmt.Errorf("option of section %s: %w: it has no name", section, ErrInvalid)
	case value == "" && o == nil:
		return nil, nil
	case value == "":
		return []change{{op: opDelete, section: s.Name, option: option}}, nil
	case o != nil && !o.List && o.Values[0] == value:
		return nil, nil
	}
	return []change{{section: s.Name, option: option, value: value, hasValue: true}}, nil
}

// planSetList makes an option a list of the values.
func (p *Package) planSetList(section, option string, values []string) ([]change, error) {
	s, o, err := p.target(section, option)
	if err != nil {
		return nil, err
	}
	if option == "" {
		return nil, fmt.Errorf("option of section %s: %w: it has no name", section, ErrInvalid)
	}
	var changes []change
	if o != nil {
		if o.List && slices.Equal(o.Values, values) {
			return nil, nil
		}
		changes = append(changes, change{op: opDelete, section: s.Name, option: option})
	}
	for _, v := range values {
		if err := checkText(v); err != nil {
			return nil, err
		}
		changes = append(changes, change{op: opAddItem, section: s.Name, option: option, value: v, hasValue: true})
	}
	return changes, nil
}

// planSetSection makes a section with a name, or gives one another type.
func (p *Package) planSetSection(section, typ string) ([]change, error) {
	s, err := p.section(section)
	if err != nil && (!errors.Is(err, ErrNotFound) || !validName(section)) {
		return nil, err
	}
	switch {
	case typ == "" && s == nil:
		return nil, nil
	case typ == "":
		return []change{{op: opDelete, section: s.Name}}, nil
	case !validType(typ):
		return nil, checkType(typ)
	case s != nil && s.Type == typ:
		return nil, nil
	case s != nil:
		section = s.Name
	}
	return []change{{section: section, value: typ, hasValue: true}}, nil
}

// planAdd adds a section without a name. libuci takes any type here, and skips the
// line later if it is none.
func (p *Package) planAdd(typ string) (name string, changes []change) {
	name = generatedName(p.count+1, typ)
	return name, []change{{op: opAdd, section: name, value: typ, hasValue: true}}
}

// planDelete deletes a section or an option.
func (p *Package) planDelete(section, option string) ([]change, error) {
	s, _, err := p.existing(section, option)
	if err != nil {
		return nil, err
	}
	return []change{{op: opDelete, section: s.Name, option: option}}, nil
}

// planDeleteItem deletes the item of a list with an index. What is no list is
// deleted altogether, and an index that does not exist is no error.
func (p *Package) planDeleteItem(section, option string, index int) ([]change, error) {
	s, o, err := p.existing(section, option)
	switch {
	case err != nil:
		return nil, err
	case o == nil || !o.List:
		return p.planDelete(section, option)
	case index < 0 || index >= len(o.Values):
		return nil, nil
	}
	return []change{{op: opDelete, section: s.Name, option: option, value: strconv.Itoa(index), hasValue: true}}, nil
}

// planAddItem appends a value to a list, and planDeleteItems removes all items
// with a value.
func (p *Package) planAddItem(section, option, value string) ([]change, error) {
	return p.planItem(opAddItem, section, option, value)
}

func (p *Package) planDeleteItems(section, option, value string) ([]change, error) {
	changes, err := p.planItem(opDelItems, section, option, value)
	if err == nil {
		if _, o, _ := p.target(section, option); o == nil || !o.List {
			return nil, nil
		}
	}
	return changes, err
}

func (p *Package) planItem(o op, section, option, value string) ([]change, error) {
	if err := checkText(value); err != nil {
		return nil, err
	}
	s, _, err := p.target(section, option)
	if err != nil {
		return nil, err
	}
	if option == "" {
		return nil, fmt.Errorf("list of section %s: %w: it has no name", section, ErrInvalid)
	}
	return []change{{op: o, section: s.Name, option: option, value: value, hasValue: true}}, nil
}

// planRename gives a section or an option another name. libuci takes any text
// here, and does not look whether the name is taken.
func (p *Package) planRename(section, option, name string) ([]change, error) {
	s, _, err := p.existing(section, option)
	if err != nil {
		return nil, err
	}
	return []change{{op: opRename, section: s.Name, option: option, value: name, hasValue: true}}, nil
}

// planReorder moves a section to a position among the others.
func (p *Package) planReorder(section string, position int) ([]change, error) {
	s, err := p.section(section)
	if err != nil {
		return nil, err
	}
	to := min(max(position, 0), len(p.secs.items)-1)
	if p.secs.items[to] == s {
		return nil, nil
	}
	return []change{{op: opReorder, section: s.Name, value: strconv.Itoa(position), hasValue: true}}, nil
}
