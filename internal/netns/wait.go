// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netdev"
)

// WaitUntil waits until cond is true. It asks at once and again after every
// change of a link, bridge port, address or neighbour in the namespace, and never in
// between: cond must depend on these only. What is waited for is named in the
// error when ctx ends first.
func (ns *NS) WaitUntil(ctx context.Context, what string, cond func() (bool, error)) error {
	events, err := ns.subscribe()
	if err != nil {
		return err
	}
	defer events.Close()
	stop := context.AfterFunc(ctx, func() { events.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	buf := make([]byte, 64<<10)
	for {
		ok, err := cond()
		if err != nil {
			return fmt.Errorf("wait for %s: %w", what, err)
		}
		if ok {
			return nil
		}
		_, err = events.Read(buf)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("wait for %s: %w", what, context.Cause(ctx))
		case errors.Is(err, unix.ENOBUFS): // more than one event came
		case err != nil:
			return fmt.Errorf("wait for %s: %w", what, err)
		}
	}
}

// WaitAddresses waits until the IPv6 addresses of a device can be used: the
// kernel joins the group at which neighbours ask for an address only some time
// after it was added, and an early question is repeated a second later.
func (ns *NS) WaitAddresses(ctx context.Context, dev string) error {
	h, err := ns.Handle()
	if err != nil {
		return err
	}
	link, err := ns.Link(dev)
	if err != nil {
		return err
	}
	return ns.WaitUntil(ctx, "addresses of "+dev+" of "+ns.label, func() (bool, error) {
		addrs, err := netdev.Dump(func() ([]netlink.Addr, error) { return h.AddrList(link, unix.AF_INET6) })
		if err != nil {
			return false, fmt.Errorf("list addresses: %w", err)
		}
		for _, a := range addrs {
			if a.Flags&unix.IFA_F_TENTATIVE != 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// subscribe opens a netlink socket that receives changes of links, IPv6
// addresses and neighbours (the bridge's stations are among these).
func (ns *NS) subscribe() (*os.File, error) {
	var f *os.File
	err := ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		if err != nil {
			return fmt.Errorf("netlink socket: %w", err)
		}
		groups := uint32(1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_NEIGH-1) | 1<<(unix.RTNLGRP_IPV6_IFADDR-1))
		if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK, Groups: groups}); err != nil {
			unix.Close(fd)
			return fmt.Errorf("bind netlink socket: %w", err)
		}
		f = os.NewFile(uintptr(fd), "netlink")
		return nil
	})
	return f, err
}
