// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// Host is a station behind a port of the router.
type Host struct {
	NS   *NS
	Name string // h1, h2, ...
	MAC  net.HardwareAddr
	IP4  netip.Addr
	IP6  netip.Addr

	lab *Lab

	mu   sync.Mutex
	port *Port  // nil when not plugged in
	dev  string // the device that has the addresses
}

func (l *Lab) newHost(i int) (*Host, error) {
	name := fmt.Sprintf("h%d", i)
	ns, err := l.newNS(name)
	if err != nil {
		return nil, err
	}
	// A host that keeps an old device after Roam must not answer there for
	// the addresses of the new one.
	if err := ns.SetSysctl("net/ipv4/conf/all/arp_ignore", "1"); err != nil {
		ns.Close()
		return nil, err
	}
	if l.opts.NoIPv6 {
		if err := ns.DisableIPv6(); err != nil {
			ns.Close()
			return nil, err
		}
	}
	if err := ns.discard(); err != nil {
		ns.Close()
		return nil, err
	}
	return &Host{
		NS:   ns,
		Name: name,
		MAC:  net.HardwareAddr{0x02, 0, 0, 0, 0x01, byte(i)},
		IP4:  netip.AddrFrom4([4]byte{192, 168, 77, byte(10 + i)}),
		// The decimal digits of both addresses are the same, for the reader.
		IP6: netip.MustParseAddr(fmt.Sprintf("fd77::%d", 10+i)),
		lab: l,
	}, nil
}

// DiscardPort is the UDP port at which hosts take datagrams and forget them:
// without a socket there each frame would be answered with an ICMP error.
const DiscardPort = 9

// Between fills in the addresses of a frame from one host to another's
// discard port, IPv4.
func Between(from, to *Host) ether.UDPSpec {
	return ether.UDPSpec{
		Dst: to.MAC, Src: from.MAC, DstIP: to.IP4, SrcIP: from.IP4,
		DstPort: DiscardPort, SrcPort: 40000,
	}
}

// discard opens the discard port for IPv4 and, where there is one, IPv6.
func (ns *NS) discard() error {
	conn, err := ns.ListenPacket(context.Background(), "udp", fmt.Sprintf(":%d", DiscardPort))
	if err != nil {
		return err
	}
	ns.Track(conn)
	// Nobody reads: a small buffer overflows early, without a word.
	if udp, ok := conn.(*net.UDPConn); ok {
		if err := udp.SetReadBuffer(1); err != nil {
			return fmt.Errorf("discard port: %w", err)
		}
	}
	return nil
}

// Port returns the port that the host is plugged into, nil if none.
func (h *Host) Port() *Port {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.port
}

// Dev returns the name of the device that has the host's addresses: eth0,
// and after Roam another one; "" when the host is not plugged in.
func (h *Host) Dev() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.dev
}

func (h *Host) setPort(p *Port, dev string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.port, h.dev = p, dev
}

// plug takes a port's far end from the shelf and makes it the host's device.
func (h *Host) plug(p *Port, dev string) error {
	if err := h.take(p, dev); err != nil {
		return err
	}
	handle, err := h.NS.Handle()
	if err != nil {
		return err
	}
	link, err := h.NS.Link(dev)
	if err != nil {
		return err
	}
	if err := addAddresses(handle, link, h.addresses()...); err != nil {
		return err
	}
	h.setPort(p, dev)
	return nil
}

// take moves a port's far end from the shelf into the host and sets it up,
// without addresses.
func (h *Host) take(p *Port, dev string) error {
	shelf, err := h.lab.shelf.Handle()
	if err != nil {
		return err
	}
	end, err := shelf.LinkByName(p.Name)
	if err != nil {
		return fmt.Errorf("port %s is in use: %w", p.Name, err)
	}
	if err := shelf.LinkSetNsFd(end, h.NS.FD()); err != nil {
		return fmt.Errorf("plug %s into %s: %w", h.Name, p.Name, err)
	}
	handle, err := h.NS.Handle()
	if err != nil {
		return err
	}
	link, err := h.NS.Link(p.Name)
	if err != nil {
		return err
	}
	if err := handle.LinkSetName(link, dev); err != nil {
		return fmt.Errorf("rename %s of %s: %w", p.Name, h.Name, err)
	}
	if err := handle.LinkSetHardwareAddr(link, h.MAC); err != nil {
		return fmt.Errorf("set MAC of %s: %w", h.Name, err)
	}
	if err := h.setOffloads(dev); err != nil {
		return err
	}
	if err := handle.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s of %s up: %w", dev, h.Name, err)
	}
	return nil
}

// setOffloads makes the device's frames look as they would on a wire; see
// Options.KeepOffloads.
func (h *Host) setOffloads(dev string) error {
	var off []string
	if !h.lab.opts.KeepOffloads {
		// Segmentation first: it depends on checksums.
		off = append(off, netdev.TSO, netdev.GSO, netdev.TxChecksum)
	}
	if h.lab.opts.NoTxVLAN {
		off = append(off, netdev.TxVLAN, netdev.TxSTagVLAN)
	}
	return h.NS.Do(func() error {
		for _, feature := range off {
			if err := netdev.SetFeature(dev, feature, false); err != nil {
				return fmt.Errorf("host %s: %w", h.Name, err)
			}
		}
		return nil
	})
}

// Unplug takes the host off its port: the port loses its carrier, the host
// its device and addresses. It is fine when the host is not plugged in.
func (h *Host) Unplug() error {
	h.mu.Lock()
	p, dev := h.port, h.dev
	h.port, h.dev = nil, ""
	h.mu.Unlock()
	if p == nil {
		return nil
	}
	handle, err := h.NS.Handle()
	if err != nil {
		return err
	}
	link, err := h.NS.Link(dev)
	if err != nil {
		return err
	}
	if err := handle.LinkSetDown(link); err != nil {
		return fmt.Errorf("unplug %s: %w", h.Name, err)
	}
	if err := handle.LinkSetName(link, p.Name); err != nil {
		return fmt.Errorf("unplug %s: %w", h.Name, err)
	}
	if err := handle.LinkSetNsFd(link, h.lab.shelf.FD()); err != nil {
		return fmt.Errorf("unplug %s: %w", h.Name, err)
	}
	return nil
}

// Replug moves the host to another, free port, as when a cable is pulled from
// one socket and put into another: the old port loses its carrier and the
// bridge forgets who was there. It waits until the new port forwards. MAC and
// IP addresses stay, and so do the host's sockets.
func (h *Host) Replug(ctx context.Context, p *Port) error {
	if err := h.Unplug(); err != nil {
		return err
	}
	if err := h.plug(p, "eth0"); err != nil {
		return err
	}
	return h.lab.WaitForwarding(ctx, p)
}

// Roam moves the host's addresses to another, free port while the old link
// stays up, as when a laptop changes from one access point to another: the
// bridge goes on believing that the host is on the old port until it hears it
// on the new one. The old device stays in the host without addresses, with
// the same MAC, so that a Capture on it shows what still goes there. It
// returns the old device's name. Roam back is not possible: the old port
// stays occupied.
func (h *Host) Roam(ctx context.Context, p *Port) (old string, err error) {
	old = h.Dev()
	if old == "" {
		return "", fmt.Errorf("host %s is not plugged in", h.Name)
	}
	dev := fmt.Sprintf("eth%d", 100+p.Number)
	if err := h.take(p, dev); err != nil {
		return old, err
	}
	if err := h.lab.WaitForwarding(ctx, p); err != nil {
		return old, err
	}
	handle, err := h.NS.Handle()
	if err != nil {
		return old, err
	}
	link, err := h.NS.Link(old)
	if err != nil {
		return old, err
	}
	// The old device must stay silent, or the bridge would learn it back.
	err = h.NS.SetSysctl("net/ipv6/conf/"+old+"/disable_ipv6", "1")
	if err != nil && !isNotExist(err) {
		return old, err
	}
	addrs, err := netdev.Dump(func() ([]netlink.Addr, error) { return handle.AddrList(link, unix.AF_INET) })
	if err != nil {
		return old, fmt.Errorf("roam %s: %w", h.Name, err)
	}
	for i := range addrs {
		if err := handle.AddrDel(link, &addrs[i]); err != nil {
			return old, fmt.Errorf("roam %s: %w", h.Name, err)
		}
	}
	if err := handle.LinkSetARPOff(link); err != nil {
		return old, fmt.Errorf("roam %s: %w", h.Name, err)
	}
	now, err := h.NS.Link(dev)
	if err != nil {
		return old, err
	}
	if err := addAddresses(handle, now, h.addresses()...); err != nil {
		return old, err
	}
	h.setPort(p, dev)
	return old, h.NS.WaitAddresses(ctx, dev)
}

// Announce sends a gratuitous ARP request, as a host does after it has moved:
// the bridge learns where it is now.
func (h *Host) Announce() error {
	s, err := h.Sender()
	if err != nil {
		return err
	}
	defer s.Close()
	return s.Send(ether.ARPRequest(h.MAC, h.IP4, h.IP4))
}

// SetLink sets the host's device up or down, which gives or takes the port's
// carrier. IPv6 addresses are put back when it comes up. Lab.WaitForwarding
// waits until it can be used.
func (h *Host) SetLink(up bool) error {
	dev := h.Dev()
	handle, err := h.NS.Handle()
	if err != nil {
		return err
	}
	link, err := h.NS.Link(dev)
	if err != nil {
		return err
	}
	if !up {
		if err := handle.LinkSetDown(link); err != nil {
			return fmt.Errorf("set %s of %s down: %w", dev, h.Name, err)
		}
		return nil
	}
	if err := handle.LinkSetUp(link); err != nil {
		return fmt.Errorf("set %s of %s up: %w", dev, h.Name, err)
	}
	// The kernel drops IPv6 addresses, not IPv4 ones, with the link.
	if h.lab.opts.NoIPv6 {
		return nil
	}
	if err := addAddresses(handle, link, h.IP6); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

func (h *Host) addresses() []netip.Addr {
	if h.lab.opts.NoIPv6 {
		return []netip.Addr{h.IP4}
	}
	return []netip.Addr{h.IP4, h.IP6}
}

// FlushNeighbours makes the host forget all MAC addresses that it resolved.
func (h *Host) FlushNeighbours() error {
	handle, err := h.NS.Handle()
	if err != nil {
		return err
	}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		list, err := netdev.Dump(func() ([]netlink.Neigh, error) { return handle.NeighList(0, family) })
		if err != nil {
			return fmt.Errorf("list neighbours of %s: %w", h.Name, err)
		}
		for i := range list {
			if list[i].State == netlink.NUD_NOARP {
				continue
			}
			if err := handle.NeighDel(&list[i]); err != nil && !errors.Is(err, unix.ENOENT) {
				return fmt.Errorf("flush neighbours of %s: %w", h.Name, err)
			}
		}
	}
	return nil
}

// Sender opens the host's present device for sending.
func (h *Host) Sender() (*netns.Sender, error) { return h.NS.Sender(h.Dev()) }
