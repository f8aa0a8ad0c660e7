// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// changesOf follows the changes of a port's engine.
type changesOf struct {
	t      *testing.T
	device string
	events <-chan api.Event
}

func followEngine(t *testing.T, b *box, device string) *changesOf {
	t.Helper()
	events, err := b.client().Events(testContext(t))
	must(t, err)
	return &changesOf{t, device, events}
}

// expect waits for the next change, which must be to an engine. Its numbers and
// reason must be there.
func (c *changesOf) expect(engine string) api.Event {
	c.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case e, ok := <-c.events:
			if !ok {
				c.t.Fatal("there will be no more events")
			}
			if e.Kind != api.EventEngine || e.Device != c.device {
				continue
			}
			if e.Engine != engine || e.Before == engine || e.Reason == "" || !strings.Contains(e.Text, e.Reason) {
				c.t.Fatalf("engine %s expected: %+v", engine, e)
			}
			if engine == "generic" && (e.Measured == nil || e.Measured.TC <= 0 || e.Measured.Pairs < 8) {
				c.t.Errorf("a change without its numbers: %+v", e)
			}
			c.t.Logf("%s", e.Text)
			return e
		case <-deadline:
			c.t.Fatalf("%s did not go over to %s", c.device, engine)
		}
	}
}

// none fails if there has been a change.
func (c *changesOf) none() {
	c.t.Helper()
	for {
		select {
		case e := <-c.events:
			if e.Kind == api.EventEngine && e.Device == c.device {
				c.t.Errorf("a change that should not be: %s", e.Text)
			}
		default:
			return
		}
	}
}

// smallUDP has h1 send numbered frames to h2 until stop is called, which fails if
// one was lost, doubled or overtaken. The changes of engines meanwhile, those
// back and forth of a trial among them, must not be seen.
func smallUDP(t *testing.T, b *box, h1, h2 *lab.Host) (stop func()) {
	t.Helper()
	stream, err := b.lab.StartStream(testContext(t), h1, h2, lab.StreamOptions{})
	must(t, err)
	return func() {
		t.Helper()
		stream.Stop()
		stats, err := stream.Wait()
		must(t, err)
		if !stats.Perfect() || stats.Elsewhere > 0 {
			t.Errorf("frames while engines changed: %+v", stats)
		}
		t.Logf("%d frames while engines changed", stats.Received)
	}
}

// needsLoad skips the test where too little can be forwarded.
func needsLoad(t *testing.T) {
	if inGuest {
		t.Skip("not for guests: an emulated CPU forwards too few frames for the engine to matter")
	}
}

// costs makes generic half as fast again as tc. A busy machine's clocks may say
// anything.
const costs = "--frame-cost=tc=45us,generic=30us"

// TestAdapt: the engine follows the traffic. A port with small UDP goes over to
// generic, with bulk TCP back to tc, to generic when that is over, and to tc when
// the option is switched off.
func TestAdapt(t *testing.T) {
	needsLoad(t)
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true})
	must(t, l.Router.Do(func() error { return netdev.SetFeature("eth1", netdev.GRO, true) }))
	b := newBox(t, l, confOf("auto"))
	b.start(costs, "--trust-frames")
	changes := followEngine(t, b, "eth1")
	h1, h2 := l.Hosts[0], l.Hosts[1]
	b.learn(h1, h2)
	if p := b.portStatus("eth1"); p.Engine != "tc" || !strings.Contains(p.Engines["generic"], "too few") {
		t.Errorf("a quiet port: %s, %v", p.Engine, p.Engines)
	}

	stop := smallUDP(t, b, h1, h2)
	e := changes.expect("generic")
	if m := e.Measured; m.Earlier || m.Ratio != 1.5 || m.TC != 45_000 || m.Generic != 30_000 {
		t.Errorf("measured %+v", m)
	}
	if p := b.portStatus("eth1"); p.Engine != "generic" || p.Engines["tc"] != e.Reason || p.EngineChanges != 1 {
		t.Errorf("%+v", p)
	}
	stop()

	server, err := h2.TCPServe(testContext(t), false)
	must(t, err)
	defer server.Close()
	bulk, err := h1.Transfer(testContext(t), server.Addr(), lab.TCPOptions{})
	must(t, err)
	began := time.Now()
	e = changes.expect("tc")
	t.Logf("back on tc after %v", e.Time.Sub(began))
	b.wait("tc to show what GRO gains", func() bool {
		p := b.portStatus("eth1")
		return p.Engine == "tc" && strings.Contains(p.Engines["generic"], "GRO puts")
	})
	bulk.Stop()
	_, err = bulk.Wait() // compares what has arrived, byte for byte
	must(t, err)

	stop = smallUDP(t, b, h1, h2)
	if e = changes.expect("generic"); !e.Measured.Earlier {
		t.Errorf("measured anew: %+v", e.Measured)
	}
	b.configure(confOf("auto", "option adapt '0'"))
	reload(b)
	if e := changes.expect("tc"); !strings.Contains(e.Reason, "auto prefers tc") || e.Measured != nil {
		t.Errorf("adapting was switched off: %+v", e)
	}
	stop()
	changes.none()
	if p := b.portStatus("eth1"); p.EngineChanges != 4 {
		t.Errorf("%d changes counted, want 4", p.EngineChanges)
	}
}

func TestFrameCost(t *testing.T) {
	for text, want := range map[string]string{
		"tc=900ns,generic=0.6us": "",
		"tc=900ns":               "expected the cost with tc and the cost with generic",
		"tc=900ns,native=1us":    `"native=1us": expected`,
		"tc=900ns,generic=-1us":  `"generic=-1us": expected`,
		"tc=900,generic=1us":     `"tc=900": expected`,
		"":                       `"": expected`,
	} {
		cost, err := frameCost(text)
		if want == "" {
			if err != nil || cost["tc"] != 900*time.Nanosecond || cost["generic"] != 600*time.Nanosecond {
				t.Errorf("%q: %v, %v", text, cost, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
