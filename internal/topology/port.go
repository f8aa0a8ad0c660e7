// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// setting is something that a bridge keeps about a port and that user space
// may set: the writable attributes of br_port_policy in the kernel's
// net/bridge/br_netlink.c, with IFLA_BRPORT_* as number.
type setting struct {
	name   string
	number uint16
	size   int // bytes
}

const (
	portState    = 1
	portPriority = 2
	portNumber   = 18

	stpOff = 0
)

var portSettings = []setting{
	{"priority", portPriority, 2}, {"cost", 3, 4}, {"hairpin", 4, 1}, {"bpdu_guard", 5, 1}, {"root_block", 6, 1},
	{"fast_leave", 7, 1}, {"learning", 8, 1}, {"flood", 9, 1}, {"proxy_arp", 10, 1}, {"proxy_arp_wifi", 12, 1},
	{"mcast_router", 25, 1}, {"mcast_flood", 27, 1}, {"mcast_to_unicast", 28, 1}, {"vlan_tunnel", 29, 1},
	{"bcast_flood", 30, 1}, {"group_fwd_mask", 31, 2}, {"neigh_suppress", 32, 1}, {"isolated", 33, 1},
	{"backup_port", 34, 4}, {"mcast_eht_hosts_limit", 37, 4}, {"locked", 39, 1}, {"mab", 40, 1},
	{"mcast_max_groups", 42, 4}, {"neigh_vlan_suppress", 43, 1}, {"backup_nhid", 44, 4},
	// Last: a port that does not forward yet must have the rest by then.
	{"state", portState, 1},
}

// readSettings returns those settings that this kernel knows.
func readSettings(port map[uint16][]byte) map[string]uint32 {
	all := map[string]uint32{}
	for _, s := range portSettings {
		v, ok := port[s.number]
		if !ok || len(v) != s.size {
			continue
		}
		switch s.size {
		case 1:
			all[s.name] = uint32(v[0])
		case 2:
			all[s.name] = uint32(nl.NativeEndian().Uint16(v))
		case 4:
			all[s.name] = nl.NativeEndian().Uint32(v)
		}
	}
	return all
}

func (s setting) encode(v uint32) *nl.RtAttr {
	switch s.size {
	case 1:
		return nl.NewRtAttr(int(s.number), []byte{byte(v)})
	case 2:
		return nl.NewRtAttr(int(s.number), nl.Uint16Attr(uint16(v)))
	}
	return nl.NewRtAttr(int(s.number), nl.Uint32Attr(v))
}

// applySettings makes a bridge port's settings what they should be. Only those
// that differ are written: a cost that is set no longer follows the speed. What
// the kernel refuses is named, and does not keep it from the rest.
func applySettings(d device, want map[string]uint32) error {
	have := readSettings(d.port)
	var refused error
	for _, s := range portSettings {
		v, ok := want[s.name]
		if now, known := have[s.name]; !ok || !known || now == v {
			continue
		}
		nest := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
		nest.AddChild(s.encode(v))
		err := change(unix.RTM_SETLINK, unix.AF_BRIDGE, d.index, 0, 0, nest)
		if errors.Is(err, ErrGone) {
			return err
		}
		if err != nil {
			refused = errors.Join(refused, fmt.Errorf("set %s of port %s to %d: %w", s.name, d.name, v, err))
		}
	}
	return refused
}

// VLANs is a port's membership in VLANs From to To (or one, then To is From).
type VLANs struct {
	From  uint16 `json:"from"`
	To    uint16 `json:"to"`
	Flags uint16 `json:"flags"` // BRIDGE_VLAN_INFO_PVID, _UNTAGGED
}

const (
	afSpecVLANInfo = 2 // IFLA_BRIDGE_VLAN_INFO

	vlanRangeBegin, vlanRangeEnd = 1 << 3, 1 << 4
	vlanKept                     = 1<<1 | 1<<2 // PVID, UNTAGGED
)

// readVLANs lists every port's VLANs, by ifindex. A kernel without VLAN
// filtering tells none.
func readVLANs() (map[int][]VLANs, error) {
	var all map[int][]VLANs
	err := dump(func() error {
		all = map[int][]VLANs{}
		req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(unix.AF_BRIDGE))
		req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(extVLANsCompressed)))
		answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
		if err != nil {
			return err
		}
		for _, data := range answers {
			if len(data) < unix.SizeofIfInfomsg {
				return fmt.Errorf("link message of %d bytes", len(data))
			}
			attrs, err := attributes(data[unix.SizeofIfInfomsg:])
			if err != nil {
				return err
			}
			list, err := parseVLANs(attrs[unix.IFLA_AF_SPEC])
			if err != nil {
				return err
			}
			if len(list) > 0 {
				all[int(nl.DeserializeIfInfomsg(data).Index)] = list
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the ports' VLANs: %w", err)
	}
	return all, nil
}

func parseVLANs(spec []byte) (list []VLANs, err error) {
	attrs, err := nl.ParseRouteAttr(spec)
	if err != nil {
		return nil, fmt.Errorf("parse VLANs: %w", err)
	}
	for _, a := range attrs {
		if a.Attr.Type&typeMask != afSpecVLANInfo || len(a.Value) < 4 {
			continue
		}
		flags, vid := nl.NativeEndian().Uint16(a.Value), nl.NativeEndian().Uint16(a.Value[2:])
		if flags&vlanRangeEnd != 0 && len(list) > 0 {
			list[len(list)-1].To = vid
			continue
		}
		list = append(list, VLANs{From: vid, To: vid, Flags: flags & vlanKept})
	}
	return list, nil
}

// applyVLANs makes a port's VLANs what they should be.
func applyVLANs(index int, want []VLANs) error {
	tables, err := readVLANs()
	if err != nil {
		return err
	}
	have := tables[index]
	if slices.Equal(have, want) {
		return nil
	}
	has := func(list []VLANs, v VLANs) bool { return slices.Contains(list, v) }
	for _, v := range have {
		if !has(want, v) {
			if err := changeVLANs(unix.RTM_DELLINK, index, v); err != nil {
				return fmt.Errorf("take a port out of VLANs %d to %d: %w", v.From, v.To, err)
			}
		}
	}
	for _, v := range want {
		// Also what was there: the ranges that went may have overlapped it.
		if err := changeVLANs(unix.RTM_SETLINK, index, v); err != nil {
			return fmt.Errorf("add a port to VLANs %d to %d: %w", v.From, v.To, err)
		}
	}
	return nil
}

func changeVLANs(command, index int, v VLANs) error {
	info := func(flags, vid uint16) *nl.RtAttr {
		return nl.NewRtAttr(afSpecVLANInfo, append(nl.Uint16Attr(flags), nl.Uint16Attr(vid)...))
	}
	nest := nl.NewRtAttr(unix.IFLA_AF_SPEC|unix.NLA_F_NESTED, nil)
	if v.From == v.To {
		nest.AddChild(info(v.Flags, v.From))
	} else {
		nest.AddChild(info(v.Flags|vlanRangeBegin, v.From))
		nest.AddChild(info(v.Flags|vlanRangeEnd, v.To))
	}
	return change(command, unix.AF_BRIDGE, index, 0, 0, nest)
}

// dump lists until the kernel gives a list in one piece.
func dump(list func() error) error {
	for try := 1; ; try++ {
		err := list()
		if err == nil || !errors.Is(err, nl.ErrDumpInterrupted) || try == 20 {
			return err
		}
	}
}
