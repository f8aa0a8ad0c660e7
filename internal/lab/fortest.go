// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"time"
)

// TB is what the lab needs of testing.TB.
type TB interface {
	Helper()
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Cleanup(f func())
}

// ForTest builds a lab for a test and closes it afterwards. It skips the test
// with the reason where namespaces cannot be made, and fails it when building
// goes wrong.
func ForTest(t TB, opts Options) *Lab {
	t.Helper()
	RequireNS(t)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	l, err := New(ctx, opts)
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return l
}

// RequireNS skips the test with the reason where this process cannot make
// network namespaces.
func RequireNS(t TB) {
	t.Helper()
	if err := CanMakeNS(); err != nil {
		t.Skipf("needs network namespaces: %v", err)
	}
}

// CanMakeNS tells why this process cannot make network namespaces, nil if it
// can.
func CanMakeNS() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("not root (user id %d)", os.Geteuid())
	}
	ns, err := NewNS("probe")
	if err != nil {
		return err
	}
	return ns.Close()
}
