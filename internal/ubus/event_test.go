// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// identify lets the first client be root and the others nobody.
func identify(n *int) func(*net.UnixConn) (ubustest.Credentials, error) {
	return func(*net.UnixConn) (ubustest.Credentials, error) {
		if *n++; *n == 1 {
			return ubustest.Credentials{User: "root", Group: "root"}, nil
		}
		return ubustest.Credentials{UID: 65534, GID: 65534, User: "nobody", Group: "nogroup"}, nil
	}
}

func TestEvents(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	a, b := connect(t, d, Options{}), connect(t, d, Options{})
	heard := make(chan Event, 100)
	ln, err := a.Listen(func(e Event) { heard <- e }, "xdpl2.*", "other")
	ok(t, err)
	ok(t, ln.Wait(within(t)))
	own, err := b.Listen(func(e Event) { t.Errorf("the sender hears %v", e) }, "*")
	ok(t, err)
	ok(t, own.Wait(within(t)))

	for i := range 50 {
		ok(t, b.SendEvent(within(t), "xdpl2.port", table("i", int32(i))))
	}
	ok(t, b.SendEvent(within(t), "xdpl2", nil)) // not heard
	ok(t, b.SendEvent(within(t), "other", struct {
		Device string `json:"device"`
	}{"eth1"}))
	for i := range 50 {
		if e := receive(t, heard); e.Name != "xdpl2.port" || !reflect.DeepEqual(e.Data, table("i", int32(i))) {
			t.Fatalf("got %v, want the %dth", e, i)
		}
	}
	if e := receive(t, heard); !reflect.DeepEqual(e, Event{"other", table("device", "eth1")}) {
		t.Errorf("got %v", e)
	}
	if err := b.SendEvent(within(t), "ubus.x", nil); !errors.Is(err, StatusPermissionDenied) {
		t.Errorf("an event of ubusd's: %v", err)
	}
	if err := b.SendEvent(within(t), "x", "text"); !errors.Is(err, blobmsg.ErrUnsupported) {
		t.Errorf("an event without a table: %v", err)
	}
	ok(t, own.Remove(within(t)))
	ok(t, ln.Remove(within(t)))
	ok(t, b.SendEvent(within(t), "other", nil))
	ok(t, a.Ping(within(t)))
	if len(heard) > 0 {
		t.Errorf("heard %v after the listener's end", <-heard)
	}
}

// TestSlowListener has a handler that does not return: the reader goes on, what
// finds no room is counted.
func TestSlowListener(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	a, b := connect(t, d, Options{MaxQueue: 3}), connect(t, d, Options{})
	entered, release := make(chan Event, 10), make(chan bool)
	ln, err := a.Listen(func(e Event) {
		entered <- e
		<-release
	}, "*")
	ok(t, err)
	ok(t, ln.Wait(within(t)))
	ok(t, b.SendEvent(within(t), "e0", nil))
	receive(t, entered)
	for i := range 5 {
		ok(t, b.SendEvent(within(t), fmt.Sprint("e", i+1), nil))
	}
	// An answer behind the events: they have all been read.
	ok(t, a.Ping(within(t)))
	if n := ln.Dropped(); n != 2 {
		t.Errorf("%d events were dropped, want 2", n)
	}
	close(release)
	for _, want := range []string{"e1", "e2", "e3"} {
		if e := receive(t, entered); e.Name != want {
			t.Errorf("got %s, want %s", e.Name, want)
		}
	}
	ok(t, b.SendEvent(within(t), "again", nil))
	if e := receive(t, entered); e.Name != "again" {
		t.Errorf("got %s", e.Name)
	}
}

func TestListenRefused(t *testing.T) {
	n := 0
	d := ubustest.Start(t, ubustest.Options{Identify: identify(&n)})
	connect(t, d, Options{})
	c := connect(t, d, Options{})
	for _, patterns := range [][]string{nil, {""}, {"a", "b\x00"}} {
		if _, err := c.Listen(func(Event) {}, patterns...); err == nil {
			t.Errorf("patterns %q are accepted", patterns)
		}
	}
	ln, err := c.Listen(func(Event) {}, "x")
	ok(t, err)
	if err := ln.Wait(within(t)); !errors.Is(err, StatusPermissionDenied) {
		t.Errorf("not allowed: %v", err)
	}
	ok(t, ln.Remove(within(t)))
	if err := ln.Wait(within(t)); !errors.Is(err, ErrClosed) {
		t.Errorf("removed: %v", err)
	}
}

func TestNotify(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	owner := connect(t, d, Options{})
	active := make(chan bool, 10)
	o := method("test", "x", echo)
	o.Subscribed = func(a bool) { active <- a }
	reg := register(t, owner, o)
	ok(t, reg.Notify(within(t), "nobody", nil))
	if answers, err := reg.NotifyWait(within(t), "nobody", nil); err != nil || len(answers) != 0 {
		t.Errorf("without subscribers: %v, %v", answers, err)
	}

	notified := make(chan string, 100)
	subscribe := func(name string, answer func(*Request) error) *Subscription {
		t.Helper()
		c := connect(t, d, Options{})
		s, err := c.Subscribe("test", SubscribeOptions{Handler: func(_ context.Context, r *Request) error {
			notified <- fmt.Sprint(name, " ", r.Method, " ", r.Args, " ", r.NoReply)
			return answer(r)
		}})
		ok(t, err)
		ok(t, s.Wait(within(t)))
		return s
	}
	first := subscribe("1", func(r *Request) error { return r.Reply(table("seen", true)) })
	if !receive(t, active) || !reg.HasSubscribers() {
		t.Error("the owner is not told of its first subscriber")
	}
	second := subscribe("2", func(*Request) error { return StatusNotSupported })

	ok(t, reg.Notify(within(t), "up", table("port", "eth1")))
	got := []string{receive(t, notified), receive(t, notified)}
	slices.Sort(got)
	if want := []string{`1 up {"port":"eth1"} true`, `2 up {"port":"eth1"} true`}; !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	answers, err := reg.NotifyWait(within(t), "ask", nil)
	ok(t, err)
	for i := range answers {
		answers[i].Object = 0
	}
	want := []Answer{{Status: StatusNotSupported, Answered: true}, {Replies: []blobmsg.Table{table("seen", true)}, Answered: true}}
	if !reflect.DeepEqual(answers, want) {
		t.Errorf("got %v, want %v", answers, want)
	}

	ok(t, first.Unsubscribe(within(t), "test"))
	if err := first.Unsubscribe(within(t), "test"); !errors.Is(err, StatusNotFound) {
		t.Errorf("unsubscribed twice: %v", err)
	}
	ok(t, second.Remove(within(t)))
	if receive(t, active) || reg.HasSubscribers() {
		t.Error("the owner is not told of its last subscriber's end")
	}
}

// TestSubscribedTwice has a subscriber that is subscribed to one object twice,
// which only a client that wants it is: it hears and answers everything twice.
func TestSubscribedTwice(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	owner, other := connect(t, d, Options{}), connect(t, d, Options{})
	reg := register(t, owner, method("test", "x", echo))
	s, err := other.SubscribeMatching(func(path string) bool { return path == "test" },
		SubscribeOptions{Handler: func(_ context.Context, r *Request) error { return r.Reply(table("seen", true)) }})
	ok(t, err)
	ok(t, s.Wait(within(t)))
	l, err := s.entry.current()
	ok(t, err)
	// An object that is listed and announced at the same time.
	s.consider(within(t), l, "test", reg.ID())
	answers, err := reg.NotifyWait(within(t), "ask", nil)
	if err != nil || len(answers) != 1 {
		t.Errorf("listed and announced: %v, %v", answers, err)
	}
	ok(t, l.watch(within(t), wire.Subscribe, s.id, reg.ID()))
	answers, err = reg.NotifyWait(within(t), "ask", nil)
	if err != nil || len(answers) != 2 || !answers[0].Answered || !answers[1].Answered ||
		len(answers[0].Replies)+len(answers[1].Replies) != 2 {
		t.Errorf("subscribed twice: %v, %v", answers, err)
	}
}

func TestNotifyWaitTimeout(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	owner, other := connect(t, d, Options{}), connect(t, d, Options{})
	reg := register(t, owner, method("test", "x", echo))
	asked := make(chan bool, 1)
	for _, h := range []Handler{
		func(context.Context, *Request) error { return nil },
		func(_ context.Context, r *Request) error {
			r.Defer()
			asked <- true
			return nil
		},
	} {
		s, err := other.Subscribe("test", SubscribeOptions{Handler: h})
		ok(t, err)
		ok(t, s.Wait(within(t)))
	}
	ctx, cancel := context.WithCancel(within(t))
	go func() {
		<-asked
		// Behind this answer of ubusd's the owner knows who is asked.
		if err := owner.Ping(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	}()
	answers, err := reg.NotifyWait(ctx, "ask", nil)
	if !errors.Is(err, context.Canceled) || len(answers) != 2 || answers[0].Answered {
		t.Errorf("got %v, %v", answers, err)
	}
}

// TestTargetComesAndGoes follows an object whose owner restarts.
func TestTargetComesAndGoes(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	follower := connect(t, d, quick)
	notified, gone := make(chan string, 10), make(chan string, 10)
	options := SubscribeOptions{
		Handler: func(_ context.Context, r *Request) error {
			notified <- r.Method
			return nil
		},
		Gone: func(path string) { gone <- path },
	}
	one, err := follower.Subscribe("test.one", options)
	ok(t, err)
	if err := one.Wait(within(t)); !errors.Is(err, StatusNotFound) {
		t.Errorf("nothing to subscribe to: %v", err)
	}
	many, err := follower.SubscribeMatching(func(path string) bool { return strings.HasPrefix(path, "test.m") }, options)
	ok(t, err)
	ok(t, many.Wait(within(t)))

	for _, path := range []string{"test.one", "test.many", "test.more"} {
		for range 3 {
			owner := connect(t, d, Options{})
			reg := register(t, owner, method(path, "x", echo))
			ok(t, d.WaitSubscriber(within(t), path, true))
			ok(t, reg.Notify(within(t), "hello", nil))
			if got := receive(t, notified); got != "hello" {
				t.Errorf("got %s", got)
			}
			shut(t, owner)
			if got := receive(t, gone); got != path {
				t.Errorf("gone is %s, want %s", got, path)
			}
		}
	}
	ok(t, one.Remove(within(t)))
	ok(t, many.Remove(within(t)))
	owner := connect(t, d, Options{})
	register(t, owner, method("test.one", "x", echo))
	ok(t, follower.Ping(within(t)))
	ok(t, d.WaitSubscriber(within(t), "test.one", false))
}
