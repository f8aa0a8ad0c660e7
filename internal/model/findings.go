// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/xdpl2/xdpl2/internal/results"
)

// findings are what the numbers of a series say, a sentence each.
func findings(s *Series) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if text := boundFinding(s); text != "" {
		add("%s", text)
	}
	for i := range s.Contrasts {
		c := &s.Contrasts[i]
		bridge, engine := s.path(results.EngineBridge), s.path(c.Engine)
		sizes := fmt.Sprintf("%.2f against %.2f, least squares over %d sizes", engine.Line.B.Value, bridge.Line.B.Value, c.line.Points)
		if c.PerByte.Above(0) || c.PerByte.Below(0) {
			add("per byte %s costs %s ns %s than the bridge (%s)", c.Engine, span(c.PerByte, 2), moreOrLess(c.PerByte.Value), sizes)
		} else {
			add("per byte %s costs as much as the bridge, within the intervals (%s)", c.Engine, sizes)
		}
		parts := fmt.Sprintf("%.0f against %.0f", engine.Line.A.Value, bridge.Line.A.Value)
		if c.Fixed.Above(0) || c.Fixed.Below(0) {
			add("per frame, whatever its size, %s costs %s ns %s (%s)", c.Engine, span(c.Fixed, 0), moreOrLess(c.Fixed.Value), parts)
		} else {
			add("per frame, whatever its size, %s costs as much as the bridge, within the intervals (%s)", c.Engine, parts)
		}
		if c.Even != nil && *c.Even < 20000 && (c.PerByte.Above(0) || c.PerByte.Below(0)) {
			add("by these lines %s and the bridge cost the same at %.0f B", c.Engine, *c.Even)
		}
		if sh := c.Shrink; sh != nil && math.Abs(sh.Before-sh.After) > 0.01 {
			add("by these lines %s's gain goes from %+.1f%% at %d B to %+.1f%% at %d B. Of that %s points are dilution (the same saving in a larger cost), %s points its other cost per byte, %s points the link",
				c.Engine, 100*sh.Before, sh.From, 100*sh.After, sh.To, points(-sh.Dilution), points(-sh.PerByte), points(-sh.Link))
		}
	}
	if s.SharedMeasured {
		add("the shared cost was measured (receive and drop)")
	} else {
		add("the shared cost was not measured (no cell of \"%s\" or \"%s\"): it is at most what the cheapest path costs; of the differential costs their differences are known, not the parts",
			results.EngineDropXDP, results.EngineDropTC)
	}
	for _, p := range s.Paths {
		if p.RunSD > 0 && p.Line.Residual > 4*p.RunSD {
			add("a line describes %s's cost coarsely: measured costs lie %.0f ns off it (standard deviation), while runs scatter by %.1f ns (R² %.2f)",
				p.Engine, p.Line.Residual, p.RunSD, p.Line.R2)
		}
	}
	return all
}

// boundFinding says which bound holds where.
func boundFinding(s *Series) string {
	if s.Link <= 0 || len(s.Bounds) == 0 {
		return ""
	}
	var core, other []string
	most := &s.Bounds[0]
	for i := range s.Bounds {
		b := &s.Bounds[i]
		text := fmt.Sprintf("%s at %d B", b.Engine, b.Size)
		if b.Regime == CoreBound {
			core = append(core, text)
		} else {
			other = append(other, text)
		}
		if *b.Used > *most.Used {
			most = b
		}
	}
	use := fmt.Sprintf("%s at %d B fills it most: %.2f of %s, %.0f%% with what a frame takes on the wire besides",
		most.Engine, most.Size, most.Bits/1e9, Rate(s.Link), 100**most.Used)
	switch {
	case len(other) == 0:
		return "the core is the bound at every size, for every path, and the link at none: " + use
	case len(core) == 0:
		return "the link is the bound at every size: " + use
	}
	return fmt.Sprintf("the link is the bound for %s, the core everywhere else", strings.Join(other, ", "))
}

func (s *Series) path(engine string) *Path {
	for i := range s.Paths {
		if s.Paths[i].Engine == engine {
			return &s.Paths[i]
		}
	}
	return nil
}

// span writes a size without its sign, with the interval, which must not hold
// zero.
func span(e Estimate, digits int) string {
	low, high := math.Abs(e.Low), math.Abs(e.High)
	return fmt.Sprintf("%.*f (%.*f to %.*f)", digits, math.Abs(e.Value), digits, min(low, high), digits, max(low, high))
}

// moreOrLess is for bridge minus engine.
func moreOrLess(v float64) string {
	if v < 0 {
		return "more"
	}
	return "less"
}

// points writes a part of a gain in percentage points; nothing is 0, not -0.0.
func points(v float64) string {
	if math.Abs(v) < 0.0005 {
		return "0"
	}
	return fmt.Sprintf("%+.1f", 100*v)
}
