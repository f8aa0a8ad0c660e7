// SPDX-License-Identifier: Apache-2.0

// Package results is the one form in which everything that xdpl2-bench
// measures is kept: who measured what with which settings, whether the
// measurement may be trusted (the audit), and a cell for each number. It is
// written as JSON, which is read again by the cost model, the reports and the
// comparison with an older run, and as CSV, a row a cell.
//
// There is no field for host names, addresses or user names, and settings with
// a path of the machine in them are refused: results files are made to be
// shown around.
package results

import (
	"time"
)

// Format and Version head every file. The version grows when a reader of the
// old one could misunderstand the new.
const (
	Format  = "xdpl2-bench results"
	Version = 1
)

// File is a results file.
type File struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	Meta    Meta   `json:"meta"`
	Cells   []Cell `json:"cells"`
}

// New returns an empty file with its head set.
func New(m Meta) *File { return &File{Format: Format, Version: Version, Meta: m} }

// Meta says where numbers come from.
type Meta struct {
	Command string            `json:"command"`          // forward, tcp, ...: what measured
	Source  string            `json:"source,omitempty"` // of numbers that are not from a run of ours
	Tool    string            `json:"tool_version,omitempty"`
	Daemon  string            `json:"daemon_version,omitempty"`
	Start   time.Time         `json:"start,omitzero"`
	Seconds float64           `json:"seconds,omitempty"`
	Machine Machine           `json:"machine"`
	Set     map[string]string `json:"settings,omitempty"` // rounds, slice, pinned cores, ...
	LeftOut []string          `json:"left_out,omitempty"` // what could not be measured, and why
	Audit   []Check           `json:"audit,omitempty"`
}

// Machine is what numbers depend on.
type Machine struct {
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores,omitempty"`
	Arch        string `json:"arch,omitempty"`
	Kernel      string `json:"kernel"`
	System      string `json:"system,omitempty"` // the distribution
	Clocksource string `json:"clocksource,omitempty"`
	Governor    string `json:"governor,omitempty"` // of the CPU's frequency, if it has one
	NIC         string `json:"nic,omitempty"`      // driver of the ports that were measured
}

// Check is something that was looked at to know whether numbers may be
// trusted.
type Check struct {
	Name     string `json:"name"`
	Value    string `json:"value"`    // what was found
	Expected string `json:"expected"` // what it should be
	Passed   bool   `json:"passed"`
}

// Failed returns the checks that did not pass.
func (m *Meta) Failed() []Check {
	var failed []Check
	for _, c := range m.Audit {
		if !c.Passed {
			failed = append(failed, c)
		}
	}
	return failed
}

// Engines with a role of their own. Other names are the engines themselves
// (generic, tc, native, auto) or whatever else was put in their place.
const (
	// EngineBridge is the Linux bridge, to which all else is compared.
	EngineBridge = "bridge"
	// EngineAgain is the bridge a second time: the noise.
	EngineAgain = "bridge again"
	// EngineDropXDP and EngineDropTC receive and drop: the measured floor of
	// the cost that every way of forwarding shares.
	EngineDropXDP = "drop xdp"
	EngineDropTC  = "drop tc"
)

// Inputs: what the forwarding core gets.
const (
	Roomy = "roomy" // sk_buffs with the headroom that XDP wants
	Tight = "tight" // sk_buffs without, as most NIC drivers make them
	Wire  = "wire"  // whatever the driver of a physical port makes
)

// Cell is one number, with what it is the number of. A cell is identified by
// everything up to Unit; there are no two of the same.
type Cell struct {
	Work     string  `json:"work"`                     // forward, rtt, tcp, latency, echo, calls, ...
	Input    string  `json:"input,omitempty"`          // roomy, tight, wire
	Size     int     `json:"frame_bytes,omitempty"`    // without check sequence
	Flows    int     `json:"flows,omitempty"`          // TCP streams, or flows of frames
	Stations int     `json:"stations,omitempty"`       // addresses in the table
	Link     float64 `json:"link_bit_per_s,omitempty"` // 0: nothing but memory between
	Engine   string  `json:"engine"`                   // bridge, generic, tc, ...
	Unit     Unit    `json:"unit"`

	// Samples are the values of the runs in the order of time: run n of one
	// engine belongs to run n of the others. Numbers that others published
	// have none.
	Samples []float64 `json:"samples,omitempty"`
	N       int       `json:"n"` // runs, or single values (round trips)
	Mean    float64   `json:"mean"`
	SD      float64   `json:"sd"` // of a sample: divided by n-1
	Median  *float64  `json:"median,omitempty"`
	// Interval is that of the median, with 95% confidence.
	Interval *Interval `json:"interval,omitempty"`
	// Quantiles are over all single values (each round trip), not over runs.
	Quantiles []Quantile `json:"quantiles,omitempty"`

	Loss  *float64  `json:"loss,omitempty"`         // share of what was sent, 0 to 1
	CPU   *float64  `json:"cpu,omitempty"`          // share of the forwarding core, 1 is all of it
	Cores []float64 `json:"cpu_per_core,omitempty"` // share of each core of the machine
	Ratio *Ratio    `json:"ratio,omitempty"`
	Note  string    `json:"note,omitempty"`
}

// Interval has the ends of an interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Quantile is the value below which the share P of all values lies; P 1 is
// the highest value.
type Quantile struct {
	P     float64 `json:"p"`
	Value float64 `json:"value"`
}

// Ratio is how a cell compares to the same cell of another engine, taken
// within each round, so that what the machine does to both cancels out. It is
// above 1 where this engine is better.
type Ratio struct {
	Of    string  `json:"of"` // the other engine
	Value float64 `json:"value"`
	Low   float64 `json:"low"` // of the 95% interval
	High  float64 `json:"high"`
	N     int     `json:"n"` // pairs
}

// Unit is what a number counts.
type Unit string

// Units.
const (
	NsPerFrame  Unit = "ns/frame"
	NsPerKiB    Unit = "ns/kib" // of TCP's data
	NsPerCall   Unit = "ns/call"
	CyclesCall  Unit = "cycles/call"
	FramesPerS  Unit = "frames/s"
	BitsPerS    Unit = "bit/s"
	Microsecond Unit = "us"
	Millisecond Unit = "ms"
	Second      Unit = "s"
	Bytes       Unit = "bytes"
	Count       Unit = "count"
	Percent     Unit = "percent"
	// Times is a quotient for which less is better (a cost over another cost).
	Times Unit = "times"
)

// units says for each unit whether more is better.
var units = map[Unit]bool{
	NsPerFrame: false, NsPerKiB: false, NsPerCall: false, CyclesCall: false, FramesPerS: true, BitsPerS: true,
	Microsecond: false, Millisecond: false, Second: false, Bytes: false, Count: false, Percent: false, Times: false,
}

// MoreIsBetter tells whether a higher number is the better one.
func (u Unit) MoreIsBetter() bool { return units[u] }

// ID is what identifies a cell.
type ID struct {
	Work, Input           string
	Size, Flows, Stations int
	Link                  float64
	Engine                string
	Unit                  Unit
}

// ID returns what identifies the cell.
func (c *Cell) ID() ID {
	return ID{c.Work, c.Input, c.Size, c.Flows, c.Stations, c.Link, c.Engine, c.Unit}
}

// Find returns the cell with the identity, nil if there is none.
func (f *File) Find(id ID) *Cell {
	for i := range f.Cells {
		if f.Cells[i].ID() == id {
			return &f.Cells[i]
		}
	}
	return nil
}

// Quantile returns the value for the share p, and whether the cell has it.
func (c *Cell) Quantile(p float64) (float64, bool) {
	for _, q := range c.Quantiles {
		if q.P == p {
			return q.Value, true
		}
	}
	return 0, false
}

// Pointer is for the optional numbers of a cell.
func Pointer(v float64) *float64 { return &v }
