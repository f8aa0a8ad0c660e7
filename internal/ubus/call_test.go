// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// echo sends the arguments back.
func echo(_ context.Context, r *Request) error { return r.Reply(r.Args) }

func TestArguments(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{})
	args := []Arg{
		{Name: "name", Type: blobmsg.String, Required: true},
		{Name: "n", Type: blobmsg.Int32},
		{Name: "big", Type: blobmsg.Int64},
		{Name: "share", Type: blobmsg.Double},
		{Name: "on", Type: blobmsg.Bool},
		{Name: "list", Type: blobmsg.Arr},
		{Name: "any"},
	}
	o := method("test", "echo", echo, args...)
	o.Methods = append(o.Methods,
		Method{Name: "loose", Args: args[:1], AnyArgs: true, Handler: echo},
		Method{Name: "none", Handler: echo})
	register(t, server, o)
	for name, tt := range map[string]struct {
		method string
		args   blobmsg.Table
		want   blobmsg.Table // nil: as the arguments
		status Status
	}{
		"required only":      {"echo", table("name", "x"), nil, 0},
		"all":                {"echo", table("name", "x", "n", int32(1), "big", int64(1), "share", 0.5, "on", true, "list", blobmsg.Array{int32(1)}, "any", "thing"), nil, 0},
		"none":               {"echo", nil, nil, StatusInvalidArgument},
		"missing":            {"echo", table("n", int32(1)), nil, StatusInvalidArgument},
		"wrong type":         {"echo", table("name", int32(1)), nil, StatusInvalidArgument},
		"wrong optional":     {"echo", table("name", "x", "n", "1"), nil, StatusInvalidArgument},
		"number as bool":     {"echo", table("name", "x", "on", int32(1)), nil, StatusInvalidArgument},
		"double as int":      {"echo", table("name", "x", "n", 1.0), nil, StatusInvalidArgument},
		"int64 as int32":     {"echo", table("name", "x", "n", int64(1)), nil, StatusInvalidArgument},
		"int32 as int64":     {"echo", table("name", "x", "big", int32(7)), table("name", "x", "big", int64(7)), 0},
		"int32 as double":    {"echo", table("name", "x", "share", int32(1)), table("name", "x", "share", 1.0), 0},
		"int16 as int32":     {"echo", table("name", "x", "n", int16(-3)), table("name", "x", "n", int32(-3)), 0},
		"null is missing":    {"echo", table("name", nil), nil, StatusInvalidArgument},
		"null optional":      {"echo", table("name", "x", "n", nil), table("name", "x"), 0},
		"null as anything":   {"echo", table("name", "x", "any", nil), nil, 0},
		"unknown":            {"echo", table("name", "x", "nmae", "y"), nil, StatusInvalidArgument},
		"session":            {"echo", table("name", "x", SessionKey, "0123"), nil, 0},
		"session only":       {"none", table(SessionKey, "0123"), nil, 0},
		"not even one":       {"none", table("x", int32(1)), nil, StatusInvalidArgument},
		"any":                {"loose", table("name", "x", "nmae", int32(1)), nil, 0},
		"any, still missing": {"loose", table("nmae", int32(1)), nil, StatusInvalidArgument},
		"no such method":     {"nosuch", table("name", "x"), nil, StatusMethodNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := caller.Call(within(t), "test", tt.method, tt.args)
			if tt.status != StatusOK {
				if !errors.Is(err, tt.status) {
					t.Errorf("got %v, %v; want %v", got, err, tt.status)
				}
				return
			}
			want := tt.want
			if want == nil {
				want = tt.args
			}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, %v; want %v", got, err, want)
			}
		})
	}
}

// TestRawCalls sends what no client of this package sends.
func TestRawCalls(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{})
	id := register(t, server, method("test", "echo", echo)).ID()
	head := wire.Body{}.Uint32(wire.AttrObjID, id).String(wire.AttrMethod, "echo")
	broken := []byte{0x85, 0, 0, 8, 0, 1, 'a', 0} // an int32 without a value
	for name, tt := range map[string]struct {
		body wire.Body
		want Status
	}{
		"fine":           {head.Bytes(wire.AttrData, nil), StatusOK},
		"no arguments":   {head[:len(head):len(head)], StatusInvalidArgument},
		"malformed":      {head[:len(head):len(head)].Bytes(wire.AttrData, broken), StatusInvalidArgument},
		"no such method": {wire.Body{}.Uint32(wire.AttrObjID, id).String(wire.AttrMethod, "x"), StatusMethodNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := caller.connected()
			ok(t, err)
			err = l.simple(within(t), &wire.Message{Type: wire.Invoke, Peer: id, Body: tt.body}, 0, nil)
			if !errors.Is(err, tt.want) && (err != nil || tt.want != StatusOK) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestHandlerErrors(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{})
	var fail error
	register(t, server, method("test", "fail", func(context.Context, *Request) error { return fail }))
	for _, tt := range []struct {
		err  error
		want Status
	}{
		{errors.New("whatever"), StatusUnknownError},
		{StatusPermissionDenied, StatusPermissionDenied},
		{fmt.Errorf("port eth9: %w", StatusNotFound), StatusNotFound},
		{context.DeadlineExceeded, StatusTimeout},
		{fmt.Errorf("nonsense: %w", StatusOK), StatusUnknownError},
		{Status(99), Status(99)},
	} {
		fail = tt.err
		if _, err := caller.Call(within(t), "test", "fail", nil); !errors.Is(err, tt.want) {
			t.Errorf("%v: got %v, want %v", tt.err, err, tt.want)
		}
	}
}

func TestReplies(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{})
	deferred := make(chan *Request, 1)
	o := Object{Path: "test", Methods: []Method{
		{Name: "three", Handler: func(_ context.Context, r *Request) error {
			for i := range 3 {
				if err := r.Reply(table("i", int32(i))); err != nil {
					return err
				}
			}
			return StatusNoData
		}},
		{Name: "later", Handler: func(_ context.Context, r *Request) error {
			r.Defer()
			deferred <- r
			return nil
		}},
		{Name: "not-later", Handler: func(_ context.Context, r *Request) error {
			r.Defer()
			return StatusNotSupported
		}},
		{Name: "struct", Handler: func(_ context.Context, r *Request) error {
			return r.Reply(struct {
				Packets uint64 `json:"packets"`
			}{7})
		}},
		{Name: "channel", Handler: func(_ context.Context, r *Request) error { return r.Reply(make(chan int)) }},
		{Name: "who", Handler: func(_ context.Context, r *Request) error {
			return r.Reply(table("user", r.User, "peer", int64(r.Peer), "method", r.Method))
		}},
	}}
	id := register(t, server, o).ID()

	replies, err := caller.Invoke(within(t), id, "three", nil)
	if len(replies) != 3 || !errors.Is(err, StatusNoData) {
		t.Errorf("three: %v, %v", replies, err)
	}
	last, err := caller.Call(within(t), "test", "three", nil)
	if n, _ := last.Int("i"); n != 2 || !errors.Is(err, StatusNoData) {
		t.Errorf("the last of three: %v, %v", last, err)
	}

	done := make(chan error, 1)
	go func() {
		_, err := caller.Call(within(t), "test", "later", nil)
		done <- err
	}()
	r := receive(t, deferred)
	ok(t, r.Complete(StatusSystemError))
	if err := receive(t, done); !errors.Is(err, StatusSystemError) {
		t.Errorf("later: %v", err)
	}
	if err := r.Complete(nil); !errors.Is(err, ErrCompleted) {
		t.Errorf("completed twice: %v", err)
	}
	if err := r.Reply(nil); !errors.Is(err, ErrCompleted) {
		t.Errorf("reply after the end: %v", err)
	}
	if _, err := caller.Call(within(t), "test", "not-later", nil); !errors.Is(err, StatusNotSupported) {
		t.Errorf("not-later: %v", err)
	}
	if got, err := caller.Call(within(t), "test", "struct", nil); err != nil || !reflect.DeepEqual(got, table("packets", int64(7))) {
		t.Errorf("struct: %v, %v", got, err)
	}
	if _, err := caller.Call(within(t), "test", "channel", nil); !errors.Is(err, StatusUnknownError) {
		t.Errorf("channel: %v", err)
	}
	who, err := caller.Call(within(t), "test", "who", nil)
	ok(t, err)
	peer, _ := who.Int("peer")
	if user, _ := who.Text("user"); user == "" || uint32(peer) != caller.ID() {
		t.Errorf("who: %v, the caller is %x", who, caller.ID())
	}
}

// TestConcurrentCalls has two callers whose sequence numbers are the same, and
// answers in another order than that of the calls.
func TestConcurrentCalls(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server := connect(t, d, Options{})
	const each = 50
	var all sync.WaitGroup
	all.Add(2 * each)
	register(t, server, method("test", "echo", func(_ context.Context, r *Request) error {
		all.Done()
		all.Wait() // no answer before the last call
		return r.Reply(r.Args)
	}, Arg{Name: "who", Type: blobmsg.String}))
	var callers sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		c := connect(t, d, Options{})
		id, err := c.LookupID(within(t), "test")
		ok(t, err)
		for i := range each {
			callers.Go(func() {
				who := fmt.Sprint(name, i)
				replies, err := c.Invoke(within(t), id, "echo", table("who", who))
				if err != nil || len(replies) != 1 || !reflect.DeepEqual(replies[0], table("who", who)) {
					t.Errorf("%s: got %v, %v", who, replies, err)
				}
			})
		}
	}
	callers.Wait()
}

func TestTooManyCalls(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{MaxCalls: 2}), connect(t, d, Options{})
	started, release := make(chan bool, 2), make(chan bool)
	id := register(t, server, method("test", "block", func(context.Context, *Request) error {
		started <- true
		<-release
		return nil
	})).ID()
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := caller.Invoke(within(t), id, "block", nil)
			done <- err
		}()
	}
	receive(t, started)
	receive(t, started)
	if _, err := caller.Invoke(within(t), id, "block", nil); !errors.Is(err, StatusNoMemory) {
		t.Errorf("one too many: %v", err)
	}
	close(release)
	ok(t, receive(t, done))
	ok(t, receive(t, done))
	if _, err := caller.Invoke(within(t), id, "block", nil); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

func TestTimeout(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{CallTimeout: 20 * time.Millisecond})
	calls := make(chan *Request, 10)
	id := register(t, server, method("test", "never", func(_ context.Context, r *Request) error {
		r.Defer()
		calls <- r
		return nil
	})).ID()

	ctx, cancel := context.WithTimeout(within(t), 20*time.Millisecond)
	defer cancel()
	if _, err := caller.Invoke(ctx, id, "never", nil); !errors.Is(err, StatusTimeout) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a deadline: %v", err)
	}
	if _, err := caller.Invoke(t.Context(), id, "never", nil); !errors.Is(err, StatusTimeout) {
		t.Errorf("without a deadline: %v", err)
	}
	ctx, cancel = context.WithCancel(within(t))
	done := make(chan error, 1)
	receive(t, calls)
	receive(t, calls)
	go func() {
		_, err := caller.Invoke(ctx, id, "never", nil)
		done <- err
	}()
	late := receive(t, calls)
	cancel()
	if err := receive(t, done); !errors.Is(err, context.Canceled) || errors.Is(err, StatusTimeout) {
		t.Errorf("canceled: %v", err)
	}
	// An answer that comes late finds nobody, and does no harm.
	ok(t, late.Complete(nil))
	ok(t, caller.Ping(within(t)))

	// The owner goes: ubusd tells nobody.
	go func() {
		_, err := caller.Invoke(t.Context(), id, "never", nil)
		done <- err
	}()
	receive(t, calls)
	shut(t, server)
	if err := receive(t, done); !errors.Is(err, StatusTimeout) {
		t.Errorf("the owner is gone: %v", err)
	}
	if _, err := caller.Invoke(within(t), id, "never", nil); !errors.Is(err, StatusNotFound) {
		t.Errorf("an object that is gone: %v", err)
	}
}

func TestCallNoReply(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{})
	calls := make(chan blobmsg.Table, 1)
	id := register(t, server, method("test", "tell", func(_ context.Context, r *Request) error {
		calls <- r.Args
		return r.Reply(r.Args)
	}, Arg{Name: "x", Type: blobmsg.String})).ID()
	ok(t, caller.CallNoReply(within(t), id, "tell", table("x", "y")))
	if got := receive(t, calls); !reflect.DeepEqual(got, table("x", "y")) {
		t.Errorf("got %v", got)
	}
	// What the owner answers all the same is nobody's.
	ok(t, caller.Ping(within(t)))

	// ubusd does not pass the wish on, so that only the bytes tell of it.
	sent := make(chan *wire.Message, 1)
	c, err := Dial(within(t), Options{Socket: script(t, func(conn net.Conn) {
		conn.Write(hello)
		if m, err := wire.Read(conn, wire.MaxLen); err == nil {
			sent <- m
		}
	})})
	ok(t, err)
	defer shut(t, c)
	ok(t, c.CallNoReply(within(t), id, "tell", nil))
	if a := wire.Parse(receive(t, sent).Body); !a.NoReply || a.ObjID != id || !a.Has(wire.AttrData) {
		t.Errorf("sent %+v", a)
	}
}

func TestLookup(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{})
	if list, err := caller.Lookup(within(t), ""); err != nil || len(list) != 0 {
		t.Errorf("an empty bus: %v, %v", list, err)
	}
	args := []Arg{{Name: "s", Type: blobmsg.String}, {Name: "n", Type: blobmsg.Int32}}
	b := register(t, server, method("test.b", "set", echo, args...))
	register(t, server, Object{Path: "test.a"})
	list, err := caller.Lookup(within(t), "test.*")
	ok(t, err)
	want := []ObjectInfo{{Path: "test.a", ID: list[0].ID}, {"test.b", b.ID(), []Method{{Name: "set", Args: args}}}}
	if !reflect.DeepEqual(list, want) {
		t.Errorf("got %+v\nwant %+v", list, want)
	}
	if id, err := caller.LookupID(within(t), "test.b"); err != nil || id != b.ID() {
		t.Errorf("test.b is %x, %v, want %x", id, err, b.ID())
	}
	for path, want := range map[string]Status{
		"test.c": StatusNotFound, "": StatusInvalidArgument, "test.*": StatusInvalidArgument,
	} {
		if _, err := caller.LookupID(within(t), path); !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", path, err, want)
		}
	}
	if _, err := caller.Call(within(t), "test.c", "x", nil); !errors.Is(err, StatusNotFound) || !strings.Contains(err.Error(), "test.c") {
		t.Errorf("a call of an object that is not there: %v", err)
	}
}

// TestHidden looks up what access rules hide: ubusd calls that a success.
func TestHidden(t *testing.T) {
	n := 0
	d := ubustest.Start(t, ubustest.Options{Identify: identify(&n)})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{})
	id := register(t, server, method("test", "x", echo)).ID()
	if _, err := caller.LookupID(within(t), "test"); !errors.Is(err, StatusNotFound) {
		t.Errorf("lookup: %v", err)
	}
	if _, err := caller.Invoke(within(t), id, "x", nil); !errors.Is(err, StatusPermissionDenied) {
		t.Errorf("call: %v", err)
	}
}

func TestTooLarge(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, Options{}), connect(t, d, Options{})
	var replied error
	id := register(t, server, Object{Path: "test", Methods: []Method{
		{Name: "take", AnyArgs: true, Handler: func(context.Context, *Request) error { return nil }},
		{Name: "give", Args: []Arg{{Name: "n", Type: blobmsg.Int32}}, Handler: func(_ context.Context, r *Request) error {
			n, _ := r.Args.Int("n")
			replied = r.Reply(table("v", strings.Repeat("x", int(n))))
			return replied
		}},
	}}).ID()
	text := func(n int) blobmsg.Table { return table("v", strings.Repeat("x", n)) }
	tooLarge := func(err error) bool {
		_, is := errors.AsType[*TooLargeError](err)
		return is
	}
	// 4 bytes of length, 8 of OBJID, 12 of METHOD, 4 and 8 and 1 of the value.
	most := wire.MaxLen - forwardRoom - 37
	if _, err := caller.Invoke(within(t), id, "take", text(most)); err != nil {
		t.Errorf("the most: %v", err)
	}
	for _, n := range []int{most + 1, wire.MaxLen, 17 << 20} {
		if _, err := caller.Invoke(within(t), id, "take", text(n)); !tooLarge(err) {
			t.Errorf("%d bytes: %.100v", n, err)
		}
	}
	if err := caller.SendEvent(within(t), "x", text(wire.MaxLen)); !tooLarge(err) {
		t.Errorf("an event: %.100v", err)
	}
	most = wire.MaxLen - 4 - 8 - 4 - 8 - 1
	got, err := caller.Call(within(t), "test", "give", table("n", int32(most)))
	if s, _ := got.Text("v"); err != nil || len(s) != most {
		t.Errorf("the largest reply: %d bytes, %v", len(s), err)
	}
	if _, err := caller.Call(within(t), "test", "give", table("n", int32(most+1))); !errors.Is(err, StatusUnknownError) {
		t.Errorf("a reply that is too large: %v", err)
	}
	if !tooLarge(replied) {
		t.Errorf("Reply: %v", replied)
	}
	if _, err := server.Register(method(strings.Repeat("x", wire.MaxLen), "x", echo)); !tooLarge(err) {
		t.Errorf("a path: %.100v", err)
	}
	ok(t, caller.Ping(within(t)))
	ok(t, server.Ping(within(t)))
}
