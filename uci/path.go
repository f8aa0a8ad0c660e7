// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"fmt"
	"math"
	"strings"
)

// path is what a staged line or a command names: package.section.option=value.
// Empty parts are not there; a value may be there and empty.
type path struct {
	pkg, section, option string
	value                string
	hasValue             bool
}

// parsePath splits the dotted form. The section may be of the form @type[n], or
// anything else: whether it is one is found out when it is looked up.
func parsePath(s string) (path, bool) {
	var t path
	s, t.value, t.hasValue = strings.Cut(s, "=")
	parts := strings.Split(s, ".")
	if len(parts) > 3 || !validType(parts[0]) || t.hasValue && !validText(t.value) {
		return path{}, false
	}
	t.pkg = parts[0]
	if len(parts) > 1 {
		t.section = parts[1]
	}
	if len(parts) > 2 {
		t.option = parts[2]
		if !validName(t.option) {
			return path{}, false
		}
	}
	return t, true
}

// section finds a section by its name or by @type[n]. A section that is not there
// is ErrNotFound, a reference that cannot be one ErrInvalid.
func (p *Package) section(ref string) (*Section, error) {
	if validName(ref) {
		if s := p.secs.find(ref); s != nil {
			return s, nil
		}
		return nil, fmt.Errorf("section %s: %w", ref, ErrNotFound)
	}
	typ, index, ok := parseIndex(ref)
	if !ok {
		return nil, fmt.Errorf("section %q: %w: expected a name (letters, digits and _) or @type[n]", ref, ErrInvalid)
	}
	matches := func(s *Section) bool { return typ == "" || s.Type == typ }
	if index < 0 {
		for _, s := range p.secs.items {
			if matches(s) {
				index++
			}
		}
	}
	for _, s := range p.secs.items {
		if !matches(s) {
			continue
		}
		if index == 0 {
			return s, nil
		}
		index--
	}
	return nil, fmt.Errorf("section %s: %w", ref, ErrNotFound)
}

// parseIndex takes @type[n] apart. An empty type stands for all, an empty n for 0.
func parseIndex(ref string) (typ string, index int, ok bool) {
	rest, ok := strings.CutPrefix(ref, "@")
	if !ok {
		return "", 0, false
	}
	typ, rest, ok = strings.Cut(rest, "[")
	if !ok || typ != "" && !validType(typ) {
		return "", 0, false
	}
	digits, rest, ok := strings.Cut(rest, "]")
	if !ok || rest != "" {
		return "", 0, false
	}
	n, used := leadingInt(digits)
	// An empty number is taken for 0, and so is nothing else without digits.
	if digits != "" && used != len(digits) {
		return "", 0, false
	}
	return typ, int(int32(n)), true
}

// leadingInt reads a decimal number as strtol does: white space and a sign may
// come first, what follows is left, and what is too large becomes the largest. It
// also returns how many bytes that took, 0 if there is no number.
func leadingInt(s string) (n int64, used int) {
	i := 0
	for i < len(s) && isSpace(s[i]) {
		i++
	}
	neg := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	start := i
	var v uint64
	for ; i < len(s) && s[i] >= '0' && s[i] <= '9'; i++ {
		if v <= math.MaxInt64/10 {
			v = v*10 + uint64(s[i]-'0')
		} else {
			v = math.MaxUint64 // stays too large
		}
	}
	if i == start {
		return 0, 0
	}
	switch {
	case neg && v > math.MaxInt64:
		return math.MinInt64, i
	case neg:
		return -int64(v), i
	case v > math.MaxInt64:
		return math.MaxInt64, i
	}
	return int64(v), i
}
