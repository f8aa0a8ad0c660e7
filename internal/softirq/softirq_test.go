// SPDX-License-Identifier: Apache-2.0

package softirq

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/rig"
)

func open2(t *testing.T, class string) *Clock {
	t.Helper()
	c, err := open("/proc", class)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t *testing.T, c *Clock, device string) Reading {
	t.Helper()
	r, err := c.Read(device)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// onOneCPU runs f on a CPU and returns its number.
func onOneCPU(t *testing.T, f func()) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	cpu := 0
	for !before.IsSet(cpu) {
		cpu++
	}
	one.Set(cpu)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	f()
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	return cpu
}

// A bridge forwards in softirqs what a host sends: the clock must see more than
// a tenth of a microsecond a frame, and no more than there was time.
func TestForwardingIsSeen(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2})
	from, to := l.Hosts[0], l.Hosts[1]
	send, err := from.NS.Sender(from.Dev())
	if err != nil {
		t.Fatal(err)
	}
	frame := ether.UDP(ether.UDPSpec{Dst: to.MAC, Src: from.MAC, DstIP: to.IP4, SrcIP: from.IP4, DstPort: lab.DiscardPort, SrcPort: 9, Length: 64})
	batch := make([][]byte, 1000)
	for i := range batch {
		batch[i] = frame
	}
	c := open2(t, "/sys/class/net")
	frames := 0
	var a, b Reading
	var elapsed time.Duration
	cpu := onOneCPU(t, func() {
		a = read(t, c, "eth1")
		start := time.Now()
		for time.Since(start) < 500*time.Millisecond {
			n, err := send.SendAll(batch)
			if err != nil {
				t.Fatal(err)
			}
			frames += n
		}
		b, elapsed = read(t, c, "eth1"), time.Since(start)
	})
	perCPU := make([]uint64, cpu+1)
	perCPU[cpu] = uint64(frames)
	spent, grain := Between(a, b, perCPU)
	t.Logf("%v in softirqs of %v for %d frames", spent, elapsed, frames)
	if spent < time.Duration(frames)*100*time.Nanosecond || spent > elapsed+4*Grain || grain != Grain {
		t.Errorf("%v (grain %v) in softirqs of %v for %d frames", spent, grain, elapsed, frames)
	}
}

// What a process does is no softirq.
func TestProcessesDoNotCount(t *testing.T) {
	c := open2(t, "/sys/class/net")
	for try := 0; ; try++ {
		var a, b Reading
		const spin = 300 * time.Millisecond
		cpu := onOneCPU(t, func() {
			a = read(t, c, "lo")
			for start := time.Now(); time.Since(start) < spin; {
			}
			b = read(t, c, "lo")
		})
		perCPU := make([]uint64, cpu+1)
		perCPU[cpu] = 1
		spent, _ := Between(a, b, perCPU)
		if spent < spin/2 {
			return
		}
		if try == 5 { // others' interrupts come and go
			t.Fatalf("%v of %v in softirqs while a process ran", spent, spin)
		}
	}
}

// The clock of a NAPI thread is the thread's run time.
func TestThreadIsSeen(t *testing.T) {
	rig.Require(t)
	r, err := rig.New(t.Context(), rig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	c := open2(t, "/sys/class/net")
	if err := c.Find(r.Ingress); err != nil {
		t.Fatal(err)
	}
	if len(c.threads[r.Ingress]) != 1 {
		t.Fatalf("threads of %s: %v", r.Ingress, c.threads[r.Ingress])
	}
	load := rig.Load{Input: rig.Tight, Length: 64}
	if _, err := r.Slice(t.Context(), load, rig.MaxSlice); err != nil { // gets to know the generator
		t.Fatal(err)
	}
	a := read(t, c, r.Ingress)
	s, err := r.Slice(t.Context(), load, rig.MaxSlice)
	if err != nil {
		t.Fatal(err)
	}
	spent, grain := Between(a, read(t, c, r.Ingress), []uint64{uint64(s.Frames)})
	if diff := spent - s.RunTime; diff < -5*time.Millisecond || diff > 5*time.Millisecond || grain >= Grain {
		t.Errorf("the clock saw %v (grain %v), the thread ran for %v", spent, grain, s.RunTime)
	}
	c.Forget(r.Ingress)
	if r := read(t, c, r.Ingress); len(r.threads) != 0 {
		t.Errorf("a forgotten device has threads: %v", r.threads)
	}
}

func TestBetween(t *testing.T) {
	const ms = time.Millisecond
	start := time.Now()
	at := func(cpus []time.Duration, thread time.Duration, steered bool) Reading {
		return Reading{cpus: cpus, threads: map[int]time.Duration{7: thread}, steered: steered}
	}
	for _, c := range []struct {
		name   string
		a, b   Reading
		frames []uint64
		want   time.Duration
		grain  time.Duration
	}{
		{"interrupts on one of two CPUs", at([]time.Duration{0, 0}, 0, false), at([]time.Duration{300 * ms, 200 * ms}, 0, false), []uint64{0, 1000}, 200 * ms, Grain},
		{"on both", at([]time.Duration{0, 0}, 0, false), at([]time.Duration{300 * ms, 200 * ms}, 0, false), []uint64{500, 500}, 500 * ms, Grain},
		{"some strayed", at([]time.Duration{0, 0}, 0, false), at([]time.Duration{300 * ms, 200 * ms}, 0, false), []uint64{4, 1000}, 200 * ms, Grain},
		{"a thread", at([]time.Duration{0}, 50*ms, false), at([]time.Duration{300 * ms}, 170*ms, false), []uint64{1000}, 120 * ms, ms},
		{"a thread, and steering behind it", at([]time.Duration{0}, 50*ms, true), at([]time.Duration{300 * ms}, 170*ms, true), []uint64{1000}, 420 * ms, Grain},
		{"a thread that rests", at([]time.Duration{0}, 50*ms, false), at([]time.Duration{300 * ms}, 50*ms, false), []uint64{1000}, 300 * ms, Grain},
		{"a column that went back", at([]time.Duration{10 * ms}, 0, false), at([]time.Duration{0}, 0, false), []uint64{1000}, 0, Grain},
		{"a CPU that came", at([]time.Duration{0}, 0, false), at([]time.Duration{10 * ms, 500 * ms}, 0, false), []uint64{500, 500}, 10 * ms, Grain},
		{"a CPU that came back", at([]time.Duration{0}, 0, false), at([]time.Duration{time.Hour}, 0, false), []uint64{500}, time.Second, Grain},
		{"no frames", at([]time.Duration{0}, 0, false), at([]time.Duration{10 * ms}, 0, false), []uint64{0}, 0, Grain},
	} {
		c.a.at, c.b.at = start, start.Add(time.Second)
		if got, grain := Between(c.a, c.b, c.frames); got != c.want || grain != c.grain {
			t.Errorf("%s: %v, grain %v; want %v, %v", c.name, got, grain, c.want, c.grain)
		}
	}
}

func TestThreadNames(t *testing.T) {
	for _, c := range []struct {
		comm, device string
		want         bool
	}{
		{"napi/eth1-8193", "eth1", true},
		{"napi/eth1-8193", "eth", false},
		{"napi/eth1-8193", "eth1-8193", false},
		{"napi/br-lan-12", "br", false},
		{"napi/br-lan-12", "br-lan", true},
		{"napi/lan-port12", "lan-port12-long", true}, // cut, as before 5.17
		{"napi/lan-port1", "lan-port12-long", false},
		{"ksoftirqd/0", "eth1", false},
	} {
		if got := isNAPIThread(c.comm, "napi/"+c.device+"-"); got != c.want {
			t.Errorf("%q of %s: %v", c.comm, c.device, got)
		}
	}
}

// A /proc as some kernel might have it.
func TestWhatProcTells(t *testing.T) {
	for _, c := range []struct{ name, stat, want string }{
		{"usual", "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 3 4 5 6 7 8 0 0\ncpu2 1 1 1 1 1 1 1 1 0 0\nintr 1 2 3\n", ""},
		{"no CPUs", "intr 1 2 3\n", "tells nothing of single CPUs"},
		{"old", "cpu0 1 2 3 4\n", "too few columns"},
		{"broken", "cpu0 1 2 x 4 5 6 7 8 0 0\n", `parsing "x"`},
		{"absurd", "cpu99999 1 2 3 4 5 6 7 8 0 0\n", `CPU "99999"`},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(c.stat), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := open(dir, dir)
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", c.name, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		cpus, err := got.readCPUs()
		// 1+2+3+4+5 and 8 ticks are others' on CPU 0, 6 on CPU 2; CPU 1 is offline.
		if err != nil || len(cpus) != 3 || cpus[1] != 0 || cpus[2]-cpus[0] != (23-6)*Grain {
			t.Errorf("%s: %v, %v", c.name, cpus, err)
		}
	}
	if _, err := open(t.TempDir(), "/sys/class/net"); err == nil {
		t.Error("a /proc without stat is a clock")
	}
}

func TestSteered(t *testing.T) {
	for mask, want := range map[string]bool{"0\n": false, "00000000,00000000\n": false, "f\n": true, "00000000,00000004\n": true} {
		class := t.TempDir()
		queue := filepath.Join(class, "eth1", "queues", "rx-0")
		if err := os.MkdirAll(queue, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(queue, "rps_cpus"), fmt.Append(nil, mask), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := open2(t, class).steered("eth1"); got != want {
			t.Errorf("%q: %v", mask, got)
		}
	}
}
