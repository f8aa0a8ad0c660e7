// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// Input is the kind of sk_buff that the forwarding core gets.
type Input int

const (
	// Roomy sk_buffs have the 256 bytes of headroom that XDP wants. The kernel
	// makes them itself (see LiveFrames).
	Roomy Input = iota
	// Tight sk_buffs have as little as those of NIC drivers without XDP: the
	// generic hook copies each one. They come from a raw socket, so their
	// memory is taken on one core and given back on another.
	Tight
)

func (i Input) String() string {
	if i == Tight {
		return "tight"
	}
	return "roomy"
}

// Load is what a slice sends.
type Load struct {
	Input  Input
	Length int // of the frames in bytes without check sequence, 60 to 1514
}

// Sample is what a slice measured.
type Sample struct {
	NsPerFrame float64       // run time of the forwarding thread for one frame; see Options.OneCore
	Frames     int           // frames that left through the egress
	Received   int           // frames that came in
	RunTime    time.Duration // of the forwarding thread
	Elapsed    time.Duration // from the first frame to the last
}

// Busy is the share of the time that the forwarding thread ran. Well below 1
// the generator was the slower one, and the thread's waking up is part of the
// cost.
func (s Sample) Busy() float64 { return s.RunTime.Seconds() / s.Elapsed.Seconds() }

// MaxSlice bounds a slice: neighbours wake up and change the machine's speed,
// so long slices compare unlike things.
const MaxSlice = 100 * time.Millisecond

// errGenerating says that on one core generating alone seemed to cost more than
// generating and forwarding: somebody else had the core.
var errGenerating = errors.New("generating the frames cost more than generating and forwarding them")

// generator sends frames of one kind.
type generator struct {
	send func(frames int) error
	// waste is send to where the frames are thrown away at once (OneCore).
	waste func(frames int) error
}

// Slice sends for about the duration and measures. The first slice of a load
// takes longer, for getting to know the generator's rate.
func (r *Rig) Slice(ctx context.Context, load Load, d time.Duration) (Sample, error) {
	if d <= 0 || d > MaxSlice {
		return Sample{}, fmt.Errorf("slice of %v: expected up to %v", d, MaxSlice)
	}
	g, err := r.generator(load)
	if err != nil {
		return Sample{}, err
	}
	if err := ctx.Err(); err != nil {
		return Sample{}, context.Cause(ctx)
	}
	// What was sent before the slice must not count into it.
	before, err := r.settle(ctx)
	if err != nil {
		return Sample{}, err
	}
	generating := time.Duration(0) // a frame, on the core that forwards
	if r.o.OneCore {
		sent, elapsed, err := r.run(g.waste, d/2)
		if err != nil {
			return Sample{}, err
		}
		generating = elapsed / time.Duration(sent)
	}
	sent, elapsed, err := r.run(g.send, d)
	if err != nil {
		return Sample{}, err
	}
	after, err := r.settle(ctx)
	if err != nil {
		return Sample{}, err
	}
	if r.o.OneCore {
		after.run = before.run + elapsed - time.Duration(sent)*generating
	}
	s := Sample{
		Frames:   int(after.forwarded - before.forwarded),
		Received: int(after.received - before.received),
		RunTime:  after.run - before.run,
		Elapsed:  elapsed,
	}
	if s.Frames > 0 && s.RunTime <= 0 && r.o.OneCore {
		return s, errGenerating
	}
	if s.Frames <= 0 || s.RunTime <= 0 {
		return s, fmt.Errorf("slice of %v: %d frames came in, %d left: nothing is forwarded", d, s.Received, s.Frames)
	}
	s.NsPerFrame = float64(s.RunTime.Nanoseconds()) / float64(s.Frames)
	return s, nil
}

// run sends frames from the generator's core until a time is over, but no
// fewer than r.o.Least. It goes by the clock, not by a rate that was seen
// before: frames that find the ring full cost the generator next to nothing.
func (r *Rig) run(send func(int) error, d time.Duration) (sent int, elapsed time.Duration, err error) {
	start := time.Now()
	err = r.onGenerator(func() error {
		for ; sent < r.o.Least || time.Since(start) < d; sent += r.o.Least {
			if err := send(r.o.Least); err != nil {
				return err
			}
		}
		return nil
	})
	return sent, time.Since(start), err
}

// settle waits until the forwarding thread has nothing left and returns the
// counters.
func (r *Rig) settle(ctx context.Context) (counters, error) {
	last, err := r.read()
	if err != nil {
		return last, err
	}
	for range 1000 {
		// There is no event for "done": the ring holds 256 frames, less than a
		// millisecond of work once the thread gets its core.
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return last, context.Cause(ctx)
		}
		rests := r.o.OneCore
		if !rests {
			if rests, err = sleeping(r.thread); err != nil {
				return last, err
			}
		}
		now, err := r.read()
		if err != nil {
			return now, err
		}
		if rests && now.received == last.received && now.forwarded == last.forwarded && now.run == last.run {
			return now, nil
		}
		last = now
	}
	return last, errors.New("the forwarding thread does not come to rest")
}

// generator returns the generator for a load, made and run in once.
func (r *Rig) generator(load Load) (*generator, error) {
	if load.Length < ether.MinFrame || load.Length > 1514 {
		return nil, fmt.Errorf("frames of %d bytes: expected %d to 1514", load.Length, ether.MinFrame)
	}
	if g := r.generators[load]; g != nil {
		return g, nil
	}
	g := &generator{}
	var err error
	if g.send, err = r.sender(load, rigSourceDev); err != nil {
		return nil, err
	}
	if r.o.OneCore {
		if g.waste, err = r.sender(load, idleDev); err != nil {
			return nil, err
		}
	}
	if r.o.OneCore {
		if _, _, err := r.run(g.waste, MaxSlice); err != nil {
			return nil, err
		}
	}
	if _, _, err := r.run(g.send, MaxSlice); err != nil {
		return nil, err
	}
	r.generators[load] = g
	return g, nil
}

// sender makes what sends frames of a load on a device.
func (r *Rig) sender(load Load, dev string) (func(int) error, error) {
	if load.Input == Roomy {
		live, err := NewLiveFrames(r.source, dev, LiveOptions{
			Frame: r.frame(load.Length, 0, 0), SpreadDst: r.o.Stations, SpreadSrc: r.o.Stations,
		})
		if err != nil {
			return nil, err
		}
		return live.Send, nil
	}
	raw, err := r.source.Sender(dev)
	if err != nil {
		return nil, err
	}
	return r.rawGenerator(raw, load.Length), nil
}

// rawGenerator sends the same frames in turn; with many stations in a random
// order, so that caches cannot guess the next one.
func (r *Rig) rawGenerator(s *netns.Sender, length int) func(int) error {
	rng := rand.New(rand.NewPCG(1, 1))
	frames := make([][]byte, min(16*r.o.Stations, 16384))
	for i := range frames {
		frames[i] = r.frame(length, rng.IntN(r.o.Stations), rng.IntN(r.o.Stations))
	}
	return func(n int) error {
		for n > 0 {
			sent, err := s.SendAll(frames[:min(n, len(frames))])
			if err != nil {
				return err
			}
			n -= sent
		}
		return nil
	}
}

// Addresses of the frames' IPv4 headers, and their port. Nobody has them.
var (
	sourceIP      = netip.AddrFrom4([4]byte{192, 168, 77, 2})
	destinationIP = netip.AddrFrom4([4]byte{192, 168, 77, 3})
)

const discardPort = 9

// Frame returns a frame as the generators send it, from the first station to
// the first one.
func (r *Rig) Frame(length int) []byte { return r.frame(length, 0, 0) }

func (r *Rig) frame(length, source, destination int) []byte {
	return ether.UDP(ether.UDPSpec{
		Dst: stationMAC(r.to, destination), Src: stationMAC(r.from, source),
		DstIP: destinationIP, SrcIP: sourceIP,
		DstPort: discardPort, SrcPort: 40000, Length: length,
	})
}

// Send sends other frames than a Load has, from the generator's core, as tight
// sk_buffs.
func (r *Rig) Send(frames [][]byte) error {
	sender, err := r.source.Sender(rigSourceDev)
	if err != nil {
		return err
	}
	defer sender.Close()
	return r.onGenerator(func() error {
		for len(frames) > 0 {
			n, err := sender.SendAll(frames)
			if err != nil {
				return err
			}
			frames = frames[n:]
		}
		return nil
	})
}

// Variant is one way to forward, for Compare. Enter makes the router forward
// that way, Leave undoes it; either may be nil.
type Variant struct {
	Name         string
	Enter, Leave func() error
}

// CompareOptions say how long to measure. In each round every variant has two
// slices.
type CompareOptions struct {
	Rounds   int           // 0 means 15
	Slice    time.Duration // 0 means 50 ms
	Seed     uint64        // of the orders
	Progress func(done, rounds int)
}

// Round has the samples of one round: by variant, in the order of time.
type Round [][]Sample

// Comparison is what Compare measured.
type Comparison struct {
	Load     Load
	Variants []string
	Rounds   []Round
}

// Compare measures variants against each other. In each round they take turns
// in a random order and then in the opposite one. To see the noise, give the
// same variant twice under two names.
func (r *Rig) Compare(ctx context.Context, load Load, variants []Variant, o CompareOptions) (*Comparison, error) {
	if o.Rounds <= 0 {
		o.Rounds = 15
	}
	if o.Slice <= 0 {
		o.Slice = 50 * time.Millisecond
	}
	c := &Comparison{Load: load}
	for _, v := range variants {
		c.Variants = append(c.Variants, v.Name)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0))
	for n := range o.Rounds {
		round := make(Round, len(variants))
		for _, i := range Mirrored(len(variants), rng) {
			s, err := r.sliceOf(ctx, variants[i], load, o.Slice)
			if err != nil {
				return c, fmt.Errorf("measure %s: %w", variants[i].Name, err)
			}
			round[i] = append(round[i], s)
		}
		c.Rounds = append(c.Rounds, round)
		if o.Progress != nil {
			o.Progress(n+1, o.Rounds)
		}
	}
	return c, nil
}

// sliceOf measures one slice of a variant, after some frames that warm the
// caches after the change.
func (r *Rig) sliceOf(ctx context.Context, v Variant, load Load, d time.Duration) (s Sample, err error) {
	if v.Leave != nil {
		defer func() { err = errors.Join(err, v.Leave()) }()
	}
	if v.Enter != nil {
		if err := v.Enter(); err != nil {
			return s, fmt.Errorf("enter: %w", err)
		}
	}
	g, err := r.generator(load)
	if err != nil {
		return s, err
	}
	if err := r.onGenerator(func() error { return g.send(r.o.Least / 4) }); err != nil {
		return s, err
	}
	// On a busy machine the forwarding thread may hardly get its core while
	// the generator sends; what it did then is too little to count.
	for range 5 {
		if s, err = r.Slice(ctx, load, d); errors.Is(err, errGenerating) {
			continue
		}
		if err != nil || s.Frames >= r.o.Least/8 {
			break
		}
	}
	return s, err
}

// costs returns a variant's cost in each round, in ns per frame.
func (c *Comparison) costs(name string) ([]float64, error) {
	i := slices.Index(c.Variants, name)
	if i < 0 {
		return nil, fmt.Errorf("no variant %q was measured", name)
	}
	costs := make([]float64, len(c.Rounds))
	for n, round := range c.Rounds {
		var ns []float64
		for _, s := range round[i] {
			ns = append(ns, s.NsPerFrame)
		}
		costs[n] = Mean(ns)
	}
	return costs, nil
}

// Cost returns what a variant costs, in ns per frame. The machine's changes
// are part of the interval; see Ratio.
func (c *Comparison) Cost(name string) (Interval, error) {
	costs, err := c.costs(name)
	if err != nil {
		return Interval{}, err
	}
	return Bootstrap(costs, 1), nil
}

// Ratio returns how many times cheaper a variant is than the base: the median
// over the rounds of the ratio within each round.
func (c *Comparison) Ratio(base, name string) (Interval, error) {
	b, err := c.costs(base)
	if err != nil {
		return Interval{}, err
	}
	v, err := c.costs(name)
	if err != nil {
		return Interval{}, err
	}
	ratios, err := Ratios(b, v)
	if err != nil {
		return Interval{}, err
	}
	return Bootstrap(ratios, 1), nil
}

// Sleep waits for a time to pass, or for the context, whose cause it returns.
func Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
