// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/cilium/ebpf"

	"github.com/xdpl2/xdpl2/internal/netns"
)

// TestLoadedOnce: the same program is verified once, another one is another, and
// a new station table means new programs.
func TestLoadedOnce(t *testing.T) {
	d := world(t)
	id := func(engine Engine, p Program) ebpf.ProgramID {
		t.Helper()
		prog, err := d.load(engine, p)
		must(t, err)
		defer prog.Close()
		info, err := prog.Info()
		must(t, err)
		id, ok := info.ID()
		if !ok {
			t.Skip("this kernel does not tell a program's number")
		}
		return id
	}
	first := id(EngineTC, macMode)
	if again := id(EngineTC, macMode); again != first {
		t.Errorf("loaded again: program %d, then %d", first, again)
	}
	others := map[string]ebpf.ProgramID{
		"another engine": id(EngineGeneric, macMode),
		"another slot":   id(EngineTC, Program{Slot: out1, Mode: ModeMAC}),
		"a lease":        id(EngineTC, Program{Mode: ModeMAC, lease: true}),
	}
	for what, other := range others {
		if other == first {
			t.Errorf("%s: the same program", what)
		}
	}
	old, err := d.ResizeStations(100)
	must(t, err)
	defer old.Close()
	if again := id(EngineTC, macMode); again == first {
		t.Error("a program that looks into the old table")
	}
	// Frames are judged by the new table.
	populate(t, d)
	if got, err := d.run(EngineTC, macMode, frame(b, a, ip4, 64), nil); err != nil || got.Verdict != Redirected {
		t.Errorf("after the change: %s, %v", got.Verdict, err)
	}
}

// TestLoadedIsBounded: who asks about ever other ports does not fill the memory.
func TestLoadedIsBounded(t *testing.T) {
	var l programs
	opened := 0
	for i := range 3*mostLoaded + 1 {
		_, err := l.get("none", Program{Slot: uint32(i)}, func(string, Program) (*ebpf.Program, error) {
			opened++
			return nil, nil
		})
		must(t, err)
		if len(l.by) > mostLoaded {
			t.Fatalf("%d programs are kept", len(l.by))
		}
	}
	if opened != 3*mostLoaded+1 {
		t.Errorf("%d loaded, want each", opened)
	}
}

// BenchmarkEngineChange is what a port pays that tries two engines in turn: the
// next program is attached, then the last one detached.
func BenchmarkEngineChange(b *testing.B) {
	netns.Require(b)
	ns, err := netns.New("change")
	must(b, err)
	b.Cleanup(func() { ns.Close() })
	must(b, ns.Do(func() error {
		d, err := Open(Options{})
		if err != nil {
			return err
		}
		defer d.Close()
		if err := d.SetPort(in, Port{Ifindex: loopback, Flags: usual, MaxLen: mtu1500}); err != nil {
			return err
		}
		var last *Attachment
		engines := []Engine{EngineTC, EngineGeneric}
		for i := 0; b.Loop(); i++ {
			next, err := d.Attach(engines[i%2], loopback, macMode)
			if err != nil {
				return err
			}
			if last != nil {
				if err := last.Detach(); err != nil {
					return err
				}
			}
			last = next
		}
		return last.Detach()
	}))
}
