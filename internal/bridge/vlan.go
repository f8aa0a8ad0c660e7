// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// VLAN is what a port is in one VLAN. The zero value: no member.
type VLAN uint8

const (
	vlanMember   VLAN = 1 << 0
	vlanUntagged VLAN = 1 << 1
	vlanStateAt       = 4 // the STP state is kept in the bits from here on
)

// Member reports whether the port's frames may be of this VLAN.
func (v VLAN) Member() bool { return v&vlanMember != 0 }

// Untagged reports whether frames of this VLAN leave without a tag.
func (v VLAN) Untagged() bool { return v&vlanUntagged != 0 }

// State is the VLAN's own STP state on this port. It counts beside the port's,
// and is Forwarding unless somebody sets it.
func (v VLAN) State() PortState { return PortState(v >> vlanStateAt) }

// VLANs is the VLAN table of a bridge port. It does not change: a table that
// does is replaced.
type VLANs struct {
	PVID uint16 // the VLAN of untagged frames; 0: there is none
	By   [4096]VLAN
}

// Of the kernel's rtnetlink interface for bridge VLANs (include/uapi/linux/
// if_bridge.h, since 5.6).
const (
	vlanMsgLen = 8

	vlanDBEntry = 1

	vlanEntryInfo, vlanEntryRange, vlanEntryState = 1, 2, 3

	vlanInfoPVID, vlanInfoUntagged = 1 << 1, 1 << 2
)

// vlanRange is one entry of a message: VLANs in a row that are alike.
type vlanRange struct {
	first, last uint16
	vlan        VLAN
	pvid        bool
}

// parseVLANs reads an RTM_NEWVLAN or RTM_DELVLAN message.
func parseVLANs(data []byte) (ifindex int, ranges []vlanRange, err error) {
	if len(data) < vlanMsgLen {
		return 0, nil, fmt.Errorf("VLAN message of %d bytes", len(data))
	}
	ifindex = int(nl.NativeEndian().Uint32(data[4:]))
	attrs, err := nl.ParseRouteAttr(data[vlanMsgLen:])
	if err != nil {
		return 0, nil, fmt.Errorf("parse a VLAN message: %w", err)
	}
	for _, a := range attrs {
		if a.Attr.Type&nestedMask != vlanDBEntry {
			continue
		}
		r, err := parseVLANEntry(a.Value)
		if err != nil {
			return 0, nil, err
		}
		ranges = append(ranges, r)
	}
	return ifindex, ranges, nil
}

func parseVLANEntry(data []byte) (vlanRange, error) {
	var r vlanRange
	attrs, err := nl.ParseRouteAttr(data)
	if err != nil {
		return r, fmt.Errorf("parse a VLAN entry: %w", err)
	}
	state := Forwarding
	for _, a := range attrs {
		switch a.Attr.Type & nestedMask {
		case vlanEntryInfo: // struct bridge_vlan_info
			if len(a.Value) < 4 {
				return r, fmt.Errorf("VLAN entry of %d bytes", len(a.Value))
			}
			flags := nl.NativeEndian().Uint16(a.Value)
			r.first = nl.NativeEndian().Uint16(a.Value[2:])
			r.vlan = vlanMember
			if flags&vlanInfoUntagged != 0 {
				r.vlan |= vlanUntagged
			}
			r.pvid = flags&vlanInfoPVID != 0
		case vlanEntryRange:
			r.last = uint16(number(a.Value))
		case vlanEntryState:
			state = PortState(number(a.Value))
		}
	}
	r.last = max(r.first, r.last)
	if r.first == 0 || r.last >= 4096 {
		return r, fmt.Errorf("VLAN entry for %d to %d", r.first, r.last)
	}
	r.vlan |= VLAN(state) << vlanStateAt
	return r, nil
}

// apply changes a table as a message says.
func (v *VLANs) apply(ranges []vlanRange, gone bool) {
	for _, r := range ranges {
		for vid := int(r.first); vid <= int(r.last); vid++ {
			if gone {
				v.By[vid] = 0
			} else {
				v.By[vid] = r.vlan
			}
		}
		switch {
		case r.pvid && !gone:
			v.PVID = r.first
		case r.first <= v.PVID && v.PVID <= r.last:
			v.PVID = 0
		}
	}
}

// digestVLANs applies a message and returns the device it is about. Tables are
// copied before they change: readers have the old ones.
func (m *Mirror) digestVLANs(data []byte, gone bool) (ifindex int, changed bool, err error) {
	ifindex, ranges, err := parseVLANs(data)
	if err != nil || len(ranges) == 0 {
		return ifindex, false, err
	}
	table := &VLANs{}
	if old := m.vlans[ifindex]; old != nil {
		*table = *old
	}
	table.apply(ranges, gone)
	if old := m.vlans[ifindex]; old != nil && *old == *table || old == nil && *table == (VLANs{}) {
		return ifindex, false, nil
	}
	m.setVLANs(ifindex, table)
	return ifindex, true, nil
}

// setVLANs keeps a device's table, also if the device is not known yet: the
// kernel may tell of its VLANs first.
func (m *Mirror) setVLANs(ifindex int, table *VLANs) {
	if *table == (VLANs{}) {
		table = nil
		delete(m.vlans, ifindex)
	} else {
		m.vlans[ifindex] = table
	}
	if l, ok := m.links[ifindex]; ok {
		l.VLANs = table
		m.links[ifindex] = l
	}
}

// dumpVLANs reads the tables of all bridge ports. A kernel without bridge VLAN
// filtering, or without a bridge yet, has none.
func (m *Mirror) dumpVLANs() error {
	m.vlans = map[int]*VLANs{}
	req := nl.NewNetlinkRequest(unix.RTM_GETVLAN, unix.NLM_F_DUMP)
	msg := make([]byte, vlanMsgLen)
	msg[0] = unix.AF_BRIDGE
	req.AddRawData(msg)
	msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWVLAN)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list bridge VLANs: %w", err)
	}
	for _, data := range msgs {
		if _, _, err := m.digestVLANs(data, false); err != nil {
			return err
		}
	}
	return nil
}
