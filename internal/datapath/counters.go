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

// Counters sums a slot's counters over all CPUs. They count from the creation
// of the maps on.
func (d *Datapath) Counters(slot uint32) (Counters, error) {
	sum, _, err := d.Traffic(slot)
	return sum, err
}

// Traffic is Counters, and what was aggregated of these frames, read at one
// time.
func (d *Datapath) Traffic(slot uint32) (Counters, Aggregates, error) {
	var perCPU []bpf.DatapathPortCounters
	if err := d.maps.Counters.Lookup(slot, &perCPU); err != nil {
		return Counters{}, Aggregates{}, fmt.Errorf("read counters of slot %d: %w", slot, err)
	}
	var sum Counters
	var merged Aggregates
	for _, cpu := range perCPU {
		for v := range cpu.Verdict {
			sum[v].Packets += cpu.Verdict[v].Packets
			sum[v].Bytes += cpu.Verdict[v].Bytes
		}
		merged.Packets += cpu.Aggregates
		merged.Segments += cpu.Segments
	}
	return sum, merged, nil
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
