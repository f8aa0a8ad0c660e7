// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrGone is wrapped when there is no such device (any more).
var ErrGone = errors.New("no such device")

// Read asks the kernel about one device, past the mirror: for who has just
// changed something and cannot wait until it is told.
func Read(ifindex int) (Link, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(ifindex)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(extSkipStats)))
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	switch {
	case errors.Is(err, unix.ENODEV):
		return Link{}, fmt.Errorf("ifindex %d: %w", ifindex, ErrGone)
	case err != nil:
		return Link{}, fmt.Errorf("read the device of ifindex %d: %w", ifindex, err)
	case len(answers) != 1:
		return Link{}, fmt.Errorf("read the device of ifindex %d: %d answers", ifindex, len(answers))
	}
	l, _, err := parseLink(answers[0])
	return l, err
}

// ReadFDB lists the databases of all bridges.
func ReadFDB() ([]Change, error) {
	for try := 0; ; try++ {
		all, err := dumpFDB()
		if errors.Is(err, nl.ErrDumpInterrupted) && try < 10 {
			continue
		}
		return all, err
	}
}
