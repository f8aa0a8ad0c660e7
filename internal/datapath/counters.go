// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/xdpl2/xdpl2/bpf"
)

// Aggregates counts what GRO has put together. Only the tc engine sees such
// sk_buffs; with generic XDP on a device there are none.
type Aggregates struct {
	Packets  uint64 // sk_buffs
	Segments uint64 // the frames, as on the wire, in them
}

// Traffic is what arrived at a slot's port, counted from the creation of the maps
// on.
type Traffic struct {
	Counters   Counters
	Aggregates Aggregates // of the frames that Counters counts
	Frames     []uint64   // that each CPU has worked on
}

// Counters sums a slot's counters over all CPUs. They count from the creation
// of the maps on.
func (d *Datapath) Counters(slot uint32) (Counters, error) {
	t, err := d.Traffic(slot)
	return t.Counters, err
}

// Traffic is Counters and more of the same moment.
func (d *Datapath) Traffic(slot uint32) (Traffic, error) {
	var perCPU []bpf.DatapathPortCounters
	if err := d.maps.Counters.Lookup(slot, &perCPU); err != nil {
		return Traffic{}, fmt.Errorf("read counters of slot %d: %w", slot, err)
	}
	t := Traffic{Frames: make([]uint64, len(perCPU))}
	for i, cpu := range perCPU {
		for v := range cpu.Verdict {
			t.Counters[v].Packets += cpu.Verdict[v].Packets
			t.Counters[v].Bytes += cpu.Verdict[v].Bytes
			t.Frames[i] += cpu.Verdict[v].Packets
		}
		t.Aggregates.Packets += cpu.Aggregates
		t.Aggregates.Segments += cpu.Segments
	}
	return t, nil
}

// ResetCounters sets a slot's counters to zero; for a slot that another port
// takes over.
func (d *Datapath) ResetCounters(slot uint32) error {
	zero := make([]bpf.DatapathPortCounters, ebpf.MustPossibleCPU())
	if err := d.maps.Counters.Put(slot, zero); err != nil {
		return fmt.Errorf("reset counters of slot %d: %w", slot, err)
	}
	return nil
}
