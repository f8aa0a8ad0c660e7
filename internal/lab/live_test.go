// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/rig"
)

func TestProbes(t *testing.T) {
	netns.Require(t)
	t.Logf("tcx %v, live frames %v, VLAN filtering %v, 802.1Q %v, threaded NAPI %v",
		HasTCX(), rig.HasLiveFrames(), HasVLANFiltering(), Has8021q(), rig.HasThreadedNAPI())
}

func TestLiveFrames(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	if !rig.HasLiveFrames() {
		t.Skip("needs live frames (Linux 5.18)")
	}
	ctx := testContext(t)
	h1, h2 := l.Hosts[0], l.Hosts[1]
	mustPing(t, h2, h1.IP4)
	c, err := h2.Capture()
	if err != nil {
		t.Fatal(err)
	}
	for _, length := range []int{ether.MinFrame, 61, 63, 1514} {
		spec := Between(h1, h2)
		spec.Length = length
		frame := ether.UDP(spec)
		g, err := h1.LiveFrames(rig.LiveOptions{Frame: frame})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Send(100); err != nil {
			t.Fatal(err)
		}
		for i := range 100 {
			if _, err := c.Expect(ctx, Equal(frame)); err != nil {
				t.Fatalf("%d bytes, frame %d: %v", length, i, err)
			}
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
	// Bounded: what does not fit is dropped, and the call comes back.
	g, err := h1.LiveFrames(rig.LiveOptions{Frame: ether.UDP(Between(h1, h2))})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Send(100_000); err != nil {
		t.Fatal(err)
	}
}

func TestLiveFramesSpread(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	if !rig.HasLiveFrames() {
		t.Skip("needs live frames (Linux 5.18)")
	}
	ctx := testContext(t)
	h1, h2 := l.Hosts[0], l.Hosts[1]
	spec := Between(h1, h2)
	spec.Dst = []byte{0x02, 0, 0, 9, 0x10, 0}
	spec.Src = []byte{0x02, 0, 0, 8, 0x20, 0}
	c, err := h2.Capture()
	if err != nil {
		t.Fatal(err)
	}
	g, err := h1.LiveFrames(rig.LiveOptions{Frame: ether.UDP(spec), SpreadDst: 256, SpreadSrc: 4})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Send(200); err != nil {
		t.Fatal(err)
	}
	dst, src := make(map[string]bool), make(map[string]bool)
	for range 200 {
		f, err := c.Expect(ctx, UDPPort(DiscardPort))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(f[:5], []byte{0x02, 0, 0, 9, 0x10}) || !bytes.Equal(f[6:11], []byte{0x02, 0, 0, 8, 0x20}) {
			t.Fatalf("frame % x", f)
		}
		dst[string(f[:6])], src[string(f[6:12])] = true, true
	}
	if len(dst) < 64 || len(src) != 4 {
		t.Errorf("%d destinations, %d sources", len(dst), len(src))
	}
	for _, o := range []rig.LiveOptions{{Frame: ether.UDP(spec), SpreadDst: 3}, {Frame: nil}} {
		if _, err := h1.LiveFrames(o); err == nil {
			t.Errorf("accepted %+v", o)
		}
	}
}
