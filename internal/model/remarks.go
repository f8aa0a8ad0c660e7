// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"

	"github.com/xdpl2/xdpl2/internal/results"
)

// Remark sets a statement of the paper beside its own numbers.
type Remark struct {
	Where string `json:"where"`
	Says  string `json:"says"`
	Data  string `json:"data"`
}

// remarks are on the paper's text. Each is made only if the analysis of its
// table bears it out.
func remarks(s *Series) []Remark {
	var all []Remark
	if len(s.Contrasts) == 0 || s.path(results.EngineBridge) == nil {
		return nil
	}
	c := s.Contrasts[0]
	first, last := s.extremes(c.Engine)
	if first == nil || last == first {
		return nil
	}
	if s.coreBoundEverywhere() {
		all = append(all, Remark{
			Where: "section 4.3, and finding 3",
			Says:  "with larger packets the system gradually becomes bound by the link, and so the difference converges",
			Data: fmt.Sprintf("the core is reported busy to 100%% at every size, and at %d B %s fills %.0f%% of the link (%.2f of %s): in this table the link is the bound nowhere",
				last.Size, last.Engine, 100**last.Used, last.Bits/1e9, Rate(s.Link)),
		})
		if sh := c.Shrink; sh != nil && c.PerByte.Below(0) {
			all = append(all, Remark{
				Where: "section 4.5, and the abstract",
				Says:  "the convergence is explained by the link's bound",
				Data: fmt.Sprintf("the gain does shrink, from %s to %s; what the numbers show instead is a cost per byte that is higher by %s ns with generic XDP (%.2f against %.2f). A copy of each sk_buff with too little headroom, which generic XDP makes, would be such a cost",
					PercentGain(*first.Gain), PercentGain(*last.Gain), span(c.PerByte, 2), s.path(c.Engine).Line.B.Value, s.path(results.EngineBridge).Line.B.Value),
			})
		}
	}
	for _, h := range s.Hypotheses {
		if h.Name == "H3" && h.Verdict == NotSeen {
			all = append(all, Remark{
				Where: "hypothesis H3",
				Says:  "with extremely small packets the benefit may decrease, converge or reverse",
				Data:  h.Evidence[0] + ": the gain is largest with the smallest frames",
			})
		}
	}
	if text := s.offered(); text != "" {
		all = append(all, Remark{
			Where: "table 4, column TX PPS",
			Says:  "rates under saturation",
			Data:  text,
		})
	}
	return all
}

// extremes are an engine's bounds at the smallest and the largest size.
func (s *Series) extremes(engine string) (first, last *Bound) {
	for i := range s.Bounds {
		b := &s.Bounds[i]
		if b.Engine != engine || b.Gain == nil || b.Used == nil {
			continue
		}
		if first == nil {
			first = b
		}
		last = b
	}
	return first, last
}

func (s *Series) coreBoundEverywhere() bool {
	for _, b := range s.Bounds {
		if b.Regime != CoreBound || b.CPU == nil || *b.CPU < 0.99 {
			return false
		}
	}
	return len(s.Bounds) > 0
}

// offered tells if the sender never sent notably more than was forwarded.
func (s *Series) offered() string {
	highest := 0.0
	for _, b := range s.Bounds {
		if b.Offered == nil {
			return ""
		}
		highest = max(highest, *b.Offered/b.Core.Value-1)
	}
	if highest == 0 || highest > 0.02 {
		return ""
	}
	return fmt.Sprintf("the sender sent at most %.1f%% more than was forwarded, so it followed the forwarder (flow control, or a rate that was searched for). That the core is the bound follows from its load of 100%%, not from losses", 100*highest)
}
