// SPDX-License-Identifier: Apache-2.0

// Package bridge mirrors the kernel's bridges over rtnetlink: devices, ports
// and the forwarding database go in, states and changes come out. It knows no
// BPF and no configuration.
//
// Everything here acts in the network namespace of the thread that called
// Open.
package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"syscall"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// receiveBuffer holds some 8,000 changes while a dump runs. What does not fit
// is not lost: the kernel says so, and everything is read again.
const receiveBuffer = 4 << 20

// maxBatch bounds how many messages are read before they are handed on.
const maxBatch = 4096

// Update is what has changed since the update before, in one piece: where an
// entry changed several times meanwhile, only the last state is told.
type Update struct {
	// Links holds all devices by ifindex if any of them changed, else nil.
	Links map[int]Link
	// Touched lists devices of which the kernel told something without any
	// change that is known here, as it does when their features change.
	Touched []int
	// FDB holds the changed entries; after a Resync all there are.
	FDB []Change
	// Resync says that what was known of the FDB before is void: at the
	// beginning, and when the kernel had more to tell than fitted.
	Resync bool
}

// Mirror follows the kernel's bridges. Its methods are for one goroutine,
// but for Refresh, Lookup, Entries and Close.
type Mirror struct {
	sock    *nl.NetlinkSocket
	closing sync.Mutex // held while the socket is read by its number
	closed  bool
	links   map[int]Link
	vlans   map[int]*VLANs // by ifindex
	buf     []byte
	resyncs int
}

// Open subscribes to the kernel's changes; the first call of Next reads what
// there is, so nothing is missed in between.
func Open() (*Mirror, error) {
	sock, err := nl.Subscribe(unix.NETLINK_ROUTE, unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH)
	if err != nil {
		return nil, fmt.Errorf("subscribe to rtnetlink: %w", err)
	}
	// Groups beyond the 32nd cannot be subscribed to by binding.
	if err := unix.SetsockoptInt(sock.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, unix.RTNLGRP_BRVLAN); err != nil {
		sock.Close()
		return nil, fmt.Errorf("subscribe to bridge VLANs: %w", err)
	}
	// Without CAP_NET_ADMIN the buffer is what the system allows; smaller
	// only means that a resync comes earlier.
	if sock.SetReceiveBufferSize(receiveBuffer, true) != nil {
		_ = sock.SetReceiveBufferSize(receiveBuffer, false)
	}
	return &Mirror{sock: sock, buf: make([]byte, 64<<10)}, nil
}

// Close ends the subscription and makes Next return.
func (m *Mirror) Close() {
	m.closing.Lock()
	defer m.closing.Unlock()
	m.closed = true
	m.sock.Close()
}

// receive reads a datagram if there is one. Unlike the library's Receive it goes
// by the descriptor's number, which after Close may be another socket's, whose
// answers would be lost to whoever waits for them.
func (m *Mirror) receive() (n int, err error) {
	m.closing.Lock()
	defer m.closing.Unlock()
	if m.closed {
		return 0, os.ErrClosed
	}
	n, _, err = unix.Recvfrom(m.sock.GetFd(), m.buf, unix.MSG_DONTWAIT)
	return n, err
}

// Run hands updates to f, the first one with everything, until the context
// ends (then it returns nil) or reading fails for good.
func (m *Mirror) Run(ctx context.Context, f func(Update)) error {
	stop := context.AfterFunc(ctx, m.Close)
	defer stop()
	update, err := m.dump()
	for err == nil {
		f(update)
		update, err = m.next()
	}
	if ctx.Err() != nil || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

// next waits for changes and gathers all that are there.
func (m *Mirror) next() (Update, error) {
	for {
		msgs, _, err := m.sock.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			return m.dump()
		}
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			return Update{}, fmt.Errorf("read rtnetlink changes: %w", err)
		}
		more, err := m.drain()
		if errors.Is(err, unix.ENOBUFS) {
			return m.dump()
		}
		if err != nil {
			return Update{}, fmt.Errorf("read rtnetlink changes: %w", err)
		}
		update, err := m.digest(append(msgs, more...))
		if err != nil || update.Links != nil || len(update.Touched) > 0 || len(update.FDB) > 0 {
			return update, err
		}
	}
}

// drain reads what is queued already, without waiting.
func (m *Mirror) drain() ([]syscall.NetlinkMessage, error) {
	var all []syscall.NetlinkMessage
	for len(all) < maxBatch {
		n, err := m.receive()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return all, nil
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, err
		}
		msgs, err := syscall.ParseNetlinkMessage(append([]byte(nil), m.buf[:n]...))
		if err != nil {
			return nil, fmt.Errorf("parse a netlink datagram: %w", err)
		}
		all = append(all, msgs...)
	}
	return all, nil
}

// digest applies messages in order; of each FDB entry the last state counts.
func (m *Mirror) digest(msgs []syscall.NetlinkMessage) (Update, error) {
	var update Update
	last := map[Key]int{}
	linksChanged := false
	for _, msg := range msgs {
		switch msg.Header.Type {
		case unix.RTM_NEWLINK, unix.RTM_DELLINK:
			index, changed, err := m.digestLink(msg)
			if err != nil {
				return update, err
			}
			linksChanged = linksChanged || changed
			if !changed && index != 0 && !slices.Contains(update.Touched, index) {
				update.Touched = append(update.Touched, index)
			}
		case unix.RTM_NEWVLAN, unix.RTM_DELVLAN:
			_, changed, err := m.digestVLANs(msg.Data, msg.Header.Type == unix.RTM_DELVLAN)
			if err != nil {
				return update, err
			}
			linksChanged = linksChanged || changed
		case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
			key, entry, ok, err := parseNeigh(msg.Data)
			if err != nil {
				return update, err
			}
			if !ok {
				continue
			}
			change := Change{key, entry, msg.Header.Type == unix.RTM_DELNEIGH}
			if i, again := last[key]; again {
				update.FDB[i] = change
				continue
			}
			last[key] = len(update.FDB)
			update.FDB = append(update.FDB, change)
		}
	}
	if linksChanged {
		update.Links = maps.Clone(m.links)
	}
	return update, nil
}

// digestLink returns which device a message is about (0: none that matters)
// and whether it tells anything new.
func (m *Mirror) digestLink(msg syscall.NetlinkMessage) (index int, changed bool, err error) {
	l, bridgeOnly, err := parseLink(msg.Data)
	if err != nil {
		return 0, false, err
	}
	old, known := m.links[l.Index]
	switch {
	case bridgeOnly && !known:
		return 0, false, nil
	case bridgeOnly && msg.Header.Type == unix.RTM_DELLINK:
		// The device left its bridge; it is not gone.
		l = old
		l.Port = nil
	case bridgeOnly:
		// What a bridge says of its port: the port alone is news.
		port, master := l.Port, l.Master
		l = old
		l.Port, l.Master = port, master
	case msg.Header.Type == unix.RTM_DELLINK:
		delete(m.links, l.Index)
		delete(m.vlans, l.Index)
		return 0, known, nil
	}
	l.VLANs = m.vlans[l.Index]
	m.links[l.Index] = l
	return l.Index, !known || !same(old, l), nil
}

func same(a, b Link) bool {
	if (a.Port == nil) != (b.Port == nil) || (a.Bridge == nil) != (b.Bridge == nil) ||
		a.Port != nil && *a.Port != *b.Port || a.Bridge != nil && *a.Bridge != *b.Bridge {
		return false
	}
	a.Port, a.Bridge, b.Port, b.Bridge = nil, nil, nil, nil
	return a == b
}

// dump reads all devices and all entries. Changes queue up in the subscription
// meanwhile and are applied afterwards; applying one twice does no harm.
func (m *Mirror) dump() (Update, error) {
	update := Update{Resync: true}
	for try := 0; ; try++ {
		if err := m.discard(); err != nil {
			return update, fmt.Errorf("read rtnetlink changes: %w", err)
		}
		err := m.dumpLinks()
		if err == nil {
			err = m.dumpVLANs()
		}
		if err == nil {
			update.FDB, err = dumpFDB()
		}
		// The tables changed under the dump: what it says may be torn.
		if errors.Is(err, nl.ErrDumpInterrupted) && try < 10 {
			continue
		}
		if err != nil {
			return update, err
		}
		m.resyncs++
		update.Links = maps.Clone(m.links)
		return update, nil
	}
}

// discard empties the subscription's queue. After an overrun the kernel drops
// every change, and does not say so again, until the queue has been empty
// (NETLINK_S_CONGESTED in net/netlink/af_netlink.c): with a queue that is not,
// changes that come after the dump could be lost in silence.
func (m *Mirror) discard() error {
	for {
		_, err := m.receive()
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil
		case err != nil && !errors.Is(err, unix.ENOBUFS) && !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

func (m *Mirror) dumpLinks() error {
	links := map[int]Link{}
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(extSkipStats)))
	msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	for _, msg := range msgs {
		l, _, err := parseLink(msg)
		if err != nil {
			return err
		}
		links[l.Index] = l
	}
	m.links = links
	return nil
}

func dumpFDB() ([]Change, error) {
	var all []Change
	req := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, unix.NLM_F_DUMP)
	msg := make([]byte, ndmsgLen)
	msg[0] = unix.AF_BRIDGE
	req.AddRawData(msg)
	var parseErr error
	err := req.ExecuteIter(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH, func(data []byte) bool {
		key, entry, ok, err := parseNeigh(data)
		if err != nil {
			parseErr = err
			return false
		}
		if ok {
			all = append(all, Change{Key: key, Entry: entry})
		}
		return true
	})
	if err = errors.Join(err, parseErr); err != nil {
		return nil, fmt.Errorf("list the forwarding database: %w", err)
	}
	return all, nil
}
