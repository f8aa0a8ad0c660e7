// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"fmt"
	"slices"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// notification is the message to an object's subscribers.
func (r *Registration) notification(kind string, data any) (*link, *wire.Message, error) {
	l, err := r.entry.current()
	if err != nil {
		return nil, nil, err
	}
	id := r.ID()
	body, err := invokeBody(id, kind, data)
	if err != nil {
		return nil, nil, err
	}
	return l, &wire.Message{Type: wire.Notify, Peer: id, Body: body}, nil
}

// Notify tells the object's subscribers something. It does not wait for them:
// not even ubusd says whether there are any.
func (r *Registration) Notify(ctx context.Context, kind string, data any) error {
	l, m, err := r.notification(kind, data)
	if err == nil {
		m.Body = wire.Body(m.Body).Bool(wire.AttrNoReply, true)
		err = l.post(ctx, m)
	}
	if err != nil {
		return fmt.Errorf("notify %s of %s: %w", r.object.Path, kind, err)
	}
	return nil
}

// Answer is what one subscriber said to a notification.
type Answer struct {
	Object  uint32 // the subscriber's
	Status  Status
	Replies []blobmsg.Table
	// Answered is false for one that had not answered when the context ended.
	Answered bool
}

// NotifyWait tells the object's subscribers something and waits for the answer
// of each, the newest subscriber's first. If the context ends before, the error
// says so and the answers are those that came.
func (r *Registration) NotifyWait(ctx context.Context, kind string, data any) ([]Answer, error) {
	l, m, err := r.notification(kind, data)
	var answers []Answer
	if err == nil {
		ctx, cancel := l.c.limit(ctx)
		defer cancel()
		answers, err = l.notifyWait(ctx, m)
	}
	if err != nil {
		return answers, fmt.Errorf("notify %s of %s: %w", r.object.Path, kind, err)
	}
	return answers, nil
}

func (l *link) notifyWait(ctx context.Context, m *wire.Message) ([]Answer, error) {
	var (
		status  = StatusOK
		answers []Answer
		raw     = map[uint32][][]byte{}
		open    int
		listed  bool
	)
	err := l.request(ctx, m, forwardRoom, func(in *wire.Message, a *wire.Attrs) (last bool) {
		if !listed && in.Peer == m.Peer && in.Type == wire.Status {
			// From ubusd, before anything else: who the subscribers are. Who
			// subscribed twice is there twice, and answers twice.
			listed = true
			status = Status(a.Status)
			for _, id := range a.Subscribers {
				answers = append(answers, Answer{Object: id})
			}
			open = len(answers)
			return open == 0
		}
		if in.Type == wire.Data {
			if a.Has(wire.AttrData) {
				raw[in.Peer] = append(raw[in.Peer], a.Data)
			}
			return false
		}
		i := slices.IndexFunc(answers, func(o Answer) bool { return o.Object == in.Peer && !o.Answered })
		if i < 0 {
			return false
		}
		answers[i].Answered, answers[i].Status = true, Status(a.Status)
		for _, r := range raw[in.Peer] {
			// What one subscriber sends malformed is not the others' fault.
			if t, err := blobmsg.Decode(r); err == nil {
				answers[i].Replies = append(answers[i].Replies, t)
			}
		}
		delete(raw, in.Peer)
		open--
		return open == 0
	})
	if err == nil {
		err = status.err()
	}
	return answers, err
}
