// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// listener is a pattern that an object is registered for.
type listener struct {
	object *object
	key    string // the pattern without its *
	prefix bool   // whether it had one
}

func (l *listener) pattern() string {
	if l.prefix {
		return l.key + "*"
	}
	return l.key
}

// callEvent answers calls of ubusd's event object.
func (b *bus) callEvent(cl *client, _ *wire.Message, method string, data []byte, hasData bool) int {
	switch method {
	case "register":
		return b.register(cl, data, hasData)
	case "send":
		return b.sendEvent(cl, data, hasData)
	}
	return statusInvalidCommand
}

// pick finds arguments by name and type, as libubox does: the first of a name
// counts, a malformed one ends the search.
func pick(data []byte, names map[string]blobmsg.Type) map[string]blobmsg.Attr {
	found := map[string]blobmsg.Attr{}
	for a, err := range blobmsg.All(data) {
		if err != nil {
			break
		}
		if t, ok := names[a.Name]; !ok || t != a.Type {
			continue
		}
		if _, ok := found[a.Name]; !ok {
			found[a.Name] = a
		}
	}
	return found
}

func (b *bus) register(cl *client, data []byte, hasData bool) int {
	args := pick(data, map[string]blobmsg.Type{"object": blobmsg.Int32, "pattern": blobmsg.String})
	objectArg, ok1 := args["object"]
	patternArg, ok2 := args["pattern"]
	if !hasData || !ok1 || !ok2 {
		return statusInvalidArgument
	}
	id := uint32Of(objectArg)
	if id < wire.FirstID {
		return statusPermissionDenied
	}
	o := b.objects[id]
	if o == nil {
		return statusNotFound
	}
	pattern := textOf(patternArg)
	if o.client != cl || pattern == "" {
		return statusPermissionDenied
	}
	l := &listener{object: o}
	l.key, l.prefix = strings.CutSuffix(pattern, "*")
	if !b.allowed(cl, listen, l.key, "") {
		return statusPermissionDenied
	}
	// Behind all that are not greater, so that equal ones keep their order.
	at, _ := slices.BinarySearchFunc(b.listeners, l.key, func(o *listener, key string) int {
		if o.key <= key {
			return -1
		}
		return 1
	})
	b.listeners = slices.Insert(b.listeners, at, l)
	return statusOK
}

func (b *bus) sendEvent(cl *client, data []byte, hasData bool) int {
	args := pick(data, map[string]blobmsg.Type{"id": blobmsg.String, "data": blobmsg.Tab})
	idArg, ok1 := args["id"]
	inner, ok2 := args["data"]
	if !hasData || !ok1 || !ok2 {
		return statusInvalidArgument
	}
	id := textOf(idArg)
	if strings.HasPrefix(id, "ubus.") || !b.allowed(cl, send, id, "") {
		return statusPermissionDenied
	}
	b.event(cl, id, inner.Payload)
	return statusOK
}

// event sends an event to every object that hears it, once, in the order of
// the patterns, and not to the sender's.
func (b *bus) event(sender *client, id string, data []byte) {
	b.eventRound++
	// The list may change while events are sent only by a disconnection, which
	// happens elsewhere.
	for _, l := range b.listeners {
		o := l.object
		if !matches(id, l.key, l.prefix) || o.client == sender || o.heard == b.eventRound {
			continue
		}
		o.heard = b.eventRound
		b.eventSeq++
		b.send(o.client, &wire.Message{
			Type: wire.Invoke, Seq: b.eventSeq,
			Body: wire.Body{}.
				Uint32(wire.AttrObjID, o.id).
				String(wire.AttrMethod, id).
				Bytes(wire.AttrData, data),
		})
	}
}

// objectEvent tells of an object that comes or goes.
func (b *bus) objectEvent(o *object, event string) {
	data, err := blobmsg.Encode(blobmsg.Table{{Name: "id", Value: int32(o.id)}, {Name: "path", Value: o.path}})
	if err != nil {
		return
	}
	b.event(nil, event, data)
}
