// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func near(a, b, within float64) bool { return math.Abs(a-b) <= within }

// TestFitLine has a textbook's numbers: x 1 to 5, y 2, 4, 5, 4, 5.
func TestFitLine(t *testing.T) {
	l, err := FitLine([]float64{1, 2, 3, 4, 5}, []float64{2, 4, 5, 4, 5})
	if err != nil {
		t.Fatal(err)
	}
	// Slope 0.6, intercept 2.2, residual 0.8944, t(3) 3.1824.
	if !near(l.A.Value, 2.2, 1e-9) || !near(l.B.Value, 0.6, 1e-9) || !near(l.R2, 0.6, 1e-9) || !near(l.Residual, 0.894427, 1e-6) {
		t.Errorf("%+v", l)
	}
	if !near(l.B.High-0.6, 3.182446*0.282843, 1e-5) || !near(0.6-l.B.Low, l.B.High-0.6, 1e-9) {
		t.Errorf("slope %+v", l.B)
	}
	if !near(l.A.High-2.2, 3.182446*0.938083, 1e-5) {
		t.Errorf("intercept %+v", l.A)
	}
	if e := l.Estimate(3); !near(e.Value, 4, 1e-9) || !near(e.High-4, 3.182446*0.4, 1e-5) {
		t.Errorf("in the middle %+v", e)
	}
}

func TestFitLineErrors(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want string
	}{
		{[]float64{1, 2}, []float64{1, 2}, "2 different sizes: expected at least 3"},
		{[]float64{1, 1, 2, 2}, []float64{1, 2, 3, 4}, "2 different sizes"},
		{[]float64{1, 2, 3}, []float64{1, 2}, "3 values of x and 2 of y"},
		{[]float64{1, 2, 3}, []float64{1, math.NaN(), 3}, "not a number"},
	} {
		if _, err := FitLine(c.x, c.y); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.x, err, c.want)
		}
	}
}

// TestFitFindsBack makes points from known lines: exact ones are found back
// exactly, and of scattered ones the intervals hold the truth as often as they
// say.
func TestFitFindsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	x := []float64{64, 128, 256, 512, 1024, 1280, 1514}
	const lines = 1000
	inA, inB, inMiddle := 0, 0, 0
	for range lines {
		a, b := 100+9000*r.Float64(), 3*r.Float64()-0.5
		exact, scattered := make([]float64, len(x)), make([]float64, len(x))
		sd := 1 + 200*r.Float64()
		for i := range x {
			exact[i] = a + b*x[i]
			scattered[i] = exact[i] + sd*r.NormFloat64()
		}
		l, err := FitLine(x, exact)
		if err != nil {
			t.Fatal(err)
		}
		if !near(l.A.Value, a, 1e-6) || !near(l.B.Value, b, 1e-9) || l.Residual > 1e-6 {
			t.Fatalf("a %v, b %v found as %+v", a, b, l)
		}
		if l, err = FitLine(x, scattered); err != nil {
			t.Fatal(err)
		}
		holds := func(e Estimate, v float64) int { return boolInt(e.Low <= v && v <= e.High) }
		inA += holds(l.A, a)
		inB += holds(l.B, b)
		inMiddle += holds(l.Estimate(700), a+b*700)
	}
	// 95% of 1000 is 950, with a standard deviation of 7.
	for what, n := range map[string]int{"a": inA, "b": inB, "value": inMiddle} {
		if n < 915 || n > 985 {
			t.Errorf("the intervals of %s hold the truth in %d of %d", what, n, lines)
		}
	}
}

func TestCovariance(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5}
	up, _ := FitLine(x, []float64{2, 4, 5, 4, 5})
	down, _ := FitLine(x, []float64{-2, -4, -5, -4, -5})
	other, _ := FitLine([]float64{1, 2, 3, 4, 6}, []float64{2, 4, 5, 4, 5})
	if v := covariance(up, up); !near(v, up.Residual*up.Residual, 1e-9) {
		t.Errorf("with itself %v", v)
	}
	if v := covariance(up, down); !near(v, -up.Residual*up.Residual, 1e-9) {
		t.Errorf("with its mirror %v", v)
	}
	if v := covariance(up, other); v != 0 {
		t.Errorf("at other sizes %v", v)
	}
}

func TestEstimateJSON(t *testing.T) {
	for want, e := range map[string]Estimate{
		`{"value":3}`:                     exactly(3),
		`{"high":4,"low":2,"value":3}`:    around(3, 1),
		`{"high":-1,"low":-4,"value":-2}`: Estimate{2, 1, 4}.apply(func(v float64) float64 { return -v }),
	} {
		if got, err := json.Marshal(e); err != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, err, want)
		}
	}
	if exactly(3).Above(0) || exactly(3).Below(9) {
		t.Error("without an interval nothing is certain")
	}
}
