// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"os"
	"path/filepath"
)

// Wireless tells whether a device is a wireless one. It is read from sysfs,
// which shows the namespace in which it was mounted.
func Wireless(ifname string) bool { return wireless("/sys/class/net", ifname) }

func wireless(class, ifname string) bool {
	for _, name := range []string{"phy80211", "wireless"} {
		if _, err := os.Stat(filepath.Join(class, ifname, name)); err == nil {
			return true
		}
	}
	return false
}
