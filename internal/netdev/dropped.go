// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Dropped returns how many frames a device had no room for on their way out.
func Dropped(ifindex int) (uint64, error) {
	l, err := netlink.LinkByIndex(ifindex)
	if err != nil {
		return 0, fmt.Errorf("read the counters of ifindex %d: %w", ifindex, err)
	}
	if s := l.Attrs().Statistics; s != nil {
		return s.TxDropped, nil
	}
	return 0, nil
}
