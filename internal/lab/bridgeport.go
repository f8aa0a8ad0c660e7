// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// What `bridge` and `ip link` set on a bridge and its ports, by interface
// index and over a socket that stays open: tests that change a bridge thousands
// of times need both. Attributes are sent as they are; one that the kernel does
// not know it ignores, so read back what matters.

// BridgePortChange says what to change of a bridge port; nil stays as it is.
type BridgePortChange struct {
	State    *PortState
	Isolated *bool
	Hairpin  *bool
	Learning *bool
	Locked   *bool // only known sources (802.1X); Linux 5.18
	Flood    *bool // unicast to unknown stations leaves here
	Flush    bool  // forget the stations that were learned here
}

// brportLocked is IFLA_BRPORT_LOCKED, which the library lacks.
const brportLocked = 39

// ChangeBridgePort changes a bridge port in one request. See Lab.SetPortState
// for the states that the kernel does not keep.
func (ns *NS) ChangeBridgePort(ifindex int, c BridgePortChange) error {
	info := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
	flag := func(attr int, on *bool) {
		if on != nil {
			info.AddRtAttr(attr, boolAttr(*on))
		}
	}
	flag(nl.IFLA_BRPORT_ISOLATED, c.Isolated)
	flag(nl.IFLA_BRPORT_MODE, c.Hairpin)
	flag(nl.IFLA_BRPORT_LEARNING, c.Learning)
	flag(brportLocked, c.Locked)
	flag(nl.IFLA_BRPORT_UNICAST_FLOOD, c.Flood)
	if c.State != nil {
		info.AddRtAttr(nl.IFLA_BRPORT_STATE, nl.Uint8Attr(uint8(*c.State)))
	}
	if c.Flush {
		info.AddRtAttr(nl.IFLA_BRPORT_FLUSH, nil)
	}
	if err := ns.setBridgeLink(unix.RTM_SETLINK, ifindex, info); err != nil {
		return fmt.Errorf("change bridge port %d: %w", ifindex, err)
	}
	return nil
}

func boolAttr(on bool) []byte {
	if on {
		return nl.Uint8Attr(1)
	}
	return nl.Uint8Attr(0)
}

func (ns *NS) setBridgeLink(kind, ifindex int, attr nl.NetlinkRequestData) error {
	req := nl.NewNetlinkRequest(kind, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_BRIDGE)
	msg.Index = int32(ifindex)
	req.AddData(msg)
	req.AddData(attr)
	_, err := ns.Request(req, 0)
	return err
}

// PortVLAN is a port's membership in a VLAN.
type PortVLAN struct {
	VID            uint16
	PVID, Untagged bool
}

// AddPortVLANs makes a port a member of VLANs, or changes how it is one. With
// self the port is the bridge itself.
func (ns *NS) AddPortVLANs(ifindex int, self bool, vlans ...PortVLAN) error {
	return ns.portVLANs(unix.RTM_SETLINK, ifindex, self, vlans)
}

// DelPortVLANs takes a port out of VLANs.
func (ns *NS) DelPortVLANs(ifindex int, self bool, vlans ...PortVLAN) error {
	return ns.portVLANs(unix.RTM_DELLINK, ifindex, self, vlans)
}

func (ns *NS) portVLANs(kind, ifindex int, self bool, vlans []PortVLAN) error {
	spec := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
	if self {
		spec.AddRtAttr(nl.IFLA_BRIDGE_FLAGS, nl.Uint16Attr(nl.BRIDGE_FLAGS_SELF))
	}
	for _, v := range vlans {
		info := nl.BridgeVlanInfo{Vid: v.VID}
		if v.PVID {
			info.Flags |= nl.BRIDGE_VLAN_INFO_PVID
		}
		if v.Untagged {
			info.Flags |= nl.BRIDGE_VLAN_INFO_UNTAGGED
		}
		spec.AddRtAttr(nl.IFLA_BRIDGE_VLAN_INFO, info.Serialize())
	}
	if err := ns.setBridgeLink(kind, ifindex, spec); err != nil {
		return fmt.Errorf("VLANs of bridge port %d: %w", ifindex, err)
	}
	return nil
}

// SetPortVLANState sets the spanning tree state of one VLAN on a port (Linux
// 5.6, without STP in the kernel).
func (ns *NS) SetPortVLANState(ifindex int, vid uint16, s PortState) error {
	const (
		rtmNewVLAN = 112 // RTM_NEWVLAN
		onlyOpts   = 1 << 6

		vlanEntry, vlanInfo, vlanState = 1, 1, 3 // BRIDGE_VLANDB_ENTRY*
	)
	req := nl.NewNetlinkRequest(rtmNewVLAN, unix.NLM_F_ACK)
	msg := make([]byte, 8) // struct br_vlan_msg
	msg[0] = unix.AF_BRIDGE
	nl.NativeEndian().PutUint32(msg[4:], uint32(ifindex))
	entry := nl.NewRtAttr(vlanEntry|unix.NLA_F_NESTED, nil)
	info := nl.BridgeVlanInfo{Flags: onlyOpts, Vid: vid}
	entry.AddRtAttr(vlanInfo, info.Serialize())
	entry.AddRtAttr(vlanState, nl.Uint8Attr(uint8(s)))
	// The library sends raw data last, so all of it is raw.
	req.AddRawData(append(msg, entry.Serialize()...))
	if _, err := ns.Request(req, 0); err != nil {
		return fmt.Errorf("state of VLAN %d on bridge port %d: %w", vid, ifindex, err)
	}
	return nil
}

// BridgeChange says what to change of a bridge; nil stays as it is.
type BridgeChange struct {
	VLANFiltering *bool
	VLANProtocol  uint16  // EtherTypeVLAN or EtherTypeSVLAN; 0: as it is
	AgeingTicks   *uint32 // hundredths of a second
	Flush         bool    // forget what was learned, on all ports
}

// ChangeBridge changes a bridge device in one request.
func (ns *NS) ChangeBridge(ifindex int, c BridgeChange) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(ifindex)
	req.AddData(msg)
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(nl.IFLA_INFO_KIND, []byte("bridge"))
	data := info.AddRtAttr(nl.IFLA_INFO_DATA, nil)
	if c.VLANFiltering != nil {
		data.AddRtAttr(nl.IFLA_BR_VLAN_FILTERING, boolAttr(*c.VLANFiltering))
	}
	if c.VLANProtocol != 0 {
		data.AddRtAttr(nl.IFLA_BR_VLAN_PROTOCOL, []byte{byte(c.VLANProtocol >> 8), byte(c.VLANProtocol)})
	}
	if c.AgeingTicks != nil {
		data.AddRtAttr(nl.IFLA_BR_AGEING_TIME, nl.Uint32Attr(*c.AgeingTicks))
	}
	if c.Flush {
		data.AddRtAttr(nl.IFLA_BR_FDB_FLUSH, nil)
	}
	req.AddData(info)
	if _, err := ns.Request(req, 0); err != nil {
		return fmt.Errorf("change bridge %d: %w", ifindex, err)
	}
	return nil
}

// SetMTU sets a device's MTU.
func (ns *NS) SetMTU(ifindex, mtu int) error {
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(ifindex)
	req.AddData(msg)
	req.AddData(nl.NewRtAttr(unix.IFLA_MTU, nl.Uint32Attr(uint32(mtu))))
	if _, err := ns.Request(req, 0); err != nil {
		return fmt.Errorf("set MTU of device %d to %d: %w", ifindex, mtu, err)
	}
	return nil
}

// FDBEntry is an entry of a bridge's forwarding database.
type FDBEntry struct {
	MAC  [6]byte
	VLAN uint16 // 0: none
	Port int    // ifindex of the port, or of the bridge
	// Local is an address of the box, Static does not age, Sticky does not
	// move. Local entries are static as well.
	Local, Static, Sticky bool
}

// String shows the entry as `bridge fdb` does, but for the port's name.
func (e FDBEntry) String() string {
	text := net.HardwareAddr(e.MAC[:]).String()
	if e.VLAN != 0 {
		text += fmt.Sprintf(" vlan %d", e.VLAN)
	}
	switch {
	case e.Local:
		text += " permanent"
	case e.Static:
		text += " static"
	}
	if e.Sticky {
		text += " sticky"
	}
	return text
}

// numbers of linux/neighbour.h.
const (
	ndmsgLen             = 12
	ndaLladdr            = 2
	ndaVLAN              = 5
	ndaMaster            = 9
	ntfMaster            = 0x04
	ntfSticky            = 0x40
	nudReachable  uint16 = 0x02
	nudNoARP      uint16 = 0x40
	nudPermanent  uint16 = 0x80
	nestedMaskFDB uint16 = ^uint16(unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
)

// PutFDB adds an entry to the database of the bridge that the port belongs to,
// or replaces it. Without a VLAN the kernel adds it for each VLAN of the port.
func (ns *NS) PutFDB(e FDBEntry) error {
	state := nudReachable
	switch {
	case e.Local:
		state = nudPermanent
	case e.Static:
		state = nudNoARP
	}
	flags := byte(ntfMaster)
	if e.Sticky {
		flags |= ntfSticky
	}
	req := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_REPLACE)
	return ns.changeFDB(req, e, state, flags)
}

// DelFDB removes an entry.
func (ns *NS) DelFDB(e FDBEntry) error {
	return ns.changeFDB(nl.NewNetlinkRequest(unix.RTM_DELNEIGH, unix.NLM_F_ACK), e, 0, ntfMaster)
}

func (ns *NS) changeFDB(req *nl.NetlinkRequest, e FDBEntry, state uint16, flags byte) error {
	msg := make([]byte, ndmsgLen)
	msg[0] = unix.AF_BRIDGE
	nl.NativeEndian().PutUint32(msg[4:], uint32(e.Port))
	nl.NativeEndian().PutUint16(msg[8:], state)
	msg[10] = flags
	msg = append(msg, nl.NewRtAttr(ndaLladdr, e.MAC[:]).Serialize()...)
	if e.VLAN != 0 {
		msg = append(msg, nl.NewRtAttr(ndaVLAN, nl.Uint16Attr(e.VLAN)).Serialize()...)
	}
	req.AddRawData(msg)
	if _, err := ns.Request(req, 0); err != nil {
		return fmt.Errorf("change entry %s on port %d: %w", e, e.Port, err)
	}
	return nil
}

// FDB lists the databases of all bridges of the namespace.
func (ns *NS) FDB() ([]FDBEntry, error) {
	var all []FDBEntry
	for try := 0; ; try++ {
		req := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, unix.NLM_F_DUMP)
		msg := make([]byte, ndmsgLen)
		msg[0] = unix.AF_BRIDGE
		req.AddRawData(msg)
		msgs, err := ns.Request(req, unix.RTM_NEWNEIGH)
		if errors.Is(err, nl.ErrDumpInterrupted) && try < 10 {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list stations: %w", err)
		}
		for _, m := range msgs {
			e, ok, err := parseFDB(m)
			if err != nil {
				return nil, fmt.Errorf("list stations: %w", err)
			}
			if ok {
				all = append(all, e)
			}
		}
		return all, nil
	}
}

func parseFDB(m []byte) (e FDBEntry, ok bool, err error) {
	if len(m) < ndmsgLen || m[0] != unix.AF_BRIDGE {
		return e, false, nil
	}
	attrs, err := nl.ParseRouteAttr(m[ndmsgLen:])
	if err != nil {
		return e, false, err
	}
	e.Port = int(nl.NativeEndian().Uint32(m[4:]))
	state := nl.NativeEndian().Uint16(m[8:])
	e.Local = state&nudPermanent != 0
	e.Static = state&(nudPermanent|nudNoARP) != 0
	e.Sticky = m[10]&ntfSticky != 0
	for _, a := range attrs {
		switch a.Attr.Type & nestedMaskFDB {
		case ndaLladdr:
			copy(e.MAC[:], a.Value)
		case ndaVLAN:
			e.VLAN = nl.NativeEndian().Uint16(a.Value)
		case ndaMaster: // without it the entry is a device's own filter
			ok = true
		}
	}
	return e, ok, nil
}
