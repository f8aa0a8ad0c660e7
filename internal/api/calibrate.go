// SPDX-License-Identifier: Apache-2.0

package api

import "time"

// Calibration is what forwarding costs on this box, measured between virtual
// devices in network namespaces of its own. It is the answer to calibrate, whose
// argument seconds says about how long to measure; with 0 nothing is measured
// and the table of the last time is told. Who asks through a web server hears
// neither events nor an answer that takes long: it finds the progress in Status
// and asks for the table afterwards.
type Calibration struct {
	Time    time.Time        `json:"time"`
	Kernel  string           `json:"kernel"`
	Machine string           `json:"machine"`
	Rows    []CalibrationRow `json:"rows"`
	// Missing says what could not be measured and why, a line each.
	Missing []string `json:"missing"`
}

// How long a calibration may take, and how long it takes unless it is told, in
// seconds.
const (
	MaxCalibrationSeconds     = 60
	DefaultCalibrationSeconds = 30
)

// CalibrationNote says of which calibration the table is.
type CalibrationNote struct {
	Time    time.Time `json:"time"`
	Kernel  string    `json:"kernel"`
	Machine string    `json:"machine"`
	// Stale says why it no longer speaks for this box: another kernel, another
	// machine. Empty if it does.
	Stale string `json:"stale,omitempty"`
}

// CalibrationProgress is how far a calibration is that runs now.
type CalibrationProgress struct {
	Done int    `json:"done"` // of Of steps
	Of   int    `json:"of"`
	Text string `json:"text"` // what is being measured
}

// CalibrationRow is one engine at one kind of work.
type CalibrationRow struct {
	Work   string  `json:"work"`           // roomy, tight, tcp
	Size   int     `json:"size,omitempty"` // bytes of a frame; 0 for tcp
	Engine string  `json:"engine"`         // bridge, generic, tc
	Nanos  float64 `json:"ns_per_frame,omitempty"`
	Rate   float64 `json:"rate"` // frames a second, or bits a second for tcp
	// Ratio is the rate divided by the bridge's in the same turn (median),
	// between Low and High with 95% confidence. The bridge's own is that of a
	// second measurement of the bridge in the same turn: its distance from 1, and
	// the width of its interval, are noise.
	Ratio float64 `json:"ratio"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}
