// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
)

// TestMain fails if a goroutine of the package outlives its client.
func TestMain(m *testing.M) {
	code := m.Run()
	if left := leaked(); code == 0 && left != "" {
		fmt.Fprintln(os.Stderr, "goroutines that are left:\n"+left)
		code = 1
	}
	os.Exit(code)
}

// leaked is the stacks of the package's goroutines, once they had time to end:
// a goroutine that has told of its end may still be seen for a moment.
func leaked() (left string) {
	for range 100 {
		left = ""
		buf := make([]byte, 1<<20)
		for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(stack, "internal/ubus") && !strings.Contains(stack, "ubus.TestMain") {
				left += stack + "\n\n"
			}
		}
		if left == "" {
			return ""
		}
		time.Sleep(20 * time.Millisecond)
	}
	return left
}

// patience is how long a test waits for what has to happen.
const patience = 10 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// quick makes a client that reconnects at once.
var quick = Options{RetryMin: time.Millisecond, RetryMax: 5 * time.Millisecond}

func connect(t *testing.T, d *ubustest.Daemon, options Options) *Client {
	t.Helper()
	options.Socket = d.Socket()
	c, err := Dial(within(t), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { shut(t, c) })
	return c
}

// shut closes a client and waits for its handlers.
func shut(t *testing.T, c *Client) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	done := make(chan struct{})
	go func() {
		c.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(patience):
		t.Error("handlers do not end")
	}
}

func register(t *testing.T, c *Client, o Object) *Registration {
	t.Helper()
	r, err := c.Register(o)
	if err != nil {
		t.Fatal(err)
	}
	ok(t, r.Wait(within(t)))
	return r
}

// method is an object with one method.
func method(path, name string, h Handler, args ...Arg) Object {
	return Object{Path: path, Methods: []Method{{Name: name, Args: args, Handler: h}}}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// receive takes a value from a channel.
func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatal("nothing came")
	}
	return v
}

// table is a table of names and values.
func table(pairs ...any) (t blobmsg.Table) {
	for i := 0; i < len(pairs); i += 2 {
		t = append(t, blobmsg.Field{Name: pairs[i].(string), Value: pairs[i+1]})
	}
	return t
}
