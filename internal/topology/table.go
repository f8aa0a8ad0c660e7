// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/bridge"
)

// What a person or a program has written into a bridge's tables for one of its
// ports goes when the port leaves the bridge. What the bridge has learned goes
// too, and is learned again.

// Address is an entry of the forwarding database that was set, not learned.
type Address struct {
	MAC    string `json:"mac"`
	VLAN   uint16 `json:"vlan,omitempty"`
	Sticky bool   `json:"sticky,omitempty"`
	Local  bool   `json:"local,omitempty"` // the box's own address
}

// readAddresses lists what was set for a port. The port's own address is not
// among it: the bridge adds that itself.
func readAddresses(d device) ([]Address, error) {
	entries, err := bridge.ReadFDB()
	if err != nil {
		return nil, err
	}
	var all []Address
	for _, e := range entries {
		if e.Key.Bridge != d.master || e.Entry.Port != d.index || !e.Entry.Static || e.Key.MAC == d.mac {
			continue
		}
		all = append(all, Address{
			MAC: net.HardwareAddr(e.Key.MAC[:]).String(), VLAN: e.Key.VLAN, Sticky: e.Entry.Sticky, Local: e.Entry.Local,
		})
	}
	return all, nil
}

const (
	ndmsgLen             = 12
	ndaLladdr, ndaVLAN   = 2, 5
	ntfMaster, ntfSticky = 0x04, 0x40

	nudNoARP, nudPermanent = 0x40, 0x80
)

// applyAddresses sets a port's addresses. One without a VLAN gets the kernel to
// add it in each of the port's VLANs as well, so what was not there goes again.
func applyAddresses(index int, want []Address) error {
	if len(want) == 0 {
		return nil
	}
	var refused error
	for _, a := range want {
		refused = errors.Join(refused, changeAddress(unix.RTM_NEWNEIGH, unix.NLM_F_CREATE|unix.NLM_F_REPLACE, index, a))
	}
	d, err := read(index, "")
	if err != nil {
		return errors.Join(refused, err)
	}
	have, err := readAddresses(d)
	if err != nil {
		return errors.Join(refused, err)
	}
	for _, a := range have {
		if a.VLAN != 0 && !slices.Contains(want, a) {
			refused = errors.Join(refused, changeAddress(unix.RTM_DELNEIGH, 0, index, a))
		}
	}
	return refused
}

func changeAddress(command, how, index int, a Address) error {
	mac, err := net.ParseMAC(a.MAC)
	if err != nil {
		return err
	}
	state := uint16(nudNoARP)
	if a.Local {
		state = nudPermanent
	}
	flags := byte(ntfMaster)
	if a.Sticky {
		flags |= ntfSticky
	}
	msg := make([]byte, ndmsgLen)
	msg[0] = unix.AF_BRIDGE
	nl.NativeEndian().PutUint32(msg[4:], uint32(index))
	nl.NativeEndian().PutUint16(msg[8:], state)
	msg[10] = flags
	// All of it raw: what is added as data comes before what is raw.
	msg = append(msg, nl.NewRtAttr(ndaLladdr, mac).Serialize()...)
	if a.VLAN != 0 {
		msg = append(msg, nl.NewRtAttr(ndaVLAN, nl.Uint16Attr(a.VLAN)).Serialize()...)
	}
	req := nl.NewNetlinkRequest(command, unix.NLM_F_ACK|how)
	req.AddRawData(msg)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("set station %s in VLAN %d: %w", a.MAC, a.VLAN, err)
	}
	Step()
	return nil
}

// Group is a permanent entry of the multicast database, as the kernel keeps it
// (struct br_mdb_entry without the port, in hexadecimal).
type Group string

const (
	mdbTable, mdbEntry, mdbInfo = 1, 1, 1 // MDBA_MDB, MDBA_MDB_ENTRY, MDBA_MDB_ENTRY_INFO
	mdbSetEntry                 = 1       // MDBA_SET_ENTRY
	mdbEntryLen                 = 28
	mdbPermanent                = 1
	portMsgLen                  = 8
	rtmGetMDB, rtmNewMDB        = 86, 84
)

// readGroups lists a port's permanent groups. A kernel without multicast
// snooping has none.
func readGroups(d device) ([]Group, error) {
	var all []Group
	err := dump(func() error {
		all = nil
		req := nl.NewNetlinkRequest(rtmGetMDB, unix.NLM_F_DUMP)
		req.AddRawData([]byte{unix.AF_BRIDGE, 0, 0, 0, 0, 0, 0, 0})
		answers, err := req.Execute(unix.NETLINK_ROUTE, 0) // the answers' type has changed over time
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, data := range answers {
			if len(data) < portMsgLen || int(nl.NativeEndian().Uint32(data[4:])) != d.master {
				continue
			}
			if all, err = appendGroups(all, data[portMsgLen:], d.index); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list multicast groups: %w", err)
	}
	return all, nil
}

// appendGroups descends MDBA_MDB, MDBA_MDB_ENTRY and MDBA_MDB_ENTRY_INFO.
func appendGroups(all []Group, data []byte, port int) ([]Group, error) {
	level := [][]byte{data}
	for _, kind := range []uint16{mdbTable, mdbEntry, mdbInfo} {
		var inner [][]byte
		for _, nest := range level {
			attrs, err := nl.ParseRouteAttr(nest)
			if err != nil {
				return nil, fmt.Errorf("parse multicast groups: %w", err)
			}
			for _, a := range attrs {
				if a.Attr.Type&typeMask == kind {
					inner = append(inner, a.Value)
				}
			}
		}
		level = inner
	}
	for _, entry := range level {
		if len(entry) >= mdbEntryLen && int(nl.NativeEndian().Uint32(entry)) == port && entry[4] == mdbPermanent {
			all = append(all, Group(hex.EncodeToString(entry[4:mdbEntryLen])))
		}
	}
	return all, nil
}

func applyGroup(bridge, port int, g Group) error {
	rest, err := hex.DecodeString(string(g))
	if err != nil || len(rest) != mdbEntryLen-4 {
		return fmt.Errorf("multicast group %q makes no sense", g)
	}
	rest[1] = 0 // flags: the kernel's own
	msg := make([]byte, portMsgLen)
	msg[0] = unix.AF_BRIDGE
	nl.NativeEndian().PutUint32(msg[4:], uint32(bridge))
	req := nl.NewNetlinkRequest(rtmNewMDB, unix.NLM_F_ACK|unix.NLM_F_CREATE)
	req.AddRawData(append(msg, nl.NewRtAttr(mdbSetEntry, append(nl.Uint32Attr(uint32(port)), rest...)).Serialize()...))
	_, err = req.Execute(unix.NETLINK_ROUTE, 0)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add a multicast group: %w", err)
	}
	Step()
	return nil
}
