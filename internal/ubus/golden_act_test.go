// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"bytes"
	"context"
	"errors"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// act does through the API what the recorded client did: each request when the
// script is there, the parts that one function of the API does together in one.
func (r *replay) act() {
	done := map[int]bool{} // requests that an earlier one brings with it
	connections := 0
	for i, s := range r.steps {
		f := r.frames[i]
		if s.Connect {
			connections++
		}
		switch {
		case f.Message != nil && f.Type == wire.AddObject && s.FromClient && connections > 1:
			// The client registers again by itself.
		case s.Close && s.FromClient:
			r.await(i)
			// All that was said to the client has to reach it first.
			if err := r.client.WaitConnected(r.t.Context()); err != nil {
				r.t.Error(err)
			}
			r.answered.Wait()
			r.awaitCallbacks()
			r.client.Close()
		case f.Message == nil || !s.FromClient || done[i]:
		default:
			r.await(i)
			// The script being there does not mean that the client is.
			if err := r.client.WaitConnected(r.t.Context()); err != nil {
				r.t.Error(err)
			}
			r.request(i, f, done)
		}
	}
}

func (r *replay) request(i int, f frameOf, done map[int]bool) {
	ctx := r.t.Context()
	switch f.Type {
	case wire.Status, wire.Data:
		// The handlers do that.
	case wire.AddObject:
		if f.Path == "" {
			r.addNameless(i, done)
		} else {
			r.register(i, f)
		}
	case wire.RemoveObject:
		// Who waits for it would be told that it is removed.
		r.answered.Wait()
		r.check(i, func() ([]blobmsg.Table, error) { return nil, r.registered[f.ObjID].Remove(ctx) })
	case wire.Lookup:
		r.check(i, func() ([]blobmsg.Table, error) {
			list, err := r.client.Lookup(ctx, f.Path)
			if want := r.answers(i, wire.Data); len(list) != len(want) {
				r.t.Errorf("step %d: %d objects, want %d", i, len(list), len(want))
			}
			return nil, err
		})
	case wire.Invoke:
		args := r.table(f.Data)
		r.check(i, func() ([]blobmsg.Table, error) {
			if f.ObjID != wire.EventObject {
				return r.client.Invoke(ctx, f.ObjID, f.Method, args)
			}
			name, _ := args.Text("id")
			data, _ := args.Table("data")
			return nil, r.client.SendEvent(ctx, name, data)
		})
	case wire.Notify:
		reg := r.registered[f.ObjID]
		if err := reg.Wait(ctx); err != nil {
			r.t.Error(err)
		}
		if f.NoReply {
			if err := reg.Notify(ctx, f.Method, r.table(f.Data)); err != nil {
				r.t.Errorf("step %d: %v", i, err)
			}
			return
		}
		r.answered.Go(func() { r.notifyWait(i, f, reg) })
	case wire.Unsubscribe:
		sub := r.subscribed[f.ObjID]
		r.check(i, func() ([]blobmsg.Table, error) {
			if err := sub.Wait(ctx); err != nil {
				return nil, err
			}
			sub.mu.Lock()
			path := sub.targets[f.Target]
			sub.mu.Unlock()
			return nil, sub.Unsubscribe(ctx, path)
		})
	default:
		r.t.Errorf("step %d: nothing does %v", i, f.Type)
	}
}

// answers are the steps that answer a request.
func (r *replay) answers(request int, t wire.Type) (steps []int) {
	q := r.frames[request]
	for i := request + 1; i < len(r.steps); i++ {
		f := r.frames[i]
		if f.Message == nil || r.steps[i].FromClient || f.Seq != q.Seq || f.Peer != q.Peer {
			continue
		}
		if f.Type == t {
			steps = append(steps, i)
		}
		if f.Type == wire.Status {
			break
		}
	}
	return steps
}

// check runs a request and compares its outcome with the recorded answers.
func (r *replay) check(i int, run func() ([]blobmsg.Table, error)) {
	status := r.answers(i, wire.Status)
	running := &r.answered
	if len(status) == 0 {
		running = &r.running
	}
	running.Go(func() {
		replies, err := run()
		if len(status) == 0 {
			// Never answered: the client left, or lost its connection.
			if !errors.Is(err, ErrClosed) && !errors.Is(err, ErrConnectionLost) {
				r.t.Errorf("step %d: got %v without an answer", i, err)
			}
			return
		}
		want := Status(r.frames[status[0]].Status)
		if (err == nil) != (want == StatusOK) || err != nil && !errors.Is(err, want) {
			r.t.Errorf("step %d: got %v, want %v", i, err, want)
		}
		if replies == nil {
			return
		}
		data := r.answers(i, wire.Data)
		if len(replies) != len(data) {
			r.t.Errorf("step %d: %d replies, want %d", i, len(replies), len(data))
			return
		}
		for n, d := range data {
			r.same(d, replies[n])
		}
	})
}

// same compares a reply with a recorded one.
func (r *replay) same(step int, got blobmsg.Table) {
	if b, err := blobmsg.Encode(got); err != nil || !bytes.Equal(b, r.frames[step].Data) {
		r.t.Errorf("step %d: got %v, want %v", step, got, r.table(r.frames[step].Data))
	}
}

func (r *replay) table(data []byte) blobmsg.Table {
	t, err := blobmsg.Decode(data)
	if err != nil {
		r.t.Error(err)
	}
	return t
}

// register offers an object with the recorded methods, which answer as recorded.
func (r *replay) register(i int, f frameOf) {
	o := Object{Path: f.Path, Methods: methodsOf(f.Signature), Subscribed: func(active bool) {
		what := "false"
		if active {
			what = "true"
		}
		r.note(&r.active, what)
	}}
	for i := range o.Methods {
		o.Methods[i].AnyArgs = true
		o.Methods[i].Handler = r.answer
	}
	reg, err := r.client.Register(o)
	if err != nil {
		r.t.Error(err)
		return
	}
	for _, d := range r.answers(i, wire.Data) {
		r.registered[r.frames[d].ObjID] = reg
	}
	r.check(i, func() ([]blobmsg.Table, error) { return nil, reg.Wait(r.t.Context()) })
}

// answer is the handler of all recorded methods and subscriptions: it sends the
// answers that the recorded client sent to this call, each in its turn.
func (r *replay) answer(_ context.Context, q *Request) error {
	if q.NoReply {
		r.note(&r.notified, q.Method)
	}
	open := true
	for i, f := range r.frames {
		if f.Message == nil || f.Seq != q.seq || f.Peer != q.Peer || f.ObjID != q.object {
			continue
		}
		switch {
		case !r.steps[i].FromClient:
			open = f.Type == wire.Invoke
		case !open:
		case f.Type == wire.Data:
			r.await(i)
			if err := q.Reply(r.table(f.Data)); err != nil {
				r.t.Errorf("step %d: %v", i, err)
			}
		case f.Type == wire.Status:
			r.await(i)
			return Status(f.Status).err()
		}
	}
	// Never answered.
	q.Defer()
	return nil
}

// addNameless is the beginning of a listener or a subscription: what the client
// did with the object afterwards tells.
func (r *replay) addNameless(i int, done map[int]bool) {
	id := r.frames[r.answers(i, wire.Data)[0]].ObjID
	var next []int
	for n := i + 1; n < len(r.steps); n++ {
		f := r.frames[n]
		if f.Message != nil && r.steps[n].FromClient && f.Type != wire.Status && f.Type != wire.Data {
			next = append(next, n)
		}
	}
	options := SubscribeOptions{
		Handler: r.answer,
		Gone:    func(path string) { r.note(&r.gone, path) },
	}
	var sub *Subscription
	var err error
	switch f := r.frames[next[0]]; f.Type {
	case wire.Invoke:
		done[next[0]] = true
		r.listener(next[0], id, r.table(f.Data))
		return
	case wire.Lookup:
		done[next[0]], done[next[1]] = true, true
		sub, err = r.client.Subscribe(f.Path, options)
	case wire.AddObject:
		for _, n := range next[:3] {
			done[n] = true
		}
		for _, n := range next[3:] {
			if r.frames[n].Type == wire.Subscribe && r.frames[n].ObjID == id {
				done[n] = true
			}
		}
		sub, err = r.client.SubscribeMatching(func(path string) bool { return path == "xdpl2" }, options)
	default:
		r.t.Errorf("step %d: an object for %v", i, f.Type)
		return
	}
	if err != nil {
		r.t.Error(err)
		return
	}
	r.subscribed[id] = sub
}

// listener listens to a pattern. Its handler returns, which answers the event,
// when the script is at that answer.
func (r *replay) listener(step int, id uint32, args blobmsg.Table) {
	pattern, _ := args.Text("pattern")
	var events, answers []int
	for i, f := range r.frames {
		if f.Message == nil || f.ObjID != id {
			continue
		}
		if f.Type == wire.Invoke && !r.steps[i].FromClient {
			events = append(events, i)
		}
		if f.Type == wire.Status && r.steps[i].FromClient {
			answers = append(answers, i)
		}
	}
	n := 0
	ln, err := r.client.Listen(func(e Event) {
		i := events[n]
		if e.Name != r.frames[i].Method {
			r.t.Errorf("step %d: got event %q", i, e.Name)
		}
		r.same(i, e.Data)
		if n < len(answers) {
			r.await(answers[n])
		} else {
			<-r.client.ctx.Done()
		}
		n++
	}, pattern)
	if err != nil {
		r.t.Error(err)
		return
	}
	r.check(step, func() ([]blobmsg.Table, error) { return nil, ln.Wait(r.t.Context()) })
}

// notifyWait compares what the subscribers answered.
func (r *replay) notifyWait(step int, f frameOf, reg *Registration) {
	answers, err := reg.NotifyWait(r.t.Context(), f.Method, r.table(f.Data))
	if err != nil {
		r.t.Errorf("step %d: %v", step, err)
	}
	subscribers := r.frames[r.answers(step, wire.Status)[0]].Subscribers
	if len(answers) != len(subscribers) {
		r.t.Errorf("step %d: answers of %d, want %d", step, len(answers), len(subscribers))
		return
	}
	for n, id := range subscribers {
		a := answers[n]
		replies := 0
		for i, g := range r.frames {
			if g.Message == nil || i < step || r.steps[i].FromClient || g.Seq != f.Seq || g.Peer != id {
				continue
			}
			if g.Type == wire.Data {
				r.same(i, a.Replies[replies])
				replies++
			}
			if g.Type == wire.Status && (a.Object != id || a.Status != Status(g.Attrs.Status) || !a.Answered) {
				r.t.Errorf("step %d: got %+v", i, a)
			}
		}
	}
}
