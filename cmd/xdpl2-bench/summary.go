// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/api"
)

// summary answers each question in a line.
func (r *result) summary() []string {
	lines := []string{"  Is it accelerating?      " + r.accelerating()}
	for i, text := range r.ratios() {
		question := "  How fast?                "
		if i > 0 {
			question = strings.Repeat(" ", len(question))
		}
		lines = append(lines, question+text)
	}
	lines = append(lines,
		"  Where is it slower?      "+r.slower(),
		"  Did everything work?     "+r.worked())
	return lines
}

func (r *result) accelerating() string {
	var on []string
	engines := []string{}
	var all, carried uint64
	for _, p := range r.Ports {
		all += p.frames()
		carried += p.Redirected
		if p.State == api.Accelerating && p.Redirected > 0 {
			on = append(on, p.Device)
			if !slices.Contains(engines, p.Engine) {
				engines = append(engines, p.Engine)
			}
		}
	}
	if len(on) == 0 {
		return "no"
	}
	return fmt.Sprintf("yes, %d of %d ports (engine %s): %s of all frames went past the bridge",
		len(on), len(r.Ports), strings.Join(engines, ", "), percent(carried, all))
}

// ratios has a line per load.
func (r *result) ratios() []string {
	if len(r.Comparison) == 0 {
		return []string{"not measured"}
	}
	var lines []string
	for _, l := range r.Comparison {
		var parts []string
		noise := ""
		for _, v := range l.Variants {
			switch v.Name {
			case viaBridge:
			case again:
				if l.Rounds >= minForInterval {
					noise = fmt.Sprintf(" (the bridge against itself: %.2f to %.2f)", v.Low, v.High)
				}
			default:
				parts = append(parts, fmt.Sprintf("%s %.2f times the bridge", v.Name, v.Ratio))
			}
		}
		lines = append(lines, l.Name+": "+strings.Join(parts, ", ")+noise)
	}
	return lines
}

func (r *result) slower() string {
	var slower, even, few []string
	for _, l := range r.Comparison {
		for _, v := range l.Variants {
			name := fmt.Sprintf("%s at %s (%.2f)", v.Name, l.Name, v.Ratio)
			switch {
			case v.Name == viaBridge || v.Name == again:
			case l.Rounds < minForInterval:
				few = append(few, name)
			case l.against(&v) < 0:
				slower = append(slower, name)
			case l.against(&v) == 0:
				even = append(even, name)
			}
		}
	}
	var parts []string
	switch {
	case len(r.Comparison) == 0:
		parts = append(parts, "not measured")
	case len(slower) > 0:
		parts = append(parts, strings.Join(slower, ", "))
	default:
		parts = append(parts, "nowhere of what was measured")
	}
	if len(even) > 0 {
		parts = append(parts, "within the noise: "+strings.Join(even, ", "))
	}
	if len(few) > 0 {
		parts = append(parts, "too few turns to be certain: "+strings.Join(few, ", "))
	}
	return strings.Join(parts, "; ")
}

func (r *result) worked() string {
	if len(r.Failures) > 0 {
		return fmt.Sprintf("no, %d things did not, see below (%.0f s)", len(r.Failures), r.Seconds)
	}
	return fmt.Sprintf("yes, in %.0f s; everything has been taken down again", r.Seconds)
}

func indent(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimRight("    "+line, " \n"))
	}
	return lines
}
