// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// WireOverhead is what a frame takes on an Ethernet wire besides its own
// bytes: preamble 8, check sequence 4, gap 12.
const WireOverhead = 24

// linkRate is equation 1: the frames/s that a link of bits/s can carry, with
// overhead bytes a frame. Without a link there is no bound.
func linkRate(bits float64, size, overhead int) float64 {
	if bits <= 0 {
		return math.Inf(1)
	}
	return bits / (8 * float64(size+overhead))
}

// Regime is which bound holds.
type Regime string

// Regimes.
const (
	CoreBound Regime = "core"
	LinkBound Regime = "link"
	Either    Regime = "either" // the interval allows both
)

// Bound is what equations 1 to 3 say of a path at a size.
type Bound struct {
	Engine  string    `json:"engine"`
	Size    int       `json:"frame_bytes"`
	Cost    Estimate  `json:"cost_ns"`                        // measured
	Fitted  *float64  `json:"fitted_cost_ns,omitempty"`       // a + b*size
	Core    Estimate  `json:"core_frames_per_s"`              // R_cpu
	Link    *float64  `json:"link_frames_per_s"`              // R_link; none without a link
	Rate    Estimate  `json:"bound_frames_per_s"`             // the lower of the two
	Bits    float64   `json:"bound_bit_per_s"`                // that, in bits of frames
	Regime  Regime    `json:"regime"`                         // which of the two that is
	Used    *float64  `json:"link_used"`                      // share of the link
	Room    *float64  `json:"headroom"`                       // R_link over R_cpu
	CPU     *float64  `json:"cpu,omitempty"`                  // measured
	Offered *float64  `json:"offered_frames_per_s,omitempty"` // what the sender sent
	Gain    *Estimate `json:"gain_over_bridge,omitempty"`     // measured, 0.1 for a tenth more
}

// bound computes R_cpu, R_link and what follows for a measured cost.
func bound(engine string, size int, cost Estimate, link float64, overhead int) Bound {
	b := Bound{Engine: engine, Size: size, Cost: cost, Core: cost.apply(func(ns float64) float64 { return 1e9 / ns })}
	limit := linkRate(link, size, overhead)
	b.Rate = b.Core.apply(func(r float64) float64 { return math.Min(r, limit) })
	b.Bits = b.Rate.Value * 8 * float64(size)
	b.Regime = regime(b.Core, limit)
	if link > 0 {
		used, room := b.Rate.Value/limit, limit/b.Core.Value
		b.Link, b.Used, b.Room = &limit, &used, &room
	}
	return b
}

// regime compares R_cpu with R_link.
func regime(core Estimate, limit float64) Regime {
	switch {
	case core.HasInterval() && core.Low < limit && core.High >= limit:
		return Either
	case core.Value < limit:
		return CoreBound
	}
	return LinkBound
}

// Crossover returns the size from which on a link is the bound of a path: the
// frame's time on the wire grows by 8/bits a byte, its cost by B. There is none
// if the cost grows faster.
func (l *Line) Crossover(bits float64, overhead int) (size float64, ok bool) {
	perByte := 8e9 / bits
	if perByte <= l.B.Value {
		return 0, false
	}
	return max(0, (l.A.Value-perByte*float64(overhead))/(perByte-l.B.Value)), true
}

// Rate writes a link's rate.
func Rate(bits float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e9, "Gb/s"}, {1e6, "Mb/s"}} {
		if bits >= unit.size {
			return strconv.FormatFloat(bits/unit.size, 'f', -1, 64) + " " + unit.name
		}
	}
	return strconv.FormatFloat(bits, 'f', -1, 64) + " b/s"
}

// ParseRate reads a link's rate as people write it: 2.5G, 1000M, 10Gb/s.
func ParseRate(text string) (float64, error) {
	wrong := fmt.Errorf("link rate %q: expected one like 2.5G or 100M", text)
	s := strings.ToLower(strings.TrimSpace(text))
	for _, suffix := range []string{"bit/s", "bits", "bit", "bps", "b/s"} {
		if rest, ok := strings.CutSuffix(s, suffix); ok {
			s = rest
			break
		}
	}
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, wrong
	}
	factor := map[byte]float64{'k': 1e3, 'm': 1e6, 'g': 1e9, 't': 1e12}[s[len(s)-1]]
	if factor == 0 {
		return 0, wrong
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(s[:len(s)-1]), 64)
	if err != nil || !(v > 0) || v > 1e6 {
		return 0, wrong
	}
	return v * factor, nil
}
