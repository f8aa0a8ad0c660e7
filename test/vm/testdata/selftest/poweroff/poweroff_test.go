// SPDX-License-Identifier: Apache-2.0

// Package poweroff is a test package that switches the guest off, so that its
// exit line is missing. The runner's own tests boot it.
package poweroff

import (
	"os"
	"syscall"
	"testing"
)

func TestPowerOff(t *testing.T) {
	if os.Getenv("XDPL2_GUEST") == "" {
		t.Skip("runs in a test guest only")
	}
	t.Log("switching the guest off on purpose")
	if err := syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		t.Fatal(err)
	}
}
