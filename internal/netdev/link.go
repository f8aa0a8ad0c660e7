// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Duplex is how a link sends and receives.
type Duplex string

// The values of Duplex.
const (
	DuplexUnknown Duplex = "unknown"
	DuplexHalf    Duplex = "half"
	DuplexFull    Duplex = "full"
)

// Speed is the speed of a link as the driver reports it.
type Speed struct {
	Mbps   int // Mbit/s; 0 when the driver does not know
	Duplex Duplex
}

// LinkSpeed returns the speed of the device's link. A device without the
// notion (a bridge before its first port, a tunnel) gives a zero Speed and an
// error that wraps ErrUnsupported; a link that is down gives 0 Mbit/s without
// an error.
func LinkSpeed(ifname string) (Speed, error) {
	// struct ethtool_link_settings: 48 bytes, then three link mode masks
	// whose length the kernel tells on the first call as a negative number.
	const header, maxWords = 48, 127
	req := request(unix.ETHTOOL_GLINKSETTINGS, header+3*4*maxWords)
	for range 2 {
		err := ethtool(ifname, req)
		if errors.Is(err, ErrUnsupported) {
			return Speed{Duplex: DuplexUnknown}, fmt.Errorf("read link speed: %w", err)
		}
		if err != nil {
			return Speed{}, fmt.Errorf("read link speed: %w", err)
		}
		words := int8(req[15])
		if words >= 0 {
			break
		}
		clear(req[4:])
		req[15] = byte(-words)
	}
	speed := Speed{Duplex: DuplexUnknown}
	// SPEED_UNKNOWN is all ones; some old drivers say 65535.
	if mbps := binary.NativeEndian.Uint32(req[4:]); mbps != 0xffffffff && mbps != 0xffff {
		speed.Mbps = int(mbps)
	}
	switch req[8] {
	case 0:
		speed.Duplex = DuplexHalf
	case 1:
		speed.Duplex = DuplexFull
	}
	return speed, nil
}
