// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// The budgets.
var (
	budgetFull    = bound{atMost: 1.10} // forwarding core: full path over bare redirect
	budgetRun     = map[string]bound{"generic": {atMost: 2.2}, "tc": {atMost: 2.7}}
	budgetGrowth  = bound{atMost: 1.10}
	budgetBridge  = map[string]bound{"generic": {atLeast: 1.75}, "tc": {atLeast: 1.30}}
	budgetScaling = bound{atLeast: 1.8}
)

// engineHook names what an engine's program is by itself.
var engineHook = map[string]string{"generic": "XDP", "tc": "tc"}

// judgeBudgets says of each budget that was measured whether it is kept.
func judgeBudgets(f *results.File) []finding {
	all := judgeForward(f)
	all = append(all, judgeProgram(f)...)
	all = append(all, judgeGrowth(f)...)
	return append(all, judgeCores(f)...)
}

// ofWork finds cells of one kind of work by their engine.
func ofWork(f *results.File, id results.ID) func(engine string) *results.Cell {
	return func(engine string) *results.Cell {
		id.Engine = engine
		return f.Find(id)
	}
}

func judgeForward(f *results.File) (all []finding) {
	cell := ofWork(f, results.ID{Work: workForward, Input: results.Roomy, Size: 60, Stations: 2, Unit: results.NsPerFrame})
	base, filtered := cell(viaBridge), cell(cellName(withFilter))
	if c := cell(again); c != nil {
		all = append(all, newFinding("forward", "the bridge against itself: the noise", viaBridge, ratioOf(c), bound{}))
	}
	for _, engine := range budgetEngines {
		full := cell(engine)
		if iv, ok := times(full, cell(bareOf(engine))); ok {
			all = append(all, newFinding("forward", "time per frame, in times a bare redirect's", engine, iv, budgetFull))
		}
		if iv, ok := times(base, full); ok {
			all = append(all, newFinding("forward", "times as fast as the bridge", engine, iv, budgetBridge[engine]))
		}
		if iv, ok := times(filtered, full); ok {
			all = append(all, newFinding("forward", "times as fast as the bridge that calls iptables", engine, iv, budgetBridge[engine]))
		}
	}
	for _, engine := range budgetEngines {
		if iv, ok := times(base, cell(bareOf(engine))); ok {
			all = append(all, newFinding("forward", "a bare redirect, times as fast as the bridge", engine, iv, bound{}))
		}
	}
	return all
}

func judgeProgram(f *results.File) (all []finding) {
	cell := ofWork(f, results.ID{Work: workProgram, Size: 60, Stations: 2, Unit: results.NsPerCall})
	for _, engine := range budgetEngines {
		full, least := cell(engine), cell(bareOf(engine))
		if iv, ok := times(full, least); ok {
			found := newFinding("program", "time of a run, in times a bare redirect's", engineHook[engine], iv, budgetRun[engine])
			found.Comment = fmt.Sprintf("%.1f ns, bare %.1f ns", *full.Median, *least.Median)
			all = append(all, found)
		}
	}
	return all
}

func judgeGrowth(f *results.File) (all []finding) {
	id := results.ID{Work: workForward, Input: results.Roomy, Size: 60, Unit: results.NsPerFrame}
	few, many := id, id
	few.Stations, many.Stations = fewStations, manyStations
	for _, engine := range []string{"generic", "tc", viaBridge, bareOf("generic")} {
		iv, ok := times(ofWork(f, many)(engine), ofWork(f, few)(engine))
		if !ok {
			continue
		}
		var b bound
		if budgetRun[engine] != (bound{}) {
			b = budgetGrowth
		}
		all = append(all, newFinding("growth", fmt.Sprintf("time per frame with %s stations, in times that with %d", grouped(manyStations), fewStations), engine, iv, b))
	}
	return all
}

// judgeCores tells how many times one core's work two cores do. If a bare
// redirect, which shares nothing, does not do enough either, the machine's
// cores are no two cores, and nothing is decided.
func judgeCores(f *results.File) (all []finding) {
	for _, work := range []struct {
		name, what, reference string
		id                    results.ID
	}{
		{workProgram, "the program alone: two cores do, in times one core's work", "", results.ID{Size: 60, Stations: 2, Unit: results.NsPerCall}},
		{workForward, "forwarding: two cores do, in times one core's work", viaBridge, results.ID{Input: results.Roomy, Size: 60, Stations: 4, Unit: results.NsPerFrame}},
	} {
		one, two := work.id, work.id
		one.Work, two.Work = work.name+oneCore, work.name+twoCores
		scaling := func(engine string) (rig.Interval, bool) {
			iv, ok := times(ofWork(f, one)(engine), ofWork(f, two)(engine))
			return rig.Interval{Median: 2 * iv.Median, Low: 2 * iv.Low, High: 2 * iv.High, N: iv.N}, ok
		}
		for _, engine := range budgetEngines {
			iv, ok := scaling(engine)
			if !ok {
				continue
			}
			found := newFinding("cores", work.what, engine, iv, budgetScaling)
			reference := work.reference
			if reference == "" {
				reference = bareOf(engine)
			}
			if least, ok := scaling(reference); ok {
				found.Comment = fmt.Sprintf("%s: %.2f", reference, least.Median)
				if found.Verdict == missed && budgetScaling.judge(least) != met {
					found.Verdict = undecided
				}
			}
			all = append(all, found)
		}
	}
	return all
}
