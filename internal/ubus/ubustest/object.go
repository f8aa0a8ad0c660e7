// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// receiver answers a call of one of ubusd's own objects.
type receiver func(cl *client, m *wire.Message, method string, data []byte, hasData bool) int

// object is an object of a client, or with receive one of ubusd's own.
type object struct {
	id      uint32
	path    string
	hasPath bool
	kind    *objectType
	client  *client
	receive receiver

	subscribers []*subscription // to this object, the newest first
	targets     []*subscription // of this object, the newest first
	seq         uint16          // of what ubusd tells the owner of itself
	heard       uint64          // the round of the last event that it got
}

// objectType is a signature. Objects that name it by its id share it.
type objectType struct {
	id      uint32
	methods []blobmsg.Attr
	objects int
}

// subscription ties a subscriber to its target.
type subscription struct{ subscriber, target *object }

// findPath is where an object with that path is in paths, or would be.
func (b *bus) findPath(path string) (int, bool) {
	return slices.BinarySearchFunc(b.paths, path, func(o *object, p string) int {
		return strings.Compare(o.path, p)
	})
}

func (b *bus) addObject(cl *client, m *wire.Message, a *wire.Attrs) int {
	o := &object{client: cl, path: a.Path, hasPath: a.Has(wire.AttrObjPath)}
	at, taken := b.findPath(o.path)
	if o.hasPath && (taken || !b.allowed(cl, publish, o.path, "")) {
		return statusInvalidArgument
	}
	if a.Has(wire.AttrObjType) {
		o.kind = b.types[a.ObjType]
	} else if a.Has(wire.AttrSignature) {
		o.kind = b.newType(a.Signature)
	}
	if o.kind != nil {
		o.kind.objects++
	}
	o.id = b.newID(func(id uint32) bool { return b.objects[id] != nil })
	b.objects[o.id] = o
	if o.hasPath {
		b.paths = slices.Insert(b.paths, at, o)
		b.objectEvent(o, "ubus.object.add")
	}
	cl.objects = slices.Insert(cl.objects, 0, o)
	body := wire.Body{}.Uint32(wire.AttrObjID, o.id)
	if a.Has(wire.AttrSignature) && o.kind != nil {
		body = body.Uint32(wire.AttrObjType, o.kind.id)
	}
	b.answer(cl, m, wire.Data, body)
	return statusOK
}

// newType reads a signature; nil if a method in it is malformed.
func (b *bus) newType(signature []byte) *objectType {
	t := &objectType{id: b.newID(func(id uint32) bool { return b.types[id] != nil })}
	for method, err := range blobmsg.All(slices.Clone(signature)) {
		if err != nil || !method.Named {
			return nil
		}
		t.methods = append(t.methods, method)
	}
	b.types[t.id] = t
	return t
}

func (b *bus) removeObject(cl *client, m *wire.Message, a *wire.Attrs) int {
	if !a.Has(wire.AttrObjID) {
		return statusInvalidArgument
	}
	o := b.objects[a.ObjID]
	if o == nil {
		return statusNotFound
	}
	if o.client != cl {
		return statusPermissionDenied
	}
	body := wire.Body{}.Uint32(wire.AttrObjID, o.id)
	if o.kind != nil && o.kind.objects == 1 {
		body = body.Uint32(wire.AttrObjType, o.kind.id)
	}
	b.answer(cl, m, wire.Data, body)
	b.free(o)
	return statusOK
}

// free removes an object, its subscriptions and those to it.
func (b *bus) free(o *object) {
	for len(o.targets) > 0 {
		b.cut(o.targets[0])
	}
	for len(o.subscribers) > 0 {
		s := o.subscribers[0]
		s.subscriber.seq++
		b.send(s.subscriber.client, &wire.Message{
			Type: wire.Unsubscribe, Seq: s.subscriber.seq,
			Body: wire.Body{}.Uint32(wire.AttrObjID, s.subscriber.id).Uint32(wire.AttrTarget, o.id),
		})
		b.cut(s)
	}
	b.listeners = without(b.listeners, func(l *listener) bool { return l.object == o })
	if o.hasPath {
		b.objectEvent(o, "ubus.object.remove")
		b.paths = without(b.paths, func(p *object) bool { return p == o })
	}
	o.client.objects = without(o.client.objects, func(p *object) bool { return p == o })
	delete(b.objects, o.id)
	if t := o.kind; t != nil {
		if t.objects--; t.objects == 0 {
			delete(b.types, t.id)
		}
	}
}

func (b *bus) lookup(cl *client, m *wire.Message, a *wire.Attrs) int {
	if !a.Has(wire.AttrObjPath) {
		for _, o := range b.paths {
			b.list(cl, m, o)
		}
		return statusOK
	}
	if a.Path == "" {
		return statusInvalidArgument
	}
	prefix, many := strings.CutSuffix(a.Path, "*")
	at, found := b.findPath(prefix)
	if !many {
		if !found {
			return statusNotFound
		}
		b.list(cl, m, b.paths[at])
		return statusOK
	}
	found = false
	for _, o := range b.paths[at:] {
		if !strings.HasPrefix(o.path, prefix) {
			break
		}
		found = true
		b.list(cl, m, o)
	}
	if !found {
		return statusNotFound
	}
	return statusOK
}

// list tells of an object with the methods that the client may call. One
// without a signature, or with nothing for this client, is not told of.
func (b *bus) list(cl *client, m *wire.Message, o *object) {
	if o.kind == nil {
		return
	}
	var signature []byte
	callable := 0
	for _, method := range o.kind.methods {
		if !b.allowed(cl, access, o.path, method.Name) {
			continue
		}
		var err error
		signature, err = blobmsg.AppendRaw(signature, method.Type, method.Name, method.Payload)
		if err != nil {
			return
		}
		callable++
	}
	if callable == 0 && len(o.kind.methods) > 0 {
		return
	}
	b.answer(cl, m, wire.Data, wire.Body{}.
		String(wire.AttrObjPath, o.path).
		Uint32(wire.AttrObjID, o.id).
		Uint32(wire.AttrObjType, o.kind.id).
		Bytes(wire.AttrSignature, signature))
}
