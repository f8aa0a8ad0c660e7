// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
)

// TestReconnect stops ubusd and starts it again: everything is registered anew,
// in order, and works.
func TestReconnect(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	options := quick
	options.Socket = d.Socket()
	server := New(options)
	t.Cleanup(func() { shut(t, server) })
	active := make(chan bool, 10)
	o := method("test", "echo", echo)
	o.Subscribed = func(a bool) { active <- a }
	reg := register(t, server, o)
	caller := connect(t, d, quick)
	heard, notified := make(chan Event, 10), make(chan string, 10)
	ln, err := caller.Listen(func(e Event) { heard <- e }, "x")
	ok(t, err)
	sub, err := caller.SubscribeMatching(func(path string) bool { return path == "test" }, SubscribeOptions{
		Handler: func(_ context.Context, r *Request) error {
			notified <- r.Method
			return nil
		},
	})
	ok(t, err)

	var ids []uint32
	for range 4 {
		ok(t, reg.Wait(within(t)))
		ok(t, ln.Wait(within(t)))
		ok(t, sub.Wait(within(t)))
		ok(t, d.WaitSubscriber(within(t), "test", true))
		if !receive(t, active) {
			t.Error("no subscriber")
		}
		for _, id := range ids {
			if id == reg.ID() {
				t.Errorf("the id %x did not change", id)
			}
		}
		ids = append(ids, reg.ID())
		if _, err := caller.Call(within(t), "test", "echo", nil); err != nil {
			t.Errorf("call: %v", err)
		}
		ok(t, server.SendEvent(within(t), "x", nil))
		receive(t, heard)
		ok(t, reg.Notify(within(t), "hello", nil))
		receive(t, notified)

		d.Stop()
		if receive(t, active) {
			t.Error("subscribers outlive the connection")
		}
		// What is asked for meanwhile fails at once, whatever is noticed first.
		if err := server.Ping(within(t)); !errors.Is(err, StatusConnectionFailed) {
			t.Errorf("without ubusd: %v", err)
		}
		if err := reg.Notify(within(t), "hello", nil); !errors.Is(err, ErrNotConnected) {
			t.Errorf("notify without ubusd: %v", err)
		}
		if id := reg.ID(); id != 0 {
			t.Errorf("id %x without ubusd", id)
		}
		ok(t, d.Start())
		ok(t, caller.WaitConnected(within(t)))
	}
}

// TestCallCutOff loses the connection during a call, on either side.
func TestCallCutOff(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, quick), connect(t, d, quick)
	started, ended := make(chan bool, 1), make(chan error, 1)
	reg := register(t, server, method("test", "block", func(ctx context.Context, _ *Request) error {
		started <- true
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	}))
	done := make(chan error, 1)
	go func() {
		_, err := caller.Call(within(t), "test", "block", nil)
		done <- err
	}()
	receive(t, started)
	d.Stop()
	if err := receive(t, done); !errors.Is(err, ErrConnectionLost) || !errors.Is(err, StatusConnectionFailed) {
		t.Errorf("the caller: %v", err)
	}
	if err := receive(t, ended); err == nil {
		t.Error("the handler's context does not end")
	}
	ok(t, d.Start())
	ok(t, reg.Wait(within(t)))

	// Only the owner loses it.
	ctx, cancel := context.WithCancel(within(t))
	ok(t, caller.WaitConnected(within(t)))
	go func() {
		_, err := caller.Call(ctx, "test", "block", nil)
		done <- err
	}()
	receive(t, started)
	ok(t, d.Disconnect("test"))
	receive(t, ended)
	cancel()
	if err := receive(t, done); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller whose owner is gone: %v", err)
	}
}

// TestPathTaken has two programs that want one path: the second gets it as soon
// as the first is gone.
func TestPathTaken(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	first, second := connect(t, d, quick), connect(t, d, quick)
	register(t, first, method("test", "x", echo))
	reg, err := second.Register(method("test", "x", echo))
	ok(t, err)
	if err := reg.Wait(within(t)); !errors.Is(err, StatusInvalidArgument) {
		t.Errorf("a path that is taken: %v", err)
	}
	other := register(t, second, method("other", "x", echo))
	shut(t, first)
	for reg.Wait(within(t)) != nil && !t.Failed() {
		ok(t, within(t).Err())
	}
	ok(t, reg.Remove(within(t)))
	ok(t, reg.Remove(within(t)))
	ok(t, d.WaitObject(within(t), "test", false))
	if got := d.Objects(); !reflect.DeepEqual(got, []string{"other"}) {
		t.Errorf("objects %q", got)
	}
	ok(t, other.Remove(within(t)))
	// Anew, on the same connection.
	register(t, second, method("other", "x", echo))
}

func TestRegisterRefusesMistakes(t *testing.T) {
	c := New(Options{Socket: filepath.Join(t.TempDir(), "none")})
	defer shut(t, c)
	for name, o := range map[string]Object{
		"no path":        method("", "x", echo),
		"NUL":            method("a\x00b", "x", echo),
		"no method name": method("a", "", echo),
		"no handler":     method("a", "x", nil),
		"method twice":   {Path: "a", Methods: []Method{{Name: "x", Handler: echo}, {Name: "x", Handler: echo}}},
		"no argument":    method("a", "x", echo, Arg{}),
		"argument twice": method("a", "x", echo, Arg{Name: "n"}, Arg{Name: "n"}),
		"no such type":   method("a", "x", echo, Arg{Name: "n", Type: 9}),
	} {
		if _, err := c.Register(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := c.Subscribe("", SubscribeOptions{Handler: echo}); err == nil {
		t.Error("a subscription without a path is accepted")
	}
	if _, err := c.Subscribe("x", SubscribeOptions{}); err == nil {
		t.Error("a subscription without a handler is accepted")
	}
	if _, err := c.SubscribeMatching(nil, SubscribeOptions{Handler: echo}); err == nil {
		t.Error("a subscription without a function is accepted")
	}
}

// TestBeforeUbusd starts the client first.
func TestBeforeUbusd(t *testing.T) {
	var log lockedBuffer
	options := quick
	options.Log = slog.New(slog.NewTextHandler(&log, nil))
	dir, err := os.MkdirTemp("", "ubus")
	ok(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	options.Socket = filepath.Join(dir, "s")
	if _, err := Dial(within(t), options); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("dial: %v", err)
	}
	c := New(options)
	defer shut(t, c)
	reg, err := c.Register(method("test", "x", echo))
	ok(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := reg.Wait(ctx); !errors.Is(err, StatusTimeout) {
		t.Errorf("wait: %v", err)
	}
	if err := c.WaitConnected(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("wait for a connection: %v", err)
	}
	if err := c.Ping(within(t)); !errors.Is(err, ErrNotConnected) || c.ID() != 0 {
		t.Errorf("ping: %v, id %x", err, c.ID())
	}
	d := ubustest.Start(t, ubustest.Options{Socket: options.Socket})
	ok(t, reg.Wait(within(t)))
	ok(t, d.WaitObject(within(t), "test", true))
	// One line for all attempts, one for the success.
	if text := log.String(); strings.Count(text, "no connection") != 1 || strings.Count(text, "connected to ubusd") != 1 {
		t.Errorf("the log is\n%s", text)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestClose(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	server, caller := connect(t, d, quick), connect(t, d, quick)
	blocked := make(chan bool, 1)
	var selfClose error
	o := method("test", "block", func(ctx context.Context, _ *Request) error {
		blocked <- true
		<-ctx.Done()
		return nil
	})
	o.Methods = append(o.Methods, Method{Name: "close", Handler: func(context.Context, *Request) error {
		selfClose = server.Close()
		return nil
	}})
	reg := register(t, server, o)
	done := make(chan error, 2)
	go func() {
		_, err := caller.Call(within(t), "test", "block", nil)
		done <- err
	}()
	receive(t, blocked)
	go func() {
		_, err := caller.Call(within(t), "test", "close", nil)
		done <- err
	}()
	<-server.ctx.Done()
	server.Wait()
	ok(t, selfClose)
	ok(t, caller.Close())
	for range 2 {
		if err := receive(t, done); !errors.Is(err, ErrClosed) {
			t.Errorf("a call during Close: %v", err)
		}
	}
	ok(t, caller.Close())
	for name, f := range map[string]func() error{
		"ping":      func() error { return caller.Ping(within(t)) },
		"connected": func() error { return caller.WaitConnected(within(t)) },
		"event":     func() error { return caller.SendEvent(within(t), "x", nil) },
		"wait":      func() error { return reg.Wait(within(t)) },
		"notify":    func() error { return reg.Notify(within(t), "x", nil) },
		"register":  func() error { _, err := caller.Register(method("x", "x", echo)); return err },
		"listen":    func() error { _, err := caller.Listen(func(Event) {}, "x"); return err },
	} {
		if err := f(); !errors.Is(err, ErrClosed) {
			t.Errorf("%s after Close: %v", name, err)
		}
	}
	ok(t, reg.Remove(within(t)))
	if n := len(d.Objects()); n != 0 {
		ok(t, d.WaitObject(within(t), "test", false))
	}
}

// TestCloseAnyTime closes clients at whatever moment of their start.
func TestCloseAnyTime(t *testing.T) {
	d := ubustest.Start(t, ubustest.Options{})
	options := quick
	options.Socket = d.Socket()
	var running sync.WaitGroup
	for i := range 100 {
		running.Go(func() {
			c := New(options)
			_, err := c.Register(method("test", "x", echo))
			if err != nil {
				t.Error(err)
			}
			time.AfterFunc(time.Duration(i)*50*time.Microsecond, func() { c.Close() })
			c.Wait()
		})
	}
	running.Wait()
}

// TestSequenceNumbers goes round all of them with one request open.
func TestSequenceNumbers(t *testing.T) {
	c := newClient(Options{})
	defer c.cancel()
	seen := map[uint16]int{}
	for range 3 * (1<<16 - 2) {
		s, ok := c.nextSeq(func(s uint16) bool { return s == 4711 })
		if !ok {
			t.Fatal("none is free")
		}
		seen[s]++
	}
	if len(seen) != 1<<16-2 || seen[0]+seen[4711] > 0 {
		t.Errorf("%d numbers, 0 %d times, 4711 %d times", len(seen), seen[0], seen[4711])
	}
	if _, ok := c.nextSeq(func(uint16) bool { return true }); ok {
		t.Error("a number although all are taken")
	}
}

func TestBackoff(t *testing.T) {
	b := backoff{min: time.Second, max: 8 * time.Second}
	for i, want := range []time.Duration{1, 2, 4, 8, 8} {
		want *= time.Second
		if got := b.next(); got > want || got < want*3/4 {
			t.Errorf("pause %d is %v, want %v or a little less", i, got, want)
		}
	}
	b.reset()
	if got := b.next(); got > time.Second {
		t.Errorf("after a success: %v", got)
	}
}
