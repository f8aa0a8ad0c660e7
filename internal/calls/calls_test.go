// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/results"
)

// TestSteps has the kernel run every step's program, and looks at what it did:
// as often as told, none where it is told none, and each time rightly.
func TestSteps(t *testing.T) {
	netns.Require(t)
	ns, egress, err := network()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ns.Close() })
	const stations = 64
	b, err := openBench(ns, egress, stations)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.close() })
	b.knobs.Source, b.knobs.Destination = native(fibSource), native(fibTarget)
	all, _ := Steps([]int{stations})
	if len(all) != 11 {
		t.Fatalf("%d steps", len(all))
	}
	for _, s := range all {
		b.prepare(s)
		for _, times := range []uint32{0, 1, 9} {
			if err := b.set(times); err != nil {
				t.Fatal(err)
			}
			before, err := b.done()
			if err != nil {
				t.Fatal(err)
			}
			err = ns.Do(func() error {
				_, err := b.program(s).Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: 200})
				return err
			})
			if err != nil {
				t.Fatalf("%s: %v", s.title(), err)
			}
			after, err := b.done()
			if err != nil {
				t.Fatal(err)
			}
			c := &cell{step: s}
			if c.count(before, after, times, 200); len(c.wrong) > 0 {
				t.Errorf("%d times: %s", times, c.wrong[0])
			}
		}
	}
	// An address that is not in the table is not found, and that is noticed.
	b.prepare(Step{program: "station", Stations: 2 * stations, Access: far})
	if err := b.set(1); err != nil {
		t.Fatal(err)
	}
	before, _ := b.done()
	if _, err := b.coll.Programs["station"].Run(&ebpf.RunOptions{Data: make([]byte, 64), Repeat: 128}); err != nil {
		t.Fatal(err)
	}
	after, _ := b.done()
	if found := after.Right - before.Right; found != stations {
		t.Errorf("%d of %d addresses were found, %d are in the table", found, 2*stations, stations)
	}
}

// TestMeasure makes a short measurement: what numbers it gives is the machine's
// business, that they are whole is ours.
func TestMeasure(t *testing.T) {
	netns.Require(t)
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	seen := 0
	f, err := Measure(t.Context(), Options{Pairs: 6, Stations: []int{16}, Progress: func(_ string, done, of int) {
		if done != seen || of != 11 {
			t.Errorf("progress %d of %d", done, of)
		}
		seen++
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Validate(); err != nil {
		t.Fatal(err)
	}
	once := 0
	for _, c := range f.Cells {
		if c.Work == workOnce && c.Unit == results.NsPerCall {
			once++
			if len(c.Samples) != 6 || c.Interval == nil || c.Interval.Low > *c.Median || c.Interval.High < *c.Median {
				t.Errorf("%+v", c)
			}
		}
	}
	if once != 11 || seen != 11 || len(f.Meta.Audit) != 6 {
		t.Errorf("%d cells, %d times progress, %d checks", once, seen, len(f.Meta.Audit))
	}
	if check := f.Meta.Audit[0]; !check.Passed {
		t.Errorf("%s: %s", check.Name, check.Value)
	}
	if text := strings.Join(f.Meta.LeftOut, "\n"); !strings.Contains(text, egressDev) || !strings.Contains(text, "under frames: not asked for") {
		t.Errorf("left out: %s", text)
	}
}

// TestCounter uses an event that every kernel has: the thread's time.
func TestCounter(t *testing.T) {
	c, err := openCounter(unix.PERF_TYPE_SOFTWARE, unix.PERF_COUNT_SW_TASK_CLOCK)
	if err != nil {
		t.Skipf("needs perf events: %v", err)
	}
	defer c.close()
	before := c.read()
	for i, sum := 0, 0; i < 1_000_000; i++ {
		sum += i * sum
	}
	if after := c.read(); after <= before {
		t.Errorf("%d after %d", after, before)
	}
	var none *counter
	if none.read() != 0 || none.close() != nil {
		t.Error("no counter counts")
	}
}

// good is a cell that passes every check.
func good(name string) *cell {
	c := &cell{step: Step{Name: name}, runs: 100}
	for i := range 12 {
		small := 0.1 * float64(i%3-1)
		c.deltas, c.floor, c.bases = append(c.deltas, 20+small), append(c.floor, small), append(c.bases, 50+small)
	}
	return c
}

func TestAudit(t *testing.T) {
	shifted := func(values []float64, by float64) {
		for i := range values {
			values[i] += by
		}
	}
	for _, c := range []struct {
		name  string // of the check that fails
		spoil func([]*cell)
		want  string
	}{
		{"", func([]*cell) {}, ""},
		{"counts match", func(c []*cell) { c[1].wrong = []string{"b: 5 of 6 runs"} }, "1 wrong: b: 5 of 6 runs"},
		{"counts match", func(c []*cell) {
			for _, one := range c {
				one.runs = 0
			}
		}, "0 runs"},
		{"floor spans zero", func(c []*cell) { shifted(c[0].floor, 0.2); shifted(c[1].floor, -0.2); shifted(c[2].floor, 0.2) }, "3 without: a ("},
		{"floor is small", func(c []*cell) {
			for _, one := range c {
				shifted(one.floor, 0.9)
			}
		}, "0.9"},
		{"clock steady", func(c []*cell) { shifted(c[2].bases[8:], 6) }, "12."},
		{"spread bounded", func(c []*cell) {
			for i := range c[0].deltas {
				c[0].deltas[i] += float64(i%2) * 20
			}
		}, "1 of 3 are wider: a ("},
		{"seldom interrupted", func(c []*cell) { c[0].again = 20 }, "20 of 300"},
	} {
		cells := []*cell{good("a"), good("b"), good("c")}
		c.spoil(cells)
		failed := ""
		for _, check := range audit(cells) {
			if !check.Passed && (failed == "" || check.Name == c.name) {
				failed = check.Name
				if check.Name == c.name && !strings.Contains(check.Value, c.want) {
					t.Errorf("%s: %q, want %q", check.Name, check.Value, c.want)
				}
			}
		}
		if failed != c.name {
			t.Errorf("%q fails, want %q", failed, c.name)
		}
	}
	for n, want := range map[int]int{1: 1, 3: 1, 10: 3, 22: 4} {
		if got := mostAstray(n); got != want {
			t.Errorf("of %d intervals %d may miss, want %d", n, got, want)
		}
	}
}

func TestAgreement(t *testing.T) {
	if s := agreement(11, 10); !strings.HasPrefix(s, "the two ways agree: +10%") {
		t.Error(s)
	}
	for _, frames := range []float64{12, 8, -10} {
		if s := agreement(frames, 10); !strings.HasPrefix(s, "THE TWO WAYS DO NOT AGREE") {
			t.Error(s)
		}
	}
}

func TestAddresses(t *testing.T) {
	// The programs put the number of an address where shift says.
	for _, n := range []int{0, 1, 255, 256, 65535} {
		if got, want := numberOf(macOf(0))|uint64(n)<<shift, numberOf(macOf(n)); got != want {
			t.Errorf("address %d: %x, want %x", n, got, want)
		}
	}
}
