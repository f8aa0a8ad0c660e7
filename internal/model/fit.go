// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Confidence is that of every interval.
const Confidence = 0.95

// Estimate is a value with its interval. Without enough data for an interval
// its ends are not a number, and JSON leaves them out.
type Estimate struct {
	Value, Low, High float64
}

// exactly is a value without an interval.
func exactly(v float64) Estimate { return Estimate{v, math.NaN(), math.NaN()} }

// around is a value with the interval of a half width.
func around(v, half float64) Estimate { return Estimate{v, v - half, v + half} }

// HasInterval tells whether the ends are known.
func (e Estimate) HasInterval() bool { return !math.IsNaN(e.Low) && !math.IsNaN(e.High) }

// Above tells whether all of the interval is above v.
func (e Estimate) Above(v float64) bool { return e.HasInterval() && e.Low > v }

// Below tells whether all of the interval is below v.
func (e Estimate) Below(v float64) bool { return e.HasInterval() && e.High < v }

// apply maps value and interval with a monotonic function.
func (e Estimate) apply(f func(float64) float64) Estimate {
	low, high := f(e.Low), f(e.High)
	if low > high {
		low, high = high, low
	}
	return Estimate{f(e.Value), low, high}
}

// MarshalJSON writes value, low and high, the last two only if they are known.
func (e Estimate) MarshalJSON() ([]byte, error) {
	out := map[string]float64{"value": e.Value}
	if e.HasInterval() {
		out["low"], out["high"] = e.Low, e.High
	}
	return json.Marshal(out)
}

// tFactor is how many standard errors an interval reaches to both sides: the
// quantile of Student's t distribution, by the inverse of its integral.
func tFactor(freedom float64) float64 {
	x := mathext.InvRegIncBeta(freedom/2, 0.5, 1-Confidence)
	return math.Sqrt(freedom * (1/x - 1))
}

// Line is y = A + B*x, fitted by least squares.
type Line struct {
	A        Estimate `json:"a"`
	B        Estimate `json:"b"`
	R2       float64  `json:"r_squared"`
	Residual float64  `json:"residual_sd"` // what the points lie off the line
	Points   int      `json:"points"`
	From     float64  `json:"from"` // the range of x
	To       float64  `json:"to"`

	x, off    []float64 // the points, and how much each lies above the line
	mean, sxx float64
}

// MinPoints is the least number of points that a line is fitted to: with two
// it goes through both, and nothing says how far off it is.
const MinPoints = 3

// FitLine fits a line to at least three points at different x.
func FitLine(x, y []float64) (*Line, error) {
	if len(x) != len(y) {
		return nil, fmt.Errorf("fit a line: %d values of x and %d of y", len(x), len(y))
	}
	different := slices.Compact(slices.Sorted(slices.Values(x)))
	if len(different) < MinPoints {
		return nil, fmt.Errorf("fit a line: %d different sizes: expected at least %d", len(different), MinPoints)
	}
	for i := range x {
		if math.IsNaN(x[i]+y[i]) || math.IsInf(x[i]+y[i], 0) {
			return nil, errors.New("fit a line: a point is not a number")
		}
	}
	l := &Line{Points: len(x), From: slices.Min(x), To: slices.Max(x), x: x, mean: mean(x)}
	meanY, sxy, syy := mean(y), 0.0, 0.0
	for i := range x {
		dx, dy := x[i]-l.mean, y[i]-meanY
		l.sxx, sxy, syy = l.sxx+dx*dx, sxy+dx*dy, syy+dy*dy
	}
	b := sxy / l.sxx
	a := meanY - b*l.mean
	squares := 0.0
	for i := range x {
		off := y[i] - a - b*x[i]
		l.off = append(l.off, off)
		squares += off * off
	}
	l.R2 = 1
	if syy > 0 { // else all y are the same, and the line goes through them
		l.R2 = 1 - squares/syy
	}
	l.Residual = math.Sqrt(squares / l.freedom())
	t := tFactor(l.freedom())
	l.A = around(a, t*l.Residual*math.Sqrt(1/float64(len(x))+l.mean*l.mean/l.sxx))
	l.B = around(b, t*l.Residual/math.Sqrt(l.sxx))
	return l, nil
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func (l *Line) freedom() float64 { return float64(l.Points - 2) }

// At returns the line's value at x.
func (l *Line) At(x float64) float64 { return l.A.Value + l.B.Value*x }

// leverage is the variance of the line's value at x, in variances of a point.
func (l *Line) leverage(x float64) float64 {
	return 1/float64(l.Points) + (x-l.mean)*(x-l.mean)/l.sxx
}

// Estimate returns the line's value at x with its interval.
func (l *Line) Estimate(x float64) Estimate {
	return around(l.At(x), tFactor(l.freedom())*l.Residual*math.Sqrt(l.leverage(x)))
}

// covariance is that of how far two lines' points at the same x lie off them.
// Lines without the same x have none.
func covariance(a, b *Line) float64 {
	if !slices.Equal(a.x, b.x) {
		return 0
	}
	sum := 0.0
	for i := range a.off {
		sum += a.off[i] * b.off[i]
	}
	return sum / a.freedom()
}
