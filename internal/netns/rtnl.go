// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Request carries out a route netlink request in the namespace, over a socket
// that is made once.
func (ns *NS) Request(req *nl.NetlinkRequest, resType uint16) ([][]byte, error) {
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
		sock, err := nl.GetNetlinkSocketAt(vnetns.NsHandle(ns.FD()), vnetns.None(), unix.NETLINK_ROUTE)
		if err != nil {
			return nil, fmt.Errorf("netlink in namespace %s: %w", ns.label, err)
		}
		ns.rtnl = &nl.SocketHandle{Socket: sock}
	}
	return ns.rtnl, nil
}

// SentPackets reads how many packets each device of the namespace has sent, by
// ifindex, in one request.
func (ns *NS) SentPackets() (map[int]uint64, error) {
	const txPackets = 8 // offset in struct rtnl_link_stats64
	for try := 0; ; try++ {
		req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		msgs, err := ns.Request(req, unix.RTM_NEWLINK)
		if errors.Is(err, nl.ErrDumpInterrupted) && try < 10 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list devices: %w", err)
		}
		counts := make(map[int]uint64, len(msgs))
		for _, m := range msgs {
			attrs, err := nl.ParseRouteAttr(m[unix.SizeofIfInfomsg:])
			if err != nil {
				return nil, fmt.Errorf("list devices: %w", err)
			}
			for _, a := range attrs {
				if a.Attr.Type == unix.IFLA_STATS64 && len(a.Value) >= txPackets+8 {
					counts[int(nl.DeserializeIfInfomsg(m).Index)] = nl.NativeEndian().Uint64(a.Value[txPackets:])
				}
			}
		}
		return counts, nil
	}
}
