// SPDX-License-Identifier: Apache-2.0

// Package panic is a test package that crashes the guest's kernel. The runner's
// own tests boot it.
package panic

import (
	"os"
	"testing"
)

func TestPanic(t *testing.T) {
	if os.Getenv("XDPL2_GUEST") == "" || os.Getenv("HOME") != "/root" {
		t.Skip("runs in a test guest only")
	}
	t.Log("crashing the kernel on purpose")
	if err := os.WriteFile("/proc/sysrq-trigger", []byte("c"), 0); err != nil {
		t.Fatal(err)
	}
}
