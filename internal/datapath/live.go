// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/bpf"
)

// mapLiveName is the name of the map that the programs' variable live is in.
const mapLiveName = ".data.live"

// live is what all programs read of every frame (struct live_data), through a
// mapping of its memory: what belongs together changes at once.
type live struct {
	data   *bpf.DatapathLiveData
	m      *ebpf.Map
	memory []byte
}

func mapLive(m *ebpf.Map) (*live, error) {
	memory, err := mapMemory(m)
	if err != nil {
		return nil, fmt.Errorf("map the ports: %w", err)
	}
	return &live{(*bpf.DatapathLiveData)(unsafe.Pointer(&memory[0])), m, memory}, nil
}

// mapMemory maps the values of an array into this process.
func mapMemory(m *ebpf.Map) ([]byte, error) {
	size := int(m.ValueSize()+7) &^ 7 * int(m.MaxEntries())
	return unix.Mmap(m.FD(), 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

// Close gives the memory back. Programs that are still attached keep theirs.
func (l *live) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(unix.Munmap(l.memory), l.m.Close())
}

// setPort writes a slot's state. Device and flags are one half of it and change
// together. Before a slot is in use, and when it no longer is, that half alone
// counts.
func (l *live) setPort(slot uint32, p bpf.DatapathPort) {
	from, to := (*[2]uint64)(unsafe.Pointer(&p)), (*[2]uint64)(unsafe.Pointer(&l.data.Port[slot]))
	first, second := 1, 0
	if p.Ifindex == 0 {
		first, second = 0, 1
	}
	atomic.StoreUint64(&to[first], from[first])
	atomic.StoreUint64(&to[second], from[second])
}

func (l *live) epoch() uint32     { return atomic.LoadUint32(&l.data.State.Epoch) }
func (l *live) setEpoch(n uint32) { atomic.StoreUint32(&l.data.State.Epoch, n) }

// leaseRenewed is when a program wrote it last, in jiffies.
func (l *live) leaseRenewed() uint64    { return atomic.LoadUint64(&l.data.State.LeaseRenewed) }
func (l *live) setLeaseLength(n uint64) { atomic.StoreUint64(&l.data.State.LeaseLength, n) }
