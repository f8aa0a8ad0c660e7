// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ether"
)

func TestStream(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	h1, h2 := l.Hosts[0], l.Hosts[1]
	mustPing(t, h1, h2.IP4)
	for name, o := range map[string]StreamOptions{
		"window":    {Frames: 3_000},
		"long":      {Frames: 1_000, Length: 1514, Window: 8},
		"rate":      {Frames: 500, Rate: 5_000},
		"IPv6":      {Frames: 500, V6: true},
		"tagged":    {Frames: 500, Wrap: func(f []byte) []byte { return ether.Tag(f, ether.TypeVLAN, 10) }},
		"one a one": {Frames: 50, Window: 1},
	} {
		s, err := l.Stream(testContext(t), h1, h2, o)
		if err != nil || !s.Perfect() || s.Received != o.Frames {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

func TestStreamSeesFaults(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	ctx := testContext(t)
	h1, h2 := l.Hosts[0], l.Hosts[1]
	mustPing(t, h1, h2.IP4)
	s, err := l.StartStream(ctx, h1, h2, StreamOptions{Window: 10, Stall: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.WaitReceived(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	// Blocked for a while: frames are lost.
	if err := l.SetPortState(h2.Port(), PortListening); err != nil {
		t.Fatal(err)
	}
	sent := s.Progress().Sent
	for s.Progress().Sent <= sent+10 {
		time.Sleep(time.Millisecond)
	}
	if err := l.SetPortState(h2.Port(), PortForwarding); err != nil {
		t.Fatal(err)
	}
	if err := s.WaitReceived(ctx, s.Progress().Received+1000); err != nil {
		t.Fatal(err)
	}
	// Forged copies: one frame again, late, and one changed.
	send, err := h1.Sender()
	if err != nil {
		t.Fatal(err)
	}
	bad := s.frame(7)
	bad[len(bad)-1]++
	for _, f := range [][]byte{s.frame(7), bad} {
		if err := send.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.WaitReceived(ctx, s.Progress().Received+1000); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	stats, err := s.Wait()
	if err != nil || stats.Lost() == 0 || stats.Lost() > 500 || stats.Duplicated != 1 || stats.Corrupt != 1 {
		t.Errorf("%+v, %v", stats, err)
	}
	if err := s.WaitReceived(ctx, 1<<30); err == nil {
		t.Error("waiting for a stream that has ended")
	}
}
