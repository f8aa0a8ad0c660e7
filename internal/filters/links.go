// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netdev"
)

// bridgeCalls is what a bridge says on its own account about br_netfilter.
type bridgeCalls struct {
	name         string
	ip, ip6, arp bool
}

// devices is the names of all devices by ifindex, and the bridges among them.
type devices struct {
	names   map[int]string
	bridges []bridgeCalls
}

// attribute numbers that the libraries do not have.
const (
	ifInfoKind, ifInfoData = 1, 2

	brCallIPTables, brCallIP6Tables, brCallARPTables = 36, 37, 38 // IFLA_BR_NF_CALL_*

	extSkipStats = 1 << 3 // RTEXT_FILTER_SKIP_STATS
)

func listDevices() (devices, error) {
	all := devices{names: map[int]string{}}
	msgs, err := netdev.Dump(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
		req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(extSkipStats)))
		return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	})
	if err != nil {
		return all, fmt.Errorf("list devices: %w", err)
	}
	for _, msg := range msgs {
		if err := all.add(msg); err != nil {
			return all, fmt.Errorf("parse a device: %w", err)
		}
	}
	return all, nil
}

func (d *devices) add(msg []byte) error {
	if len(msg) < unix.SizeofIfInfomsg {
		return fmt.Errorf("message of %d bytes", len(msg))
	}
	attrs, err := attributes(msg[unix.SizeofIfInfomsg:])
	if err != nil {
		return err
	}
	name := text(attrs[unix.IFLA_IFNAME])
	d.names[int(nl.DeserializeIfInfomsg(msg).Index)] = name
	info, err := attributes(attrs[unix.IFLA_LINKINFO])
	if err != nil || text(info[ifInfoKind]) != "bridge" {
		return err
	}
	settings, err := attributes(info[ifInfoData])
	if err != nil {
		return err
	}
	d.bridges = append(d.bridges, bridgeCalls{
		name: name,
		ip:   number(settings[brCallIPTables]) != 0,
		ip6:  number(settings[brCallIP6Tables]) != 0,
		arp:  number(settings[brCallARPTables]) != 0,
	})
	return nil
}
