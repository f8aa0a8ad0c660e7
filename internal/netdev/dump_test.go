// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestDump(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name        string
		interrupted int // times
		then        error
		asked       int
		want        error
	}{
		{"at once", 0, nil, 1, nil},
		{"after two interruptions", 2, nil, 3, nil},
		{"another error", 1, broken, 2, broken},
		{"for ever", 1000, nil, 20, netlink.ErrDumpInterrupted},
	} {
		asked := 0
		got, err := Dump(func() (int, error) {
			if asked++; asked <= c.interrupted {
				return 0, fmt.Errorf("list: %w", netlink.ErrDumpInterrupted)
			}
			return asked, c.then
		})
		if asked != c.asked || !errors.Is(err, c.want) || err == nil && got != asked {
			t.Errorf("%s: asked %d times, got %d, %v", c.name, asked, got, err)
		}
	}
}
