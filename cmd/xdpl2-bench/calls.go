// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/calls"
	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/reports"
	"github.com/xdpl2/xdpl2/internal/results"
)

// callsOptions are those of the calls command.
type callsOptions struct {
	out, stations string
	pairs, rounds int
}

func callsCommand() *command {
	var o callsOptions
	return &command{
		name: "calls", json: true,
		short: "Measure what each step of the data path costs, to the nanosecond, with an audit",
		long: "Programs made of the data path's own code take one step, or none, by a number in their\n" +
			"memory: the machine code is the same, the difference is the step. Pairs in ABBA order,\n" +
			"the clock of the thread's CPU time, a floor where both halves of a pair are the same, and\n" +
			"intervals of 95% by bootstrap. Then the same steps in an attached program under real\n" +
			"frames. The audit is printed, and with --out it is the file CHECKS.txt. Exit code 1 if a\n" +
			"check failed. Takes some minutes and root; docs/bench-calls.md explains it.",
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.out, "out", "", "write calls.json, calls.csv, calls.html and CHECKS.txt into this `DIRECTORY`")
			fs.StringVar(&o.stations, "stations", "16,1024,16384,65536", "table sizes, a `LIST` of powers of two from 2 to 65536")
			fs.IntVar(&o.pairs, "pairs", 24, "`NUMBER` of pairs of each cell, 6 at least")
			fs.IntVar(&o.rounds, "rounds", 12, "`NUMBER` of rounds of each cell under frames, 6 at least; 0: leave them out")
		},
		run: func(ctx context.Context, e *env, _ []string) error { return o.run(ctx, e) },
	}
}

func (o *callsOptions) run(ctx context.Context, e *env) error {
	settings, err := o.parse()
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return errors.New("calls: programs and namespaces need root; run it with sudo")
	}
	if err := netns.Supported(); err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	if o.out != "" {
		// Before the measuring, not behind it.
		if err := os.MkdirAll(o.out, 0o755); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	progress := newCallsProgress(e)
	settings.Progress = progress.show
	f, err := calls.Measure(ctx, settings)
	progress.screen.erase()
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted; everything has been taken down")
		}
		return fmt.Errorf("calls: %w", err)
	}
	if o.out != "" {
		if err := o.write(e, f); err != nil {
			return err
		}
	}
	if e.json {
		err = f.Write(e.stdout)
	} else {
		err = printLines(e.stdout, callsLines(f))
	}
	if err == nil && len(f.Meta.Failed()) > 0 {
		if e.json {
			fmt.Fprintln(e.stderr, strings.Join(auditLines(f.Meta.Failed()), "\n"))
		}
		return errQuiet
	}
	return err
}

func (o *callsOptions) parse() (calls.Options, error) {
	out := calls.Options{Pairs: o.pairs, Rounds: o.rounds, Tool: version}
	if o.pairs < minForInterval || o.pairs > 10000 {
		return out, usagef("calls: --pairs %d: expected %d to 10000", o.pairs, minForInterval)
	}
	if o.rounds != 0 && (o.rounds < minForInterval || o.rounds > 10000) {
		return out, usagef("calls: --rounds %d: expected 0, or %d to 10000", o.rounds, minForInterval)
	}
	for _, word := range words(o.stations) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 2 || n > 65536 || n&(n-1) != 0 {
			return out, usagef("calls: --stations: %q: expected powers of two from 2 to 65536", word)
		}
		if len(out.Stations) > 0 && n <= out.Stations[len(out.Stations)-1] {
			return out, usagef("calls: --stations: %d: expected rising sizes", n)
		}
		out.Stations = append(out.Stations, n)
	}
	return out, nil
}

// write writes what --out says.
func (o *callsOptions) write(e *env, f *results.File) error {
	at := func(name string) string { return filepath.Join(o.out, name) }
	if err := f.WriteFile(at("calls.json")); err != nil {
		return err
	}
	if err := f.WriteCSVFile(at("calls.csv")); err != nil {
		return err
	}
	if err := os.WriteFile(at("CHECKS.txt"), []byte(strings.Join(checksText(f), "\n")+"\n"), 0o644); err != nil {
		return err
	}
	show := shown{html: at("calls.html")}
	if _, err := show.write(&reports.Report{File: f, Tool: version}); err != nil {
		return err
	}
	fmt.Fprintf(e.stderr, "wrote calls.json, calls.csv, calls.html and CHECKS.txt into %s\n", o.out)
	return nil
}

// checksText is the audit as a file.
func checksText(f *results.File) []string {
	m := f.Meta
	lines := []string{
		fmt.Sprintf("xdpl2-bench %s calls, %s on %s, Linux %s", m.Tool, m.Start.Format(time.RFC3339), m.Machine.CPU, m.Machine.Kernel),
	}
	return append(lines, auditText(m.Audit)...)
}

func auditText(audit []results.Check) []string {
	var lines []string
	passed := 0
	for _, c := range audit {
		verdict := "FAIL"
		if c.Passed {
			verdict = "PASS"
			passed++
		}
		lines = append(lines, fmt.Sprintf("%s %s: %s", verdict, c.Name, c.Value), "     expected: "+c.Expected)
	}
	return append(lines, fmt.Sprintf("%d of %d checks passed", passed, len(audit)))
}

// callsLines is the outcome for people.
func callsLines(f *results.File) []string {
	lines := []string{"Numbers: " + sourceWords(f), ""}
	rows := [][]string{{"STEP", "STATIONS", "ACCESS", "COST", "95%", "UNIT"}}
	crossed := [][]string{{"STEP", "STATIONS", "ACCESS", "BY ITSELF", "UNDER FRAMES", "95%", "FIRST IN A FRAME", "95%", ""}}
	others := map[results.ID]*results.Cell{}
	for i := range f.Cells {
		others[f.Cells[i].ID()] = &f.Cells[i]
	}
	for i := range f.Cells {
		c := &f.Cells[i]
		stations := ""
		if c.Stations > 0 {
			stations = grouped(c.Stations)
		}
		around := fmt.Sprintf("%.2f to %.2f", c.Interval.Low, c.Interval.High)
		beside := func(work string) (value, around string) {
			id := c.ID()
			id.Work = work
			if other := others[id]; other != nil {
				return fmt.Sprintf("%.2f", *other.Median), fmt.Sprintf("%.2f to %.2f", other.Interval.Low, other.Interval.High)
			}
			return "-", ""
		}
		switch c.Work {
		case "calls":
			rows = append(rows, []string{c.Engine, stations, c.Input, fmt.Sprintf("%.2f", *c.Median), around, string(c.Unit)})
		case "calls-frames":
			itself, _ := beside("calls-run")
			first, aroundFirst := beside("calls-first")
			crossed = append(crossed, []string{c.Engine, stations, c.Input, itself, fmt.Sprintf("%.2f", *c.Median), around, first, aroundFirst, c.Note})
		}
	}
	lines = append(lines, newTable("lrlrll").lines(rows...)...)
	if len(crossed) > 1 {
		lines = append(lines, "", "The second way, in ns: a step that has been taken before, by running the program and in the attached program under frames")
		lines = append(lines, newTable("lrlrrlrll").lines(crossed...)...)
	}
	lines = append(lines, "", "Audit")
	lines = append(lines, indentLines(auditText(f.Meta.Audit))...)
	for _, text := range f.Meta.LeftOut {
		lines = append(lines, "Left out: "+text)
	}
	return lines
}

// callsProgress tells how far the measurement is.
type callsProgress struct {
	screen *screen
	began  time.Time
}

func newCallsProgress(e *env) *callsProgress {
	return &callsProgress{newScreen(e.stderr), time.Now()}
}

func (p *callsProgress) show(what string, done, of int) {
	left := ""
	if done > 2 {
		rest := time.Since(p.began) / time.Duration(done) * time.Duration(of-done)
		left = fmt.Sprintf(", about %.0f s left", rest.Seconds())
	}
	p.screen.draw(done == 0, nil, []string{fmt.Sprintf("measuring %d of %d: %s%s", min(done+1, of), of, what, left)})
}
