// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
)

// OptionType says whether an option is written with the word option or list.
type OptionType int

// The two types.
const (
	TypeOption OptionType = iota
	TypeList
)

// Set stages that an option has the values: one makes it an option, several make
// it a list, and none, or an empty one, deletes it. The section has to exist.
// Nothing is staged if it has them already.
func (t *Tree) Set(config, section, option string, values ...string) error {
	if len(values) > 1 {
		return t.SetType(config, section, option, TypeList, values...)
	}
	return t.SetType(config, section, option, TypeOption, values...)
}

// SetType is Set with a choice between an option, of at most one value, and a list
// of any number.
func (t *Tree) SetType(config, section, option string, typ OptionType, values ...string) error {
	return t.edit("set", config, section, option, func(p *Package) ([]change, error) {
		switch {
		case typ == TypeList && len(values) > 0:
			return p.planSetList(section, option, values)
		case len(values) > 1:
			return nil, fmt.Errorf("%w: %d values for an option", ErrInvalid, len(values))
		case len(values) == 0:
			return p.planSet(section, option, "")
		}
		return p.planSet(section, option, values[0])
	})
}

// AddList stages that a value is appended to a list, which is made if there is
// none. An option becomes a list with its value as the first item.
func (t *Tree) AddList(config, section, option, value string) error {
	return t.edit("add to", config, section, option, func(p *Package) ([]change, error) {
		return p.planAddItem(section, option, value)
	})
}

// DelList stages that all items with a value are removed from a list. If there are
// none, or no such list, that is fine.
func (t *Tree) DelList(config, section, option, value string) error {
	return t.edit("delete from", config, section, option, func(p *Package) ([]change, error) {
		return p.planDeleteItems(section, option, value)
	})
}

// DelItem stages that the item of a list with an index, counted from 0, is removed.
func (t *Tree) DelItem(config, section, option string, index int) error {
	return t.edit("delete from", config, section, option, func(p *Package) ([]change, error) {
		return p.planDeleteItem(section, option, index)
	})
}

// Del stages that an option or list is deleted. If it is not there, the error
// wraps ErrNotFound.
func (t *Tree) Del(config, section, option string) error {
	return t.edit("delete", config, section, option, func(p *Package) ([]change, error) {
		if option == "" {
			return nil, fmt.Errorf("%w: no option is named", ErrInvalid)
		}
		return p.planDelete(section, option)
	})
}

// DelSection stages that a section is deleted. If it is not there, the error wraps
// ErrNotFound.
func (t *Tree) DelSection(config, section string) error {
	return t.edit("delete", config, section, "", func(p *Package) ([]change, error) {
		return p.planDelete(section, "")
	})
}

// AddSection stages a new section. With an empty name it has none; AddAnonymous
// returns what it is called then. If the section is there already and of that
// type, nothing happens; of another type, it is an error.
func (t *Tree) AddSection(config, section, typ string) error {
	if section == "" {
		_, err := t.AddAnonymous(config, typ)
		return err
	}
	return t.edit("add", config, section, "", func(p *Package) ([]change, error) {
		if err := checkType(typ); err != nil {
			return nil, err
		}
		s, err := p.section(section)
		if s != nil && s.Type != typ {
			return nil, fmt.Errorf("%w: it is of type %s and not %s", ErrInvalid, s.Type, typ)
		}
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		return p.planSetSection(section, typ)
	})
}

// AddAnonymous stages a new section without a name, and returns its generated one.
// It is valid until the next commit.
func (t *Tree) AddAnonymous(config, typ string) (name string, err error) {
	err = t.edit("add", config, "", "", func(p *Package) (changes []change, err error) {
		if err := checkType(typ); err != nil {
			return nil, err
		}
		name, changes = p.planAdd(typ)
		return changes, nil
	})
	if err != nil {
		return "", err
	}
	return name, nil
}

// SetSectionType stages that a section is of another type.
func (t *Tree) SetSectionType(config, section, typ string) error {
	return t.edit("set the type of", config, section, "", func(p *Package) ([]change, error) {
		if err := checkType(typ); err != nil {
			return nil, err
		}
		if _, err := p.section(section); err != nil {
			return nil, err
		}
		return p.planSetSection(section, typ)
	})
}

// Rename stages another name for an option, or, if option is empty, for a section.
// Unlike libuci it refuses a name that is taken: the file could not be loaded any
// more after the commit.
func (t *Tree) Rename(config, section, option, name string) error {
	return t.edit("rename", config, section, option, func(p *Package) ([]change, error) {
		s, o, err := p.existing(section, option)
		if err != nil {
			return nil, err
		}
		if !validName(name) {
			return nil, fmt.Errorf("new name %q: %w: expected letters, digits and _", name, ErrInvalid)
		}
		taken := p.secs.find(name) != nil && p.secs.find(name) != s
		if o != nil {
			taken = s.opts.find(name) != nil && s.opts.find(name) != o
		}
		if taken {
			return nil, fmt.Errorf("new name %s: %w: it is taken", name, ErrInvalid)
		}
		return p.planRename(section, option, name)
	})
}

// Reorder stages another position for a section, counted from 0. One that is too
// large is the end.
func (t *Tree) Reorder(config, section string, position int) error {
	return t.edit("reorder", config, section, "", func(p *Package) ([]change, error) {
		return p.planReorder(section, position)
	})
}

// edit stages a change, and says in errors what was to be done.
func (t *Tree) edit(verb, config, section, option string, plan func(p *Package) ([]change, error)) error {
	err := t.stage(config, plan)
	if err == nil {
		return nil
	}
	what := config
	for _, part := range []string{section, option} {
		if part != "" {
			what += "." + part
		}
	}
	return fmt.Errorf("uci: %s %s: %w", verb, what, err)
}
