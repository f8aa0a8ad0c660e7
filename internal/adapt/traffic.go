// SPDX-License-Identifier: Apache-2.0

package adapt

import "time"

// longest is the length of the longest frame of an ordinary Ethernet.
const longest = 1514

// Traffic is what happened at a port in some time, all of it with one engine.
type Traffic struct {
	Elapsed time.Duration
	Frames  uint64 // that arrived, as on the wire
	Bytes   uint64 // of them
	Passed  uint64 // of the frames, those left to the stack
	// Aggregates of Segments frames are what GRO put together. Only tc sees
	// them; with generic there are none.
	Aggregates, Segments uint64
	// Dropped counts frames that the ports towards which it sends had no room
	// for.
	Dropped uint64
	// Softirq is the CPU time that this took. Timed says that it was measured,
	// and Grain how exactly.
	Softirq time.Duration
	Grain   time.Duration
	Timed   bool
}

// add sums two times of the same engine.
func (t Traffic) add(o Traffic) Traffic {
	return Traffic{
		Elapsed: t.Elapsed + o.Elapsed, Frames: t.Frames + o.Frames, Bytes: t.Bytes + o.Bytes, Passed: t.Passed + o.Passed,
		Aggregates: t.Aggregates + o.Aggregates, Segments: t.Segments + o.Segments, Dropped: t.Dropped + o.Dropped,
		Softirq: t.Softirq + o.Softirq, Grain: max(t.Grain, o.Grain), Timed: o.Timed && (t.Timed || t.Elapsed == 0),
	}
}

// rate is how many frames came in a second.
func (t Traffic) rate() float64 {
	if t.Elapsed <= 0 {
		return 0
	}
	return float64(t.Frames) / t.Elapsed.Seconds()
}

// length is the mean length of the frames.
func (t Traffic) length() float64 { return ratio(t.Bytes, t.Frames) }

func (t Traffic) passedShare() float64  { return ratio(t.Passed, t.Frames) }
func (t Traffic) droppedShare() float64 { return ratio(t.Dropped, t.Frames) }

// dropsMore reports whether clearly more is dropped than was usual. The counters
// of frames and of drops are not read at one instant.
func (t Traffic) dropsMore(usual, tolerance float64) bool {
	return t.droppedShare() > 1.1*usual+tolerance
}

// together is how many frames come in one sk_buff on average: what GRO gains.
func (t Traffic) together() float64 {
	if t.Segments >= t.Frames { // all of them; the counters are not read at one instant
		return ratio(t.Segments, max(t.Aggregates, 1))
	}
	return ratio(t.Frames, t.Frames-t.Segments+t.Aggregates)
}

// nanos is the CPU time for a frame.
func (t Traffic) nanos() float64 {
	if t.Frames == 0 {
		return 0
	}
	return float64(t.Softirq.Nanoseconds()) / float64(t.Frames)
}

// busy is how much of one core it takes.
func (t Traffic) busy() float64 {
	if t.Elapsed <= 0 {
		return 0
	}
	return t.Softirq.Seconds() / t.Elapsed.Seconds()
}

// longer is the share of the frames that must have become long ones, since the
// mean was usual: the least share of full-length frames that explains it.
func (t Traffic) longer(usual float64) float64 {
	if usual >= longest-1 || t.Frames == 0 {
		return 0
	}
	return max(0, (t.length()-usual)/(longest-usual))
}

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}
