// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// place is where a frame came out: a port's wire, or the box itself.
type place struct {
	port  int  // -1: the bridge device
	stack bool // it reached the box's own stack
}

func (p place) String() string {
	switch {
	case p.port < 0:
		return "the box (" + lab.BridgeName + ")"
	case p.stack:
		return "the box (listener on " + portName(p.port) + ")"
	}
	return portName(p.port)
}

// outcome is what a scenario led to.
type outcome struct {
	frames map[place][][]byte // in order
	fdb    []string
	sent   [PortCount]uint64 // frames that left each port, by its own counter
	errs   []string          // of changes
}

func newOutcome() *outcome { return &outcome{frames: map[place][][]byte{}} }

// sentinelType is the type of frames that only tell that all before them have
// arrived.
const sentinelType = 0x88b6

// drain waits until every frame that was sent has gone wherever it goes, and
// collects what came out. The sending thread stays on one processor, whose
// queue between devices is one for all of them and keeps order; a frame passes
// it twice, on its way into the box and out. So what was sent before the first
// sentinel is inside the box when that arrives, and outside when the second
// does.
func (s *side) drain(ctx context.Context, into *outcome) error {
	for range 2 {
		s.drains++
		f := fill([6]byte(ether.Broadcast), [6]byte{2}, sentinelType, 60)
		binary.BigEndian.PutUint32(f[14:], s.drains)
		// From the router's end of the last port, past the bridge.
		if err := s.stack.own.send(s.ports[PortCount-1], f); err != nil {
			return fmt.Errorf("send a sentinel: %w", err)
		}
		if err := s.collectUntil(ctx, s.drains, into); err != nil {
			return err
		}
	}
	return s.collectStack(into)
}

func (s *side) collectUntil(ctx context.Context, sentinel uint32, into *outcome) error {
	for {
		a, ok, err := s.wire.receive()
		if err != nil {
			return err
		}
		if !ok {
			if err := s.wire.wait(ctx); err != nil {
				return err
			}
			continue
		}
		port := slices.Index(s.ends[:], a.ifindex)
		if port < 0 {
			continue
		}
		if len(a.data) >= 18 && binary.BigEndian.Uint16(a.data[12:]) == sentinelType {
			if binary.BigEndian.Uint32(a.data[14:]) == sentinel {
				return nil
			}
			continue
		}
		at := place{port: port}
		into.frames[at] = append(into.frames[at], a.data)
	}
}

func (s *side) collectStack(into *outcome) error {
	for i, p := range append([]*packets{s.stack.own}, s.stack.ports...) {
		for {
			a, ok, err := p.receive()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			at := place{port: -1, stack: true}
			if i > 0 {
				if at.port = slices.Index(s.ports[:], a.ifindex); at.port < 0 {
					continue // the bridge device again
				}
			}
			into.frames[at] = append(into.frames[at], a.data)
		}
	}
	return nil
}

// finish adds what is known only at the end.
func (s *side) finish(into *outcome, before [PortCount]uint64, sentinels uint32) error {
	entries, err := s.router.FDB()
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.MAC[1] == markerKind {
			continue
		}
		where := lab.BridgeName
		if i := slices.Index(s.ports[:], e.Port); i >= 0 {
			where = portName(i)
		}
		into.fdb = append(into.fdb, e.String()+" on "+where)
	}
	slices.Sort(into.fdb)
	after, err := s.sentCounts()
	if err != nil {
		return err
	}
	for i := range after {
		into.sent[i] = after[i] - before[i]
	}
	into.sent[PortCount-1] -= uint64(sentinels)
	return nil
}

// sentCounts reads how many frames each port has sent, in one request. A frame
// that no socket outside can see, because the receiving kernel finds it
// malformed, is counted here.
func (s *side) sentCounts() (counts [PortCount]uint64, err error) {
	all, err := s.router.SentPackets()
	for i, index := range s.ports {
		counts[i] = all[index]
	}
	return counts, err
}

// Difference is one thing that is not the same.
type Difference struct {
	Where string
	Text  string
}

func (d Difference) String() string { return d.Where + ": " + d.Text }

// compare lists what differs.
func compare(want, got *outcome) []Difference {
	var all []Difference
	add := func(where, format string, args ...any) {
		all = append(all, Difference{where, fmt.Sprintf(format, args...)})
	}
	for _, at := range places() {
		all = append(all, compareFrames(at, want.frames[at], got.frames[at])...)
	}
	for i := range want.sent {
		if want.sent[i] != got.sent[i] {
			add(portName(i), "the bridge alone sent %d frames, with xdpl2 %d", want.sent[i], got.sent[i])
		}
	}
	for _, line := range want.fdb {
		if !slices.Contains(got.fdb, line) {
			add("database", "lacks %s", line)
		}
	}
	for _, line := range got.fdb {
		if !slices.Contains(want.fdb, line) {
			add("database", "has %s", line)
		}
	}
	if a, b := strings.Join(want.errs, "; "), strings.Join(got.errs, "; "); a != b {
		add("changes", "errors %q, with xdpl2 %q", a, b)
	}
	return all
}

func places() []place {
	all := []place{{port: -1, stack: true}}
	for i := range PortCount {
		all = append(all, place{port: i}, place{port: i, stack: true})
	}
	return all
}

// compareFrames compares what came out at one place: the same frames, and those
// of one flow in the same order.
func compareFrames(at place, want, got [][]byte) (all []Difference) {
	flows := map[string][2][][]byte{}
	var order []string
	for i, list := range [][][]byte{want, got} {
		for _, f := range list {
			key := flowOf(f)
			pair, known := flows[key]
			if !known {
				order = append(order, key)
			}
			pair[i] = append(pair[i], f)
			flows[key] = pair
		}
	}
	same := func(a, b []byte) bool { return string(a) == string(b) }
	for _, key := range order {
		pair := flows[key]
		if slices.EqualFunc(pair[0], pair[1], same) {
			continue
		}
		missing, extra := subtract(pair[0], pair[1]), subtract(pair[1], pair[0])
		for _, f := range missing {
			all = append(all, Difference{at.String(), "did not get frame " + named(f)})
		}
		for _, f := range extra {
			all = append(all, Difference{at.String(), "got frame " + named(f) + ", which the bridge alone does not send there"})
		}
		if len(missing) == 0 && len(extra) == 0 {
			all = append(all, Difference{at.String(), fmt.Sprintf("got frames of one flow in the order %v instead of %v", numbers(pair[1]), numbers(pair[0]))})
		}
	}
	return all
}

// flowOf names what must stay in order: addresses and tags. (A source speaks
// from one port at a time.)
func flowOf(f []byte) string {
	end := min(len(f), 12)
	for len(f) >= end+4 && isTag(f[end:]) {
		end += 4
	}
	return string(f[:end])
}

func subtract(from, what [][]byte) (rest [][]byte) {
	left := slices.Clone(what)
	for _, f := range from {
		i := slices.IndexFunc(left, func(o []byte) bool { return string(o) == string(f) })
		if i < 0 {
			rest = append(rest, f)
			continue
		}
		left = slices.Delete(left, i, i+1)
	}
	return rest
}

func numbers(frames [][]byte) []int {
	var all []int
	for _, f := range frames {
		all = append(all, number(f))
	}
	return all
}

func named(f []byte) string { return fmt.Sprintf("%d (%s)", number(f), describe(f)) }
