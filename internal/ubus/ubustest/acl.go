// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// right is what an access file grants.
type right string

const (
	access    right = "access" // calling methods
	publish   right = "publish"
	subscribe right = "subscribe"
	listen    right = "listen"
	send      right = "send"
)

// acl is what the access files say.
type acl struct {
	grants []*grant // sorted by what they match
}

// grant is one path in one list of an access file.
type grant struct {
	user, group string
	right       right
	key         string // the path without its *
	prefix      bool   // whether it had one
	methods     []string
	private     blobmsg.Table // "acl": what the file tells the object's owner
	hasPrivate  bool
}

func newACL(files map[string]string) (*acl, error) {
	a := &acl{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		t, err := blobmsg.ParseJSON(files[name])
		if err != nil {
			return nil, fmt.Errorf("ubustest: access file %s: %w", name, err)
		}
		a.load(t)
	}
	slices.SortStableFunc(a.grants, func(x, y *grant) int { return strings.Compare(x.key, y.key) })
	return a, nil
}

func (a *acl) load(t blobmsg.Table) {
	user, _ := t.Text("user")
	group, _ := t.Text("group")
	if user == "" && group == "" {
		return
	}
	add := func(r right, path string) *grant {
		g := &grant{user: user, group: group, right: r}
		g.key, g.prefix = strings.CutSuffix(path, "*")
		a.grants = append(a.grants, g)
		return g
	}
	objects, _ := t.Table(string(access))
	for _, f := range objects {
		inner, _ := f.Value.(blobmsg.Table)
		g := add(access, f.Name)
		methods, _ := inner.Array("methods")
		for _, m := range methods {
			if s, ok := m.(string); ok {
				g.methods = append(g.methods, s)
			}
		}
		g.private, g.hasPrivate = inner.Table("acl")
	}
	for _, r := range []right{subscribe, publish, listen, send} {
		paths, _ := t.Array(string(r))
		for _, p := range paths {
			if s, ok := p.(string); ok && s != "" {
				add(r, s)
			}
		}
	}
}

// matching calls f with the grants whose path matches, until it returns false.
func (a *acl) matching(path string, f func(*grant) bool) {
	for _, g := range a.grants {
		if matches(path, g.key, g.prefix) && !f(g) {
			return
		}
	}
}

// allowed is whether a client may do something; nil is ubusd itself.
func (b *bus) allowed(cl *client, r right, path, method string) (ok bool) {
	if cl == nil || cl.UID == 0 {
		return true
	}
	b.acl.matching(path, func(g *grant) bool {
		mine := g.user != "" && g.user == cl.User || g.user == "" && g.group == cl.Group
		if mine && g.right == r {
			ok = r != access || slices.Contains(g.methods, method) || slices.Contains(g.methods, "*")
		}
		return !ok
	})
	return ok
}

// callACL answers calls of ubusd's access object: what the access files tell
// about the caller's own objects.
func (b *bus) callACL(cl *client, m *wire.Message, method string, _ []byte, _ bool) int {
	if method != "query" {
		return statusInvalidCommand
	}
	list := blobmsg.Array{}
	for _, o := range cl.objects {
		if !o.hasPath {
			continue
		}
		b.acl.matching(o.path, func(g *grant) bool {
			if !g.hasPrivate {
				return true
			}
			t := blobmsg.Table{{Name: "obj", Value: o.path}}
			if g.user != "" {
				t = append(t, blobmsg.Field{Name: "user", Value: g.user})
			} else {
				t = append(t, blobmsg.Field{Name: "group", Value: g.group})
			}
			list = append(list, append(t, blobmsg.Field{Name: "acl", Value: g.private}))
			return true
		})
	}
	// The number counts how often the files were read: ubusd reads them at its
	// start if there is a folder for them.
	seq := int32(0)
	if len(b.acl.grants) > 0 {
		seq = 1
	}
	data, err := blobmsg.Encode(blobmsg.Table{{Name: "seq", Value: seq}, {Name: "acl", Value: list}})
	if err != nil {
		return statusInvalidArgument
	}
	b.answer(cl, m, wire.Data, wire.Body{}.Uint32(wire.AttrObjID, wire.ACLObject).Bytes(wire.AttrData, data))
	return statusOK
}

func uint32Of(a blobmsg.Attr) uint32 { return binary.BigEndian.Uint32(a.Payload) }

func textOf(a blobmsg.Attr) string {
	s, _ := blob.CString(a.Payload)
	return s
}
