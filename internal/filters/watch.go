// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// PollInterval is how often that is looked at of which the kernel tells no
// changes: ebtables, the settings of br_netfilter, and the old tables of
// iptables while br_netfilter hands frames to them. Of nftables, tc and the
// bridges' own settings it tells.
const PollInterval = time.Second

// Options of a Watcher.
type Options struct {
	// Own is what the names of our own tc programs begin with.
	Own string
}

// Watcher follows the filters of a network namespace. Its methods are for one
// goroutine at a time; Wake is for all.
type Watcher struct {
	own    string
	nft    *nl.NetlinkSocket // nil: the kernel has no nfnetlink
	route  *nl.NetlinkSocket
	wake   int // an eventfd: the context has ended
	buf    []byte
	pulled pulled
	state  State
}

// pulled is what was read of each source.
type pulled struct {
	chains []chain
	nftErr error
	// nftCounts: some of the chains see bridged frames.
	nftCounts bool
	devices   devices
	shapers   map[int]string
	tc        []Filter
	tcErr     error
	called    calls
	callErr   error
	old       []Filter // iptables and relatives, ebtables
	ebt       ebtables
}

// Open subscribes to the kernel's changes and reads what there is, in that
// order, so that nothing is missed in between.
func Open(o Options) (*Watcher, error) {
	w := &Watcher{own: o.Own, wake: -1, buf: make([]byte, 64<<10)}
	w.pulled.ebt.absent = map[string]bool{}
	var err error
	if w.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		return nil, fmt.Errorf("make an eventfd: %w", err)
	}
	if w.route, err = nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_TC); err != nil {
		w.Close()
		return nil, fmt.Errorf("subscribe to tc changes: %w", err)
	}
	w.subscribeNFT()
	w.pullLinks()
	w.pullTC()
	w.pullNFT()
	w.poll()
	w.settle()
	return w, nil
}

// subscribeNFT leaves nft nil where the kernel has no nfnetlink; poll tries
// again should the module come.
func (w *Watcher) subscribeNFT() {
	w.nft, w.pulled.nftErr = nl.Subscribe(unix.NETLINK_NETFILTER, nftGroup)
	if errors.Is(w.pulled.nftErr, unix.EPROTONOSUPPORT) || errors.Is(w.pulled.nftErr, unix.EAFNOSUPPORT) {
		w.pulled.nftErr = nil
	}
}

// Close ends the subscriptions.
func (w *Watcher) Close() {
	for _, s := range []*nl.NetlinkSocket{w.nft, w.route} {
		if s != nil {
			s.Close()
		}
	}
	if w.wake >= 0 {
		unix.Close(w.wake)
	}
}

// State returns what there was when it was looked at last.
func (w *Watcher) State() State { return w.state }

// Run hands every changed state to f until the context ends. Then it closes
// the watcher and returns nil.
func (w *Watcher) Run(ctx context.Context, f func(State)) error {
	defer w.Close()
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_, _ = unix.Write(w.wake, binary.NativeEndian.AppendUint64(nil, 1))
		close(stopped)
	})
	defer func() {
		if !stop() {
			<-stopped // the descriptor is closed next
		}
	}()
	next := time.Now().Add(PollInterval)
	for ctx.Err() == nil {
		changed, err := w.wait(max(time.Until(next), 0))
		if err != nil {
			return err
		}
		if !time.Now().Before(next) {
			w.poll()
			changed, next = true, time.Now().Add(PollInterval)
		}
		if changed && w.settle() {
			f(w.state)
		}
	}
	return nil
}

// wait waits for changes that the kernel tells of and reads what has changed.
func (w *Watcher) wait(patience time.Duration) (changed bool, err error) {
	fds := []unix.PollFd{{Fd: int32(w.wake), Events: unix.POLLIN}, {Fd: int32(w.route.GetFd()), Events: unix.POLLIN}}
	if w.nft != nil {
		fds = append(fds, unix.PollFd{Fd: int32(w.nft.GetFd()), Events: unix.POLLIN})
	}
	// Rounded up: a wait of 0 ms would turn into a busy loop before the end.
	_, err = unix.Poll(fds, int((patience+time.Millisecond-1)/time.Millisecond))
	if errors.Is(err, unix.EINTR) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("wait for changes of filters: %w", err)
	}
	if fds[1].Revents != 0 {
		links, tc, err := w.drainRoute()
		if err != nil {
			return false, err
		}
		if links {
			w.pullLinks()
		}
		if links || tc {
			w.pullTC()
			changed = true
		}
	}
	if w.nft != nil && fds[2].Revents != 0 {
		news, err := w.drainNFT()
		if err != nil {
			return changed, err
		}
		if news {
			w.pullNFT()
			changed = true
		}
	}
	return changed, nil
}

// drainRoute empties the socket and tells what kinds of change there were.
func (w *Watcher) drainRoute() (links, tc bool, err error) {
	err = w.drain(w.route.GetFd(), func(kind uint16) {
		if kind == unix.RTM_NEWLINK || kind == unix.RTM_DELLINK {
			links = true
		} else {
			tc = true
		}
	}, func() { links, tc = true, true })
	return links, tc, err
}

// drainNFT tells whether anything came but elements of sets, which come often:
// with every name that dnsmasq resolves, where it keeps a set.
func (w *Watcher) drainNFT() (news bool, err error) {
	err = w.drain(w.nft.GetFd(), func(kind uint16) {
		switch kind &^ nftSubsys {
		case unix.NFT_MSG_NEWTABLE, unix.NFT_MSG_DELTABLE, unix.NFT_MSG_NEWCHAIN, unix.NFT_MSG_DELCHAIN,
			unix.NFT_MSG_NEWRULE, unix.NFT_MSG_DELRULE:
			news = true
		}
	}, func() { news = true })
	return news, err
}

// drain reads all that is queued. all is called if some of it was lost.
func (w *Watcher) drain(fd int, each func(kind uint16), all func()) error {
	for {
		n, _, err := unix.Recvfrom(fd, w.buf, unix.MSG_DONTWAIT)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOBUFS):
			all()
			continue
		case err != nil:
			return fmt.Errorf("read changes of filters: %w", err)
		}
		// Only the headers matter: what changed is read again.
		for rest := w.buf[:n]; len(rest) >= unix.SizeofNlMsghdr; {
			size := int(binary.NativeEndian.Uint32(rest))
			if size < unix.SizeofNlMsghdr || size > len(rest) {
				all() // cut off, or not understood
				break
			}
			each(binary.NativeEndian.Uint16(rest[4:]))
			rest = rest[min((size+3)&^3, len(rest)):]
		}
	}
}

func (w *Watcher) pullLinks() {
	devs, err := listDevices()
	if err != nil {
		w.pulled.callErr = err
		return
	}
	w.pulled.devices = devs
	w.pullCalls()
}

func (w *Watcher) pullCalls() {
	w.pulled.called, w.pulled.callErr = readCalls(w.pulled.devices.bridges)
}

func (w *Watcher) pullTC() {
	w.pulled.shapers, w.pulled.tc, w.pulled.tcErr = readTC(w.pulled.devices, w.own)
}

func (w *Watcher) pullNFT() {
	if w.nft == nil {
		return
	}
	w.pulled.chains, w.pulled.nftErr = nftChains()
}

// poll looks at what the kernel tells no changes of.
func (w *Watcher) poll() {
	if w.nft == nil && haveModule("nfnetlink") {
		w.subscribeNFT()
		w.pullNFT()
	}
	// A failed look is tried again. And while a table counts, a look makes sure
	// that it does not because a transaction was seen that then failed: such a
	// one adds to the chain's uses for a moment, and tells nobody.
	if w.pulled.nftErr != nil || w.pulled.nftCounts {
		w.pullNFT()
	}
	if w.pulled.tcErr != nil {
		w.pullTC()
	}
	w.pullCalls()
	w.pulled.old = append(xtablesFilters(w.pulled.called), w.pulled.ebt.filters()...)
}

// settle makes a state of what was read, and tells whether it is another one.
func (w *Watcher) settle() bool {
	p := &w.pulled
	all := nftFilters(p.chains, p.called, haveModule("nf_conntrack_bridge"))
	p.nftCounts = len(all) > 0
	all = append(all, p.tc...)
	all = append(all, p.old...)
	all = append(all, p.called.conntrack()...)
	for _, s := range []struct {
		kind string
		err  error
	}{{"nftables", p.nftErr}, {"tc", p.tcErr}, {"br_netfilter", p.callErr}} {
		if s.err != nil {
			all = append(all, unreadable(s.kind, s.err))
		}
	}
	state := State{Filters: slices.Clip(sorted(all)), Shapers: maps.Clone(p.shapers)}
	if reflect.DeepEqual(state, w.state) {
		return false
	}
	w.state = state
	return true
}
