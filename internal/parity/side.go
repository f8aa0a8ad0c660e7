// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// outsideMTU lets hosts send frames that are too long for any port.
const outsideMTU = 9300

// side is one box: a router with a bridge, and one namespace with the far ends
// of its ports. Nothing there has an IP address or sends anything by itself.
type side struct {
	router, outside *lab.NS

	bridge int            // ifindex
	ports  [PortCount]int // ifindexes in the router
	ends   [PortCount]int // and outside
	now    Box            // how it is configured
	own    []lab.FDBEntry // local entries that a fresh box has

	wire  *packets // all that arrives outside; hosts send here
	stack *stack   // all that reaches the box itself
	// drains counts the sentinels sent so far.
	drains uint32
}

func newSide(label string) (*side, error) {
	s := &side{now: NewBox()}
	if err := s.build(label); err != nil {
		s.Close()
		return nil, fmt.Errorf("build the box %s: %w", label, err)
	}
	return s, nil
}

func (s *side) build(label string) error {
	var err error
	if s.router, err = quietNS(label + "-router"); err != nil {
		return err
	}
	if s.outside, err = quietNS(label + "-outside"); err != nil {
		return err
	}
	h, err := s.router.Handle()
	if err != nil {
		return err
	}
	off := false
	br := &netlink.Bridge{MulticastSnooping: &off}
	br.LinkAttrs = netlink.NewLinkAttrs()
	br.Name, br.HardwareAddr = lab.BridgeName, lab.RouterMAC
	if err := h.LinkAdd(br); err != nil {
		return fmt.Errorf("create the bridge: %w", err)
	}
	// With a delay the kernel has a timer for each new port that would put it
	// into the forwarding state some seconds later, whatever its state is then.
	if err := s.router.WriteSys("class/net/"+lab.BridgeName+"/bridge/forward_delay", "0"); err != nil {
		return err
	}
	if err := h.LinkSetUp(br); err != nil {
		return fmt.Errorf("set the bridge up: %w", err)
	}
	s.bridge = br.Index
	for i := range PortCount {
		if err := s.addPort(i); err != nil {
			return fmt.Errorf("port %s: %w", portName(i), err)
		}
	}
	if err := s.hideTags(); err != nil {
		return err
	}
	if s.own, err = s.router.FDB(); err != nil {
		return err
	}
	if s.wire, err = openPackets(s.outside, unix.ETH_P_ALL, 0); err != nil {
		return err
	}
	s.stack, err = openStack(s)
	return err
}

// quietNS makes a namespace that sends nothing on its own account.
func quietNS(label string) (*lab.NS, error) {
	ns, err := lab.NewNS(label)
	if err != nil {
		return nil, err
	}
	if err := ns.DisableIPv6(); err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	return ns, nil
}

func (s *side) addPort(i int) error {
	h, err := s.router.Handle()
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr, attrs.MTU = portName(i), portMAC(i), 1500
	veth := netlink.NewVeth(attrs)
	veth.PeerName, veth.PeerNamespace, veth.PeerMTU = portName(i), netlink.NsFd(s.outside.FD()), outsideMTU
	if err := h.LinkAdd(veth); err != nil {
		return err
	}
	if err := h.LinkSetMasterByIndex(veth, s.bridge); err != nil {
		return err
	}
	if err := h.LinkSetUp(veth); err != nil {
		return err
	}
	s.ports[i] = veth.Index
	outside, err := s.outside.Handle()
	if err != nil {
		return err
	}
	end, err := outside.LinkByName(portName(i))
	if err != nil {
		return err
	}
	s.ends[i] = end.Attrs().Index
	if err := outside.LinkSetUp(end); err != nil {
		return err
	}
	// The router's ends do not merge frames, and the hosts' do not either: with
	// GRO a veth gets a queue of its own, and drain counts on one for all.
	for _, ns := range []*lab.NS{s.router, s.outside} {
		err := ns.Do(func() error { return netdev.SetFeature(portName(i), netdev.GRO, false) })
		if err != nil {
			return err
		}
	}
	return nil
}

// Close takes the box down.
func (s *side) Close() error {
	var err error
	if s.wire != nil {
		err = errors.Join(err, s.wire.Close())
	}
	if s.stack != nil {
		err = errors.Join(err, s.stack.Close())
	}
	for _, ns := range []*lab.NS{s.outside, s.router} {
		if ns != nil {
			err = errors.Join(err, ns.Close())
		}
	}
	return err
}

// reset brings the box to a configuration in which nothing was learned.
func (s *side) reset(want Box) error {
	all, err := s.router.FDB()
	if err != nil {
		return err
	}
	for _, e := range all {
		if e.Static && !s.isOwn(e) {
			if err := s.remove(e); err != nil {
				return err
			}
		}
	}
	if err := s.converge(want); err != nil {
		return err
	}
	return s.flush()
}

// remove removes an entry. The kernel refuses that for a VLAN which the port has
// left since the entry was made.
func (s *side) remove(e lab.FDBEntry) error {
	err := s.router.DelFDB(e)
	if e.VLAN == 0 || !errors.Is(err, unix.EINVAL) {
		return err
	}
	vlan := lab.PortVLAN{VID: e.VLAN}
	if err := s.router.AddPortVLANs(e.Port, false, vlan); err != nil {
		return err
	}
	return errors.Join(s.router.DelFDB(e), s.router.DelPortVLANs(e.Port, false, vlan))
}

// isOwn tells whether an entry is the box's own address: the kernel adds and
// removes these with the VLANs of their ports.
func (s *side) isOwn(e lab.FDBEntry) bool {
	return e.Local && slices.ContainsFunc(s.own, func(o lab.FDBEntry) bool { return o.MAC == e.MAC && o.Port == e.Port })
}

// converge makes the box what it should be, as far as it differs.
func (s *side) converge(want Box) error {
	was := &s.now
	var change lab.BridgeChange
	if want.VLANAware != was.VLANAware {
		change.VLANFiltering = &want.VLANAware
	}
	if want.Protocol != was.Protocol {
		change.VLANProtocol = want.Protocol
	}
	if want.Ageing != was.Ageing {
		change.AgeingTicks = &want.Ageing
	}
	if change != (lab.BridgeChange{}) {
		if err := s.router.ChangeBridge(s.bridge, change); err != nil {
			return err
		}
	}
	if err := s.convergeVLANs(s.bridge, true, was.Self, want.Self); err != nil {
		return err
	}
	for i := range want.Ports {
		if err := s.convergePort(i, &was.Ports[i], &want.Ports[i]); err != nil {
			return fmt.Errorf("%s: %w", portName(i), err)
		}
	}
	s.now = want.clone()
	return nil
}

func (s *side) convergePort(i int, was, want *Port) error {
	index := s.ports[i]
	if err := s.convergeVLANs(index, false, was.VLANs, want.VLANs); err != nil {
		return err
	}
	if was.MTU != want.MTU {
		if err := s.router.SetMTU(index, want.MTU); err != nil {
			return err
		}
	}
	if was.NoTxVLAN != want.NoTxVLAN {
		err := s.router.Do(func() error {
			return errors.Join(netdev.SetFeature(portName(i), netdev.TxVLAN, !want.NoTxVLAN),
				netdev.SetFeature(portName(i), netdev.TxSTagVLAN, !want.NoTxVLAN))
		})
		if err != nil {
			return err
		}
	}
	var change lab.BridgePortChange
	flag := func(to **bool, was, want, inverted bool) {
		if was != want {
			on := want != inverted
			*to = &on
		}
	}
	flag(&change.Isolated, was.Isolated, want.Isolated, false)
	flag(&change.Hairpin, was.Hairpin, want.Hairpin, false)
	flag(&change.Learning, was.NoLearning, want.NoLearning, true)
	flag(&change.Locked, was.Locked, want.Locked, false)
	flag(&change.Flood, was.NoFlood, want.NoFlood, true)
	if was.State != want.State {
		change.State = &want.State
	}
	if change == (lab.BridgePortChange{}) {
		return nil
	}
	return s.router.ChangeBridgePort(index, change)
}

func (s *side) convergeVLANs(index int, self bool, was, want []VLAN) error {
	find := func(in []VLAN, vid uint16) (VLAN, bool) {
		for _, v := range in {
			if v.VID == vid {
				return v, true
			}
		}
		return VLAN{}, false
	}
	for _, v := range was {
		if _, ok := find(want, v.VID); !ok {
			if err := s.router.DelPortVLANs(index, self, v.PortVLAN); err != nil {
				return err
			}
		}
	}
	for _, v := range want {
		old, had := find(was, v.VID)
		if !had {
			old.State = lab.PortForwarding
		}
		if !had || old.PortVLAN != v.PortVLAN {
			if err := s.router.AddPortVLANs(index, self, v.PortVLAN); err != nil {
				return err
			}
		}
		if old.State != v.State && !self {
			if err := s.router.SetPortVLANState(index, v.VID, v.State); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *side) flush() error {
	return s.router.ChangeBridge(s.bridge, lab.BridgeChange{Flush: true})
}

func (s *side) flushPort(port int) error {
	return s.router.ChangeBridgePort(s.ports[port], lab.BridgePortChange{Flush: true})
}

func (s *side) entry(e Entry) lab.FDBEntry {
	return lab.FDBEntry{MAC: e.MAC, VLAN: e.VLAN, Port: s.ports[e.Port], Local: e.Local, Static: e.Static, Sticky: e.Sticky}
}

func (s *side) putEntry(e Entry) error { return s.router.PutFDB(s.entry(e)) }
func (s *side) delEntry(e Entry) error { return s.router.DelFDB(s.entry(e)) }
