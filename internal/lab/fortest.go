// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"time"

	"github.com/xdpl2/xdpl2/internal/netns"
)

// ForTest builds a lab for a test and closes it afterwards. It skips the test
// with the reason where namespaces cannot be made, and fails it when building
// goes wrong.
func ForTest(t netns.TB, opts Options) *Lab {
	t.Helper()
	netns.Require(t)
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
