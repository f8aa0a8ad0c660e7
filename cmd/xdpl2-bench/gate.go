// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// The kinds of work of the gate beside forwarding, as cells name them.
const (
	workTCP       = "tcp"            // between two ports: bit/s
	workTCPCost   = "tcp cost"       // the forwarding core's time
	workRouted    = "tcp routed"     // from a port to another network
	workBackward  = "tcp routed in"  // and from there
	workRTT       = "rtt median"     // of requests and answers
	workRTT99     = "rtt p99"        // the 99th percentile
	workMixedTCP  = "mixed tcp"      // a bulk transfer beside small frames
	workMixedUDP  = "mixed udp"      // the small frames beside it
	workMixedCost = "mixed cost"     // the forwarding core's time for both
	workRigs      = "bridge on both" // the two rigs against each other
)

// costOf is the cost that belongs to a kind of transfer.
func costOf(work string) string { return work + " cost" }

// The numbers of stations of the matrix, on each side. The generators need
// powers of two.
var gateStations = []int{1, 1024}

// gateSizes are the frames' lengths without check sequence; the shortest has
// 64 bytes on the wire.
var gateSizes = []int{60, 128, 256, 512, 1024, 1280, 1514}

// With --quick there are fewer.
var (
	quickStations = []int{1}
	quickSizes    = []int{60, 512, 1514}
)

func gateCommand() *command {
	return campaignCommand("gate",
		"Measure the matrix that must hold: never slower than the bridge",
		"Bridge, engines and auto side by side, for frames of all sizes, TCP, routed TCP, answers and\n"+
			"mixed traffic, as ratios taken in pairs. A bound is kept if the whole 95% interval is. It\n"+
			"needs root; nothing of the box itself is touched. It ends with 1 unless every bound is kept.",
		[]part{
			{"roomy", "frames of 64 to 1514 bytes with room for XDP in front, 1 and 1,024 stations", 245 * time.Second, 60 * time.Second, gateMatrix(rig.Roomy)},
			{"tight", "the same without room, as drivers without XDP make them", 245 * time.Second, 60 * time.Second, gateMatrix(rig.Tight)},
			{"tcp", "bulk TCP between two ports, 1 and 8 streams", 100 * time.Second, 25 * time.Second, (*campaign).gateTCP},
			{"routed", "bulk TCP that the box routes, in both directions", 100 * time.Second, 25 * time.Second, (*campaign).gateRouted},
			{"latency", "requests and answers of a byte over TCP", 100 * time.Second, 25 * time.Second, (*campaign).gateLatency},
			{"mixed", "small UDP frames beside bulk TCP", 100 * time.Second, 25 * time.Second, (*campaign).gateMixed},
		}, judgeGate)
}

// gateEngines are compared with the bridge where there are hosts, native if it
// is possible.
var gateEngines = []string{"generic", "tc", native}

// possible returns the engines that the daemon takes here, and notes why not
// for the others.
func (c *campaign) possible(s *switcher, engines []string) (can []string, err error) {
	for _, engine := range engines {
		if err := s.use(engine); err != nil {
			if c.ctx.Err() != nil {
				return nil, err
			}
			if engine != native {
				return nil, err
			}
			// Results are made to be shown around: no paths of this machine.
			why := strings.ReplaceAll(err.Error(), s.daemon.file(), "configuration")
			c.leftOut(c.part, fmt.Sprintf("engine %s is not possible here: %s", engine, why))
			continue
		}
		can = append(can, engine)
	}
	return can, nil
}

func gateMatrix(input rig.Input) func(*campaign) error {
	return func(c *campaign) error {
		if input == rig.Roomy && !c.have.live {
			c.leftOut(c.part, "the kernel cannot generate such frames (live frames, Linux 5.18)")
			return nil
		}
		all := gateStations
		if c.o.quick {
			all = quickStations
		}
		left := len(all)
		for _, stations := range all {
			until := time.Now().Add(time.Until(c.until) / time.Duration(left))
			if err := c.matrixOf(input, stations, until); err != nil {
				return err
			}
			left--
		}
		return nil
	}
}

// matrixOf measures all sizes. The engines take turns on one rig; auto has
// another one of the same make for itself, since it adapts to what comes and
// would begin anew with every change of the configuration.
func (c *campaign) matrixOf(input rig.Input, stations int, until time.Time) (err error) {
	var on [2]*bench
	for i := range on {
		meter, err2 := rig.New(c.ctx, rig.Options{Stations: stations})
		if err2 != nil {
			return err2
		}
		defer closeAll(&err, meter.Close)
		if on[i], err2 = c.bench(fmt.Sprintf("%s%d-%d", input, stations, i), meter); err2 != nil {
			return err2
		}
		defer closeAll(&err, on[i].daemon.stop)
		on[i].shares, on[i].stations = map[string]*share{}, 2*stations
	}
	if err := c.bothRigs(on, input, stations); err != nil {
		return err
	}
	c.leftOut(c.part, noNative)
	if err := on[1].use(auto); err != nil {
		return err
	}
	sizes := gateSizes
	if c.o.quick {
		sizes = quickSizes
	}
	for i, size := range sizes {
		// What is not needed for measuring is for auto, first come, first served.
		left := time.Duration(len(sizes) - i)
		spare := time.Until(until) - left*enoughTime
		each := max(time.Until(until)-max(spare, 0), 0) / left
		cell := results.Cell{Work: workForward, Input: input.String(), Size: size, Stations: 2 * stations, Unit: results.NsPerFrame}
		s := newSeries(viaBridge, cell)
		load := rig.Load{Input: input, Length: size}
		trail, err := on[1].settleAuto(load, min(spare, autoPatience))
		if err != nil {
			return err
		}
		if err := c.matrixCell(on, budgetEngines, load, s, trail, time.Now().Add(each)); err != nil {
			return err
		}
		if err := c.put(s); err != nil {
			return err
		}
	}
	return nil
}

// matrixCell measures one load until its time is over, or every bound is
// decided.
func (c *campaign) matrixCell(on [2]*bench, engines []string, load rig.Load, s *series, trail *trail, until time.Time) error {
	list := []rig.Variant{on[0].variant(viaBridge, ""), on[0].variant(again, "")}
	for _, engine := range engines {
		list = append(list, on[0].variant(engine, engine))
	}
	for more := c.roundsUntil(until); more(); {
		first, err := on[1].autoSlice(load, trail)
		if err != nil {
			return err
		}
		one, err := on[0].rig.Compare(c.ctx, load, list, rig.CompareOptions{Rounds: 1, Slice: slice, Seed: rand.Uint64()})
		if err != nil {
			return err
		}
		second, err := on[1].autoSlice(load, trail)
		if err != nil {
			return err
		}
		s.addRound(one)
		s.add(auto, (first+second)/2)
		c.progress("%d bytes, %d stations: %d rounds, %s", load.Length, s.cell.Stations, s.rounds(), s.standing())
		if s.rounds() >= enoughRounds && s.decided() {
			break
		}
	}
	s.notes[auto] = trail.words()
	return nil
}

// enoughRounds is from how many rounds on a cell ends when all its bounds are
// decided, and enoughTime what these take, about.
const (
	enoughRounds = 12
	enoughTime   = 9 * time.Second
)

// decided tells whether no bound of the cell is undecided.
func (s *series) decided() bool {
	cells, err := s.cells()
	if err != nil {
		return false
	}
	for i := range cells {
		if gateBound(&cells[i]).judge(ratioOf(&cells[i])) == undecided {
			return false
		}
	}
	return true
}

// bothRigs measures the bridge on both rigs, so that a difference between them
// is known.
func (c *campaign) bothRigs(on [2]*bench, input rig.Input, stations int) error {
	s := newSeries(viaBridge, results.Cell{Work: workRigs, Input: input.String(), Size: 60, Stations: 2 * stations, Unit: results.NsPerFrame})
	names := [2]string{viaBridge, again}
	for range minForInterval + 2 {
		for _, i := range rand.Perm(2) {
			one, err := on[i].rig.Compare(c.ctx, rig.Load{Input: input, Length: 60}, []rig.Variant{on[i].variant(names[i], "")}, rig.CompareOptions{Rounds: 1, Slice: slice})
			if err != nil {
				return err
			}
			s.addRound(one)
		}
	}
	return c.put(s)
}
