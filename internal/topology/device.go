// SPDX-License-Identifier: Apache-2.0

// Package topology takes ports out of their bridge and brings them back as
// they were. It knows devices and bridges; which ports are taken, and when, is
// decided elsewhere (package control), and so is where it is written down.
//
// Everything here acts in the network namespace of the calling thread.
package topology

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// ErrGone is wrapped when there is no such device (any more).
var ErrGone = errors.New("no such device")

// Step, if it is set, is called after every change to the system. Tests end
// the process there.
var Step = func() {}

// device is what is read of a device before its place is changed.
type device struct {
	index   int
	name    string
	kind    string
	up      bool
	carrier bool
	promisc bool // asked for by user space; what bridges and sniffers ask for is counted apart
	mac     [6]byte
	master  int
	number  uint16            // of the port in its bridge
	port    map[uint16][]byte // IFLA_BRPORT_*, if it is a bridge's port
	bridge  map[uint16][]byte // IFLA_BR_*, if it is a bridge
}

const (
	infoKind, infoData, infoSlaveKind, infoSlaveData = 1, 2, 4, 5

	typeMask = ^uint16(unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)

	extSkipStats       = 1 << 3 // RTEXT_FILTER_SKIP_STATS
	extVLANsCompressed = 1 << 2 // RTEXT_FILTER_BRVLAN_COMPRESSED
)

// read asks for a device by index, or by name if the index is 0.
func read(index int, name string) (device, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(index)
	req.AddData(msg)
	if index == 0 {
		req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(name)))
	}
	req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(extSkipStats)))
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if errors.Is(err, unix.ENODEV) {
		return device{}, fmt.Errorf("device %s (ifindex %d): %w", name, index, ErrGone)
	}
	if err == nil && len(answers) != 1 {
		err = fmt.Errorf("%d answers", len(answers))
	}
	if err != nil {
		return device{}, fmt.Errorf("read device %s (ifindex %d): %w", name, index, err)
	}
	return parse(answers[0])
}

func parse(data []byte) (d device, err error) {
	if len(data) < unix.SizeofIfInfomsg {
		return d, fmt.Errorf("link message of %d bytes", len(data))
	}
	msg := nl.DeserializeIfInfomsg(data)
	d.index = int(msg.Index)
	d.up = msg.Flags&unix.IFF_UP != 0
	d.carrier = msg.Flags&unix.IFF_LOWER_UP != 0
	d.promisc = msg.Flags&unix.IFF_PROMISC != 0
	attrs, err := attributes(data[unix.SizeofIfInfomsg:])
	if err != nil {
		return d, err
	}
	d.name = string(bytes.TrimRight(attrs[unix.IFLA_IFNAME], "\x00"))
	copy(d.mac[:], attrs[unix.IFLA_ADDRESS])
	if v := attrs[unix.IFLA_MASTER]; len(v) == 4 {
		d.master = int(nl.NativeEndian().Uint32(v))
	}
	info, err := attributes(attrs[unix.IFLA_LINKINFO])
	if err != nil {
		return d, err
	}
	d.kind = string(bytes.TrimRight(info[infoKind], "\x00"))
	if d.kind == "bridge" {
		if d.bridge, err = attributes(info[infoData]); err != nil {
			return d, err
		}
	}
	if string(bytes.TrimRight(info[infoSlaveKind], "\x00")) == "bridge" {
		if d.port, err = attributes(info[infoSlaveData]); err != nil {
			return d, err
		}
		if v := d.port[portNumber]; len(v) == 2 {
			d.number = nl.NativeEndian().Uint16(v)
		}
	}
	return d, nil
}

// attributes splits a nest; of a type that comes twice the last one counts.
func attributes(data []byte) (map[uint16][]byte, error) {
	list, err := nl.ParseRouteAttr(data)
	if err != nil {
		return nil, fmt.Errorf("parse link attributes: %w", err)
	}
	all := make(map[uint16][]byte, len(list))
	for _, a := range list {
		all[a.Attr.Type&typeMask] = a.Value
	}
	return all, nil
}

// change sends one request about a device and waits for the kernel's answer.
func change(command int, family uint8, index int, flags, mask uint32, attrs ...*nl.RtAttr) error {
	req := nl.NewNetlinkRequest(command, unix.NLM_F_ACK)
	msg := nl.NewIfInfomsg(int(family))
	msg.Index, msg.Flags, msg.Change = int32(index), flags, mask
	req.AddData(msg)
	for _, a := range attrs {
		req.AddData(a)
	}
	_, err := req.Execute(unix.NETLINK_ROUTE, 0)
	if errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("ifindex %d: %w", index, ErrGone)
	}
	if err == nil {
		Step()
	}
	return err
}

func setMaster(index, master int) error {
	if err := change(unix.RTM_SETLINK, unix.AF_UNSPEC, index, 0, 0, nl.NewRtAttr(unix.IFLA_MASTER, nl.Uint32Attr(uint32(master)))); err != nil {
		return fmt.Errorf("change the master: %w", err)
	}
	return nil
}

// setFlag sets or clears a device flag, such as IFF_UP.
func setFlag(index int, flag uint32, on bool) error {
	var flags uint32
	if on {
		flags = flag
	}
	if err := change(unix.RTM_SETLINK, unix.AF_UNSPEC, index, flags, flag); err != nil {
		return fmt.Errorf("change flag %#x: %w", flag, err)
	}
	return nil
}

// KeepMAC makes a bridge keep its present address. One that it was not given
// is that of one of its ports, and it would take another when that port goes:
// every host on the other ports would have to find the box anew.
func KeepMAC(bridge int, ports ...int) error {
	br, err := read(bridge, "")
	if err != nil {
		return err
	}
	for _, index := range ports {
		port, err := read(index, "")
		if errors.Is(err, ErrGone) {
			continue
		}
		if err != nil {
			return err
		}
		if port.mac != br.mac {
			continue
		}
		if err := change(unix.RTM_SETLINK, unix.AF_UNSPEC, bridge, 0, 0, nl.NewRtAttr(unix.IFLA_ADDRESS, br.mac[:])); err != nil {
			return fmt.Errorf("keep the address of %s: %w", br.name, err)
		}
		return nil
	}
	return nil
}
