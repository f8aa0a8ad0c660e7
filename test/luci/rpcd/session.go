// SPDX-License-Identifier: Apache-2.0

package rpcd

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/xdpl2/xdpl2/internal/ubus"
)

// Group is an access group of a file in acl.d: right (read, write) to scope
// (ubus, uci, file, ...) to what may be done there.
type Group struct {
	Description string                     `json:"description"`
	Read        map[string]json.RawMessage `json:"read"`
	Write       map[string]json.RawMessage `json:"write"`
}

// ReadGroups reads access files.
func ReadGroups(groups map[string]*Group, files ...string) error {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read access file: %w", err)
		}
		if err := json.Unmarshal(data, &groups); err != nil {
			return fmt.Errorf("access file %s: %w", file, err)
		}
	}
	return nil
}

// Account is who may log in, and with which groups.
type Account struct {
	Password    string
	Read, Write []string
}

// Session is a login.
type Session struct {
	ID     string
	User   string
	access map[string]map[string][]string // scope, object, functions
	groups map[string][]string
}

// unauthenticated is the session of who has none.
const unauthenticated = "00000000000000000000000000000000"

// Options say what a server serves.
type Options struct {
	ConfigDir string            // of UCI
	RunDir    string            // where sessions stage their changes
	Groups    map[string]*Group // access groups by name
	Accounts  map[string]Account
	Objects   map[string]map[string]Method // in place of objects on the bus
	// Changed is told of each package that apply or a rollback wrote.
	Changed func(pkg string)
}

// Server answers browsers.
type Server struct {
	Options
	bus *ubus.Client

	mu       sync.Mutex
	sessions map[string]*Session
	pending  *pending // an apply that waits for its confirm
}

// New makes a server in front of a bus.
func New(bus *ubus.Client, o Options) *Server {
	s := &Server{Options: o, bus: bus, sessions: map[string]*Session{}}
	s.sessions[unauthenticated] = s.login(unauthenticated, "", Account{Read: []string{"unauthenticated"}})
	s.sessions[unauthenticated].grant("ubus", "session", "login", "access")
	return s
}

// Login opens a session for a user, as the login page does.
func (s *Server) Login(user string) (*Session, error) {
	account, ok := s.Accounts[user]
	if !ok {
		return nil, fmt.Errorf("no account %s", user)
	}
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	session := s.login(hex.EncodeToString(id[:]), user, account)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[session.ID] = session
	return session, nil
}

// Logout ends a session.
func (s *Server) Logout(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

func (s *Server) login(id, user string, a Account) *Session {
	session := &Session{ID: id, User: user, access: map[string]map[string][]string{}, groups: map[string][]string{}}
	grant := func(right string, names []string) {
		for _, name := range names {
			g := s.Groups[name]
			if g == nil {
				continue
			}
			session.groups[name] = append(session.groups[name], right)
			scopes := g.Read
			if right == "write" {
				scopes = g.Write
			}
			for scope, raw := range scopes {
				session.allow(right, scope, raw)
			}
		}
	}
	grant("read", a.Read)
	grant("write", a.Write)
	return session
}

// allow takes a scope of an access file: a table of functions by object, or a
// list of objects to which the right itself is the function.
func (s *Session) allow(right, scope string, raw json.RawMessage) {
	var objects []string
	if json.Unmarshal(raw, &objects) == nil {
		for _, o := range objects {
			s.grant(scope, o, right)
		}
		return
	}
	var table map[string][]string
	if json.Unmarshal(raw, &table) == nil {
		for o, functions := range table {
			s.grant(scope, o, functions...)
		}
	}
}

func (s *Session) grant(scope, object string, functions ...string) {
	if s.access[scope] == nil {
		s.access[scope] = map[string][]string{}
	}
	for _, f := range functions {
		if !slices.Contains(s.access[scope][object], f) {
			s.access[scope][object] = append(s.access[scope][object], f)
		}
	}
}

// May reports whether the session may do something; patterns count.
func (s *Session) May(scope, object, function string) bool {
	if s == nil || function == "" {
		return false
	}
	for pattern, functions := range s.access[scope] {
		if matchesPattern(pattern, object) && slices.ContainsFunc(functions, func(f string) bool { return matchesPattern(f, function) }) {
			return true
		}
	}
	return false
}

// matchesPattern is fnmatch as rpcd calls it: a star matches slashes, too.
func matchesPattern(pattern, name string) bool {
	flat := func(s string) string { return strings.ReplaceAll(s, "/", "\x01") }
	ok, err := path.Match(flat(pattern), flat(name))
	return err == nil && ok
}

func (s *Server) session(id string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

func (s *Server) dirOf(session *Session) string { return filepath.Join(s.RunDir, "uci-"+session.ID) }

// objects are those that are not on the bus.
func (s *Server) objects() map[string]map[string]Method {
	all := map[string]map[string]Method{
		"session": {"login": s.sessionLogin, "access": s.sessionAccess},
		"uci": {
			"get": s.uciGet, "set": s.uciSet, "add": s.uciAdd, "delete": s.uciDelete, "order": s.uciOrder,
			"changes": s.uciChanges, "apply": s.uciApply, "confirm": s.uciConfirm,
		},
	}
	for name, methods := range s.Objects {
		all[name] = methods
	}
	return all
}

func (s *Server) sessionLogin(_ *Session, args Table) (any, ubus.Status) {
	user, ok1 := args["username"].(string)
	password, ok2 := args["password"].(string)
	if !ok1 || !ok2 {
		return nil, ubus.StatusInvalidArgument
	}
	account, ok := s.Accounts[user]
	if !ok || account.Password != password {
		return nil, ubus.StatusPermissionDenied
	}
	session, err := s.Login(user)
	if err != nil {
		return nil, ubus.StatusUnknownError
	}
	acls := Table{"access-group": session.groups}
	for scope, objects := range session.access {
		acls[scope] = objects
	}
	return Table{"ubus_rpc_session": session.ID, "timeout": 300, "expires": 299, "acls": acls, "data": Table{"username": user}}, ubus.StatusOK
}

func (s *Server) sessionAccess(session *Session, args Table) (any, ubus.Status) {
	scope, _ := args["scope"].(string)
	object, _ := args["object"].(string)
	function, _ := args["function"].(string)
	return Table{"access": session.May(scope, object, function)}, ubus.StatusOK
}
