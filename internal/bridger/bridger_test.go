// SPDX-License-Identifier: Apache-2.0

package bridger

import (
	"context"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
)

// double offers bridger's object as far as we call it: arguments and their
// types are those of its ubus.c.
type double struct {
	t      *testing.T
	client *ubus.Client
	calls  chan []string
}

func startDouble(t *testing.T, bus *ubustest.Daemon) *double {
	t.Helper()
	d := &double{t: t, client: ubus.New(ubus.Options{Socket: bus.Socket()}), calls: make(chan []string, 100)}
	t.Cleanup(d.stop)
	registration, err := d.client.Register(ubus.Object{Path: object, Methods: []ubus.Method{{
		Name: "set_blacklist",
		Args: []ubus.Arg{{Name: "name", Type: blobmsg.String}, {Name: "devices", Type: blobmsg.Arr}},
		Handler: func(_ context.Context, r *ubus.Request) error {
			name, _ := r.Args.Text("name")
			list, ok := r.Args.Array("devices")
			if name != "xdpl2" || !ok {
				return ubus.StatusInvalidArgument
			}
			devices := []string{}
			for _, v := range list {
				device, ok := v.(string)
				if !ok {
					return ubus.StatusInvalidArgument
				}
				devices = append(devices, device)
			}
			d.calls <- devices
			return nil
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := registration.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *double) stop() { d.client.Close() }

// expect waits for a call with these devices, past repetitions of earlier ones.
func (d *double) expect(devices ...string) {
	d.t.Helper()
	var last []string
	for {
		select {
		case last = <-d.calls:
			if reflect.DeepEqual(last, append([]string{}, devices...)) {
				return
			}
		case <-time.After(20 * time.Second):
			d.t.Fatalf("bridger was told %v last, want %v", last, devices)
		}
	}
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// run runs a list until stop.
func run(t *testing.T, bus *ubustest.Daemon) (b *Blacklist, stop func()) {
	b = New(Options{Socket: bus.Socket(), Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return b, stop
}

func TestBlacklist(t *testing.T) {
	bus := ubustest.Start(t, ubustest.Options{})
	d := startDouble(t, bus)
	b, stop := run(t, bus)
	b.Set([]string{"eth1", "eth2"})
	d.expect("eth1", "eth2")
	b.Set([]string{"eth2"})
	d.expect("eth2")
	b.Set([]string{"odd*", "eth[1]"}) // names are no patterns
	d.expect(`odd\*`, `eth\[1]`)
	stop()
	d.expect()
}

// TestBridgerStartsAgain: a bridger that is new to the bus is told at once.
func TestBridgerStartsAgain(t *testing.T) {
	bus := ubustest.Start(t, ubustest.Options{})
	b, stop := run(t, bus)
	b.Set([]string{"eth1"})
	if err := bus.WaitListener(within(t), newObject); err != nil {
		t.Fatal(err)
	}
	first := startDouble(t, bus)
	first.expect("eth1")
	first.stop()
	if err := bus.WaitObject(within(t), object, false); err != nil {
		t.Fatal(err)
	}
	second := startDouble(t, bus)
	second.expect("eth1")
	stop()
	second.expect()
}

// TestNoUbus: without ubusd nothing waits, and stopping is quick.
func TestNoUbus(t *testing.T) {
	b := New(Options{Socket: t.TempDir() + "/none", Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	for range 100 {
		b.Set([]string{"eth1"})
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it does not end")
	}
}
