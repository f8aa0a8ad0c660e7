// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus/internal/golden"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

func TestRecordedTraces(t *testing.T) { testTraces(t, golden.Recorded(t)) }
func TestKeptTraces(t *testing.T)     { testTraces(t, golden.Kept(t)) }

// otherClients are recorded clients that are none of libubus's ways to talk to
// ubusd, though their bytes were recorded as frames.
var otherClients = map[string]string{
	"limit-exact/client2": "hand-made",
	"monitor/client2":     "ubus monitor, which this package does not do",
}

// sameProgram are connections that one program made one after another.
var sameProgram = map[string]string{"reconnect/client3": "client1"}

// testTraces lets the client do what each recorded client did, against a ubusd
// that says what was recorded: every byte from the client is compared.
func testTraces(t *testing.T, dir string) {
	replayed := 0
	for _, path := range golden.Traces(t, dir) {
		trace := golden.Load(t, path)
		names, conns := trace.ByConn()
		for _, name := range names {
			if first, ok := sameProgram[trace.Name+"/"+name]; ok {
				conns[first] = append(conns[first], conns[name]...)
				delete(conns, name)
			}
		}
		for _, name := range names {
			steps := conns[name]
			_, other := otherClients[trace.Name+"/"+name]
			handMade := slices.ContainsFunc(steps, func(s golden.Step) bool { return s.Chunk })
			if len(steps) == 0 || handMade || other {
				continue
			}
			replayed++
			t.Run(trace.Name+"/"+name, func(t *testing.T) { newReplay(t, steps).run() })
		}
	}
	t.Logf("%d clients", replayed)
}

// replay is one recorded client.
type replay struct {
	t      *testing.T
	steps  []golden.Step
	frames []frameOf
	listen net.Listener
	client *Client

	mu      sync.Mutex
	at      int           // the step that the scripted ubusd is at
	changed chan struct{} // closed, and made anew, when it goes on
	// running are the requests under way; those that the script answers, and
	// those that it does not.
	answered, running sync.WaitGroup
	// What the client said through its API, to be compared with the script.
	active, gone, notified []string

	registered map[uint32]*Registration
	subscribed map[uint32]*Subscription
}

// frameOf is a step's frame, taken apart.
type frameOf struct {
	*wire.Message
	*wire.Attrs
}

func newReplay(t *testing.T, steps []golden.Step) *replay {
	r := &replay{t: t, steps: steps, changed: make(chan struct{}),
		registered: map[uint32]*Registration{}, subscribed: map[uint32]*Subscription{}}
	for _, s := range steps {
		var f frameOf
		if len(s.Bytes) > 0 {
			m, err := wire.Read(bytes.NewReader(s.Bytes), wire.MaxLen)
			if err != nil {
				t.Fatal(err)
			}
			f = frameOf{m, wire.Parse(m.Body)}
		}
		r.frames = append(r.frames, f)
	}
	return r
}

func (r *replay) run() {
	t := r.t
	dir, err := os.MkdirTemp("", "ubus")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if r.listen, err = net.Listen("unix", filepath.Join(dir, "s")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.listen.Close() })

	// Only the reconnection is to be tried again at once. What was refused in
	// a recording was not tried again.
	options := Options{Socket: filepath.Join(dir, "s"), RetryMin: time.Hour, RetryMax: time.Hour}
	connections := 0
	for _, s := range r.steps {
		if s.Connect {
			connections++
		}
	}
	if connections > 1 {
		options.RetryMin = time.Millisecond
	}
	r.client = New(options)
	t.Cleanup(func() {
		r.client.Close()
		r.client.Wait()
	})
	served := make(chan error, 1)
	go func() { served <- r.serve() }()
	r.act()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	r.answered.Wait()
	r.running.Wait()
	r.compareCallbacks()
}

// serve is the scripted ubusd.
func (r *replay) serve() error {
	defer r.reach(len(r.steps) + 1)
	var conn net.Conn
	for i, s := range r.steps {
		r.reach(i)
		if conn != nil {
			conn.SetDeadline(time.Now().Add(10 * time.Second))
		}
		switch {
		case s.Connect:
			var err error
			if conn, err = r.listen.Accept(); err != nil {
				return err
			}
			defer conn.Close()
		case s.Close && s.FromClient:
			// A reset tells that it closed before it had read a call that it
			// would never have answered.
			n, err := conn.Read(make([]byte, 64))
			if !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
				return fmt.Errorf("step %d: the client does not close: %d bytes, %w", i, n, err)
			}
		case s.Close:
			conn.Close()
		case !s.FromClient:
			if _, err := conn.Write(s.Bytes); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		default:
			got := make([]byte, len(s.Bytes))
			n, err := io.ReadFull(conn, got)
			if err != nil || !bytes.Equal(got, s.Bytes) {
				return fmt.Errorf("step %d, %s: %w\n got %.600x\nwant %.600x", i, s.Note, err, got[:n], s.Bytes)
			}
		}
	}
	return nil
}

func (r *replay) reach(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = i
	close(r.changed)
	r.changed = make(chan struct{})
}

// await waits until the script is at a step, or the client is closed.
func (r *replay) await(step int) {
	for {
		r.mu.Lock()
		at, changed := r.at, r.changed
		r.mu.Unlock()
		if at >= step {
			return
		}
		select {
		case <-changed:
		case <-r.client.ctx.Done():
			return
		}
	}
}

// note records what a callback of the API said.
func (r *replay) note(list *[]string, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*list = append(*list, what)
	close(r.changed)
	r.changed = make(chan struct{})
}

// told is what Subscribed has to be told by the script, and how often Gone and
// the handlers of notifications that ask for no answer.
func (r *replay) told() (active []string, gone, notified int) {
	for i, f := range r.frames {
		if f.Message == nil || r.steps[i].FromClient {
			continue
		}
		switch f.Type {
		case wire.Notify:
			active = append(active, strconv.FormatBool(f.Active))
		case wire.Unsubscribe:
			gone++
		case wire.Invoke:
			if f.NoReply {
				notified++
			}
		}
	}
	return active, gone, notified
}

// awaitCallbacks waits until everything has been told.
func (r *replay) awaitCallbacks() {
	active, gone, notified := r.told()
	timeout := time.After(5 * time.Second)
	for {
		r.mu.Lock()
		enough := len(r.active) >= len(active) && len(r.gone) >= gone && len(r.notified) >= notified
		changed := r.changed
		r.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			r.t.Error("not all has been told")
			return
		}
	}
}

// compareCallbacks compares what was told in the end.
func (r *replay) compareCallbacks() {
	active, gone, notified := r.told()
	// The end of the connection is the end of all subscriptions, too.
	if n := len(active); n > 0 && active[n-1] == "true" {
		active = append(active, "false")
	}
	r.client.Close()
	r.client.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.active, active) {
		r.t.Errorf("Subscribed was told %v, want %v", r.active, active)
	}
	if len(r.gone) != gone {
		r.t.Errorf("Gone was told %v, want %d", r.gone, gone)
	}
	if len(r.notified) != notified {
		r.t.Errorf("notified of %v, want %d", r.notified, notified)
	}
}
