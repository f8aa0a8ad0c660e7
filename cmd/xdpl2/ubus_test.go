// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
)

// onUbus starts a daemon on a bus, and a caller.
func onUbus(t *testing.T, config string) (*box, *ubustest.Daemon, *ubus.Client) {
	t.Helper()
	bus := ubustest.Start(t, ubustest.Options{})
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), config)
	b.ubus = bus.Socket()
	b.start()
	c, err := ubus.Dial(testContext(t), ubus.Options{Socket: bus.Socket()})
	must(t, err)
	t.Cleanup(func() { c.Close() })
	must(t, bus.WaitObject(testContext(t), "xdpl2", true))
	return b, bus, c
}

func TestDaemonOnUbus(t *testing.T) {
	b, bus, c := onUbus(t, confOf("tc"))
	ctx := testContext(t)
	b.learn(b.lab.Hosts[0])
	status, err := c.Call(ctx, "xdpl2", "status", nil)
	must(t, err)
	ports, _ := status.Array("ports")
	if mode, _ := status.Text("mode"); mode != "mac" || len(ports) != 3 {
		t.Errorf("status %v", status)
	}
	stations, err := c.Call(ctx, "xdpl2", "stations", map[string]any{"search": b.lab.Hosts[0].MAC.String(), ubus.SessionKey: "00"})
	must(t, err)
	if n, _ := stations.Int("total"); n != 1 {
		t.Errorf("stations %v", stations)
	}

	// A mistake is told with its place, and the old configuration goes on.
	b.configure(confOf("tc", "option mode 'wire'"))
	id, err := c.LookupID(ctx, "xdpl2")
	must(t, err)
	replies, err := c.Invoke(ctx, id, "reload", nil)
	if !errors.Is(err, ubus.StatusUnknownError) || len(replies) != 1 {
		t.Fatalf("reload of a wrong configuration: %v, %v", replies, err)
	}
	text, _ := replies[0].Text("error")
	contains(t, text, "option mode 'wire'")

	// The bus goes and comes back: so does the object.
	bus.Stop()
	b.ping(b.lab.Hosts[0].NS, nil)
	must(t, bus.Start())
	must(t, bus.WaitObject(ctx, "xdpl2", true))

	if code := b.end(unix.SIGTERM); code != exitFine {
		t.Errorf("exit code %d", code)
	}
	if objects := bus.Objects(); len(objects) > 0 {
		t.Errorf("objects left on the bus: %v", objects)
	}
}

func TestEventsOfTheDaemon(t *testing.T) {
	b, _, c := onUbus(t, confOf("tc"))
	heard := make(chan string, 1000)
	l, err := c.Listen(func(e ubus.Event) {
		text, _ := e.Data.Text("text")
		heard <- e.Name + " " + text
	}, "xdpl2.*")
	must(t, err)
	must(t, l.Wait(testContext(t)))
	events, err := b.client().Events(testContext(t))
	must(t, err)
	// expect waits for an event on both ways.
	expect := func(kind, part string) {
		t.Helper()
		for event := range events {
			if event.Kind == kind && strings.Contains(event.Text, part) {
				break
			}
		}
		for line := range heard {
			if strings.HasPrefix(line, "xdpl2."+kind+" ") && strings.Contains(line, part) {
				return
			}
		}
		t.Fatalf("no event %s %q", kind, part)
	}
	h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
	b.learn(h1)
	expect(api.EventStation, fmt.Sprintf("%s: new behind eth1", h1.MAC))
	// The same address from behind another port.
	sender, err := h2.Sender()
	must(t, err)
	must(t, sender.Send(ether.UDP(lab.Between(h1, b.lab.Hosts[2]))))
	expect(api.EventStation, fmt.Sprintf("%s: moved from eth1 to eth2", h1.MAC))
	b.configure(confOf("generic"))
	reload(b)
	expect(api.EventEngine, "eth1: engine generic instead of tc")
	expect(api.EventConfig, "configuration loaded")
	b.configure(confOf("generic", "option mode 'wire'"))
	if _, err := b.client().Reload(testContext(t)); err == nil {
		t.Fatal("loaded a wrong configuration")
	}
	expect(api.EventConfig, "configuration refused")
	b.configure(strings.Replace(confOf("generic"), "enabled '1'", "enabled '0'", 1))
	reload(b)
	expect(api.EventPort, "eth1: off")
}
