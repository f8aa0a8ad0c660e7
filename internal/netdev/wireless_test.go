// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"os"
	"path/filepath"
	"testing"
)

// No machine of ours has a wireless device: what sysfs looks like is made up.
func TestWireless(t *testing.T) {
	class := t.TempDir()
	for _, path := range []string{"phy1-ap0/phy80211", "wlan0/wireless", "eth0/statistics"} {
		if err := os.MkdirAll(filepath.Join(class, path), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for dev, want := range map[string]bool{"phy1-ap0": true, "wlan0": true, "eth0": false, "none": false} {
		if got := wireless(class, dev); got != want {
			t.Errorf("%s: %v", dev, got)
		}
	}
	if Wireless("lo") {
		t.Error("the loopback device is wireless")
	}
}
