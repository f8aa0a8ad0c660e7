// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// request carries out a route netlink request in the namespace, over a socket
// that is made once.
func (ns *NS) request(req *nl.NetlinkRequest, resType uint16) ([][]byte, error) {
	sock, err := ns.rtnlSocket()
	if err != nil {
		return nil, err
	}
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: sock}
	return req.Execute(unix.NETLINK_ROUTE, resType)
}

func (ns *NS) rtnlSocket() (*nl.SocketHandle, error) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.closed {
		return nil, fmt.Errorf("namespace %s: %w", ns.label, ErrClosed)
	}
	if ns.rtnl == nil {
		sock, err := nl.GetNetlinkSocketAt(netns.NsHandle(ns.FD()), netns.None(), unix.NETLINK_ROUTE)
		if err != nil {
			return nil, fmt.Errorf("netlink in namespace %s: %w", ns.label, err)
		}
		ns.rtnl = &nl.SocketHandle{Socket: sock}
	}
	return ns.rtnl, nil
}

// isInterrupted tells that a table changed while it was listed.
func isInterrupted(err error) bool { return errors.Is(err, nl.ErrDumpInterrupted) }
