// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"net"

	"github.com/cilium/ebpf"

	"github.com/xdpl2/xdpl2/bpf"
)

// TCProgram is what the names of tc programs begin with, as other tools show
// them.
const TCProgram = bpf.DatapathProgXdpl2Tc

// PortFlags says what a port may do at the moment.
type PortFlags uint32

// See the comments of enum port_flag in bpf/maps.h.
const (
	PortEnabled       = PortFlags(bpf.DatapathPortFlagPORT_ENABLED)
	PortForwarding    = PortFlags(bpf.DatapathPortFlagPORT_FORWARDING)
	PortLearns        = PortFlags(bpf.DatapathPortFlagPORT_LEARNS)
	PortIsolated      = PortFlags(bpf.DatapathPortFlagPORT_ISOLATED)
	PortFiltered      = PortFlags(bpf.DatapathPortFlagPORT_FILTERED)
	PortVLAN          = PortFlags(bpf.DatapathPortFlagPORT_VLAN)
	PortPassTagged    = PortFlags(bpf.DatapathPortFlagPORT_PASS_TAGGED)
	PortHidesTags     = PortFlags(bpf.DatapathPortFlagPORT_HIDES_TAGS)
	PortLosesTags     = PortFlags(bpf.DatapathPortFlagPORT_LOSES_TAGS)
	PortKeepsEgress   = PortFlags(bpf.DatapathPortFlagPORT_KEEPS_EGRESS)
	PortLocked        = PortFlags(bpf.DatapathPortFlagPORT_LOCKED)
	PortFiltersEgress = PortFlags(bpf.DatapathPortFlagPORT_FILTERS_EGRESS)
)

// Port is the live state of a slot.
type Port struct {
	Ifindex uint32
	Flags   PortFlags
	MaxLen  uint32 // longest frame that may leave, in bytes with Ethernet header, without FCS
	// PVID is the VLAN of frames that come untagged, in a VLAN-aware bridge; 0:
	// they belong to none.
	PVID uint16
}

// SetPort makes a slot stand for a device. It becomes a redirect target at
// once; frames that arrive there are judged by the program attached to it.
func (d *Datapath) SetPort(slot uint32, p Port) error {
	if slot >= MaxPorts {
		return fmt.Errorf("set port of slot %d: expected below %d", slot, MaxPorts)
	}
	d.live.setPort(slot, bpf.DatapathPort{Ifindex: p.Ifindex, Flags: bpf.DatapathPortFlag(p.Flags), MaxLen: p.MaxLen, Pvid: uint32(p.PVID)})
	if err := d.maps.Egress.Put(slot, p.Ifindex); err != nil {
		return fmt.Errorf("set redirect target of slot %d to ifindex %d: %w", slot, p.Ifindex, err)
	}
	return nil
}

// ClearPort takes a slot out of use: what would leave by it goes to the stack.
func (d *Datapath) ClearPort(slot uint32) error {
	if slot >= MaxPorts {
		return fmt.Errorf("clear port of slot %d: expected below %d", slot, MaxPorts)
	}
	d.live.setPort(slot, bpf.DatapathPort{})
	if err := d.maps.Egress.Delete(slot); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("clear redirect target of slot %d: %w", slot, err)
	}
	return nil
}

// What a port is in a VLAN; see enum vlan_flag in bpf/maps.h.
const (
	VLANMember   = byte(bpf.DatapathVlanFlagVLAN_MEMBER)
	VLANForwards = byte(bpf.DatapathVlanFlagVLAN_FORWARDS)
	VLANLearns   = byte(bpf.DatapathVlanFlagVLAN_LEARNS)
	VLANUntagged = byte(bpf.DatapathVlanFlagVLAN_UNTAGGED)
)

// VLANs says what a port is in each VLAN, by VLAN ID.
type VLANs [4096]byte

// SetPortVLANs sets a slot's VLANs. Programs of a VLAN-aware bridge read them,
// those of the port and those of the ports that its frames leave by.
func (d *Datapath) SetPortVLANs(slot uint32, v *VLANs) error {
	if err := d.maps.Vlans.Put(slot, bpf.DatapathPortVlans{Vid: *v}); err != nil {
		return fmt.Errorf("set VLANs of slot %d: %w", slot, err)
	}
	return nil
}

// StationKey names a station: an address in a VLAN.
type StationKey struct {
	MAC  [6]byte
	VLAN uint16 // 0 in a bridge that is not VLAN-aware
}

// String returns the address, and the VLAN if there is one.
func (k StationKey) String() string {
	if k.VLAN == 0 {
		return net.HardwareAddr(k.MAC[:]).String()
	}
	return fmt.Sprintf("%s vlan %d", net.HardwareAddr(k.MAC[:]), k.VLAN)
}

// Station is where a station's frames go.
type Station struct {
	Slot  uint32
	Local bool // an address of the box itself
	Stay  bool // static: is not moved by a frame that it sends from elsewhere
	// Unsure: nothing is sent there before ConfirmStation, but a frame from
	// elsewhere removes it.
	Unsure bool
	// Seen is the epoch in which the data path last saw it send; 0 if never.
	Seen uint32
}

// ErrStationsFull is returned when the station table has no room left.
var ErrStationsFull = errors.New("station table is full")

// PutStation adds or replaces a station.
func (d *Datapath) PutStation(k StationKey, s Station) error {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if !d.table.put(k, s) {
		return fmt.Errorf("put station %s: %w (option max_stations)", k, ErrStationsFull)
	}
	return nil
}

// ConfirmStation makes an unsure station sure, unless the data path has removed
// it meanwhile, because it moved.
func (d *Datapath) ConfirmStation(k StationKey, s Station) {
	s.Unsure = false
	d.mu.RLock()
	defer d.mu.RUnlock()
	d.table.confirm(k, s)
}

// DeleteStation removes a station. It may not be there: the data path itself
// removes stations that have moved.
func (d *Datapath) DeleteStation(k StationKey) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	d.table.delete(k)
}

// Station looks one station up.
func (d *Datapath) Station(k StationKey) (Station, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.table.get(k)
}

// Stations calls f for every station until it returns false. Stations that
// come or go meanwhile may or may not be among them, and one may come twice.
func (d *Datapath) Stations(f func(StationKey, Station) bool) {
	const batch = 64 // lines
	var some []entry
	for from := 0; ; from += batch {
		d.mu.RLock()
		end := from >= len(d.table.lines)
		if !end {
			some = d.table.read(some[:0], from, from+batch)
		}
		d.mu.RUnlock()
		if end {
			return
		}
		for _, e := range some {
			if !f(e.key, e.station) {
				return
			}
		}
	}
}
