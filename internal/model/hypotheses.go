// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"math"
	"strings"

	"github.com/xdpl2/xdpl2/internal/results"
)

// Verdict is what the data say of a hypothesis.
type Verdict string

// Verdicts.
const (
	Supported    Verdict = "supported"
	Contradicted Verdict = "contradicted"
	Undecided    Verdict = "undecided"  // within the intervals it could be either
	NotSeen      Verdict = "not seen"   // it says what may happen, and that did not
	NotTested    Verdict = "not tested" // the data do not have its condition
)

// Hypothesis is one of H1 to H3, checked for an engine.
type Hypothesis struct {
	Name     string   `json:"name"`
	Says     string   `json:"says"`
	Engine   string   `json:"engine"`
	Verdict  Verdict  `json:"verdict"`
	Evidence []string `json:"evidence"`
}

// smallFrames is up to which size H1 speaks of small frames.
const smallFrames = 256

// converged is how small a gain must be to count as none when the link is the
// bound.
const converged = 0.03

// GainAt is a measured gain over the bridge.
type GainAt struct {
	Size   int      `json:"frame_bytes"`
	Gain   Estimate `json:"gain"` // 0.1 for a tenth more
	Regime Regime   `json:"regime"`
	used   float64
}

// gains are an engine's, with the bound that holds for it and the bridge: either
// if that is not the same one.
func (s *series) gains(engine string, overhead int) []GainAt {
	var all []GainAt
	for _, p := range s.engines[engine] {
		times, ok := s.gain(engine, p.size)
		if !ok {
			continue
		}
		g := GainAt{Size: p.size, Gain: times.apply(func(v float64) float64 { return v - 1 })}
		var regimes []Regime
		for _, path := range []*point{&p, s.find(results.EngineBridge, p.size)} {
			b := bound(engine, p.size, path.cost.Estimate(), s.link, overhead)
			regimes = append(regimes, b.Regime)
			if b.Used != nil {
				g.used = math.Max(g.used, *b.Used)
			}
		}
		if g.Regime = Either; regimes[0] == regimes[1] {
			g.Regime = regimes[0]
		}
		all = append(all, g)
	}
	return all
}

// hypotheses checks H1 to H3 for an engine.
func (s *series) hypotheses(engine string, overhead int, c *Contrast) []Hypothesis {
	gains := s.gains(engine, overhead)
	return []Hypothesis{s.h1(engine, gains), h2(engine, s.link, gains, c), s.h3(engine, gains)}
}

func (s *series) h1(engine string, gains []GainAt) Hypothesis {
	h := Hypothesis{
		Name: "H1", Engine: engine, Verdict: NotTested,
		Says: "while the core is the bound, with small frames, it forwards more than the bridge, with no worse latency",
	}
	rises, falls, tested := 0, 0, 0
	worse := false
	for _, g := range gains {
		if g.Regime != CoreBound || g.Size > smallFrames {
			continue
		}
		tested++
		switch {
		case g.Gain.Above(0):
			rises++
		case g.Gain.Below(0):
			falls++
		}
		h.Evidence = append(h.Evidence, fmt.Sprintf("%d B: %s", g.Size, PercentGain(g.Gain)))
		p, base := s.find(engine, g.Size), s.find(results.EngineBridge, g.Size)
		if p.rtt != nil && base.rtt != nil {
			d := difference(*p.rtt, *base.rtt)
			worse = worse || d.Above(0)
			h.Evidence = append(h.Evidence, fmt.Sprintf("%d B: round trip %s us against the bridge's %.0f us", g.Size, signed(d, "%+.0f"), base.rtt.Mean))
		}
	}
	switch {
	case tested == 0:
		h.Evidence = []string{fmt.Sprintf("no frames of up to %d B with the core as the bound", smallFrames)}
	case falls > 0 || worse:
		h.Verdict = Contradicted
	case rises == tested:
		h.Verdict = Supported
	default:
		h.Verdict = Undecided
	}
	if more := larger(gains); h.Verdict == Supported && more != "" {
		h.Evidence = append(h.Evidence, more)
	}
	return h
}

// larger tells that the gain is not one of small frames only.
func larger(gains []GainAt) string {
	var sizes []string
	for _, g := range gains {
		if g.Size > smallFrames && g.Regime == CoreBound && g.Gain.Above(0) {
			sizes = append(sizes, fmt.Sprint(g.Size))
		}
	}
	if len(sizes) == 0 {
		return ""
	}
	return "also above the bridge, with the core as the bound: " + strings.Join(sizes, ", ") + " B"
}

func h2(engine string, link float64, gains []GainAt, c *Contrast) Hypothesis {
	h := Hypothesis{
		Name: "H2", Engine: engine, Verdict: NotTested,
		Says: "once the link is the bound, the difference to the bridge goes away",
	}
	var bound, most *GainAt
	gone, open := true, false
	for i := range gains {
		g := &gains[i]
		if most == nil || g.used > most.used {
			most = g
		}
		if g.Regime != LinkBound {
			continue
		}
		bound = g
		within := g.Gain.Below(converged) && g.Gain.Above(-converged)
		outside := g.Gain.Above(converged) || g.Gain.Below(-converged)
		gone, open = gone && within, open || !within && !outside
		h.Evidence = append(h.Evidence, fmt.Sprintf("%d B: %s", g.Size, PercentGain(g.Gain)))
	}
	switch {
	case most == nil:
		h.Evidence = []string{"not measured beside the bridge"}
		return h
	case link <= 0:
		h.Evidence = []string{"no link was measured: there is nothing but memory between the ports"}
	case bound == nil:
		h.Evidence = []string{fmt.Sprintf("the link is the bound at no size: at most %.0f%% of it is used, at %d B", 100*most.used, most.Size)}
	case gone:
		h.Verdict = Supported
	case open:
		h.Verdict = Undecided
	default:
		h.Verdict = Contradicted
	}
	if bound == nil && len(gains) > 1 {
		first, last := gains[0], gains[len(gains)-1]
		if last.Gain.Value < first.Gain.Value && c != nil {
			h.Evidence = append(h.Evidence, fmt.Sprintf(
				"still the gain goes from %s at %d B to %s at %d B: %s's cost grows by %s ns a byte more than the bridge's",
				PercentGain(first.Gain), first.Size, PercentGain(last.Gain), last.Size, engine,
				signed(c.PerByte.apply(func(v float64) float64 { return -v }), "%.2f")))
		}
	}
	return h
}

func (s *series) h3(engine string, gains []GainAt) Hypothesis {
	h := Hypothesis{
		Name: "H3", Engine: engine, Verdict: NotTested,
		Says: "with extremely small frames the gain may become smaller, go away or turn around",
	}
	if len(gains) < 2 {
		h.Evidence = []string{"fewer than two sizes"}
		return h
	}
	a, b := gains[0], gains[1]
	if a.Size > 64 {
		h.Evidence = []string{fmt.Sprintf("the smallest frames have %d B", a.Size)}
		return h
	}
	d := exactly(a.Gain.Value - b.Gain.Value)
	if a.Gain.HasInterval() && b.Gain.HasInterval() {
		half := math.Hypot(a.Gain.High-a.Gain.Low, b.Gain.High-b.Gain.Low) / 2
		d = around(d.Value, half)
	}
	switch {
	case d.Above(0):
		h.Verdict = NotSeen
	case d.Below(0):
		h.Verdict = Supported
	default:
		h.Verdict = Undecided
	}
	h.Evidence = append(h.Evidence, fmt.Sprintf("%s at %d B, %s at %d B; Ethernet has no smaller frames than 64 B with check sequence",
		PercentGain(a.Gain), a.Size, PercentGain(b.Gain), b.Size))
	if p := s.find(engine, a.Size); p.cpu != nil && p.loss != nil {
		h.Evidence = append(h.Evidence, fmt.Sprintf("%d B: the core is busy to %.0f%%, %.2f%% of the frames are lost", a.Size, 100**p.cpu, 100**p.loss))
	}
	return h
}

// PercentGain writes a gain (0.1 for a tenth more) in percent.
func PercentGain(e Estimate) string {
	return signed(e.apply(func(v float64) float64 { return 100 * v }), "%+.1f") + "%"
}

// signed writes a value with its interval, if it has one.
func signed(e Estimate, format string) string {
	text := fmt.Sprintf(format, e.Value)
	if e.HasInterval() {
		text += fmt.Sprintf(" ("+format+" to "+format+")", e.Low, e.High)
	}
	return text
}
