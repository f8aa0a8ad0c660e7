// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/rig"
)

const (
	streamSlice = 60 * time.Millisecond
	// After a change a stream runs for so long and so many bytes before it is
	// measured: frames that were lost with the change are sent again, and the
	// sender's window grows. One that does not get going is measured all the same.
	streamRun     = 20 * time.Millisecond
	streamBytes   = 1 << 20
	streamStalled = 500 * time.Millisecond
)

// streamBench measures one TCP stream between two hosts across a bridge. The
// hosts hand over finished frames of a packet each, as a wire does; the
// router's ports put them together (GRO) and take them apart again.
type streamBench struct {
	e        *engines
	list     []variant
	router   *netns.NS
	hosts    [2]*netns.NS
	listener net.Listener
	conns    [2]net.Conn
	received atomic.Int64 // bytes
	running  sync.WaitGroup
}

const hostDev = "eth0"

func hostAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 168, 78, byte(1 + i)}) }

func hostMAC(i int) net.HardwareAddr { return net.HardwareAddr{0x02, 0, 0, 0x30, 0, byte(1 + i)} }

func newStreamBench(ctx context.Context, list []datapath.Engine) (bench, error) {
	b := &streamBench{list: variantsOf(list)}
	err := b.build(ctx)
	if err == nil {
		err = b.connect(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up a TCP stream: %w", err), b.Close())
	}
	return b, nil
}

func (b *streamBench) build(ctx context.Context) (err error) {
	if b.router, err = netns.New("stream-router"); err != nil {
		return err
	}
	h, err := b.router.Handle()
	if err != nil {
		return err
	}
	if err := rig.AddBridge(h, "br-lan"); err != nil {
		return err
	}
	br, err := b.router.Link("br-lan")
	if err != nil {
		return err
	}
	if err := b.router.SetCallIPTables(false); err != nil {
		return err
	}
	ports := []string{"port0", "port1"}
	var stations []net.HardwareAddr
	for i, port := range ports {
		if err := b.addHost(h, br, i, port); err != nil {
			return err
		}
		stations = append(stations, hostMAC(i))
	}
	for _, port := range ports {
		if err := rig.WaitForwarding(ctx, b.router, port); err != nil {
			return err
		}
	}
	b.e, err = newEngines(b.router, ports, stations)
	return err
}

// addHost makes a host and plugs it into a port of the bridge.
func (b *streamBench) addHost(h *netlink.Handle, br netlink.Link, i int, port string) (err error) {
	if b.hosts[i], err = netns.New(fmt.Sprintf("stream-host%d", i)); err != nil {
		return err
	}
	veth := netlink.NewVeth(netns.Named(port))
	veth.PeerName = hostDev
	veth.PeerNamespace = netlink.NsFd(b.hosts[i].FD())
	veth.PeerHardwareAddr = hostMAC(i)
	if err := h.LinkAdd(veth); err != nil {
		return fmt.Errorf("create %s: %w", port, err)
	}
	if err := b.router.Do(func() error { return netdev.SetFeature(port, netdev.GRO, true) }); err != nil {
		return err
	}
	err = b.hosts[i].Do(func() error {
		return errors.Join(netdev.SetFeature(hostDev, netdev.TSO, false), netdev.SetFeature(hostDev, netdev.GSO, false),
			netdev.SetFeature(hostDev, netdev.TxChecksum, false))
	})
	if err != nil {
		return err
	}
	if err := h.LinkSetMaster(veth, br); err != nil {
		return fmt.Errorf("add %s to the bridge: %w", port, err)
	}
	if err := h.LinkSetUp(veth); err != nil {
		return fmt.Errorf("set %s up: %w", port, err)
	}
	hh, err := b.hosts[i].Handle()
	if err != nil {
		return err
	}
	dev, err := b.hosts[i].Link(hostDev)
	if err != nil {
		return err
	}
	if err := netns.AddAddress(hh, dev, netip.PrefixFrom(hostAddress(i), 24)); err != nil {
		return err
	}
	if err := hh.LinkSetUp(dev); err != nil {
		return fmt.Errorf("set host %d up: %w", i, err)
	}
	return nil
}

// connect starts the stream, which runs until Close.
func (b *streamBench) connect(ctx context.Context) (err error) {
	if b.listener, err = b.hosts[1].Listen(ctx, "tcp4", netip.AddrPortFrom(hostAddress(1), 0).String()); err != nil {
		return err
	}
	accepted := make(chan error, 1)
	go func() {
		var err error
		b.conns[1], err = b.listener.Accept()
		accepted <- err
	}()
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if b.conns[0], err = b.hosts[0].DialContext(ctx, "tcp4", b.listener.Addr().String()); err != nil {
		b.listener.Close()
		<-accepted
		return err
	}
	if err := <-accepted; err != nil {
		return err
	}
	b.running.Go(func() {
		buf := make([]byte, 64<<10)
		for {
			if _, err := b.conns[0].Write(buf); err != nil {
				return // closed
			}
		}
	})
	b.running.Go(func() {
		buf := make([]byte, 256<<10)
		for {
			n, err := b.conns[1].Read(buf)
			b.received.Add(int64(n))
			if err != nil {
				return // closed
			}
		}
	})
	return nil
}

func (b *streamBench) variants() []string { return names(b.list) }

func (b *streamBench) compare(ctx context.Context, _ work, seed uint64) (map[string]float64, error) {
	sum := map[string]float64{}
	for _, i := range rig.Mirrored(len(b.list), rand.New(rand.NewPCG(seed, 1))) {
		v := b.list[i]
		cost, err := b.slice(ctx, v)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		sum[v.name] += cost / 2
	}
	return sum, nil
}

// slice returns how long a bit takes, in ns.
func (b *streamBench) slice(ctx context.Context, v variant) (cost float64, err error) {
	if err := b.e.enter(v.engine); err != nil {
		return 0, errors.Join(err, b.e.leave())
	}
	defer func() { err = errors.Join(err, b.e.leave()) }()
	for before, begin := b.received.Load(), time.Now(); ; {
		if err := rig.Sleep(ctx, streamRun); err != nil {
			return 0, err
		}
		if b.received.Load()-before >= streamBytes || time.Since(begin) > streamStalled {
			break
		}
	}
	before, begin := b.received.Load(), time.Now()
	if err := rig.Sleep(ctx, streamSlice); err != nil {
		return 0, err
	}
	// A stream that came to a halt is very slow, not infinitely.
	bits := 8 * max(b.received.Load()-before, 1)
	return float64(time.Since(begin).Nanoseconds()) / float64(bits), nil
}

// Close ends the stream and takes everything down.
func (b *streamBench) Close() error {
	for _, c := range b.conns {
		if c != nil {
			c.Close()
		}
	}
	if b.listener != nil {
		b.listener.Close()
	}
	b.running.Wait()
	var errs []error
	if b.e != nil {
		errs = append(errs, b.e.close())
	}
	for _, ns := range []*netns.NS{b.hosts[0], b.hosts[1], b.router} {
		if ns != nil {
			errs = append(errs, ns.Close())
		}
	}
	return errors.Join(errs...)
}
