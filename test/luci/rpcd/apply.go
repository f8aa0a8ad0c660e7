// SPDX-License-Identifier: Apache-2.0

package rpcd

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus"
)

// pending is an apply with rollback that nobody has confirmed yet.
type pending struct {
	session *Session
	before  map[string][]byte // the files as they were
	staged  map[string][]byte // what was staged
	timer   *time.Timer
}

func (s *Server) packages(session *Session) []string {
	entries, err := os.ReadDir(s.dirOf(session))
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Size() > 0 {
			names = append(names, e.Name())
		}
	}
	return names
}

func (s *Server) uciApply(session *Session, args Table) (any, ubus.Status) {
	rollback, _ := args["rollback"].(bool)
	seconds, _ := args["timeout"].(float64)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != nil {
		if rollback {
			return nil, ubus.StatusPermissionDenied
		}
		return nil, ubus.StatusOK // and does nothing
	}
	names := s.packages(session)
	if len(names) == 0 {
		return nil, ubus.StatusNoData
	}
	p := &pending{session: session, before: map[string][]byte{}, staged: map[string][]byte{}}
	t := s.tree(session)
	for _, name := range names {
		var err error
		if p.before[name], err = os.ReadFile(filepath.Join(s.ConfigDir, name)); err != nil {
			return nil, statusOf(err)
		}
		if p.staged[name], err = os.ReadFile(filepath.Join(s.dirOf(session), name)); err != nil {
			return nil, statusOf(err)
		}
		if err := t.CommitConfig(name); err != nil {
			return nil, statusOf(err)
		}
	}
	if err := os.RemoveAll(s.dirOf(session)); err != nil {
		return nil, statusOf(err)
	}
	if rollback {
		s.pending = p
		p.timer = time.AfterFunc(time.Duration(seconds*float64(time.Second)), func() { s.rollBack(p) })
	}
	s.changed(names)
	return nil, ubus.StatusOK
}

// changed tells of packages, without waiting: procd is told by an event, too.
func (s *Server) changed(names []string) {
	if s.Changed == nil {
		return
	}
	for _, name := range names {
		go s.Changed(name)
	}
}

// rollBack restores the files and what was staged.
func (s *Server) rollBack(p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pending != p {
		return
	}
	s.pending = nil
	dir := s.dirOf(p.session)
	names := make([]string, 0, len(p.before))
	for name, content := range p.before {
		names = append(names, name)
		if os.WriteFile(filepath.Join(s.ConfigDir, name), content, 0o600) != nil || os.MkdirAll(dir, 0o700) != nil ||
			os.WriteFile(filepath.Join(dir, name), p.staged[name], 0o600) != nil {
			continue
		}
	}
	slices.Sort(names)
	s.changed(names)
}

func (s *Server) uciConfirm(session *Session, _ Table) (any, ubus.Status) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pending == nil:
		return nil, ubus.StatusNoData
	case s.pending.session != session:
		return nil, ubus.StatusPermissionDenied
	}
	s.pending.timer.Stop()
	s.pending = nil
	return nil, ubus.StatusOK
}

// staged is a line of a staged file: a sign, the place and perhaps a value.
var staged = regexp.MustCompile(`^([-+|~@^]?)[^.]+\.([^.=]+)(?:\.([^=]+))?(?:='(.*)')?$`)

var verbs = map[string]string{"": "set", "+": "add", "-": "remove", "|": "list-add", "~": "list-del", "@": "rename", "^": "order"}

func (s *Server) uciChanges(session *Session, args Table) (any, ubus.Status) {
	name, one := args["config"].(string)
	if one && !session.May("uci", name, "read") {
		return nil, ubus.StatusPermissionDenied
	}
	all := map[string][][]string{}
	for _, pkg := range s.packages(session) {
		data, err := os.ReadFile(filepath.Join(s.dirOf(session), pkg))
		if err != nil || !session.May("uci", pkg, "read") {
			continue
		}
		for line := range strings.Lines(string(data)) {
			m := staged.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
			if m == nil {
				continue
			}
			change := []string{verbs[m[1]], m[2]}
			if m[3] != "" {
				change = append(change, m[3])
			}
			if strings.Contains(line, "=") {
				change = append(change, strings.ReplaceAll(m[4], `'\''`, "'"))
			}
			all[pkg] = append(all[pkg], change)
		}
	}
	if one {
		if all[name] == nil {
			return nil, ubus.StatusOK
		}
		return Table{"changes": all[name]}, ubus.StatusOK
	}
	return Table{"changes": all}, ubus.StatusOK
}
