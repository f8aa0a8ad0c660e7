// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// What must hold.
var (
	neverSlower   = bound{atLeast: 0.97}
	smallTight    = bound{atLeast: 1.15}
	smallRoomy    = bound{atLeast: 1.75}
	keepsItsShare = bound{atLeast: 0.5}
)

// gateBound is the bound of a cell's ratio to the bridge; none for what is
// measured for comparison.
func gateBound(c *results.Cell) bound {
	switch {
	case c.Engine != auto:
		return bound{}
	case c.Work == workForward && c.Size == 60 && c.Input == results.Tight:
		return smallTight
	case c.Work == workForward && c.Size == 60 && c.Input == results.Roomy:
		return smallRoomy
	}
	return neverSlower
}

// gateOrder is in which order the findings come.
var gateOrder = []string{viaBridge, again, "generic", "tc", native, auto}

// judgeGate says of each cell how it compares to the bridge.
func judgeGate(f *results.File) []finding {
	cells := slices.Clone(f.Cells)
	rank := map[string]int{}
	for i, work := range []string{workRigs, workForward, workTCP, costOf(workTCP), workRouted, costOf(workRouted), workBackward, costOf(workBackward),
		workRTT, workRTT99, workMixedTCP, workMixedUDP, workMixedCost} {
		rank[work] = i
	}
	slices.SortStableFunc(cells, func(a, b results.Cell) int {
		for _, d := range []int{
			compareText(a.Input, b.Input), rank[a.Work] - rank[b.Work], a.Stations - b.Stations, a.Flows - b.Flows, a.Size - b.Size,
			slices.Index(gateOrder, a.Engine) - slices.Index(gateOrder, b.Engine),
		} {
			if d != 0 {
				return d
			}
		}
		return 0
	})
	var all []finding
	for i := range cells {
		c := &cells[i]
		if c.Ratio == nil {
			continue
		}
		found := newFinding(gatePart(c), gateWhat(c), c.Engine, ratioOf(c), gateBound(c))
		found.Comment = c.Note
		all = append(all, found)
	}
	return append(all, judgeGain(f)...)
}

func compareText(a, b string) int {
	// Frames first, roomy before tight; then what has no input.
	order := []string{results.Roomy, results.Tight, ""}
	return slices.Index(order, a) - slices.Index(order, b)
}

// gatePart is the part to which a cell belongs.
func gatePart(c *results.Cell) string {
	switch c.Work {
	case workForward, workRigs:
		return c.Input
	case workRouted, workBackward, costOf(workRouted), costOf(workBackward):
		return "routed"
	case workRTT, workRTT99:
		return "latency"
	case workMixedTCP, workMixedUDP, workMixedCost:
		return "mixed"
	}
	return "tcp"
}

// gateWhat tells people what a cell is.
func gateWhat(c *results.Cell) string {
	streams := "1 stream"
	if c.Flows > 1 {
		streams = fmt.Sprintf("%d streams", c.Flows)
	}
	switch c.Work {
	case workForward:
		return fmt.Sprintf("%d B, %s", sizeOnPaper(c.Size), stationsText(c.Stations))
	case workRigs:
		return "the second rig's bridge, " + stationsText(c.Stations)
	case workTCP:
		return streams + ", throughput"
	case costOf(workTCP):
		return streams + ", forwarding core's time per byte"
	case workRouted:
		return "to the other network, throughput"
	case costOf(workRouted):
		return "to the other network, time per byte"
	case workBackward:
		return "from the other network, throughput"
	case costOf(workBackward):
		return "from the other network, time per byte"
	case workRTT:
		return "round trip, median"
	case workRTT99:
		return "round trip, 99th percentile"
	case workMixedTCP:
		return "TCP throughput beside small frames"
	case workMixedUDP:
		return "small frames delivered"
	case workMixedCost:
		return "forwarding core's time"
	}
	return c.Work
}

// sizeOnPaper names the shortest frame by its length on the wire, as everybody
// does, the others by theirs without check sequence.
func sizeOnPaper(size int) int {
	if size == 60 {
		return 64
	}
	return size
}

func stationsText(both int) string {
	if both == 2 {
		return "1 station a side"
	}
	return grouped(both/2) + " stations a side"
}

// judgeGain tells how much of tc's gain for the shortest frames is left for
// the longest: the paper's generic kept less than a quarter (15.0% at 64
// bytes, 3.5% at 1514).
func judgeGain(f *results.File) (all []finding) {
	for _, input := range []string{results.Roomy, results.Tight} {
		for _, stations := range gateStations {
			gain := func(size int) []float64 {
				id := results.ID{Work: workForward, Input: input, Size: size, Stations: 2 * stations, Unit: results.NsPerFrame}
				base, tc := ofWork(f, id)(viaBridge), ofWork(f, id)("tc")
				if base == nil || tc == nil {
					return nil
				}
				ratios, err := rig.Ratios(base.Samples, tc.Samples)
				if err != nil {
					return nil
				}
				return ratios
			}
			short, long := gain(60), gain(1514)
			if len(short) == 0 || len(long) == 0 {
				continue
			}
			iv := gainKept(short, long)
			found := newFinding(input, "gain at 1514 B over gain at 64 B, "+stationsText(2*stations), "tc", iv, keepsItsShare)
			found.Comment = fmt.Sprintf("%.1f%% at 64 B, %.1f%% at 1514 B", 100*(rig.Median(short)-1), 100*(rig.Median(long)-1))
			all = append(all, found)
		}
	}
	return all
}

// gainKept is the quotient of two gains that were measured at different times:
// the medians', with a bootstrap interval over both.
func gainKept(short, long []float64) rig.Interval {
	iv := rig.Interval{Median: (rig.Median(long) - 1) / (rig.Median(short) - 1), N: min(len(short), len(long))}
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func(values []float64) float64 {
		drawn := make([]float64, len(values))
		for i := range drawn {
			drawn[i] = values[rng.IntN(len(values))]
		}
		return rig.Median(drawn) - 1
	}
	var all []float64
	for range 2000 {
		if s := draw(short); s > 0 {
			all = append(all, draw(long)/s)
		}
	}
	if len(all) < 2000 { // there may be no gain to keep
		iv.N = 0
		return iv
	}
	iv.Low, iv.High = rig.Percentile(all, 0.025), rig.Percentile(all, 0.975)
	return iv
}
