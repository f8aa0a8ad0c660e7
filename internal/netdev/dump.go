// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"errors"

	"github.com/vishvananda/netlink"
)

// Dump asks for a list until it comes in one piece. The kernel says when a
// table changed while it was listed (NLM_F_DUMP_INTR): entries may be missing
// then. On a machine that is busy with its devices that happens.
func Dump[T any](list func() (T, error)) (T, error) {
	const tries = 20
	for try := 1; ; try++ {
		all, err := list()
		if err == nil || !errors.Is(err, netlink.ErrDumpInterrupted) || try == tries {
			return all, err
		}
	}
}
