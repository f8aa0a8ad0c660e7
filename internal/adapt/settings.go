// SPDX-License-Identifier: Apache-2.0

package adapt

import "time"

// Settings are the thresholds of a decision.
type Settings struct {
	// A port matters from this many frames a second on, if they keep a core
	// busy to this share. It has become quiet at half as many.
	MinRate float64
	MinBusy float64
	// Generic is not tried, and left, where more of the traffic than this would
	// lose by it: frames that GRO puts into one sk_buff, the share of frames
	// for the stack, the mean length.
	MaxTogether float64
	MaxPassed   float64
	MaxLength   float64
	// MaxLonger is the share of frames that may have become long ones before
	// generic, which cannot see what GRO would do, is left for a look with tc.
	MaxLonger float64
	// MaxDropped is by how much the share of frames that are dropped on their
	// way out may grow.
	MaxDropped float64

	// Gain is how many times as fast generic must be, with 95% confidence, for tc
	// to be left, and Keep how fast for it to stay.
	Gain, Keep float64
	// Least and Most are how many pairs of slices a trial has. One that is for
	// generic, but not surely, has up to Longest.
	Least, Most, Longest int
	// Slice is how long the load is measured at once; it grows to as much as
	// MaxSlice where the clock is coarse and the load is light. After a change of
	// engines Settle is left out.
	Slice, MaxSlice, Settle time.Duration

	// Look, Guard and Rest are how often a port is looked at: one with a load,
	// one that uses generic, and a quiet one.
	Look, Guard, Rest time.Duration
	// Hold is for how long the traffic must have been right for generic. It
	// doubles with each time that generic had to be left for it, up to MaxHold,
	// and is forgotten when generic has lasted for Lasting.
	Hold, MaxHold, Lasting time.Duration
	// Quiet is for how long there must be few frames for generic to be left.
	Quiet time.Duration
	// Trust is for how long the outcome of a trial is taken for the same kind of
	// traffic without a new one.
	Trust time.Duration
	// Retry is when what has been decided is looked at again; it doubles each
	// time that the outcome is the same, up to MaxRetry.
	Retry, MaxRetry time.Duration
	// Recheck is the same for generic in use.
	Recheck time.Duration
}

// Defaults are the settings of the product.
func Defaults() Settings {
	return Settings{
		MinRate: 10_000, MinBusy: 0.10,
		MaxTogether: 1.25, MaxPassed: 0.20, MaxLength: 600, MaxLonger: 0.15, MaxDropped: 0.005,
		Gain: 1.10, Keep: 1.05, Least: 8, Most: 20, Longest: 60,
		Slice: 250 * time.Millisecond, MaxSlice: time.Second, Settle: 50 * time.Millisecond,
		Look: time.Second, Guard: 400 * time.Millisecond, Rest: 3 * time.Second,
		Hold: 2 * time.Second, MaxHold: 5 * time.Minute, Lasting: 10 * time.Minute,
		Quiet: 10 * time.Second, Trust: 10 * time.Minute,
		Retry: time.Minute, MaxRetry: time.Hour, Recheck: 10 * time.Minute,
	}
}
