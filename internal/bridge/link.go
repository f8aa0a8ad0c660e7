// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// PortState is a bridge port's STP state, with the kernel's numbers
// (BR_STATE_* of include/uapi/linux/if_bridge.h).
type PortState uint8

// The states that a bridge port can be in.
const (
	Disabled PortState = iota
	Listening
	Learning
	Forwarding
	Blocking
)

// String returns the state as `bridge link` shows it.
func (s PortState) String() string {
	names := [...]string{"disabled", "listening", "learning", "forwarding", "blocking"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Port is what the bridge keeps about one of its ports.
type Port struct {
	State    PortState
	Learning bool // the bridge learns sources here
	Isolated bool
	Hairpin  bool
	Locked   bool // 802.1X: only known sources
	Tunnel   bool // VLANs are mapped to tunnel IDs (vlan_tunnel)
	// Answers says that the bridge itself answers ARP or neighbour
	// solicitations that come in here, or may (proxy ARP, neighbour suppression).
	Answers bool
}

// Bridge is what the kernel tells of a bridge device.
type Bridge struct {
	AgeingTime    time.Duration // 0: stations are not kept
	VLANFiltering bool
	VLANAD        bool // its tags are 802.1ad, not 802.1Q
	// MST says that STP states are kept per spanning tree instance, of which
	// the kernel tells no changes (mst_enabled).
	MST bool
}

// Link is a network device as far as forwarding is concerned.
type Link struct {
	Index   int // ifindex
	Name    string
	Kind    string // "bridge", "veth", "vlan", ...; empty for hardware
	MAC     [6]byte
	MTU     int  // bytes, without Ethernet header
	Up      bool // administratively
	Carrier bool
	Master  int // ifindex of the bridge, bond or the like; 0 if none
	Parent  int // ifindex of the device that a VLAN, macvlan or DSA device sits on; 0 if none
	XDP     uint32
	// Switch identifies the hardware switch that the device is a port of, in
	// hexadecimal; empty if it is none (IFLA_PHYS_SWITCH_ID).
	Switch string
	// MasterKind is the kind of the master ("bridge", "bond", ...).
	MasterKind string
	// Port is set for a member of a bridge, Bridge for a bridge.
	Port   *Port
	Bridge *Bridge
	// VLANs is the table of a bridge port; nil if it has none.
	VLANs *VLANs
}

// attribute numbers that the libraries do not have.
const (
	ifInfoKind, ifInfoData, ifInfoSlaveKind, ifInfoSlaveData = 1, 2, 4, 5

	boolMST = 1 << 2 // BR_BOOLOPT_MST_ENABLE

	xdpProgID = 4

	extSkipStats = 1 << 3 // RTEXT_FILTER_SKIP_STATS

	nestedMask = ^uint16(unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
)

// parseLink reads an RTM_NEWLINK or RTM_DELLINK message. Messages of family
// AF_BRIDGE carry the port's state and leave out most of the rest; bridgeOnly
// tells them apart.
func parseLink(data []byte) (l Link, bridgeOnly bool, err error) {
	if len(data) < unix.SizeofIfInfomsg {
		return l, false, fmt.Errorf("link message of %d bytes", len(data))
	}
	msg := nl.DeserializeIfInfomsg(data)
	attrs, err := nl.ParseRouteAttr(data[unix.SizeofIfInfomsg:])
	if err != nil {
		return l, false, fmt.Errorf("parse a link message: %w", err)
	}
	l.Index = int(msg.Index)
	l.Up = msg.Flags&unix.IFF_UP != 0
	l.Carrier = msg.Flags&unix.IFF_LOWER_UP != 0
	elsewhere := false // the peer named by IFLA_LINK is in another namespace
	for _, a := range attrs {
		switch a.Attr.Type & nestedMask {
		case unix.IFLA_IFNAME:
			l.Name = text(a.Value)
		case unix.IFLA_MTU:
			l.MTU = int(number(a.Value))
		case unix.IFLA_MASTER:
			l.Master = int(number(a.Value))
		case unix.IFLA_LINK:
			l.Parent = int(number(a.Value))
		case unix.IFLA_LINK_NETNSID:
			elsewhere = true
		case unix.IFLA_ADDRESS:
			if len(a.Value) == 6 {
				l.MAC = [6]byte(a.Value)
			}
		case unix.IFLA_PROTINFO:
			if msg.Family == unix.AF_BRIDGE {
				if l.Port, err = parsePort(a.Value); err != nil {
					return l, false, err
				}
			}
		case unix.IFLA_PHYS_SWITCH_ID:
			l.Switch = hex.EncodeToString(a.Value)
		case unix.IFLA_LINKINFO:
			if err := l.parseInfo(a.Value); err != nil {
				return l, false, err
			}
		case unix.IFLA_XDP:
			if l.XDP, err = parseXDP(a.Value); err != nil {
				return l, false, err
			}
		}
	}
	if elsewhere || l.Kind != "vlan" && l.Kind != "macvlan" && l.Kind != "dsa" {
		l.Parent = 0 // a veth's peer, a tunnel's underlay: not ours to care for
	}
	return l, msg.Family == unix.AF_BRIDGE, nil
}

func (l *Link) parseInfo(data []byte) error {
	infos, err := nl.ParseRouteAttr(data)
	if err != nil {
		return fmt.Errorf("parse link info: %w", err)
	}
	for _, info := range infos {
		switch info.Attr.Type & nestedMask {
		case ifInfoKind:
			l.Kind = text(info.Value)
		case ifInfoSlaveKind:
			l.MasterKind = text(info.Value)
		}
	}
	for _, info := range infos {
		switch info.Attr.Type & nestedMask {
		case ifInfoData:
			if l.Kind == "bridge" {
				if l.Bridge, err = parseBridge(info.Value); err != nil {
					return err
				}
			}
		case ifInfoSlaveData:
			if l.MasterKind == "bridge" {
				if l.Port, err = parsePort(info.Value); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func parseBridge(data []byte) (*Bridge, error) {
	attrs, err := nl.ParseRouteAttr(data)
	if err != nil {
		return nil, fmt.Errorf("parse bridge attributes: %w", err)
	}
	b := &Bridge{}
	for _, a := range attrs {
		switch a.Attr.Type & nestedMask {
		case unix.IFLA_BR_AGEING_TIME: // in USER_HZ, 100 a second on every architecture we run on
			b.AgeingTime = time.Duration(number(a.Value)) * 10 * time.Millisecond
		case unix.IFLA_BR_VLAN_FILTERING:
			b.VLANFiltering = number(a.Value) != 0
		case unix.IFLA_BR_VLAN_PROTOCOL: // in network byte order
			b.VLANAD = len(a.Value) == 2 && binary.BigEndian.Uint16(a.Value) == unix.ETH_P_8021AD
		case unix.IFLA_BR_MULTI_BOOLOPT: // struct br_boolopt_multi
			b.MST = len(a.Value) >= 4 && nl.NativeEndian().Uint32(a.Value)&boolMST != 0
		}
	}
	return b, nil
}

func parsePort(data []byte) (*Port, error) {
	attrs, err := nl.ParseRouteAttr(data)
	if err != nil {
		return nil, fmt.Errorf("parse bridge port attributes: %w", err)
	}
	p := &Port{Learning: true}
	for _, a := range attrs {
		switch a.Attr.Type & nestedMask {
		case unix.IFLA_BRPORT_STATE:
			p.State = PortState(number(a.Value))
		case unix.IFLA_BRPORT_MODE:
			p.Hairpin = number(a.Value) != 0
		case unix.IFLA_BRPORT_LEARNING:
			p.Learning = number(a.Value) != 0
		case unix.IFLA_BRPORT_ISOLATED:
			p.Isolated = number(a.Value) != 0
		case unix.IFLA_BRPORT_LOCKED:
			p.Locked = number(a.Value) != 0
		case unix.IFLA_BRPORT_VLAN_TUNNEL:
			p.Tunnel = number(a.Value) != 0
		case unix.IFLA_BRPORT_PROXYARP, unix.IFLA_BRPORT_PROXYARP_WIFI,
			unix.IFLA_BRPORT_NEIGH_SUPPRESS, unix.IFLA_BRPORT_NEIGH_VLAN_SUPPRESS:
			p.Answers = p.Answers || number(a.Value) != 0
		}
	}
	return p, nil
}

func parseXDP(data []byte) (uint32, error) {
	attrs, err := nl.ParseRouteAttr(data)
	if err != nil {
		return 0, fmt.Errorf("parse XDP attributes: %w", err)
	}
	for _, a := range attrs {
		if a.Attr.Type&nestedMask == xdpProgID {
			return uint32(number(a.Value)), nil
		}
	}
	return 0, nil
}

// number reads an attribute of 1, 2 or 4 bytes in host byte order; 0 for any
// other length.
func number(v []byte) uint64 {
	switch len(v) {
	case 1:
		return uint64(v[0])
	case 2:
		return uint64(nl.NativeEndian().Uint16(v))
	case 4:
		return uint64(nl.NativeEndian().Uint32(v))
	}
	return 0
}

func text(v []byte) string { return string(bytes.TrimRight(v, "\x00")) }

// MACString returns the device's address in the usual notation.
func (l *Link) MACString() string { return net.HardwareAddr(l.MAC[:]).String() }
