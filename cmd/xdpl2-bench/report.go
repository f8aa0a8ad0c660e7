// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/results"
)

// result is what the demo found out, and what --json prints.
type result struct {
	Version    string          `json:"version"`
	Daemon     string          `json:"daemon_version"`
	Machine    results.Machine `json:"machine"`
	Share      float64         `json:"accelerated_share"` // of all frames of the first part
	Ports      []port          `json:"ports"`
	Traffic    []flow          `json:"traffic"`
	Comparison []*loadResult   `json:"comparison"`
	LeftOut    []string        `json:"left_out"`
	Failures   []string        `json:"failures"`
	Seconds    float64         `json:"seconds"`
}

// report tells people what happens, and keeps it for the end.
type report struct {
	env    *env
	screen *screen
	result result

	unclean    bool   // something could not be taken down
	columns    *table // of the live lines, to keep their columns
	started    bool   // the live table has been drawn
	progressed time.Time
}

func newReport(e *env) *report {
	out := e.stdout
	if e.json {
		out = io.Discard // the document alone
	}
	return &report{env: e, screen: newScreen(out), columns: liveTable(), result: result{
		Version: version, Ports: []port{}, Traffic: []flow{}, Comparison: []*loadResult{}, LeftOut: []string{}, Failures: []string{},
	}}
}

// fail notes something that was shown and did not work.
func (r *report) fail(format string, args ...any) {
	r.result.Failures = append(r.result.Failures, fmt.Sprintf(format, args...))
}

// cleanUp ends something; that it could not is a failure like any other.
func (r *report) cleanUp(end func() error) {
	if err := end(); err != nil {
		r.unclean = true
		r.fail("clean up: %v", err)
	}
}

func (r *report) begin(have *box) {
	r.result.Machine = have.machine
	m := have.machine
	r.screen.printf("xdpl2 demo %s on Linux %s, %d cores, %s, %s", version, m.Kernel, m.Cores, m.CPU, m.Arch)
}

// leaveOut notes what cannot be done here.
func (r *report) leaveOut(why string) {
	r.result.LeftOut = append(r.result.LeftOut, why)
	r.screen.print("", "Not measured here: "+why)
}

// router introduces the first part.
func (r *report) router(d *daemon, s *api.Status) {
	r.result.Daemon = s.Version
	r.screen.print("",
		"1. A router with a Linux bridge and three hosts, and the daemon at work",
		"",
		"   h1 --- eth1 +--------+ eth2 --- h2     network namespaces, gone at the end; the box's own",
		"               | br-lan |                 network is not touched",
		"               +--------+ eth3 --- h3",
		"",
		fmt.Sprintf("%s %s runs there on this UCI file (%s):", d.program, s.Version, d.file()),
		"")
	r.screen.print(indent(d.config())...)
	r.screen.print("", "Traffic: ping, then TCP both ways, then a packet generator; broadcasts and link control", "")
}

func (r *report) live(last, now *sample) {
	rows := r.columns.lines(append([][]string{liveHead}, liveRows(last, now)...)...)
	r.screen.draw(!r.started, rows[:1], rows[1:])
	r.started = true
}

// traffic closes the first part.
func (r *report) traffic(flows []flow, ports []port) {
	r.result.Traffic, r.result.Ports = flows, ports
	for _, f := range trafficFailures(flows, ports) {
		r.fail("%s", f)
	}
	var all, carried uint64
	for _, p := range ports {
		all += p.frames()
		carried += p.Redirected
	}
	if all > 0 {
		r.result.Share = float64(carried) / float64(all)
	}
	r.screen.print("", "What became of the frames, by the port where they arrived:", "")
	r.screen.print(verdictLines(ports)...)
	r.screen.print("", "How the hosts saw it:", "")
	var rows [][]string
	for i := range flows {
		verdict := "ok"
		if !flows[i].OK {
			verdict = "FAILED"
		}
		rows = append(rows, []string{flows[i].Name, verdict, flows[i].words()})
	}
	r.screen.print(newTable("lll").lines(rows...)...)
}

// beginCompare introduces the second part.
func (r *report) beginCompare(have *box) {
	r.screen.print("",
		"2. What forwarding a frame costs, through the bridge and through xdpl2",
		"",
		"Measured is the run time of the one core that forwards, from the receive queue of a virtual",
		"Ethernet device to the transmit function of a tap that nobody reads. There is no NIC, no driver",
		"and no interrupt in it. The daemon switches the engine through its UCI file and a reload; each",
		"turn measures all variants for 30 ms in random order and back, and ratios are taken within a turn.",
		"Tight frames have no room for XDP in front, as those of drivers without XDP: generic copies them.",
		"")
}

// progress tells how far the measurement is. Where it cannot be drawn in place
// that is the load that was measured last, about every two seconds.
func (r *report) progress(all []*measured, last *measured, left time.Duration) {
	seconds := fmt.Sprintf("%2.0f s left", max(left.Seconds(), 0))
	if !r.screen.terminal {
		if time.Since(r.progressed) < 2*time.Second {
			return
		}
		r.screen.print(seconds + "  " + last.progressLine())
	} else {
		lines := []string{"measuring, " + seconds}
		for _, m := range all {
			if m.rounds() > 0 {
				lines = append(lines, "  "+m.progressLine())
			}
		}
		r.screen.draw(r.progressed.IsZero(), nil, lines)
	}
	r.progressed = time.Now()
}

// endCompare closes the second part.
func (r *report) endCompare(all []*measured) {
	var few []string
	for _, m := range all {
		if m.rounds() < minRounds {
			few = append(few, fmt.Sprintf("%s: only %d turns in the time there was", m.name, m.rounds()))
			continue
		}
		result, err := m.result()
		if err != nil {
			r.fail("%v", err)
			continue
		}
		r.result.Comparison = append(r.result.Comparison, result)
	}
	r.screen.erase()
	if len(r.result.Comparison) > 0 {
		r.screen.print("")
		r.screen.print(compareLines(r.result.Comparison)...)
	}
	if len(few) > 0 {
		r.leaveOut(strings.Join(few, "; ") + ": too few for a number")
	}
}

// finish prints the summary or the document. The error says that not all
// worked.
func (r *report) finish() error {
	if r.env.json {
		if err := r.env.printJSON(&r.result); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	}
	r.screen.print("", "In short")
	r.screen.print(r.result.summary()...)
	return r.failures()
}

// failures is what did not work, nil if all did.
func (r *report) failures() error {
	var errs []error
	for _, f := range r.result.Failures {
		errs = append(errs, errors.New("did not work: "+f))
	}
	return errors.Join(errs...)
}

// interrupted ends the report early.
func (r *report) interrupted() error {
	if r.unclean {
		return errors.Join(errors.New("interrupted"), r.failures())
	}
	return errors.New("interrupted; everything has been taken down")
}
