// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"encoding/binary"
	"slices"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// The model of mode port, from its documentation and not from its code: what
// enters a port leaves by the port's target, except for what
// Wired says is the bridge's.

// Wired tells whether a frame leaves by its port's target without the bridge,
// and by which port. engine is the one that carries the frame's port; tc sees
// frames after the kernel has taken their outer tag out, XDP before.
func (l Layout) Wired(b *Box, local func([6]byte) bool, f *Frame, engine string, trustTags bool) (target int, wired bool) {
	m, ok := l.managed(f.Port)
	if !l.PortMode || !ok {
		return 0, false
	}
	from, to := &b.Ports[f.Port], &b.Ports[m.Target]
	dst, src := [6]byte(f.Data), [6]byte(f.Data[6:])
	outer := binary.BigEndian.Uint16(f.Data[12:])
	tagged := outer == ether.TypeVLAN || outer == ether.TypeSVLAN
	length := len(f.Data)
	if tagged && engine != "generic" {
		length -= 4
		if len(f.Data) < 20 {
			return 0, false // the kernel drops it
		}
		outer = binary.BigEndian.Uint16(f.Data[16:])
	}
	group := dst[0]&1 != 0
	switch {
	// Loops and blocked ports are the spanning tree's, in a wire as well.
	case from.State != lab.PortForwarding || to.State != lab.PortForwarding:
	case from.Isolated && to.Isolated:
	// No frame has such a source.
	case src[0]&1 != 0 || src == [6]byte{}:
	// Between a host and its switch.
	case dst[0] == 0x01 && dst[1] == 0x80 && dst[2] == 0xc2 && dst[3] == 0 && dst[4] == 0 && dst[5]&0xf0 == 0:
	case slices.Contains([]uint16{0x8808, 0x8809, ether.TypeEAPOL, ether.TypeLLDP, 0x88e3, 0x8902}, outer):
	// As configured.
	case group && m.PassGroup:
	case !group && m.PassLocal && local(dst):
	// Too long for the port itself: a veth takes nothing over its MTU.
	case len(f.Data) > from.MTU+14+4:
	// Too long for the target: an MTU does not count header and tag.
	case length > to.MTU+14+4:
	// A tag beside the data, which XDP cannot see, would be lost: veth ports
	// may have one on any frame, unless one may trust that they have not.
	case engine == "generic" && to.NoTxVLAN && !trustTags:
	// The kernel drops a frame whose tag is cut off.
	case tagged && len(f.Data) < 20:
	default:
		return m.Target, true
	}
	return 0, false
}
