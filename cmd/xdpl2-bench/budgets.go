// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// The kinds of work of the budgets, as cells name them.
const (
	workForward = "forward"
	workProgram = "program"
)

// withFilter is the bridge with br_netfilter handing every frame to iptables,
// without any rule there: what distributions have by default and OpenWrt not.
const withFilter = "bridge, iptables called"

// cellName is how a variant is called in a results file.
func cellName(variant string) string {
	if variant == withFilter {
		return "bridge+iptables"
	}
	return variant
}

// The numbers of stations between which the cost may hardly grow, both sides
// together.
const (
	fewStations  = 16
	manyStations = 16384
)

func budgetsCommand() *command {
	return campaignCommand("budgets",
		"Measure what the data path costs against its budgets",
		"The forwarding core's time for each frame, and the program's own, against a redirect that\n"+
			"does not look at the frame, against the Linux bridge, with many stations, and on two cores\n"+
			"at once. Everything is measured in pairs, in turn; a budget is met or missed if the whole\n"+
			"95% interval is on one side of it. It needs root; nothing of the box itself is touched. It\n"+
			"ends with 1 unless every budget is met.",
		[]part{
			{"forward", "64-byte frames: the full path, a bare redirect, the bridge", 80 * time.Second, 20 * time.Second, (*campaign).budgetForward},
			{"program", "the program by itself, run by the kernel again and again", 30 * time.Second, 8 * time.Second, (*campaign).budgetProgram},
			{"growth", "16,384 stations against 16", 80 * time.Second, 20 * time.Second, (*campaign).budgetGrowth},
			{"cores", "two forwarding cores against one", 60 * time.Second, 15 * time.Second, (*campaign).budgetCores},
		}, judgeBudgets)
}

// bench starts a daemon in a rig's router.
func (c *campaign) bench(label string, meter *rig.Rig) (*bench, error) {
	return newBench(c.ctx, c.have.daemon, filepath.Join(c.dir, label), meter)
}

// close closes what a part has opened; its error is the part's.
func closeAll(err *error, all ...func() error) {
	for _, f := range all {
		*err = errors.Join(*err, f())
	}
}

// engineVariant forwards by the daemon, and checks that it does.
func (b *bench) variant(name, engine string) rig.Variant {
	return rig.Variant{
		Name:  name,
		Enter: func() error { return b.enter(engine) },
		Leave: func() error { return b.leave(name, engine) },
	}
}

// bareVariant forwards by a bare redirect, with the daemon switched off.
func (b *bench) bareVariant(engine string, with *bare) rig.Variant {
	return rig.Variant{
		Name: bareOf(engine),
		Enter: func() error {
			if err := b.use(""); err != nil {
				return err
			}
			return with.attach(engine)
		},
		Leave: with.detach,
	}
}

func bareOf(engine string) string { return "bare " + engine }

// budgetEngines are those that the budgets are about.
var budgetEngines = []string{"generic", "tc"}

// noNative is why native is not measured on the rig. Where the tap is full, as
// it always is, it drops a whole bundle of such frames at once and counts one.
const noNative = "engine native: the rig's tap neither takes nor counts all that native XDP sends it"

func (c *campaign) budgetForward() (err error) {
	if !c.have.live {
		c.leftOut(c.part, "the kernel cannot generate such frames (live frames, Linux 5.18)")
		return nil
	}
	meter, err := rig.New(c.ctx, rig.Options{})
	if err != nil {
		return err
	}
	defer closeAll(&err, meter.Close)
	b, err := c.bench("forward", meter)
	if err != nil {
		return err
	}
	defer closeAll(&err, b.daemon.stop)
	b.shares = map[string]*share{}
	least, err := newBare(meter.Router, meter.Ingress, meter.Egress)
	if err != nil {
		return err
	}
	defer closeAll(&err, least.Close)
	list := []rig.Variant{b.variant(viaBridge, ""), b.variant(again, "")}
	filtered := b.variant(cellName(withFilter), "")
	enter, leave := filtered.Enter, filtered.Leave
	if _, err := meter.Router.Sysctl("net/bridge/bridge-nf-call-iptables"); err == nil {
		filtered.Enter = func() error { return errors.Join(enter(), meter.Router.SetCallIPTables(true)) }
		filtered.Leave = func() error { return errors.Join(leave(), meter.Router.SetCallIPTables(false)) }
		list = append(list, filtered)
	} else {
		c.leftOut(c.part, "the bridge with iptables called: the kernel has no br_netfilter")
	}
	c.leftOut(c.part, noNative)
	for _, engine := range budgetEngines {
		list = append(list, b.variant(engine, engine), b.bareVariant(engine, least))
	}
	s := newSeries(viaBridge, results.Cell{Work: workForward, Input: results.Roomy, Size: 60, Stations: 2, Unit: results.NsPerFrame})
	if err := c.rounds(b, rig.Load{Input: rig.Roomy, Length: 60}, list, s); err != nil {
		return err
	}
	return c.put(s)
}

// rounds measures a load until the part's time is over.
func (c *campaign) rounds(b *bench, load rig.Load, list []rig.Variant, s *series) error {
	for more := c.roundsUntil(c.until); more(); {
		one, err := b.rig.Compare(c.ctx, load, list, rig.CompareOptions{Rounds: 1, Slice: slice, Seed: rand.Uint64()})
		if err != nil {
			return err
		}
		s.addRound(one)
		c.progress("%d rounds, %s", s.rounds(), s.standing())
	}
	return c.ctx.Err()
}

// standing is how the engines stand, for the progress.
func (s *series) standing() string {
	text := ""
	for _, e := range s.engines {
		if e == s.base || e == again {
			continue
		}
		if iv, ok := s.ratio(e); ok {
			text += fmt.Sprintf(" %s %.2f", e, iv.Median)
		}
	}
	return "times the bridge:" + text
}

// budgetGrowth measures the same engine on two rigs, one with few stations and
// one with many, in turn.
func (c *campaign) budgetGrowth() (err error) {
	if !c.have.live {
		c.leftOut(c.part, "the kernel cannot generate such frames (live frames, Linux 5.18)")
		return nil
	}
	var on []*bench
	var least []*bare
	all := map[string][]*series{}
	for _, stations := range []int{fewStations, manyStations} {
		meter, err2 := rig.New(c.ctx, rig.Options{Stations: stations / 2})
		if err2 != nil {
			return err2
		}
		defer closeAll(&err, meter.Close)
		b, err2 := c.bench(fmt.Sprint("growth", stations), meter)
		if err2 != nil {
			return err2
		}
		defer closeAll(&err, b.daemon.stop)
		b.shares, b.stations = map[string]*share{}, stations
		on = append(on, b)
		l, err2 := newBare(meter.Router, meter.Ingress, meter.Egress)
		if err2 != nil {
			return err2
		}
		defer closeAll(&err, l.Close)
		least = append(least, l)
		cell := results.Cell{Work: workForward, Input: results.Roomy, Size: 60, Stations: stations, Unit: results.NsPerFrame}
		for _, engine := range append([]string{viaBridge}, budgetEngines...) {
			all[engine] = append(all[engine], newSeries(viaBridge, cell))
		}
		all["bare"] = append(all["bare"], newSeries(viaBridge, cell))
	}
	load := rig.Load{Input: rig.Roomy, Length: 60}
	// Changing the engine with many stations takes long: each has its time.
	kinds := []string{viaBridge, "bare", "generic", "tc"}
	each := time.Until(c.until) / time.Duration(len(kinds))
	for _, kind := range kinds {
		for more := c.roundsUntil(time.Now().Add(each)); more(); {
			for _, i := range rand.Perm(len(on)) {
				v := on[i].variant(kind, kind)
				switch kind {
				case viaBridge:
					v = on[i].variant(kind, "")
				case "bare":
					v = on[i].bareVariant("generic", least[i])
				}
				one, err := on[i].rig.Compare(c.ctx, load, []rig.Variant{v}, rig.CompareOptions{Rounds: 1, Slice: slice})
				if err != nil {
					return err
				}
				all[kind][i].addRound(one)
			}
			few, many := all[kind][0], all[kind][1]
			if iv, ok := times(many.last(), few.last()); ok {
				c.progress("%s: %d rounds, %.2f times the cost", kind, few.rounds(), iv.Median)
			}
		}
		for _, s := range all[kind] {
			if err := c.put(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// last is the cell of a series with one engine.
func (s *series) last() *results.Cell {
	if len(s.engines) == 0 {
		return nil
	}
	return s.one(s.engines[0])
}
