// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/adapt"
	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/lab"
)

func TestBetweenReadings(t *testing.T) {
	start := time.Now()
	reading := func(after time.Duration, redirected, passed, merged, segments, dropped uint64) portReading {
		r := portReading{at: start.Add(after), dropped: dropped, counted: true}
		r.traffic.Counters[datapath.Redirected] = datapath.Counter{Packets: redirected, Bytes: 100 * redirected}
		r.traffic.Counters[datapath.PassLocal] = datapath.Counter{Packets: passed, Bytes: 60 * passed}
		r.traffic.Aggregates = datapath.Aggregates{Packets: merged, Segments: segments}
		r.traffic.Frames = []uint64{0, redirected + passed}
		return r
	}
	a, b := reading(0, 1000, 10, 1, 40, 5), reading(time.Second, 3000, 60, 3, 130, 9)
	want := adapt.Traffic{Elapsed: time.Second, Frames: 2050, Bytes: 203_000, Passed: 50, Aggregates: 2, Segments: 90, Dropped: 4}
	if got := between(a, b, 0); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	// A port that is gone takes its counters along.
	want.Dropped = 0
	b.dropped = 2
	if got := between(a, b, 0); got != want {
		t.Errorf("fewer drops than before: %+v", got)
	}
	b.dropped, a.counted = 9, false
	if got := between(a, b, 0); got != want {
		t.Errorf("drops were not read at both ends: %+v", got)
	}
	a.timed = true
	if got := between(a, b, 0); got.Timed {
		t.Errorf("the clocks were not read at both ends: %+v", got)
	}
	if got := between(a, b, time.Microsecond); !got.Timed || got.Softirq != 2050*time.Microsecond {
		t.Errorf("with a given cost: %+v", got)
	}
}

func TestExpectation(t *testing.T) {
	row := func(work string, size int, engine string, ratio float64) api.CalibrationRow {
		return api.CalibrationRow{Work: work, Size: size, Engine: engine, Ratio: ratio}
	}
	both := []api.CalibrationRow{
		row("roomy", 1514, "generic", 1.5), row("roomy", 64, "generic", 1.8), row("roomy", 64, "tc", 1.2), row("roomy", 1514, "tc", 1.2),
		row("tight", 64, "generic", 1.2), row("tight", 64, "tc", 1.2), row("tight", 1514, "generic", 0.9), row("tight", 1514, "tc", 1.2),
		row("roomy", 64, "bridge", 1), row("tcp", 0, "generic", 0.4), row("tcp", 0, "tc", 1),
	}
	for _, c := range []struct {
		name      string
		rows      []api.CalibrationRow
		length    float64
		low, high float64 // 0: nothing is to be expected
	}{
		{"a size that was measured", both, 64, 1, 1.5},
		{"shorter than all", both, 60, 1, 1.5},
		{"the longest", both, 1514, 0.75, 1.25},
		{"longer than all", both, 9000, 0.75, 1.25},
		{"half way", both, 789, 0.875, 1.375},
		{"no room alone", both[4:], 64, 1, 1},
		{"tcp alone", both[9:], 64, 0, 0},
		{"one engine alone", both[6:7], 64, 0, 0},
		{"nothing", nil, 64, 0, 0},
	} {
		got, ok := expectation(&api.Calibration{Rows: c.rows}, c.length)
		if ok != (c.high > 0) || ok && (math.Abs(got.Low-c.low) > 1e-9 || math.Abs(got.High-c.high) > 1e-9) {
			t.Errorf("%s: %+v, %v; want %v to %v", c.name, got, ok, c.low, c.high)
		}
	}
	if e, ok := expectation(nil, 64); ok {
		t.Errorf("without a calibration: %+v", e)
	}
	when := time.Date(2026, 11, 30, 12, 0, 0, 0, time.Local)
	if e, _ := expectation(&api.Calibration{Time: when, Rows: both}, 64); e.Source != "the calibration of 2026-11-30" {
		t.Errorf("cited as %q", e.Source)
	}
}

// Only ports for which auto has a choice are looked at; without any, nothing
// runs.
func TestWhichPortsAdapt(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2})
	cfg := config.Default()
	cfg.Main.Enabled, cfg.Main.Bridge = true, lab.BridgeName
	for _, device := range []string{"eth1", "eth2"} {
		cfg.Ports = append(cfg.Ports, config.Port{Device: device, Enabled: true})
	}
	controlled(t, l, cfg, func(c *Controller) error {
		expect := func(when string, eth1, eth2 bool) {
			t.Helper()
			if a, b := c.ports["eth1"].adaptive != nil, c.ports["eth2"].adaptive != nil; a != eth1 || b != eth2 {
				t.Errorf("%s: eth1 %v, eth2 %v; want %v, %v", when, a, b, eth1, eth2)
			}
			if runs := c.adapting.timer.Stop(); runs != (eth1 || eth2) {
				t.Errorf("%s: the timer runs: %v", when, runs)
			}
		}
		expect("auto", true, true)
		a := c.ports["eth1"].adaptive
		if got := c.ports["eth1"].engines["generic"]; got != a.step.Why {
			t.Errorf("why not generic: %q, want %q", got, a.step.Why)
		}
		for _, step := range []adapt.Step{{Engine: adapt.TC}, {Engine: adapt.TC, Timed: true}, {Engine: adapt.Generic}} {
			// What a trial compares must have been counted when it begins.
			a.step = step
			r, err := c.readPort(a)
			if want := step.Timed || step.Engine == adapt.Generic; err != nil || r.timed != step.Timed || r.counted != want {
				t.Errorf("%+v: timed %v, drops counted %v, %v", step, r.timed, r.counted, err)
			}
		}
		a.step = a.decider.First()
		c.reconcile()
		if c.ports["eth1"].adaptive != a {
			t.Error("what was found out is forgotten with every change")
		}
		cfg.Ports[0].Engine = config.EngineGeneric
		c.reconcile()
		expect("eth1 by name", false, true)
		cfg.Ports[0].Engine = ""
		cfg.Main.Adapt = false
		c.reconcile()
		expect("adapt off", false, false)
		cfg.Main.Adapt = true
		c.reconcile()
		expect("adapt on", true, true)

		// A port that goes while it is tried leaves its turn to others.
		a = c.ports["eth1"].adaptive
		a.step.Trying, c.adapting.trying = true, a
		cfg.Ports = cfg.Ports[1:]
		c.reconcile()
		if c.adapting.trying != nil || c.ports["eth2"].adaptive == nil {
			t.Errorf("after eth1 has gone: %+v is being tried", c.adapting.trying)
		}

		c.adapting.clock, c.adapting.broken = nil, "there is none"
		c.forgetAdapting(c.ports["eth2"])
		c.reconcile()
		if p := c.ports["eth2"]; p.adaptive != nil || p.engines["generic"] != "auto cannot compare it with tc: there is none" {
			t.Errorf("without a clock: %v", p.engines)
		}
		return nil
	})
}

// A trial is no change: it is told when it has ended.
func TestTrialIsNotTold(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2})
	cfg := config.Default()
	cfg.Main.Enabled, cfg.Main.Bridge = true, lab.BridgeName
	cfg.Ports = []config.Port{{Device: "eth1", Enabled: true}}
	controlled(t, l, cfg, func(c *Controller) error {
		p := c.ports["eth1"]
		events, err := c.events.subscribe(t.Context())
		if err != nil {
			return err
		}
		a := p.adaptive
		step := func(engine datapath.Engine, trying bool, change *adapt.Change) {
			t.Helper()
			a.step = adapt.Step{Engine: string(engine), Trying: trying, Why: "it is tried", Change: change}
			c.follows(a)
			if p.attachment.Engine() != engine {
				t.Fatalf("engine %s, want %s", p.attachment.Engine(), engine)
			}
		}
		step(datapath.EngineTC, true, nil)
		step(datapath.EngineGeneric, true, nil)
		step(datapath.EngineTC, true, nil)
		step(datapath.EngineGeneric, true, nil)
		if len(events) != 0 || p.engineChanges != 0 {
			t.Errorf("%d events and %d changes in a trial: %+v", len(events), p.engineChanges, <-events)
		}
		result := &adapt.Result{TC: 900, Generic: 600, Ratio: adapt.Interval{Median: 1.5, Low: 1.4, High: 1.61234}, Pairs: 8}
		step(datapath.EngineGeneric, false, &adapt.Change{From: adapt.TC, To: adapt.Generic, Reason: "it is faster", Result: result})
		if len(events) != 1 || p.engineChanges != 1 {
			t.Fatalf("%d events and %d changes after a trial", len(events), p.engineChanges)
		}
		e := <-events
		want := api.Measured{TC: 900, Generic: 600, Ratio: 1.5, Low: 1.4, High: 1.612, Pairs: 8}
		if e.Kind != api.EventEngine || e.Engine != "generic" || e.Before != "tc" || e.Reason != "it is faster" || e.Measured == nil || *e.Measured != want ||
			e.Text != "eth1: engine generic instead of tc: it is faster" {
			t.Errorf("told %+v, measured %+v", e, e.Measured)
		}
		return nil
	})
}

// keeper is a Calibrator that has a table.
type keeper struct {
	table *api.Calibration
	stale string
}

func (k keeper) Load() (*api.Calibration, error) { return k.table, nil }
func (k keeper) Stale(*api.Calibration) string   { return k.stale }
func (k keeper) Store(*api.Calibration) error    { return nil }
func (k keeper) Measure(context.Context, int, func(api.CalibrationProgress)) (*api.Calibration, error) {
	return nil, errors.New("not here")
}

// What was measured on another kernel or machine is not believed.
func TestStaleCalibration(t *testing.T) {
	table := &api.Calibration{Rows: []api.CalibrationRow{
		{Work: "roomy", Size: 64, Engine: "generic", Ratio: 1.8}, {Work: "roomy", Size: 64, Engine: "tc", Ratio: 1.2},
	}}
	for stale, want := range map[string]bool{"": true, "measured on another machine": false} {
		c := &Controller{}
		c.opts.Calibrator = keeper{table, stale}
		if err := c.calibrations.load(c.opts.Calibrator); err != nil {
			t.Fatal(err)
		}
		if e, ok := c.expect(60); ok != want {
			t.Errorf("%q: %+v, %v", stale, e, ok)
		}
	}
	if e, ok := (&Controller{}).expect(60); ok {
		t.Errorf("without a calibration: %+v", e)
	}
}
