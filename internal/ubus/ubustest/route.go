// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"slices"

	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// invoke passes a call on to the object's owner, or answers it for ubusd's own
// objects.
func (b *bus) invoke(cl *client, m *wire.Message, a *wire.Attrs) int {
	if !a.Has(wire.AttrMethod) || !a.Has(wire.AttrObjID) {
		return statusInvalidArgument
	}
	o := b.objects[a.ObjID]
	if o == nil {
		return statusNotFound
	}
	if o.hasPath && !b.allowed(cl, access, o.path, a.Method) {
		return statusPermissionDenied
	}
	if o.receive != nil {
		return o.receive(cl, m, a.Method, a.Data, a.Has(wire.AttrData))
	}
	b.forward(cl, m, o, a, wire.Body{})
	return noStatus
}

// forward sends a call to the object's owner, with the caller's sequence number.
func (b *bus) forward(cl *client, m *wire.Message, o *object, a *wire.Attrs, body wire.Body) {
	body = body.Uint32(wire.AttrObjID, o.id).
		String(wire.AttrMethod, a.Method).
		String(wire.AttrUser, cl.User).
		String(wire.AttrGroup, cl.Group)
	if a.Has(wire.AttrData) {
		body = body.Bytes(wire.AttrData, a.Data)
	}
	b.send(o.client, &wire.Message{Type: wire.Invoke, Seq: m.Seq, Peer: cl.id, Body: body})
}

// respond passes an owner's answer on to the caller. What fits no call is
// dropped without a word.
func (b *bus) respond(cl *client, m *wire.Message, a *wire.Attrs) {
	if !a.Has(wire.AttrObjID) ||
		m.Type == wire.Status && !a.Has(wire.AttrStatus) ||
		m.Type == wire.Data && !a.Has(wire.AttrData) {
		return
	}
	o := b.objects[a.ObjID]
	if o == nil || o.client != cl {
		return
	}
	caller := b.clients[m.Peer]
	if caller == nil {
		return
	}
	m.Peer = o.id
	b.send(caller, m)
}

// notify passes a notification on to the object's subscribers.
func (b *bus) notify(cl *client, m *wire.Message, a *wire.Attrs) int {
	if !a.Has(wire.AttrMethod) || !a.Has(wire.AttrObjID) {
		return statusInvalidArgument
	}
	o := b.objects[a.ObjID]
	if o == nil {
		return statusNotFound
	}
	if o.client != cl {
		return statusPermissionDenied
	}
	prefix := wire.Body{}
	if a.NoReply {
		prefix = prefix.Bool(wire.AttrNoReply, true)
	} else {
		var ids wire.Body
		for _, s := range o.subscribers {
			ids = ids.Uint32(0, s.subscriber.id)
		}
		b.answer(cl, m, wire.Status, wire.Body{}.
			Uint32(wire.AttrObjID, o.id).
			Bytes(wire.AttrSubscribers, ids).
			Uint32(wire.AttrStatus, statusOK))
	}
	for _, s := range o.subscribers {
		b.forward(cl, m, s.subscriber, a, slices.Clone(prefix))
	}
	return noStatus
}

func (b *bus) subscribe(cl *client, a *wire.Attrs) int {
	if !a.Has(wire.AttrObjID) || !a.Has(wire.AttrTarget) {
		return statusInvalidArgument
	}
	o := b.objects[a.ObjID]
	if o == nil {
		return statusNotFound
	}
	if o.client != cl {
		return statusInvalidArgument
	}
	target := b.objects[a.Target]
	if target == nil || target.client == nil {
		return statusNotFound
	}
	if target.client == cl {
		return statusInvalidArgument
	}
	if target.hasPath {
		if !b.allowed(cl, subscribe, target.path, "") {
			return statusNotFound
		}
	} else if target.client.User != cl.User && target.client.Group != cl.Group {
		return statusNotFound
	}
	s := &subscription{o, target}
	target.subscribers = slices.Insert(target.subscribers, 0, s)
	o.targets = slices.Insert(o.targets, 0, s)
	if len(target.subscribers) == 1 {
		b.tellActive(target)
	}
	return statusOK
}

func (b *bus) unsubscribe(cl *client, a *wire.Attrs) int {
	if !a.Has(wire.AttrObjID) || !a.Has(wire.AttrTarget) {
		return statusInvalidArgument
	}
	o := b.objects[a.ObjID]
	if o == nil {
		return statusNotFound
	}
	if o.client != cl {
		return statusInvalidArgument
	}
	for _, s := range o.targets {
		if s.target.id == a.Target {
			b.cut(s)
			return statusOK
		}
	}
	return statusNotFound
}

// cut ends one subscription.
func (b *bus) cut(s *subscription) {
	is := func(o *subscription) bool { return o == s }
	s.subscriber.targets = without(s.subscriber.targets, is)
	s.target.subscribers = without(s.target.subscribers, is)
	if len(s.target.subscribers) == 0 {
		b.tellActive(s.target)
	}
}

// tellActive tells an owner whether its object has subscribers.
func (b *bus) tellActive(o *object) {
	o.seq++
	b.send(o.client, &wire.Message{
		Type: wire.Notify, Seq: o.seq,
		Body: wire.Body{}.Uint32(wire.AttrObjID, o.id).Bool(wire.AttrActive, len(o.subscribers) > 0),
	})
}
