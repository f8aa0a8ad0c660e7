// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/xdpl2/xdpl2/internal/ubus/blob"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// limit gives a context that has none a deadline.
func (c *Client) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.CallTimeout)
}

// simple sends a request with one STATUS in the end. Each DATA goes to data,
// which must be quick: it runs in the reader, under the link's mutex.
func (l *link) simple(ctx context.Context, m *wire.Message, room int, data func(*wire.Attrs)) error {
	status := StatusOK
	err := l.request(ctx, m, room, func(answer *wire.Message, a *wire.Attrs) bool {
		switch {
		case answer.Peer != m.Peer:
			return false
		case answer.Type == wire.Data:
			if data != nil {
				data(a)
			}
			return false
		case a.Has(wire.AttrStatus):
			status = Status(a.Status)
		default:
			status = StatusInvalidArgument
		}
		return true
	})
	if err != nil {
		return err
	}
	return status.err()
}

// invokeBody is the body of a call. DATA is always there, because owners refuse
// a call without.
func invokeBody(object uint32, method string, args any) (wire.Body, error) {
	data, err := encode(args)
	if err != nil {
		return nil, err
	}
	return wire.Body{}.
		Uint32(wire.AttrObjID, object).
		String(wire.AttrMethod, method).
		Bytes(wire.AttrData, data), nil
}

// encode makes blobmsg of a value, if it fits a message.
func encode(v any) ([]byte, error) {
	data, err := blobmsg.Encode(v)
	switch {
	case errors.Is(err, blob.ErrTooLong):
		// How much longer is not known.
		return nil, &TooLargeError{blob.MaxLen + 1, wire.MaxLen}
	case err != nil:
		return nil, fmt.Errorf("encode %T: %w", v, err)
	case len(data) > wire.MaxLen:
		return nil, &TooLargeError{len(data), wire.MaxLen}
	}
	return data, nil
}

// Invoke calls a method of the object with that id and waits until the call is
// over. It returns all replies, in their order, also with an error. Arguments
// are what blobmsg.Marshal makes a table of; nil is none.
func (c *Client) Invoke(ctx context.Context, object uint32, method string, args any) ([]blobmsg.Table, error) {
	l, err := c.connected()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return l.invoke(ctx, object, method, args)
}

func (l *link) invoke(ctx context.Context, object uint32, method string, args any) ([]blobmsg.Table, error) {
	body, err := invokeBody(object, method, args)
	if err != nil {
		return nil, err
	}
	var raw [][]byte
	m := &wire.Message{Type: wire.Invoke, Peer: object, Body: body}
	err = l.simple(ctx, m, forwardRoom, func(a *wire.Attrs) {
		if a.Has(wire.AttrData) {
			raw = append(raw, a.Data)
		}
	})
	var replies []blobmsg.Table
	for _, r := range raw {
		t, decodeErr := blobmsg.Decode(r)
		if decodeErr != nil {
			if err == nil {
				err = fmt.Errorf("reply: %w", decodeErr)
			}
			break
		}
		replies = append(replies, t)
	}
	return replies, err
}

// Call looks an object up and calls a method of it. It returns the last reply,
// which is almost always the only one, or nil if there was none; with a Status
// as error there may be a reply, too.
func (c *Client) Call(ctx context.Context, path, method string, args any) (blobmsg.Table, error) {
	ctx, cancel := c.limit(ctx)
	defer cancel()
	var replies []blobmsg.Table
	id, err := c.LookupID(ctx, path)
	if err == nil {
		replies, err = c.Invoke(ctx, id, method, args)
	}
	if err != nil {
		err = fmt.Errorf("ubus call %s %s: %w", path, method, err)
	}
	if n := len(replies); n > 0 {
		return replies[n-1], err
	}
	return nil, err
}

// CallNoReply calls a method and does not wait for what becomes of it. ubusd
// does not tell the owner, so that it answers all the same, to nobody.
func (c *Client) CallNoReply(ctx context.Context, object uint32, method string, args any) error {
	l, err := c.connected()
	if err != nil {
		return err
	}
	body, err := invokeBody(object, method, args)
	if err != nil {
		return err
	}
	return l.post(ctx, &wire.Message{Type: wire.Invoke, Peer: object, Body: body.Bool(wire.AttrNoReply, true)})
}

// post sends a request and forgets it.
func (l *link) post(ctx context.Context, m *wire.Message) error {
	if err := fits(m, forwardRoom); err != nil {
		return err
	}
	ctx, cancel := l.c.limit(ctx)
	defer cancel()
	l.mu.Lock()
	m.Seq, _ = l.c.nextSeq(func(s uint16) bool { return l.pending[s] != nil })
	l.mu.Unlock()
	f, err := frame(m)
	if err != nil {
		return err
	}
	return l.send(ctx, f)
}

// Ping asks ubusd for a sign of life.
func (c *Client) Ping(ctx context.Context) error {
	l, err := c.connected()
	if err != nil {
		return err
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return l.simple(ctx, &wire.Message{Type: wire.Ping}, 0, nil)
}

// ObjectInfo is an object that a lookup found.
type ObjectInfo struct {
	Path    string
	ID      uint32
	Methods []Method // without handlers
}

// Lookup lists the objects with a path, or with one that begins with what
// stands before a final *, or, with "", all. They come sorted by path. Objects
// that access rules hide are left out.
func (c *Client) Lookup(ctx context.Context, path string) ([]ObjectInfo, error) {
	l, err := c.connected()
	if err != nil {
		return nil, err
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	return l.lookup(ctx, path)
}

func (l *link) lookup(ctx context.Context, path string) ([]ObjectInfo, error) {
	body := wire.Body{}
	if path != "" {
		body = body.String(wire.AttrObjPath, path)
	}
	var raw []*wire.Attrs
	err := l.simple(ctx, &wire.Message{Type: wire.Lookup, Body: body}, 0, func(a *wire.Attrs) {
		if a.Has(wire.AttrObjPath) && a.Has(wire.AttrObjID) {
			raw = append(raw, a)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("look up %q: %w", path, err)
	}
	list := make([]ObjectInfo, 0, len(raw))
	for _, a := range raw {
		list = append(list, ObjectInfo{a.Path, a.ObjID, methodsOf(a.Signature)})
	}
	return list, nil
}

// LookupID finds the id of one object. An object that access rules hide, or that
// has no signature, is StatusNotFound.
func (c *Client) LookupID(ctx context.Context, path string) (uint32, error) {
	if path == "" || strings.HasSuffix(path, "*") {
		return 0, fmt.Errorf("look up %q: %w", path, StatusInvalidArgument)
	}
	list, err := c.Lookup(ctx, path)
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		// ubusd's answer is a success then, without an id.
		return 0, fmt.Errorf("look up %q: %w", path, StatusNotFound)
	}
	return list[0].ID, nil
}
