// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"fmt"
	"os"
)

// TB is what the packages of the laboratory need of testing.TB.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(f func())
}

// Require skips the test with the reason where this process cannot make
// network namespaces.
func Require(t TB) {
	t.Helper()
	if err := Supported(); err != nil {
		t.Skipf("needs network namespaces: %v", err)
	}
}

// Supported tells why this process cannot make network namespaces, nil if it
// can.
func Supported() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("not root (user id %d)", os.Geteuid())
	}
	ns, err := New("probe")
	if err != nil {
		return err
	}
	return ns.Close()
}
