// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/bpf"
)

// errTooBig is the kernel's answer when a hash map is full.
var errTooBig error = unix.E2BIG

// LeaseLength is for how long a program that outlives its daemon (a clsact
// filter, before 6.6) goes on redirecting without a renewal.
const LeaseLength = 10 * time.Second

// leaseRenewal is how often the lease is renewed: often enough that a daemon
// which is held up for some seconds loses nothing.
const leaseRenewal = 2 * time.Second

type lease struct {
	mu   sync.Mutex // guards the shared map against lost updates, too
	once sync.Once
	stop chan struct{}
	done chan struct{}
}

func (d *Datapath) updateShared(change func(*bpf.DatapathState)) error {
	d.lease.mu.Lock()
	defer d.lease.mu.Unlock()
	var s bpf.DatapathState
	if err := d.maps.Shared.Lookup(uint32(0), &s); err != nil {
		return fmt.Errorf("read the shared state: %w", err)
	}
	change(&s)
	if err := d.maps.Shared.Put(uint32(0), s); err != nil {
		return fmt.Errorf("write the shared state: %w", err)
	}
	return nil
}

func (d *Datapath) setEpoch(n uint32) error {
	return d.updateShared(func(s *bpf.DatapathState) { s.Epoch = n })
}

// NextEpoch begins a new epoch and returns the one that has ended: a station
// whose Seen equals it was heard in it.
func (d *Datapath) NextEpoch() (ended uint32, err error) {
	err = d.updateShared(func(s *bpf.DatapathState) {
		ended = s.Epoch
		if s.Epoch++; s.Epoch == 0 { // 0 means never seen
			s.Epoch = 1
		}
	})
	return ended, err
}

// renewLease has the kernel write the current jiffies; nobody else can.
func (d *Datapath) renewLease() error {
	d.lease.mu.Lock()
	defer d.lease.mu.Unlock()
	frame := make([]byte, 64)
	if _, err := d.renew.Run(&ebpf.RunOptions{Data: frame}); err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	return nil
}

func (d *Datapath) leaseRenewed() (jiffies uint64, err error) {
	err = d.updateShared(func(s *bpf.DatapathState) { jiffies = s.LeaseRenewed })
	return jiffies, err
}

// startLease begins to renew the lease, once. The length of a jiffy is not
// told to user space either, so it is measured over a fifth of a second: the
// error is a few per cent, and the lease needs no more.
func (d *Datapath) startLease() error {
	var err error
	d.lease.once.Do(func() { err = d.measureAndRenew() })
	return err
}

func (d *Datapath) measureAndRenew() error {
	const window = 200 * time.Millisecond
	if err := d.renewLease(); err != nil {
		return err
	}
	began := time.Now()
	first, err := d.leaseRenewed()
	if err != nil {
		return err
	}
	time.Sleep(window)
	if err := d.renewLease(); err != nil {
		return err
	}
	took := time.Since(began)
	second, err := d.leaseRenewed()
	if err != nil {
		return err
	}
	if second == first {
		return errors.New("measure the kernel's clock: it stands still")
	}
	length := uint64(float64(second-first) / took.Seconds() * LeaseLength.Seconds())
	if err := d.updateShared(func(s *bpf.DatapathState) { s.LeaseLength = length }); err != nil {
		return err
	}
	d.lease.stop, d.lease.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(d.lease.done)
		ticker := time.NewTicker(leaseRenewal)
		defer ticker.Stop()
		for {
			select {
			case <-d.lease.stop:
				return
			case <-ticker.C:
				// A failure is not fatal: without renewal the bridge takes over.
				_ = d.renewLease()
			}
		}
	}()
	return nil
}

func (d *Datapath) stopLease() {
	d.lease.once.Do(func() {}) // never start after this
	if d.lease.stop != nil {
		close(d.lease.stop)
		<-d.lease.done
		d.lease.stop = nil
	}
}
