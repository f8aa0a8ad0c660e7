// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"testing"
	"time"
)

func networkForTest(t *testing.T, o NetworkOptions) *Network {
	t.Helper()
	Require(t)
	n, err := NewNetwork(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := n.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return n
}

// TestNetwork shows that every kind of traffic gets through the bridge, and
// that the router's work is seen.
func TestNetwork(t *testing.T) {
	n := networkForTest(t, NetworkOptions{Hosts: 3, WAN: true})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, to := range map[string]*Host{"bridged": n.Hosts[1], "routed": n.Far} {
		before, err := n.ForwardingTime()
		if err != nil {
			t.Fatal(err)
		}
		b, err := n.Bulk(ctx, n.Hosts[0], to, 2)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		start := time.Now()
		for b.Received() < 16<<20 && ctx.Err() == nil {
			time.Sleep(time.Millisecond) // the receiver tells nobody
		}
		took := time.Since(start)
		after, err := n.ForwardingTime()
		if err != nil {
			t.Fatal(err)
		}
		if after <= before {
			t.Errorf("%s: the router's threads did not run", name)
		}
		t.Logf("%s: %.2f Gbit/s, %.0f ns/KiB on the forwarding core", name, float64(b.Received())*8/float64(took.Nanoseconds()),
			float64((after-before).Nanoseconds())/float64(b.Received()>>10))
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	packets, bytes, err := n.SentToFar()
	if err != nil || packets == 0 {
		t.Fatalf("%d packets routed, %v", packets, err)
	}
	// GRO at the port: one packet for many segments.
	if mean := bytes / packets; mean < 3000 {
		t.Errorf("routed packets have %d bytes on average: no GRO", mean)
	}
	x, err := n.Exchange(ctx, n.Hosts[0], n.Hosts[1])
	if err != nil {
		t.Fatal(err)
	}
	us, err := x.RoundTrips(50 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d round trips, median %.1f us, p99 %.1f us", len(us), Median(us), Percentile(us, 0.99))
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	p, err := n.Paced(n.Hosts[2], n.Hosts[1], 20_000)
	if err != nil {
		t.Fatal(err)
	}
	_, before, err := p.Counts()
	if err != nil {
		t.Fatal(err)
	}
	for {
		sent, received, err := p.Counts()
		if err != nil {
			t.Fatal(err)
		}
		if received-before > 1000 {
			t.Logf("%d sent, %d received", sent, received-before)
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("%d sent, %d received", sent, received)
		}
		time.Sleep(time.Millisecond)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
