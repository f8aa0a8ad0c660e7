// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/lab"
)

// TestMemory: 16,384 stations, and the daemon is within its budget of 20 MiB.
func TestMemory(t *testing.T) {
	if inGuest {
		t.Skip("not for guests: so many entries take a guest a minute, and the memory is the same")
	}
	program := filepath.Join(t.TempDir(), "xdpl2")
	if out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("build the program: %v\n%s", err, out)
	}
	const stations, budget = 16384, 20 << 10
	if os.Getenv("GOMEMLIMIT") == "" { // as the init script has it
		t.Setenv("GOMEMLIMIT", "12MiB")
	}
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	b := newBox(t, l, confOf("tc", "option max_stations '20000'"))
	b.exe = program // without the tests in it
	b.start()
	dev, err := l.Router.Link("eth2")
	must(t, err)
	for i := range stations {
		must(t, l.Router.PutFDB(lab.FDBEntry{Port: dev.Attrs().Index, MAC: [6]byte{2, 0xab, 0, 0, byte(i >> 8), byte(i)}}))
	}
	b.wait("all stations", func() bool { return b.stationsBehind("eth2") == stations })
	// What filling took is given back with the next look at the stations.
	var kiB map[string]int
	b.wait("a resident size within the budget", func() bool {
		kiB = memoryOf(t, b.cmd.Process.Pid)
		return kiB["VmRSS"] > 0 && kiB["VmRSS"] <= budget
	})
	t.Logf("resident %d KiB, most %d KiB, of these the heap's and stacks' %d, of files %d",
		kiB["VmRSS"], kiB["VmHWM"], kiB["RssAnon"], kiB["RssFile"])
}

// memoryOf returns what the kernel says of a process's memory, in KiB.
func memoryOf(t *testing.T, pid int) map[string]int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	kiB := map[string]int{}
	for _, line := range strings.Split(string(text), "\n") {
		name, value, _ := strings.Cut(line, ":")
		var n int
		if _, err := fmt.Sscanf(value, "%d kB", &n); err == nil {
			kiB[name] = n
		}
	}
	return kiB
}
