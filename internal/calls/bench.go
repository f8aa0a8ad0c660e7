// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// bench has the programs loaded, with a table of some stations.
type bench struct {
	dp    *datapath.Datapath
	coll  *ebpf.Collection
	knobs stepsStepKnobs
}

// The slot that programs are loaded for, and by which they redirect.
const slot = 1

// openBench loads the programs in a namespace, where they redirect to a device.
func openBench(ns *netns.NS, egress uint32, stations int) (b *bench, err error) {
	b = &bench{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	spec, err := loadSteps()
	if err != nil {
		return b, err
	}
	// The map of redirect targets takes devices of the namespace.
	err = ns.Do(func() error {
		if b.dp, err = datapath.Open(datapath.Options{MaxStations: uint32(max(stations, 1))}); err != nil {
			return err
		}
		return b.dp.SetPort(slot, datapath.Port{Ifindex: egress, Flags: datapath.PortEnabled | datapath.PortForwarding, MaxLen: 1514})
	})
	if err != nil {
		return b, err
	}
	if b.coll, err = b.dp.LoadBeside(spec, datapath.Program{Slot: slot}); err != nil {
		return b, fmt.Errorf("load the steps: %w", err)
	}
	if err := b.addStations(stations); err != nil {
		return b, err
	}
	b.knobs.Ifindex = egress
	port := stepsPort{Ifindex: egress, Flags: uint32(datapath.PortEnabled)}
	if err := b.coll.Maps["ports"].Put(egress, port); err != nil {
		return b, fmt.Errorf("fill the map of ports: %w", err)
	}
	return b, b.set(0)
}

// addStations puts stations into the table and into the hash map. Their numbers
// are in the addresses' last bytes, where the programs put them.
func (b *bench) addStations(n int) error {
	first := macOf(0)
	b.knobs.Address, b.knobs.Shift = numberOf(first), shift
	for i := range n {
		mac := macOf(i)
		if err := b.dp.PutStation(datapath.StationKey{MAC: mac}, datapath.Station{Slot: slot}); err != nil {
			return err
		}
		if err := b.coll.Maps["plain"].Put(numberOf(mac), stepsStation{Word: slot}); err != nil {
			return fmt.Errorf("fill the hash map: %w", err)
		}
	}
	return nil
}

// littleEndian is how this machine has its numbers in memory.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

// shift is where the last two bytes of an address are in its number, as
// destination_number (bpf/stations.h) makes it.
var shift = map[bool]uint32{true: 32, false: 0}[littleEndian]

func macOf(n int) [6]byte {
	mac := [6]byte{0x02, 0, 0, 0x20}
	binary.NativeEndian.PutUint16(mac[4:], uint16(n))
	return mac
}

func numberOf(mac [6]byte) uint64 {
	two, four := uint64(binary.NativeEndian.Uint16(mac[:2])), uint64(binary.NativeEndian.Uint32(mac[2:]))
	if littleEndian {
		return two | four<<16
	}
	return two<<32 | four
}

// prepare sets what a step works on.
func (b *bench) prepare(s Step) {
	b.knobs.Mask = 0
	if s.Access == far {
		b.knobs.Mask = uint32(s.Stations - 1)
	}
}

// set says how often the step is taken from now on.
func (b *bench) set(times uint32) error {
	b.knobs.Times = times
	if err := b.coll.Variables["knobs"].Set(&b.knobs); err != nil {
		return fmt.Errorf("set how often the step is taken: %w", err)
	}
	return nil
}

func (b *bench) done() (d stepsStepDone, err error) {
	if err := b.coll.Variables["done"].Get(&d); err != nil {
		return d, fmt.Errorf("read what was done: %w", err)
	}
	return d, nil
}

func (b *bench) program(s Step) *ebpf.Program { return b.coll.Programs[s.program] }

func (b *bench) close() error {
	if b.coll != nil {
		b.coll.Close()
	}
	if b.dp != nil {
		return b.dp.Close()
	}
	return nil
}

// Addresses of the fib look-up, for documentation (RFC 5737).
var (
	fibSource = net.IPv4(198, 51, 100, 1).To4()
	fibRouter = netip.MustParseAddr("192.0.2.1")
	fibTarget = net.IPv4(192, 0, 2, 2).To4()
)

// native is an address as it is in memory.
func native(ip net.IP) uint32 { return binary.NativeEndian.Uint32(ip.To4()) }

// network makes a namespace with a device to redirect to, and a route with a
// neighbour for the fib look-up. Its Close takes everything down.
func network() (ns *netns.NS, egress uint32, err error) {
	if ns, err = netns.New("calls"); err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("a network for the steps: %w", err), ns.Close())
		}
	}()
	h, err := ns.Handle()
	if err != nil {
		return ns, 0, err
	}
	if _, err := netns.AddVeth(h, "c0", "c1"); err != nil {
		return ns, 0, err
	}
	for _, name := range []string{"c0", "c1"} {
		link, err := ns.Link(name)
		if err != nil {
			return ns, 0, err
		}
		if err := h.LinkSetUp(link); err != nil {
			return ns, 0, err
		}
	}
	link, err := ns.Link("c0")
	if err != nil {
		return ns, 0, err
	}
	if err := netns.AddAddress(h, link, netip.PrefixFrom(fibRouter, 24)); err != nil {
		return ns, 0, err
	}
	err = h.NeighAdd(&netlink.Neigh{
		LinkIndex: link.Attrs().Index, Family: unix.AF_INET, State: netlink.NUD_PERMANENT,
		IP: fibTarget, HardwareAddr: net.HardwareAddr{0x02, 0, 0, 0x30, 0, 1},
	})
	if err != nil {
		return ns, 0, err
	}
	if err := ns.SetSysctl("net/ipv4/ip_forward", "1"); err != nil {
		return ns, 0, err
	}
	return ns, uint32(link.Attrs().Index), nil
}
