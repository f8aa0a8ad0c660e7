// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Key names an entry of a bridge's forwarding database.
type Key struct {
	Bridge int // ifindex
	MAC    [6]byte
	VLAN   uint16 // 0 in a bridge that is not VLAN-aware
}

// Entry is where a bridge's forwarding database sends an address.
type Entry struct {
	Port   int  // ifindex of the port, or of the bridge itself
	Local  bool // the box's own address: frames go to its stack
	Static bool // does not age
	Sticky bool // does not move
	Locked bool // learned on a locked port and not authorised yet
}

// Change is an entry that came, changed or went (Gone).
type Change struct {
	Key   Key
	Entry Entry
	Gone  bool
}

const (
	ndmsgLen   = 12
	ndaLladdr  = 2
	ndaVLAN    = 5
	ndaMaster  = 9
	ndaFlagExt = 15

	ntfUse, ntfMaster, ntfSticky = 0x01, 0x04, 0x40
	ntfExtLocked                 = 1 << 1

	nudPermanent, nudNoARP = 0x80, 0x40
)

// parseNeigh reads an RTM_NEWNEIGH or RTM_DELNEIGH message. ok is false for
// what is no entry of a bridge's database: ARP, a device's own filter (self).
func parseNeigh(data []byte) (k Key, e Entry, ok bool, err error) {
	if len(data) < ndmsgLen {
		return k, e, false, fmt.Errorf("neighbour message of %d bytes", len(data))
	}
	if data[0] != unix.AF_BRIDGE {
		return k, e, false, nil
	}
	e.Port = int(nl.NativeEndian().Uint32(data[4:]))
	state := nl.NativeEndian().Uint16(data[8:])
	flags := data[10]
	attrs, err := nl.ParseRouteAttr(data[ndmsgLen:])
	if err != nil {
		return k, e, false, fmt.Errorf("parse a neighbour message: %w", err)
	}
	hasMAC := false
	for _, a := range attrs {
		switch a.Attr.Type & nestedMask {
		case ndaLladdr:
			if len(a.Value) == 6 {
				k.MAC, hasMAC = [6]byte(a.Value), true
			}
		case ndaVLAN:
			k.VLAN = uint16(number(a.Value))
		case ndaMaster:
			k.Bridge = int(number(a.Value))
		case ndaFlagExt:
			e.Locked = number(a.Value)&ntfExtLocked != 0
		}
	}
	e.Local = state&nudPermanent != 0
	e.Static = state&(nudPermanent|nudNoARP) != 0
	e.Sticky = flags&ntfSticky != 0
	return k, e, hasMAC && k.Bridge != 0, nil
}

// Lookup asks the kernel for one entry as it is now; ok is false if there is
// none.
func (m *Mirror) Lookup(k Key) (e Entry, ok bool, err error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETNEIGH, 0)
	// The kernel takes the bridge itself, and says which port it is.
	msg := neighMessage(k, 0, 0)
	msg = append(msg, nl.NewRtAttr(ndaMaster, nl.Uint32Attr(uint32(k.Bridge))).Serialize()...)
	nl.NativeEndian().PutUint16(msg[8:], 0) // no state: the kernel refuses one here
	req.AddRawData(msg)
	msgs, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	switch {
	case errors.Is(err, unix.ENOENT):
		return Entry{}, false, nil
	case err != nil:
		return Entry{}, false, fmt.Errorf("look up station %s: %w", net.HardwareAddr(k.MAC[:]), err)
	case len(msgs) == 0:
		return Entry{}, false, nil
	}
	_, e, ok, err = parseNeigh(msgs[0])
	return e, ok, err
}

// Entries reads all entries of all bridges as they are now.
func (m *Mirror) Entries() (map[Key]Entry, error) {
	for try := 0; ; try++ {
		changes, err := dumpFDB()
		if errors.Is(err, nl.ErrDumpInterrupted) && try < 10 {
			continue
		}
		if err != nil {
			return nil, err
		}
		all := make(map[Key]Entry, len(changes))
		for _, ch := range changes {
			all[ch.Key] = ch.Entry
		}
		return all, nil
	}
}

// Refresh tells the bridge that a station was heard on a port, as if a frame
// from it had arrived there: its entry's age begins anew. The bridge itself
// does not see accelerated frames. (NTF_USE; br_fdb_update in the kernel's
// net/bridge/br_fdb.c.) Like such a frame it moves the entry if it is on
// another port, so call it only for what was heard on that port just now.
func (m *Mirror) Refresh(k Key, port int) error {
	req := nl.NewNetlinkRequest(unix.RTM_NEWNEIGH, unix.NLM_F_ACK)
	req.AddRawData(neighMessage(k, port, ntfUse|ntfMaster))
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return fmt.Errorf("refresh station %s on ifindex %d: %w", net.HardwareAddr(k.MAC[:]), port, err)
	}
	return nil
}

// Forget removes a station from the bridge's database, if it is on this port
// (RTM_DELNEIGH names both); that it is not is no error.
func (m *Mirror) Forget(k Key, port int) error {
	req := nl.NewNetlinkRequest(unix.RTM_DELNEIGH, unix.NLM_F_ACK)
	req.AddRawData(neighMessage(k, port, ntfMaster))
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("forget station %s on ifindex %d: %w", net.HardwareAddr(k.MAC[:]), port, err)
	}
	return nil
}

func neighMessage(k Key, port int, flags byte) []byte {
	msg := make([]byte, ndmsgLen)
	msg[0] = unix.AF_BRIDGE
	nl.NativeEndian().PutUint32(msg[4:], uint32(port))
	nl.NativeEndian().PutUint16(msg[8:], 0x02) // NUD_REACHABLE
	msg[10] = flags
	msg = append(msg, nl.NewRtAttr(ndaLladdr, k.MAC[:]).Serialize()...)
	if k.VLAN != 0 {
		msg = append(msg, nl.NewRtAttr(ndaVLAN, nl.Uint16Attr(k.VLAN)).Serialize()...)
	}
	return msg
}
