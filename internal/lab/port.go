// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Port is a port of the router. Its device stays the same when hosts are
// plugged in and out, as a socket in a wall does.
type Port struct {
	Name   string // its device in the router's namespace: eth1, eth2, ...
	Number int
}

// PortState is a bridge port's state in the spanning tree.
type PortState int

// The states, with the kernel's numbers.
const (
	PortDisabled PortState = iota
	PortListening
	PortLearning
	PortForwarding
	PortBlocking
)

// Port returns the port with a number, from 1 on.
func (l *Lab) Port(number int) (*Port, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.ports {
		if p.Number == number {
			return p, nil
		}
	}
	return nil, fmt.Errorf("lab: no port eth%d", number)
}

// Ports returns all ports in the order of their numbers.
func (l *Lab) Ports() []*Port {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*Port(nil), l.ports...)
}

// AddPort adds a bridge port that no host is plugged into. It has no carrier
// until one is.
func (l *Lab) AddPort() (*Port, error) {
	l.mu.Lock()
	number := 1
	for _, p := range l.ports {
		number = max(number, p.Number+1)
	}
	l.mu.Unlock()
	return l.addPort(number)
}

func (l *Lab) addPort(number int) (*Port, error) {
	p := &Port{Name: "eth" + strconv.Itoa(number), Number: number}
	if err := l.createPort(p); err != nil {
		return nil, err
	}
	l.remember(p)
	return p, nil
}

// remember puts a port into the list, which is in the order of numbers.
func (l *Lab) remember(p *Port) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ports = append(l.ports, p)
	slices.SortFunc(l.ports, func(a, b *Port) int { return a.Number - b.Number })
}

// createPort makes a port's veth with the far end on the shelf, and makes it a
// member of the bridge.
func (l *Lab) createPort(p *Port) error {
	h, err := l.Router.Handle()
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = p.Name
	attrs.MTU = l.mtu(p.Number)
	attrs.HardwareAddr = net.HardwareAddr{0x02, 0, 0, 0, 0, byte(p.Number)}
	veth := netlink.NewVeth(attrs)
	veth.PeerName = p.Name
	veth.PeerNamespace = netlink.NsFd(l.shelf.FD())
	veth.PeerMTU = uint32(attrs.MTU)
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("create port %s: %w", p.Name, err)
	}
	// netifd turns IPv6 off on bridge members as well: the bridge speaks.
	err = l.Router.SetSysctl("net/ipv6/conf/"+p.Name+"/disable_ipv6", "1")
	if err != nil && !isNotExist(err) {
		return err
	}
	br, err := l.Router.Link(BridgeName)
	if err != nil {
		return err
	}
	if err := h.LinkSetMaster(veth, br); err != nil {
		return fmt.Errorf("add port %s to the bridge: %w", p.Name, err)
	}
	if err := h.LinkSetUp(veth); err != nil {
		return fmt.Errorf("set port %s up: %w", p.Name, err)
	}
	return nil
}

func (l *Lab) mtu(number int) int {
	if mtu := l.opts.MTU[number]; mtu > 0 {
		return mtu
	}
	return 1500
}

// Index returns the port's interface index, which changes with RecreatePort.
func (l *Lab) Index(p *Port) (int, error) {
	link, err := l.Router.Link(p.Name)
	if err != nil {
		return 0, err
	}
	return link.Attrs().Index, nil
}

// SetPortUp sets the port's device up or down on the router.
func (l *Lab) SetPortUp(p *Port, up bool) error {
	return l.changePort(p, func(h *netlink.Handle, link netlink.Link) error {
		if up {
			return h.LinkSetUp(link)
		}
		return h.LinkSetDown(link)
	})
}

// SetPortState puts a bridge port into a state of the spanning tree. The
// bridge must not run STP itself. The kernel chooses states anew when any
// port's link goes up or down, so set it after such changes. It undoes
// PortBlocking at once, which is an error here: PortListening carries nothing
// either, and BlockBySTP gives the real thing.
func (l *Lab) SetPortState(p *Port, s PortState) error {
	err := l.changePort(p, func(_ *netlink.Handle, link netlink.Link) error {
		return l.Router.Do(func() error {
			req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
			msg := nl.NewIfInfomsg(unix.AF_BRIDGE)
			msg.Index = int32(link.Attrs().Index)
			req.AddData(msg)
			info := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
			info.AddRtAttr(nl.IFLA_BRPORT_STATE, nl.Uint8Attr(uint8(s)))
			req.AddData(info)
			_, err := req.Execute(unix.NETLINK_ROUTE, 0)
			return err
		})
	})
	if err != nil {
		return err
	}
	now, err := l.PortState(p)
	if err == nil && now != s {
		err = fmt.Errorf("change port %s: the kernel made state %d of %d", p.Name, now, s)
	}
	return err
}

// PortState reads a bridge port's state.
func (l *Lab) PortState(p *Port) (PortState, error) {
	text, err := l.Router.ReadSys("class/net/" + p.Name + "/brport/state")
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	return PortState(n), err
}

// SetIsolated isolates a bridge port: isolated ports do not reach each other.
func (l *Lab) SetIsolated(p *Port, on bool) error {
	return l.changePort(p, func(h *netlink.Handle, link netlink.Link) error {
		return h.LinkSetIsolated(link, on)
	})
}

// SetHairpin lets a bridge port send a frame back where it came from.
func (l *Lab) SetHairpin(p *Port, on bool) error {
	return l.changePort(p, func(h *netlink.Handle, link netlink.Link) error {
		return h.LinkSetHairpin(link, on)
	})
}

// AddPortVLAN makes a port a member of a VLAN on a bridge that filters them:
// pvid for frames that come in untagged, untagged for frames that leave.
func (l *Lab) AddPortVLAN(p *Port, vid uint16, pvid, untagged bool) error {
	return l.changePort(p, func(h *netlink.Handle, link netlink.Link) error {
		return h.BridgeVlanAdd(link, vid, pvid, untagged, false, false)
	})
}

// DelPortVLAN takes a port out of a VLAN; each port starts in VLAN 1.
func (l *Lab) DelPortVLAN(p *Port, vid uint16) error {
	return l.changePort(p, func(h *netlink.Handle, link netlink.Link) error {
		return h.BridgeVlanDel(link, vid, false, false, false, false)
	})
}

// SetBridged makes a port a member of the bridge, or takes it out.
func (l *Lab) SetBridged(p *Port, on bool) error {
	return l.changePort(p, func(h *netlink.Handle, link netlink.Link) error {
		if !on {
			return h.LinkSetNoMaster(link)
		}
		br, err := l.Router.Link(BridgeName)
		if err != nil {
			return err
		}
		return h.LinkSetMaster(link, br)
	})
}

func (l *Lab) changePort(p *Port, f func(*netlink.Handle, netlink.Link) error) error {
	h, err := l.Router.Handle()
	if err != nil {
		return err
	}
	link, err := l.Router.Link(p.Name)
	if err != nil {
		return err
	}
	if err := f(h, link); err != nil {
		return fmt.Errorf("change port %s: %w", p.Name, err)
	}
	return nil
}

// RecreatePort deletes a port's device and makes it again, as when a USB
// adapter is pulled and put back: same name, another interface index. A host
// that was plugged in is plugged in again.
func (l *Lab) RecreatePort(ctx context.Context, p *Port) error {
	holder := l.hostAt(p)
	if err := l.DeletePort(p); err != nil {
		return err
	}
	if err := l.createPort(p); err != nil {
		return err
	}
	l.remember(p)
	if holder == nil {
		return nil
	}
	if err := holder.plug(p, "eth0"); err != nil {
		return err
	}
	return l.WaitForwarding(ctx, p)
}

// DeletePort removes a port with its device; a host there loses its own.
func (l *Lab) DeletePort(p *Port) error {
	if h := l.hostAt(p); h != nil {
		h.setPort(nil, "")
	}
	err := l.changePort(p, func(h *netlink.Handle, link netlink.Link) error { return h.LinkDel(link) })
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, q := range l.ports {
		if q == p {
			l.ports = append(l.ports[:i:i], l.ports[i+1:]...)
			break
		}
	}
	return nil
}

func (l *Lab) hostAt(p *Port) *Host {
	for _, h := range l.Hosts {
		if h.Port() == p {
			return h
		}
	}
	return nil
}

// WaitForwarding waits until a bridge port has carrier and forwards, and a
// host there can use its addresses.
func (l *Lab) WaitForwarding(ctx context.Context, p *Port) error {
	err := l.Router.WaitUntil(ctx, "port "+p.Name+" forwarding", func() (bool, error) {
		link, err := l.Router.Link(p.Name)
		if err != nil {
			return false, err
		}
		if link.Attrs().OperState != netlink.OperUp {
			return false, nil
		}
		s, err := l.PortState(p)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil // not in the bridge yet
		}
		return s == PortForwarding, err
	})
	if err != nil {
		return err
	}
	if h := l.hostAt(p); h != nil {
		return h.NS.WaitAddresses(ctx, h.Dev())
	}
	return nil
}

func isNotExist(err error) bool { return errors.Is(err, os.ErrNotExist) }
