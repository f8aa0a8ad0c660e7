// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netdev"
)

// StationPort returns the name of the bridge port behind which the bridge
// believes a MAC address to be, "" when it does not know it.
func (l *Lab) StationPort(mac net.HardwareAddr) (string, error) {
	h, err := l.Router.Handle()
	if err != nil {
		return "", err
	}
	list, err := netdev.Dump(func() ([]netlink.Neigh, error) { return h.NeighList(0, unix.AF_BRIDGE) })
	if err != nil {
		return "", fmt.Errorf("list stations: %w", err)
	}
	for _, n := range list {
		// Entries without a master are the device's own addresses.
		if n.MasterIndex == 0 || n.State&netlink.NUD_PERMANENT != 0 || n.HardwareAddr.String() != mac.String() {
			continue
		}
		link, err := h.LinkByIndex(n.LinkIndex)
		if err != nil {
			return "", fmt.Errorf("port of station %s: %w", mac, err)
		}
		return link.Attrs().Name, nil
	}
	return "", nil
}

// WaitStation waits until the bridge believes a MAC address to be behind a
// port; nil waits until it does not know the address.
func (l *Lab) WaitStation(ctx context.Context, mac net.HardwareAddr, p *Port) error {
	want := ""
	if p != nil {
		want = p.Name
	}
	return l.Router.WaitUntil(ctx, fmt.Sprintf("station %s on port %q", mac, want), func() (bool, error) {
		name, err := l.StationPort(mac)
		return name == want, err
	})
}
