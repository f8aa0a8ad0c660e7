// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
)

func plain() api.Event { return api.Event{Text: "something"} }

func TestEventsReachEveryReader(t *testing.T) {
	e := newEvents()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	one, err := e.subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	two, err := e.subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	e.tell(api.EventPort, plain)
	for _, r := range []<-chan api.Event{one, two} {
		if got := <-r; got.Kind != api.EventPort || got.Text != "something" || got.Time.IsZero() || got.Missed != 0 {
			t.Errorf("event %+v", got)
		}
	}
	cancel()
	if _, open := <-one; open {
		t.Error("the channel is open after the end of its context")
	}
	e.close()
	if _, open := <-two; open {
		t.Error("the channel is open after the end of the events")
	}
	if _, err := e.subscribe(t.Context()); err == nil {
		t.Error("subscribed to events that have ended")
	}
	e.tell(api.EventPort, plain) // nobody is there to hear it
}

// TestEventsMadeForListenersOnly: composing events costs time in the
// controller's loop.
func TestEventsMadeForListenersOnly(t *testing.T) {
	e := newEvents()
	e.tell(api.EventPort, func() api.Event { t.Error("an event was made that nobody hears"); return api.Event{} })
}

func TestFloodOfEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEvents()
		r, err := e.subscribe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		const flood = 10 * eventBurst
		for range flood {
			e.tell(api.EventStation, plain)
		}
		e.tell(api.EventPort, plain)
		told, kinds := 0, map[string]int{}
		for len(r) > 0 {
			kinds[(<-r).Kind]++
		}
		if told = kinds[api.EventStation]; told != eventBurst {
			t.Errorf("%d of %d events told, want %d", told, flood, eventBurst)
		}
		if kinds[api.EventPort] != 1 {
			t.Error("a flood of one kind drowned another")
		}
		// Without a further event the number is told after a while.
		time.Sleep(missedAfter)
		synctest.Wait()
		if got := <-r; got.Missed != flood-told || got.Kind != api.EventStation || got.Text == "" {
			t.Errorf("after the flood: %+v", got)
		}
		// Then there is room again, for as many as the rate allows.
		for range flood {
			e.tell(api.EventStation, plain)
		}
		if n, want := len(r), int(eventsPerSec*missedAfter.Seconds()); n != want {
			t.Errorf("%d events told a second later, want %d", n, want)
		}
		// The next event carries the number before the timer does.
		for len(r) > 0 {
			<-r
		}
		time.Sleep(missedAfter / 2)
		e.tell(api.EventStation, plain)
		if got := <-r; got.Missed != flood-int(eventsPerSec*missedAfter.Seconds()) {
			t.Errorf("%+v", got)
		}
		time.Sleep(2 * missedAfter)
		synctest.Wait()
		if len(r) != 0 {
			t.Errorf("dropped events told twice: %+v", <-r)
		}
	})
}

func TestSlowReader(t *testing.T) {
	e := newEvents()
	slow, err := e.subscribe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// As many kinds as it takes: each has an allowance of its own.
	kinds := []string{"a", "b", "c", "d"}
	sent := 0
	for _, kind := range kinds {
		for range eventBurst {
			e.tell(kind, plain)
			sent++
		}
	}
	if len(slow) != eventQueue {
		t.Fatalf("%d events wait, want %d", len(slow), eventQueue)
	}
	<-slow
	e.tell("e", plain)
	var last api.Event
	for len(slow) > 0 {
		last = <-slow
	}
	if last.Kind != "e" || last.Missed != sent-eventQueue {
		t.Errorf("the event after the gap: %+v, want %d missed", last, sent-eventQueue)
	}
}
