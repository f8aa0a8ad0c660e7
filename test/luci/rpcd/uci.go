// SPDX-License-Identifier: Apache-2.0

package rpcd

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/uci"
)

// The uci object. Each session has staged changes of its own.

func (s *Server) tree(session *Session) *uci.Tree { return uci.NewTree(s.ConfigDir, s.dirOf(session)) }

// config is the argument of that name, if the session has a right to it.
func (s *Server) config(session *Session, args Table, right string) (string, ubus.Status) {
	name, ok := args["config"].(string)
	if !ok {
		return "", ubus.StatusInvalidArgument
	}
	if !session.May("uci", name, right) {
		return "", ubus.StatusPermissionDenied
	}
	return name, ubus.StatusOK
}

func statusOf(err error) ubus.Status {
	var parse *uci.ParseError
	switch {
	case err == nil:
		return ubus.StatusOK
	case errors.As(err, &parse):
		return ubus.StatusUnknownError
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, uci.ErrNotFound):
		return ubus.StatusNotFound
	}
	return ubus.StatusInvalidArgument
}

func sectionTable(sec *uci.Section, index int) Table {
	t := Table{".anonymous": sec.Anonymous, ".type": sec.Type, ".name": sec.Name}
	if index >= 0 {
		t[".index"] = index
	}
	for _, o := range sec.Options {
		if o.List {
			t[o.Name] = o.Values
		} else {
			t[o.Name] = o.Last()
		}
	}
	return t
}

func (s *Server) uciGet(session *Session, args Table) (any, ubus.Status) {
	name, status := s.config(session, args, "read")
	if status != ubus.StatusOK {
		return nil, status
	}
	if strings.Contains(name, "/") {
		return nil, ubus.StatusNotFound
	}
	pkg, err := s.tree(session).Package(name)
	if err != nil {
		return nil, statusOf(err)
	}
	section, one := args["section"].(string)
	if one {
		sec := pkg.Section(section)
		if sec == nil {
			return nil, ubus.StatusOK
		}
		option, ok := args["option"].(string)
		if !ok {
			return Table{"values": sectionTable(sec, -1)}, ubus.StatusOK
		}
		o := sec.Option(option)
		switch {
		case o == nil:
			return nil, ubus.StatusOK
		case o.List:
			return Table{"value": o.Values}, ubus.StatusOK
		}
		return Table{"value": o.Last()}, ubus.StatusOK
	}
	typ, _ := args["type"].(string)
	match, _ := args["match"].(Table)
	values := Table{}
	for i, sec := range pkg.Sections {
		if (typ == "" || sec.Type == typ) && matches(sec, match) {
			values[sec.Name] = sectionTable(sec, i)
		}
	}
	return Table{"values": values}, ubus.StatusOK
}

func matches(sec *uci.Section, match Table) bool {
	for name, want := range match {
		o := sec.Option(name)
		if o == nil || o.Last() != fmt.Sprint(want) {
			return false
		}
	}
	return true
}

// values turns what a browser sends for an option into UCI's texts; false if it
// is nothing that can be one.
func values(v any) ([]string, bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, true
	case bool:
		if v {
			return []string{"1"}, true
		}
		return []string{"0"}, true
	case float64:
		return []string{strconv.FormatFloat(v, 'f', -1, 64)}, true
	case []any:
		var all []string
		for _, item := range v {
			one, ok := values(item)
			if !ok || len(one) != 1 {
				return nil, false
			}
			all = append(all, one...)
		}
		return all, len(all) > 0
	}
	return nil, false
}

var goodName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// setAll stages values for a section, all or none of them.
func setAll(t *uci.Tree, config, section string, raw Table) ubus.Status {
	names := make([]string, 0, len(raw))
	for name, v := range raw {
		if _, ok := values(v); !ok || !goodName.MatchString(name) {
			return ubus.StatusInvalidArgument
		}
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		list, _ := values(raw[name])
		kind := uci.TypeOption
		if _, ok := raw[name].([]any); ok {
			kind = uci.TypeList
		}
		if err := t.SetType(config, section, name, kind, list...); err != nil {
			return statusOf(err)
		}
	}
	return ubus.StatusOK
}

func (s *Server) uciSet(session *Session, args Table) (any, ubus.Status) {
	name, status := s.config(session, args, "write")
	section, ok := args["section"].(string)
	raw, ok2 := args["values"].(Table)
	switch {
	case status != ubus.StatusOK:
		return nil, status
	case !ok || !ok2:
		return nil, ubus.StatusInvalidArgument
	}
	t := s.tree(session)
	pkg, err := t.Package(name)
	if err != nil {
		return nil, statusOf(err)
	}
	if pkg.Section(section) == nil {
		return nil, ubus.StatusNotFound
	}
	return nil, setAll(t, name, section, raw)
}

func (s *Server) uciAdd(session *Session, args Table) (any, ubus.Status) {
	name, status := s.config(session, args, "write")
	typ, ok := args["type"].(string)
	switch {
	case status != ubus.StatusOK:
		return nil, status
	case !ok:
		return nil, ubus.StatusInvalidArgument
	}
	t := s.tree(session)
	section, _ := args["name"].(string)
	var err error
	if section != "" {
		err = t.AddSection(name, section, typ)
	} else {
		section, err = t.AddAnonymous(name, typ)
	}
	if err != nil {
		return nil, statusOf(err)
	}
	if raw, ok := args["values"].(Table); ok {
		if status := setAll(t, name, section, raw); status != ubus.StatusOK {
			return nil, status
		}
	}
	return Table{"section": section}, ubus.StatusOK
}

func (s *Server) uciDelete(session *Session, args Table) (any, ubus.Status) {
	name, status := s.config(session, args, "write")
	section, ok := args["section"].(string)
	switch {
	case status != ubus.StatusOK:
		return nil, status
	case !ok:
		return nil, ubus.StatusInvalidArgument
	}
	t := s.tree(session)
	var options []string
	if o, ok := args["option"].(string); ok {
		options = append(options, o)
	}
	if list, ok := args["options"].([]any); ok {
		for _, o := range list {
			options = append(options, fmt.Sprint(o))
		}
	}
	if len(options) == 0 {
		return nil, statusOf(t.DelSection(name, section))
	}
	for _, o := range options {
		if err := t.Del(name, section, o); err != nil && !errors.Is(err, uci.ErrNotFound) {
			return nil, statusOf(err)
		}
	}
	return nil, ubus.StatusOK
}

func (s *Server) uciOrder(session *Session, args Table) (any, ubus.Status) {
	name, status := s.config(session, args, "write")
	list, ok := args["sections"].([]any)
	switch {
	case status != ubus.StatusOK:
		return nil, status
	case !ok:
		return nil, ubus.StatusInvalidArgument
	}
	t := s.tree(session)
	for i, section := range list {
		if err := t.Reorder(name, fmt.Sprint(section), i); err != nil {
			return nil, statusOf(err)
		}
	}
	return nil, ubus.StatusOK
}
