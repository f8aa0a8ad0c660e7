// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Kinds of event. On ubus and as D-Bus signals each has its name below
// "xdpl2.".
const (
	EventPort      = "port"      // a port's state, reason or engine's hook changed
	EventStation   = "station"   // a station came, moved or went
	EventEngine    = "engine"    // a port goes through another engine now
	EventConfig    = "config"    // a configuration was loaded or refused
	EventCalibrate = "calibrate" // progress of a calibration
)

// Event is something that happened. Text says it in a line for people; of the
// other fields those are set that the kind has.
type Event struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Text string    `json:"text"`

	Device string `json:"device,omitempty"` // port, engine; station: where it is now
	State  string `json:"state,omitempty"`  // port: the new one; station: added, moved, gone; config: loaded, refused; calibrate: running, done, cancelled, failed
	Reason string `json:"reason,omitempty"` // port, engine: why
	Engine string `json:"engine,omitempty"` // port, engine: the one in use now
	Before string `json:"before,omitempty"` // engine, state or device before
	MAC    string `json:"mac,omitempty"`
	VLAN   int    `json:"vlan,omitempty"`
	// Measured is why auto chose the engine, if it has measured.
	Measured *Measured `json:"measured,omitempty"`
	// Done of Of steps of a calibration are done.
	Done int `json:"done,omitempty"`
	Of   int `json:"of,omitempty"`
	// Missed is how many events were dropped before this one, because they
	// came faster than they are told or read.
	Missed int `json:"missed,omitempty"`
}

// Measured is what a frame costs with two engines: CPU time in nanoseconds,
// medians over pairs of slices.
type Measured struct {
	TC      float64 `json:"tc_ns_per_frame"`
	Generic float64 `json:"generic_ns_per_frame"`
	// Ratio is how many times as fast generic is, with 95% confidence between
	// Low and High.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
	Pairs int     `json:"pairs"`
	// Earlier: not measured now, but remembered.
	Earlier bool `json:"earlier"`
}
