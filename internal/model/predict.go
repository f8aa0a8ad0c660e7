// SPDX-License-Identifier: Apache-2.0

package model

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/xdpl2/xdpl2/internal/results"
)

// Prediction is what a path would do at a size and a link rate.
type Prediction struct {
	Engine string   `json:"engine"`
	Size   int      `json:"frame_bytes"`
	Link   float64  `json:"link_bit_per_s"` // 0: no link
	Rate   Estimate `json:"frames_per_s"`
	Bits   float64  `json:"bit_per_s"` // of frames
	Regime Regime   `json:"regime"`
	// Gain is over the bridge, 0.1 for a tenth more. Its interval is the one in
	// which a measurement would lie, not that of the line.
	Gain    Estimate `json:"gain_over_bridge"`
	Outside bool     `json:"outside"` // of the sizes that were measured
}

// draws is how many pairs of costs an interval is made of: the second digit of
// its ends is certain.
const draws = 20000

// predictor draws costs of two paths as the points' scatter around their lines
// allows.
type predictor struct {
	bridge, engine *Line
	deviates       [][2]float64
}

// newPredictor prepares the draws: of a bivariate t distribution, since the
// scatter itself is known from a few points only. Points of both paths at the
// same size lie off their lines together (how busy the caches are, how much a
// size fits the buffers), so they are drawn together.
func newPredictor(bridge, engine *Line) *predictor {
	p := &predictor{bridge: bridge, engine: engine}
	vb, ve := bridge.Residual*bridge.Residual, engine.Residual*engine.Residual
	cov := covariance(bridge, engine)
	// The bridge's part of the path's deviation, and what the path has besides.
	shared := 0.0
	if vb > 0 {
		shared = cov / vb
	}
	own := math.Sqrt(max(0, ve-shared*cov))
	freedom := min(bridge.Points, engine.Points) - 2
	r := rand.New(rand.NewPCG(1, draws))
	p.deviates = make([][2]float64, draws)
	for i := range p.deviates {
		squares := 0.0
		for range freedom {
			z := r.NormFloat64()
			squares += z * z
		}
		wide := math.Sqrt(float64(freedom) / squares)
		b := bridge.Residual * r.NormFloat64()
		p.deviates[i] = [2]float64{wide * b, wide * (shared*b + own*r.NormFloat64())}
	}
	return p
}

// at predicts for a size and a link.
func (p *predictor) at(engine string, size int, link float64, overhead int) Prediction {
	x := float64(size)
	limit := linkRate(link, size, overhead)
	cb, ce := p.bridge.At(x), p.engine.At(x)
	rate := func(cost float64) float64 { return min(1e9/max(cost, 1), limit) }
	out := Prediction{
		Engine: engine, Size: size, Link: link, Bits: rate(ce) * 8 * x,
		Outside: x < p.engine.From || x > p.engine.To,
	}
	rates, gains := make([]float64, len(p.deviates)), make([]float64, len(p.deviates))
	cores := make([]float64, len(p.deviates))
	wb, we := math.Sqrt(1+p.bridge.leverage(x)), math.Sqrt(1+p.engine.leverage(x))
	for i, d := range p.deviates {
		b, e := cb+wb*d[0], ce+we*d[1]
		cores[i] = 1e9 / max(e, 1)
		rates[i], gains[i] = rate(e), rate(e)/rate(b)-1
	}
	out.Rate = ends(rate(ce), rates)
	out.Gain = ends(rate(ce)/rate(cb)-1, gains)
	out.Regime = regime(ends(1e9/max(ce, 1), cores), limit)
	if engine == results.EngineBridge {
		out.Gain = exactly(0)
	}
	return out
}

// ends is a value with the interval that holds most of the drawn ones.
func ends(v float64, drawn []float64) Estimate {
	slices.Sort(drawn)
	tail := (1 - Confidence) / 2
	return Estimate{v, drawn[int(tail*float64(len(drawn)))], drawn[int((1-tail)*float64(len(drawn)))]}
}
