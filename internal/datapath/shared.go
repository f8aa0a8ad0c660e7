// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
)

// LeaseLength is for how long a program that outlives its daemon (a clsact
// filter, before 6.6) goes on redirecting without a renewal.
const LeaseLength = 10 * time.Second

// leaseRenewal is how often the lease is renewed: often enough that a daemon
// which is held up for some seconds loses nothing.
const leaseRenewal = 2 * time.Second

type lease struct {
	once sync.Once
	stop chan struct{}
	done chan struct{}
}

// NextEpoch begins a new epoch and returns the one that has ended: a station
// whose Seen equals it was heard in it. Only one may call it at a time.
func (d *Datapath) NextEpoch() (ended uint32) {
	ended = d.live.epoch()
	next := ended + 1
	if next == 0 { // 0 means never seen
		next = 1
	}
	d.live.setEpoch(next)
	return ended
}

// renewLease has the kernel write the current jiffies; nobody else can.
func (d *Datapath) renewLease() error {
	frame := make([]byte, 64)
	if _, err := d.renew.Run(&ebpf.RunOptions{Data: frame}); err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	return nil
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
	first := d.live.leaseRenewed()
	time.Sleep(window)
	if err := d.renewLease(); err != nil {
		return err
	}
	took := time.Since(began)
	second := d.live.leaseRenewed()
	if second == first {
		return errors.New("measure the kernel's clock: it stands still")
	}
	length := uint64(float64(second-first) / took.Seconds() * LeaseLength.Seconds())
	d.live.setLeaseLength(length)
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
