// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// flow is one kind of traffic and what came of it.
type flow struct {
	Name    string  `json:"name"`
	OK      bool    `json:"ok"`
	Error   string  `json:"error,omitempty"`
	Sent    int     `json:"sent,omitempty"`
	Lost    int     `json:"lost"`
	RTT     float64 `json:"rtt_median_us,omitempty"`
	RTT99   float64 `json:"rtt_p99_us,omitempty"`
	Up      float64 `json:"up_bit_per_s,omitempty"`
	Down    float64 `json:"down_bit_per_s,omitempty"`
	Rate    float64 `json:"frames_per_s,omitempty"`
	Comment string  `json:"comment,omitempty"`
}

// What the traffic consists of. The pings go on all the time; TCP has the
// first half and the generator the second, since TCP takes all the processor
// time that it gets.
const (
	pingInterval  = 20 * time.Millisecond
	patience      = 2 * time.Second // for what a busy machine delays
	generatorRate = 20_000          // frames a second
	chatter       = 250 * time.Millisecond
)

// traffic sends everything for a time and returns what came of it.
func traffic(ctx context.Context, l *lab.Lab, ipv6 bool, d time.Duration) []flow {
	h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	var wg sync.WaitGroup
	flows := make([]flow, 0, 8)
	start := func(name string, send func(f *flow) error) {
		flows = append(flows, flow{Name: name})
		f := &flows[len(flows)-1] // the capacity suffices: it does not move
		wg.Go(func() {
			if err := send(f); err != nil {
				f.OK, f.Error = false, err.Error()
			}
		})
	}
	ping := func(from *lab.Host, to netip.Addr, interval time.Duration) func(*flow) error {
		return func(f *flow) error { return sendPings(ctx, f, from, to, d, interval) }
	}
	start("ping h1 to h2, IPv4", ping(h1, h2.IP4, pingInterval))
	if ipv6 {
		start("ping h2 to h3, IPv6", ping(h2, h3.IP6, pingInterval))
	}
	start("ping h3 to the box itself", ping(h3, lab.RouterIP4, 10*pingInterval))
	start("TCP h1 and h2, both ways at once", func(f *flow) error {
		return sendTCP(ctx, f, h1, h2, d/2)
	})
	start("generator h3 to h1, 64 B", func(f *flow) error {
		if err := rig.Sleep(ctx, d/2); err != nil {
			return err
		}
		return generate(ctx, f, l, h3, h1, d/2)
	})
	start("broadcasts, link control", func(f *flow) error {
		return sendChatter(ctx, f, d, []*lab.Host{h1, h2, h3})
	})
	wg.Wait()
	return flows
}

// sendPings pings for a time, in runs of half a second: on a busy machine the
// intervals become longer, and a count alone would be late.
func sendPings(ctx context.Context, f *flow, from *lab.Host, to netip.Addr, d, interval time.Duration) error {
	end := time.Now().Add(d)
	var rtts []float64
	duplicates := 0
	for {
		now := time.Now()
		count := int(min(end.Sub(now), time.Second/2) / interval)
		if count <= 0 {
			break
		}
		stats, err := from.Ping(ctx, to, lab.PingOptions{Count: count, Interval: interval, Timeout: patience})
		f.Sent += stats.Sent
		f.Lost += stats.Lost()
		duplicates += stats.Duplicates
		if err != nil {
			return err
		}
		for _, rtt := range stats.RTTs {
			rtts = append(rtts, float64(rtt)/float64(time.Microsecond))
		}
		// The last one of a run does not wait out its interval.
		if err := rig.Sleep(ctx, time.Until(now.Add(time.Duration(count)*interval))); err != nil {
			return err
		}
	}
	if len(rtts) > 0 {
		f.RTT, f.RTT99 = rig.Median(rtts), rig.Percentile(rtts, 0.99)
	}
	f.OK = f.Lost == 0 && duplicates == 0
	if duplicates > 0 {
		f.Comment = fmt.Sprintf("%d answers came twice", duplicates)
	}
	return nil
}

func sendTCP(ctx context.Context, f *flow, client, server *lab.Host, d time.Duration) error {
	s, err := server.TCPServe(ctx, false)
	if err != nil {
		return err
	}
	defer s.Close()
	t, err := client.Transfer(ctx, s.Addr(), lab.TCPOptions{Direction: lab.Both, Duration: d})
	if err != nil {
		return err
	}
	r, err := t.Wait()
	if err != nil {
		return err
	}
	f.Up = 8 * float64(r.Up) / r.Elapsed.Seconds()
	f.Down = 8 * float64(r.Down) / r.Elapsed.Seconds()
	f.OK = r.Up > 0 && r.Down > 0
	return nil
}

func generate(ctx context.Context, f *flow, l *lab.Lab, from, to *lab.Host, d time.Duration) error {
	start := time.Now()
	s, err := l.StartStream(ctx, from, to, lab.StreamOptions{Rate: generatorRate, Stall: patience})
	if err != nil {
		return err
	}
	// An error of this wait shows at the stream as well.
	_ = rig.Sleep(ctx, d-time.Since(start))
	s.Stop()
	sending := time.Since(start)
	stats, err := s.Wait()
	f.Sent, f.Lost = stats.Sent, stats.Lost()
	f.Rate = float64(stats.Sent) / sending.Seconds()
	f.OK = err == nil && stats.Perfect() && stats.Elsewhere == 0
	if err == nil && !f.OK {
		f.Comment = fmt.Sprintf("%d twice, %d out of order, %d damaged, %d at the wrong place",
			stats.Duplicated, stats.Reordered, stats.Corrupt, stats.Elsewhere)
	}
	return err
}

// sendChatter sends what a network is never without, and what the fast path
// must leave to the bridge.
func sendChatter(ctx context.Context, f *flow, d time.Duration, hosts []*lab.Host) error {
	tick := time.NewTicker(chatter)
	defer tick.Stop()
	end := time.Now().Add(d)
	for time.Now().Before(end) {
		for i, h := range hosts {
			s, err := h.Sender()
			if err != nil {
				return err
			}
			next := hosts[(i+1)%len(hosts)]
			_, err = s.SendAll([][]byte{
				ether.ARPRequest(h.MAC, h.IP4, next.IP4),
				ether.LLDP(h.MAC),
				multicast(h.MAC, h.IP4),
			})
			if err = errors.Join(err, s.Close()); err != nil {
				return err
			}
			f.Sent += 3
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	f.OK = true
	return nil
}

// multicast is a datagram to all hosts of the network (224.0.0.1).
func multicast(src net.HardwareAddr, ip netip.Addr) []byte {
	return ether.UDP(ether.UDPSpec{
		Dst: net.HardwareAddr{0x01, 0x00, 0x5e, 0, 0, 1}, Src: src,
		DstIP: netip.AddrFrom4([4]byte{224, 0, 0, 1}), SrcIP: ip,
		DstPort: lab.DiscardPort, SrcPort: 40000,
	})
}

// words tells what came of a flow.
func (f *flow) words() string {
	var text string
	switch {
	case f.RTT > 0:
		text = fmt.Sprintf("%s sent, %s lost, RTT %.0f µs (99%% within %.0f µs)", grouped(f.Sent), grouped(f.Lost), f.RTT, f.RTT99)
	case f.Up > 0 || f.Down > 0:
		text = fmt.Sprintf("%s up, %s down, every byte checked", bits(f.Up), bits(f.Down))
	case f.Rate > 0:
		text = fmt.Sprintf("%s sent (%s a second), %s lost", grouped(f.Sent), grouped(int(f.Rate)), grouped(f.Lost))
	case f.Lost > 0:
		text = fmt.Sprintf("%s sent, %s lost", grouped(f.Sent), grouped(f.Lost))
	default:
		text = fmt.Sprintf("%s sent", grouped(f.Sent))
	}
	for _, more := range []string{f.Comment, f.Error} {
		if more != "" {
			text += "; " + more
		}
	}
	return text
}
