// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// PingOptions say how to ping. Zero values give one echo request of 56 bytes
// and a second to wait for its answer.
type PingOptions struct {
	Count    int           // requests; 0 means 1
	Size     int           // bytes of payload, at least 8; 0 means 56
	Interval time.Duration // between requests; 0 sends the next one when the last is answered
	Timeout  time.Duration // for each answer; 0 means 1 s
}

// PingStats is what came of it.
type PingStats struct {
	Sent       int
	Received   int             // answered requests
	Duplicates int             // further answers to them
	RTTs       []time.Duration // of the answered requests, in the order of their answers
}

// Lost is the number of requests without an answer.
func (s PingStats) Lost() int { return s.Sent - s.Received }

// MedianRTT returns the median round trip time, 0 without answers.
func (s PingStats) MedianRTT() time.Duration {
	if len(s.RTTs) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.RTTs))
	return sorted[len(sorted)/2]
}

// Ping sends ICMP or ICMPv6 echo requests from the namespace and collects the
// answers. Lost answers are no error; a full stop is what ctx is for.
func (ns *NS) Ping(ctx context.Context, to netip.Addr, o PingOptions) (PingStats, error) {
	o.Count = max(o.Count, 1)
	if o.Size == 0 {
		o.Size = 56
	}
	o.Size = max(o.Size, 8)
	if o.Timeout <= 0 {
		o.Timeout = time.Second
	}
	p, err := newPinger(ctx, ns, to, o)
	if err != nil {
		return PingStats{}, fmt.Errorf("ping %s from %s: %w", to, ns, err)
	}
	defer p.conn.Close()
	if err := p.run(ctx); err != nil {
		return p.stats, fmt.Errorf("ping %s from %s: %w", to, ns, err)
	}
	return p.stats, nil
}

// Ping pings from the host; see NS.Ping.
func (h *Host) Ping(ctx context.Context, to netip.Addr, o PingOptions) (PingStats, error) {
	return h.NS.Ping(ctx, to, o)
}

type pinger struct {
	o        PingOptions
	conn     net.PacketConn
	to       net.Addr
	request  icmp.Type
	reply    icmp.Type
	protocol int
	id       int
	sentAt   []time.Time // by sequence number
	answered []bool
	stats    PingStats
}

func newPinger(ctx context.Context, ns *NS, to netip.Addr, o PingOptions) (*pinger, error) {
	p := &pinger{
		o:        o,
		to:       &net.IPAddr{IP: to.AsSlice(), Zone: to.Zone()},
		request:  ipv4.ICMPTypeEcho,
		reply:    ipv4.ICMPTypeEchoReply,
		protocol: 1,
		// Every raw socket of the namespace sees all answers: the identifier
		// tells ours.
		id:       rand.IntN(1 << 16),
		sentAt:   make([]time.Time, o.Count),
		answered: make([]bool, o.Count),
	}
	network, local := "ip4:icmp", "0.0.0.0"
	if to.Is6() {
		p.request, p.reply, p.protocol = ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, 58
		// By number: the names are in a file that a small system lacks.
		network, local = "ip6:58", "::"
	} else {
		network = "ip4:1"
	}
	conn, err := ns.ListenPacket(ctx, network, local)
	if err != nil {
		return nil, err
	}
	p.conn = conn
	return p, nil
}

func (p *pinger) run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { p.conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	for seq := range p.o.Count {
		if err := p.send(seq); err != nil {
			return p.cause(ctx, err)
		}
		last := seq == p.o.Count-1
		until := time.Now().Add(p.o.Timeout)
		if p.o.Interval > 0 && !last {
			until = p.sentAt[seq].Add(p.o.Interval)
		}
		if err := p.receive(ctx, until, p.o.Interval > 0 && !last); err != nil {
			return err
		}
	}
	return nil
}

// receive takes answers until a time. Unless it is to keep the whole time, it
// returns as soon as nothing is outstanding.
func (p *pinger) receive(ctx context.Context, until time.Time, whole bool) error {
	buf := make([]byte, 64<<10)
	for whole || p.stats.Received < p.stats.Sent {
		p.conn.SetReadDeadline(until)
		if ctx.Err() != nil {
			// The deadline set here may have overwritten the one that ctx set.
			return context.Cause(ctx)
		}
		n, from, err := p.conn.ReadFrom(buf)
		if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
			return nil
		}
		if err != nil {
			return p.cause(ctx, err)
		}
		p.take(buf[:n], from)
	}
	return nil
}

// take counts one received ICMP message if it answers one of our requests.
func (p *pinger) take(b []byte, from net.Addr) {
	msg, err := icmp.ParseMessage(p.protocol, b)
	if err != nil || msg.Type != p.reply || from.String() != p.to.String() {
		return
	}
	echo, ok := msg.Body.(*icmp.Echo)
	if !ok || echo.ID != p.id || len(echo.Data) != p.o.Size || len(echo.Data) < 8 {
		return
	}
	seq := int(binary.BigEndian.Uint64(echo.Data))
	if seq < 0 || seq >= p.stats.Sent || echo.Seq != seq&0xffff {
		return
	}
	if p.answered[seq] {
		p.stats.Duplicates++
		return
	}
	p.answered[seq] = true
	p.stats.Received++
	p.stats.RTTs = append(p.stats.RTTs, time.Since(p.sentAt[seq]))
}

func (p *pinger) send(seq int) error {
	data := make([]byte, p.o.Size)
	binary.BigEndian.PutUint64(data, uint64(seq)) // the ICMP field has 16 bits only
	msg := icmp.Message{Type: p.request, Body: &icmp.Echo{ID: p.id, Seq: seq & 0xffff, Data: data}}
	// The kernel fills in the ICMPv6 checksum, which needs the addresses.
	b, err := msg.Marshal(nil)
	if err != nil {
		return fmt.Errorf("build request: %w", err)
	}
	p.sentAt[seq] = time.Now()
	if _, err := p.conn.WriteTo(b, p.to); err != nil {
		return fmt.Errorf("send request: %w", err)
	}
	p.stats.Sent++
	return nil
}

func (p *pinger) cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
