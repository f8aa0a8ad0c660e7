// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"encoding/binary"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// typeMask takes the flags out of an attribute's type.
const typeMask = ^uint16(unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)

// attributes reads attributes by type; of a type that is there several times
// the last one.
func attributes(data []byte) (map[uint16][]byte, error) {
	list, err := nl.ParseRouteAttr(data)
	if err != nil {
		return nil, err
	}
	byType := make(map[uint16][]byte, len(list))
	for _, a := range list {
		byType[a.Attr.Type&typeMask] = a.Value
	}
	return byType, nil
}

// text is a string attribute without the zero byte at its end.
func text(v []byte) string {
	s, _, _ := bytes.Cut(v, []byte{0})
	return string(s)
}

// number reads an attribute of 1, 4 or 8 bytes in host byte order; 0 for any
// other length.
func number(v []byte) uint64 {
	switch len(v) {
	case 1:
		return uint64(v[0])
	case 4:
		return uint64(binary.NativeEndian.Uint32(v))
	case 8:
		return binary.NativeEndian.Uint64(v)
	}
	return 0
}
