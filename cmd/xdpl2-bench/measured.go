// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/rig"
)

// measured collects the rounds of one load.
type measured struct {
	name   string
	load   rig.Load
	weight int
	all    *rig.Comparison
	shares map[string]*share
	took   time.Duration // the last round
}

// The least rounds that make a median, and those that make an interval of 95%:
// with fewer, even the lowest and the highest value enclose the median less
// often than that.
const (
	minRounds      = 3
	minForInterval = 6
)

func newMeasured(name string, load rig.Load, weight int) *measured {
	return &measured{name: name, load: load, weight: weight, shares: map[string]*share{}}
}

func (m *measured) rounds() int {
	if m.all == nil {
		return 0
	}
	return len(m.all.Rounds)
}

func (m *measured) add(c *rig.Comparison) {
	if m.all == nil {
		m.all = c
		return
	}
	m.all.Rounds = append(m.all.Rounds, c.Rounds...)
}

// loadResult is the outcome for one load.
type loadResult struct {
	Name     string          `json:"name"`
	Input    string          `json:"input"`
	Length   int             `json:"frame_bytes_without_fcs"`
	Rounds   int             `json:"rounds"`
	Variants []variantResult `json:"variants"`
}

// variantResult is the outcome for one variant.
type variantResult struct {
	Name  string  `json:"name"`
	Cost  float64 `json:"ns_per_frame"`
	Rate  float64 `json:"frames_per_s_on_one_core"`
	Ratio float64 `json:"ratio_to_bridge"`
	Low   float64 `json:"ratio_low"` // of the 95% interval
	High  float64 `json:"ratio_high"`
	Share float64 `json:"redirected_share"`
}

// result computes the outcome from what was measured so far.
func (m *measured) result() (*loadResult, error) {
	out := &loadResult{Name: m.name, Input: m.load.Input.String(), Length: m.load.Length, Rounds: m.rounds()}
	if m.all == nil {
		return out, nil
	}
	for _, name := range m.all.Variants {
		cost, err := m.all.Cost(name)
		if err != nil {
			return nil, err
		}
		ratio, err := m.all.Ratio(viaBridge, name)
		if err != nil {
			return nil, err
		}
		v := variantResult{Name: name, Cost: cost.Median, Rate: 1e9 / cost.Median, Ratio: ratio.Median, Low: ratio.Low, High: ratio.High}
		if s := m.shares[name]; s != nil && s.frames > 0 {
			v.Share = float64(s.redirected) / float64(s.frames)
		}
		out.Variants = append(out.Variants, v)
	}
	return out, nil
}

// against tells whether a variant is faster (1) or slower (-1) than the bridge:
// 0 unless its interval is clear of the bridge's own against itself.
func (l *loadResult) against(v *variantResult) int {
	if l.Rounds < minForInterval {
		return 0
	}
	low, high := 1.0, 1.0
	for _, w := range l.Variants {
		if w.Name == again {
			low, high = min(low, w.Low), max(high, w.High)
		}
	}
	switch {
	case v.Low > high:
		return 1
	case v.High < low:
		return -1
	}
	return 0
}

// compareLines is the table of all loads.
func compareLines(results []*loadResult) []string {
	rows := [][]string{{"FRAMES", "FORWARDED BY", "NS/FRAME", "FRAMES/S, ONE CORE", "TIMES THE BRIDGE", "95% INTERVAL", "REDIRECTED"}}
	for _, r := range results {
		name := fmt.Sprintf("%s (%d turns)", r.Name, r.Rounds)
		for _, v := range r.Variants {
			ratio, interval, share := fmt.Sprintf("%.2f", v.Ratio), fmt.Sprintf("%.2f to %.2f", v.Low, v.High), fmt.Sprintf("%.1f%%", 100*v.Share)
			if r.Rounds < minForInterval {
				interval = "too few turns"
			}
			switch v.Name {
			case viaBridge:
				ratio, interval, share = "1", "", ""
			case again:
				share = ""
			}
			rows = append(rows, []string{name, v.Name, fmt.Sprintf("%.0f", v.Cost), grouped(int(v.Rate)), ratio, interval, share})
			name = ""
		}
	}
	return newTable("llrrrlr").lines(rows...)
}

// progressLine tells in a line how a load stands.
func (m *measured) progressLine() string {
	r, err := m.result()
	if err != nil || len(r.Variants) == 0 {
		return m.name + ": not yet"
	}
	parts := []string{fmt.Sprintf("%s: bridge %s frames/s", m.name, grouped(int(r.Variants[0].Rate)))}
	for _, v := range r.Variants {
		if v.Name != viaBridge && v.Name != again {
			parts = append(parts, fmt.Sprintf("%s %.2f times that", v.Name, v.Ratio))
		}
	}
	return strings.Join(parts, ", ")
}
