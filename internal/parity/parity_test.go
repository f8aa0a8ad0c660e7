// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netns"
)

var (
	seedFlag   = flag.Int64("seed", -1, "play this scenario only (with -scenarios: from this one on)")
	countFlag  = flag.Int("scenarios", 0, "how many scenarios to play with each engine; 0: as many as CI does")
	engineFlag = flag.String("engine", "", "only this engine: "+fmt.Sprint(engines))
	modeFlag   = flag.String("mode", "", "only scenarios of this mode: mac or port; seeds mean others then")
)

// engines are the ways in which frames can be carried; mixed has them side by
// side.
var engines = []string{"generic", "tc", "clsact", "mixed"}

// inGuest tells whether this is an emulated machine, which is slow.
var inGuest = os.Getenv("XDPL2_GUEST") != ""

func TestMain(m *testing.M) {
	MaybeDaemon()
	flag.Parse()
	os.Exit(m.Run())
}

func optionsOf(engine string) Options {
	o := Options{Engine: engine, TrustTags: lab.HasVLANFiltering()}
	switch engine {
	case "clsact":
		o.Engine, o.NoTCX = "tc", true
	case "mixed":
		o.Engine = "auto"
	}
	return o
}

func generateOptions(engine string) GenerateOptions {
	o := GenerateOptions{VLANAware: lab.HasVLANFiltering(), Mixed: engine == "mixed", Mode: *modeFlag}
	// XDP does not see such tags, so it cannot be trusted with them; see TrustTags.
	o.HiddenTags = !o.VLANAware || engine == "tc" || engine == "clsact"
	return o
}

func newBench(t *testing.T, o Options) *Bench {
	t.Helper()
	b, err := NewBench(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// seeds are the scenarios to play with the i-th engine.
func seeds(i int) (first, n uint64) {
	n = 1000
	if inGuest {
		// Fewer, so each engine gets others.
		first, n = uint64(i)*1000, 16
	}
	if *seedFlag >= 0 {
		first, n = uint64(*seedFlag), 1
	}
	if *countFlag > 0 {
		n = uint64(*countFlag)
	}
	return first, n
}

// TestRealProgram plays some scenarios to the program that routers run.
func TestRealProgram(t *testing.T) {
	netns.Require(t)
	if inGuest {
		t.Skip("not for guests: builds the program")
	}
	program := filepath.Join(t.TempDir(), "xdpl2")
	if out, err := exec.Command("go", "build", "-o", program, "../../cmd/xdpl2").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	for _, engine := range []string{"generic", "tc"} {
		t.Run(engine, func(t *testing.T) {
			o := optionsOf(engine)
			o.Program = program
			playAll(t, newBench(t, o), engine, 0, 40)
		})
	}
}

// TestParity plays scenarios with each engine. What differs is a fault of
// xdpl2, or of the model of mode port (wire.go).
func TestParity(t *testing.T) {
	netns.Require(t)
	if *engineFlag != "" && !slices.Contains(engines, *engineFlag) {
		t.Fatalf("-engine %s: expected one of %v", *engineFlag, engines)
	}
	for i, engine := range engines {
		if *engineFlag != "" && *engineFlag != engine {
			continue
		}
		if engine == "clsact" && !lab.HasTCX() {
			continue // tc is the same there
		}
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			o := optionsOf(engine)
			o.CPU = i
			b := newBench(t, o)
			first, n := seeds(i)
			playAll(t, b, engine, first, n)
			if *seedFlag < 0 && *modeFlag == "" {
				checkCoverage(t, b, n)
			}
		})
	}
}

// playAll plays scenarios and shows the first failed ones, made shorter.
func playAll(t *testing.T, b *Bench, engine string, first, n uint64) {
	t.Helper()
	const shown = 3
	ctx := context.Background()
	began, told := time.Now(), time.Now()
	failed := 0
	for i := range n {
		r, err := b.Play(ctx, Generate(first+i, generateOptions(engine)))
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Differences) > 0 {
			if failed++; failed > shown {
				t.Fatalf("%d of %d scenarios failed, and the rest is not played", failed, i+1)
			}
			report(t, b, engine, r)
		}
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			t.Logf("%d of %d scenarios, %d failed", i+1, n, failed)
		}
	}
	t.Logf("%d scenarios in %.1f s", n, time.Since(began).Seconds())
}

// report fails the test with a scenario, as short as it can be made quickly.
func report(t *testing.T, b *Bench, engine string, r *Report) {
	t.Helper()
	steps := len(r.Scenario.Steps)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	short, err := b.Minimise(ctx, r, 300)
	if err != nil {
		t.Log(err)
	}
	mode := ""
	if *modeFlag != "" {
		mode = " -mode " + *modeFlag
	}
	t.Errorf("seed %d, engine %s: the bridge with xdpl2 did not do what it does alone\n%s"+
		"(%d steps of %d)\nAgain: go test ./internal/parity -run TestParity -seed %d -engine %s%s\nAs it was: %v",
		r.Scenario.Seed, engine, short, len(short.Scenario.Steps), steps, r.Scenario.Seed, engine, mode, r.Differences)
}

// checkCoverage makes sure that the comparison compared something: frames of
// every kind were redirected or passed for every reason that a scenario can
// bring about.
func checkCoverage(t *testing.T, b *Bench, n uint64) {
	t.Helper()
	verdicts, err := b.Verdicts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("verdicts: %v", verdicts)
	if least := 3 * n; verdicts["redirected"] < least && !lab.HasVLANFiltering() {
		t.Errorf("only %d frames were redirected in %d scenarios, want %d", verdicts["redirected"], n, least)
	}
	if n < 500 {
		return
	}
	for _, name := range []string{"pass_local", "pass_group", "pass_control", "pass_unknown_source",
		"pass_moved_source", "pass_unknown_destination", "pass_same_port", "pass_blocked", "pass_isolated",
		"pass_mtu", "pass_malformed"} {
		if verdicts[name] == 0 {
			t.Errorf("no frame had the verdict %s", name)
		}
	}
	if b.opts.Engine == "generic" && !b.opts.TrustTags && verdicts["pass_vlan"] == 0 {
		t.Error("no frame had the verdict pass_vlan")
	}
}
