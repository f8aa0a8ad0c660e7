// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"encoding/binary"
	"net"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ether"
)

// Match says whether a frame is the one that is looked for.
type Match = func(frame []byte) bool

// Any matches every frame.
func Any([]byte) bool { return true }

// All matches frames that all of the given ones match.
func All(ms ...Match) Match {
	return func(f []byte) bool {
		for _, m := range ms {
			if !m(f) {
				return false
			}
		}
		return true
	}
}

// Equal matches a frame byte for byte.
func Equal(want []byte) Match {
	return func(f []byte) bool { return bytes.Equal(f, want) }
}

// From matches the source MAC address.
func From(mac net.HardwareAddr) Match {
	return func(f []byte) bool { return len(f) >= 12 && bytes.Equal(f[6:12], mac) }
}

// To matches the destination MAC address.
func To(mac net.HardwareAddr) Match {
	return func(f []byte) bool { return len(f) >= 6 && bytes.Equal(f[:6], mac) }
}

// Type matches the EtherType behind the MAC addresses: that of the outer tag
// for a tagged frame.
func Type(etherType uint16) Match {
	return func(f []byte) bool { return len(f) >= 14 && binary.BigEndian.Uint16(f[12:]) == etherType }
}

// VID matches the VLAN of the outer tag; 0 also matches untagged frames.
func VID(vid uint16) Match {
	return func(f []byte) bool {
		if !Type(ether.TypeVLAN)(f) && !Type(ether.TypeSVLAN)(f) {
			return vid == 0
		}
		return len(f) >= 16 && binary.BigEndian.Uint16(f[14:])&0x0fff == vid
	}
}

// UDPPort matches UDP frames to a destination port, whatever their tags.
func UDPPort(port uint16) Match {
	return func(f []byte) bool {
		udp := udpOf(f)
		return udp != nil && binary.BigEndian.Uint16(udp[2:]) == port
	}
}

// udpOf returns a frame's UDP header and data, nil when it has none.
func udpOf(f []byte) []byte {
	if len(f) < 14 {
		return nil
	}
	t, rest := binary.BigEndian.Uint16(f[12:]), f[14:]
	for (t == ether.TypeVLAN || t == ether.TypeSVLAN) && len(rest) >= 4 {
		t, rest = binary.BigEndian.Uint16(rest[2:]), rest[4:]
	}
	switch {
	case t == ether.TypeIPv4 && len(rest) >= 28 && rest[0] == 0x45 && rest[9] == unix.IPPROTO_UDP:
		return rest[20:]
	case t == ether.TypeIPv6 && len(rest) >= 48 && rest[6] == unix.IPPROTO_UDP:
		return rest[40:]
	}
	return nil
}
