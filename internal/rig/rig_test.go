// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
)

func rigForTest(t *testing.T, o Options) *Rig {
	t.Helper()
	Require(t)
	r, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return r
}

// TestRig shows that the numbers make sense: the thread does the work, nothing
// is lost on the way through the bridge, and a redirecting program is seen as
// cheaper.
func TestRig(t *testing.T) {
	r := rigForTest(t, Options{})
	ctx := t.Context()
	for _, load := range []Load{{Roomy, 60}, {Roomy, 1514}, {Tight, 60}, {Tight, 1514}} {
		if load.Input == Roomy && !HasLiveFrames() {
			t.Log("no live frames: roomy input not measured")
			continue
		}
		for range 2 {
			s, err := r.Slice(ctx, load, 50*time.Millisecond)
			if err != nil {
				t.Fatalf("%v: %v", load, err)
			}
			t.Logf("%s %d bytes: %.0f ns/frame, %d frames of %d, busy %.2f, %v",
				load.Input, load.Length, s.NsPerFrame, s.Frames, s.Received, s.Busy(), s.Elapsed.Round(time.Millisecond))
			// If the sender's core did the work, the thread would hardly run.
			if s.NsPerFrame < 50 || s.NsPerFrame > 100_000 {
				t.Errorf("%v: %.0f ns/frame is beyond belief", load, s.NsPerFrame)
			}
			if diff := s.Received - s.Frames; diff > s.Received/50 || diff < -s.Received/50 {
				t.Errorf("%v: %d frames came in, %d left", load, s.Received, s.Frames)
			}
		}
	}
	if _, err := r.Slice(ctx, Load{Roomy, 60}, time.Second); err == nil {
		t.Error("a slice of a second was accepted")
	}
	if _, err := r.Slice(ctx, Load{Roomy, 20}, time.Millisecond); err == nil {
		t.Error("frames of 20 bytes were accepted")
	}
}

// TestRigOneCore: where generator and forwarding share a core, the numbers make
// sense, too.
func TestRigOneCore(t *testing.T) {
	Require(t)
	r := rigForTest(t, Options{OneCore: true})
	for _, load := range []Load{{Roomy, 60}, {Tight, 60}, {Tight, 1514}} {
		if load.Input == Roomy && !HasLiveFrames() {
			t.Log("no live frames: roomy input not measured")
			continue
		}
		s, err := r.Slice(t.Context(), load, 50*time.Millisecond)
		if err != nil {
			t.Fatalf("%v: %v", load, err)
		}
		t.Logf("%s %d bytes: %.0f ns/frame, %d frames of %d, %v",
			load.Input, load.Length, s.NsPerFrame, s.Frames, s.Received, s.Elapsed.Round(time.Millisecond))
		if s.NsPerFrame < 50 || s.NsPerFrame > 100_000 {
			t.Errorf("%v: %.0f ns/frame is beyond belief", load, s.NsPerFrame)
		}
		if s.Frames > s.Received || s.Frames < s.Received*9/10 {
			t.Errorf("%v: %d frames came in, %d left", load, s.Received, s.Frames)
		}
	}
}

func TestRigCompare(t *testing.T) {
	r := rigForTest(t, Options{Stations: 16})
	if !HasLiveFrames() {
		t.Skip("needs live frames (Linux 5.18)")
	}
	ctx := t.Context()
	in, err := r.Router.Link(r.Ingress)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Router.Link(r.Egress)
	if err != nil {
		t.Fatal(err)
	}
	prog, err := loadXDP(asm.Instructions{
		asm.Mov.Imm(asm.R1, int32(out.Attrs().Index)),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	var attached link.Link
	redirect := Variant{
		Name: "redirect",
		Enter: func() error {
			return r.Router.Do(func() error { return attachGeneric(in.Attrs().Index, prog, &attached) })
		},
		Leave: func() error { return attached.Close() },
	}
	c, err := r.Compare(ctx, Load{Roomy, 60}, []Variant{{Name: "bridge"}, redirect, {Name: "again"}},
		CompareOptions{Rounds: 5, Slice: 30 * time.Millisecond, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range c.Variants {
		cost, err1 := c.Cost(name)
		ratio, err2 := c.Ratio("bridge", name)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		t.Logf("%-8s %5.0f ns/frame, ratio to the bridge %v", name, cost.Median, ratio)
		// No bound on the noise: the machine is shared. But a bare redirect
		// that is no cheaper than the bridge means that the rig is wrong.
		if name == "redirect" && ratio.Median < 1.1 {
			t.Errorf("a bare redirect is %v times as cheap as the bridge", ratio)
		}
	}
}

func attachGeneric(index int, prog *ebpf.Program, to *link.Link) error {
	l, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: index, Flags: link.XDPGenericMode})
	*to = l
	return err
}

// TestLanes: two lanes of one rig forward at the same time, each on its core.
func TestLanes(t *testing.T) {
	r := rigForTest(t, Options{})
	if !HasLiveFrames() {
		t.Skip("needs live frames (Linux 5.18)")
	}
	cpus, err := CPUs()
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, cpu := range cpus[:2] {
		l, err := r.Lane(t.Context(), cpu)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		wg.Go(func() {
			s, err := l.Slice(t.Context(), Load{Roomy, 60}, 50*time.Millisecond)
			if err != nil {
				t.Error(err)
				return
			}
			t.Logf("CPU %d: %.0f ns/frame, %d of %d frames", cpu, s.NsPerFrame, s.Frames, s.Received)
			if diff := s.Received - s.Frames; diff > s.Received/50 || diff < -s.Received/50 {
				t.Errorf("CPU %d: %d frames came in, %d left", cpu, s.Received, s.Frames)
			}
		})
	}
	wg.Wait()
}
