// SPDX-License-Identifier: Apache-2.0

package uci

import "slices"

// Get returns the value of an option, or the items of a list. It returns false if
// the package cannot be read, or has no such section or option.
func (t *Tree) Get(config, section, option string) ([]string, bool) {
	o := t.option(config, section, option)
	if o == nil {
		return nil, false
	}
	return slices.Clone(o.Values), true
}

// GetLast returns the value of an option, or the last item of a list. It returns
// false if there is none.
func (t *Tree) GetLast(config, section, option string) (string, bool) {
	o := t.option(config, section, option)
	if o == nil || len(o.Values) == 0 {
		return "", false
	}
	return o.Last(), true
}

// GetBool returns an option as a truth value. It returns false as the second
// result if there is none, or it is not one that ParseBool knows.
func (t *Tree) GetBool(config, section, option string) (value, ok bool) {
	s, ok := t.GetLast(config, section, option)
	if !ok {
		return false, false
	}
	return ParseBool(s)
}

// GetSections returns the names of the sections of a type in their order, those
// of all sections for an empty type. It returns false if the package cannot be
// read.
func (t *Tree) GetSections(config, secType string) ([]string, bool) {
	p, err := t.Package(config)
	if err != nil {
		return nil, false
	}
	names := []string{}
	for _, s := range p.Sections {
		if secType == "" || s.Type == secType {
			names = append(names, s.Name)
		}
	}
	return names, true
}

func (t *Tree) option(config, section, option string) *Option {
	p, err := t.Package(config)
	if err != nil {
		return nil
	}
	s := p.Section(section)
	if s == nil {
		return nil
	}
	return s.Option(option)
}

// ParseBool reads a truth value as OpenWrt's init scripts do (config_get_bool): 1,
// yes, on, true and enabled, or 0, no, off, false and disabled, in lower case. ok
// says whether it is one of them; for others the scripts take their default.
func ParseBool(s string) (value, ok bool) {
	switch s {
	case "1", "yes", "on", "true", "enabled":
		return true, true
	case "0", "no", "off", "false", "disabled":
		return false, true
	}
	return false, false
}
