// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/results"
)

// A campaign measures in parts, which can be run by themselves and put into one
// file, and judges what is in the file.

// part is one piece of a campaign.
type part struct {
	name, short string
	time, quick time.Duration // that it may take
	run         func(*campaign) error
}

// campaignOptions are the options of a command that runs a campaign.
type campaignOptions struct {
	daemon, only, out, in string
	quick, markdown       bool
	each                  time.Duration // 0: as long as the parts say
}

// campaign is the state while it runs.
type campaign struct {
	ctx    context.Context
	have   *box
	dir    string
	o      campaignOptions
	screen *screen
	file   *results.File

	part  *part
	until time.Time     // the end of the part's time
	later time.Duration // that the parts behind it may take
	drawn time.Time
}

// campaignCommand makes a command of parts and of what judges their results.
func campaignCommand(name, short, long string, parts []part, judge func(*results.File) []finding) *command {
	var o campaignOptions
	var text strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&text, "  %-9s %s (up to %s, with --quick %s)\n", p.name, p.short, p.time, p.quick)
	}
	return &command{
		name: name, json: true, short: short,
		long: long + "\nParts:\n" + strings.TrimSuffix(text.String(), "\n"),
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.daemon, "xdpl2", "", "`PATH` of the program xdpl2 (default: beside this one, else in PATH)")
			fs.StringVar(&o.only, "only", "", "run these `PARTS` only, separated by commas")
			fs.StringVar(&o.out, "out", "", "put the results into `FILE`; parts that are there and not run again stay")
			fs.StringVar(&o.in, "in", "", "measure nothing: judge the results in `FILE`")
			fs.BoolVar(&o.quick, "quick", false, "take about a fifth of the time; less is decided")
			fs.DurationVar(&o.each, "for", 0, "run each part for a `TIME` like 90s")
			fs.BoolVar(&o.markdown, "markdown", false, "print the tables as docs/benchmarks.md has them")
		},
		run: func(ctx context.Context, e *env, _ []string) error {
			chosen, err := choose(parts, o.only)
			if err != nil {
				return usagef("%s: %v", name, err)
			}
			if o.in != "" && (o.out != "" || o.only != "" || o.quick) {
				return usagef("%s: --in goes with none of --out, --only and --quick", name)
			}
			if e.json && o.markdown {
				return usagef("%s: --json or --markdown, not both", name)
			}
			return runCampaign(ctx, e, name, chosen, judge, o)
		},
	}
}

// choose returns the parts that are named, all without names.
func choose(parts []part, names string) ([]part, error) {
	if names == "" {
		return parts, nil
	}
	wanted := strings.Split(names, ",")
	var known []string
	var chosen []part
	for _, p := range parts {
		known = append(known, p.name)
		if slices.Contains(wanted, p.name) {
			chosen = append(chosen, p)
		}
	}
	for _, name := range wanted {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("--only: no part %q: expected some of %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}

// judgement is what --json prints.
type judgement struct {
	Results  *results.File `json:"results"`
	Findings []finding     `json:"findings"`
}

func runCampaign(ctx context.Context, e *env, name string, parts []part, judge func(*results.File) []finding, o campaignOptions) error {
	out := e.stdout
	if e.json || o.markdown {
		out = e.stderr // progress; the document alone goes to the output
	}
	c := &campaign{o: o, screen: newScreen(out)}
	var err error
	if o.in != "" {
		if c.file, err = results.ReadFile(o.in); err != nil {
			return err
		}
		if c.file.Meta.Command != name {
			return fmt.Errorf("%s: results of %q, expected %q", o.in, c.file.Meta.Command, name)
		}
		return c.tell(e, judge)
	}
	c.have = checkBox(o.daemon)
	if c.have.noCompare != "" {
		c.have.lack("%s", c.have.noCompare)
	}
	if len(c.have.missing) > 0 {
		fmt.Fprintln(e.stderr, "This cannot be measured here:")
		for _, m := range c.have.missing {
			fmt.Fprintf(e.stderr, "  - %s\n", m)
		}
		return errQuiet
	}
	if err := c.open(name); err != nil {
		return err
	}
	if c.dir, err = os.MkdirTemp("", "xdpl2-bench-"); err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer os.RemoveAll(c.dir)
	var stop func()
	c.ctx, stop = signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	if err := c.runParts(parts); err != nil {
		if c.ctx.Err() != nil {
			return errors.New("interrupted; everything has been taken down, and what was measured before is kept")
		}
		return err
	}
	return c.tell(e, judge)
}

// open begins a file of results, or goes on with one.
func (c *campaign) open(name string) error {
	meta := results.Meta{Command: name, Tool: version, Start: time.Now().UTC().Truncate(time.Second), Machine: results.ThisMachine(),
		Set: map[string]string{"slice_ms": fmt.Sprint(slice.Milliseconds())}}
	c.file = results.New(meta)
	if c.o.out == "" {
		return nil
	}
	old, err := results.ReadFile(c.o.out)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case old.Meta.Command != name || old.Meta.Machine != meta.Machine:
		return fmt.Errorf("%s: results of another command or machine: expected %s on %s, Linux %s", c.o.out, name, meta.Machine.CPU, meta.Machine.Kernel)
	}
	c.file.Cells, c.file.Meta.LeftOut, c.file.Meta.Seconds = old.Cells, old.Meta.LeftOut, old.Meta.Seconds
	return nil
}

func (c *campaign) runParts(parts []part) error {
	for _, p := range parts {
		c.later += p.length(c.o)
	}
	m := c.file.Meta.Machine
	c.screen.printf("xdpl2-bench %s %s on Linux %s, %d cores, %s; up to %s", c.file.Meta.Command, version, m.Kernel, m.Cores, m.CPU, c.later)
	for i := range parts {
		p := &parts[i]
		c.later -= p.length(c.o)
		began := time.Now()
		c.part, c.until, c.drawn = p, began.Add(p.length(c.o)), time.Time{}
		c.leftOut(p, "")
		err := p.run(c)
		c.screen.erase()
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		took := time.Since(began)
		c.file.Meta.Seconds += took.Seconds()
		c.file.Meta.Audit = auditOf(c.file)
		if c.o.out != "" {
			if err := c.file.WriteFile(c.o.out); err != nil {
				return err
			}
		}
		c.screen.printf("%s: done in %.0f s", p.name, took.Seconds())
	}
	return nil
}

// auditOf looks at what must be so if the numbers are to be trusted: the bridge
// is as fast as itself.
func auditOf(f *results.File) []results.Check {
	n, low, high := 0, math.Inf(1), math.Inf(-1)
	for i := range f.Cells {
		c := &f.Cells[i]
		if c.Engine != again || c.Ratio == nil || c.Ratio.N < minForInterval || c.Unit != results.NsPerFrame {
			continue
		}
		n++
		low, high = min(low, c.Ratio.Value), max(high, c.Ratio.Value)
	}
	if n == 0 {
		return nil
	}
	return []results.Check{{
		Name: "bridge against itself", Value: fmt.Sprintf("%.2f to %.2f in %d cells", low, high, n),
		Expected: "0.95 to 1.05", Passed: low >= 0.95 && high <= 1.05,
	}}
}

func (p *part) length(o campaignOptions) time.Duration {
	switch {
	case o.each > 0:
		return o.each
	case o.quick:
		return p.quick
	}
	return p.time
}

// leftOut notes what a part cannot measure here; "" forgets what an earlier run
// of the part noted.
func (c *campaign) leftOut(p *part, why string) {
	prefix := p.name + ": "
	if why == "" {
		c.file.Meta.LeftOut = slices.DeleteFunc(c.file.Meta.LeftOut, func(s string) bool { return strings.HasPrefix(s, prefix) })
		return
	}
	if slices.Contains(c.file.Meta.LeftOut, prefix+why) {
		return
	}
	c.file.Meta.LeftOut = append(c.file.Meta.LeftOut, prefix+why)
	c.screen.print(prefix + why)
}

// put adds the cells of a series, in the place of older ones.
func (c *campaign) put(s *series) error {
	cells, err := s.cells()
	if err != nil {
		return err
	}
	for _, cell := range cells {
		id := cell.ID()
		c.file.Cells = slices.DeleteFunc(c.file.Cells, func(old results.Cell) bool { return old.ID() == id })
		c.file.Cells = append(c.file.Cells, cell)
	}
	return nil
}

// progress tells how far the part is, every second or two.
func (c *campaign) progress(format string, args ...any) {
	pause := time.Second
	if !c.screen.terminal {
		pause = 10 * time.Second
	}
	if time.Since(c.drawn) < pause {
		return
	}
	left := max(time.Until(c.until), 0) + c.later
	line := fmt.Sprintf("%4.0f s left  %s: %s", left.Seconds(), c.part.name, fmt.Sprintf(format, args...))
	c.screen.draw(c.drawn.IsZero(), nil, []string{line})
	c.drawn = time.Now()
}

// roundsUntil tells, each time it is asked, whether another round of the same
// length fits before a time. The first one always does: better late than with
// no number at all.
func (c *campaign) roundsUntil(until time.Time) (more func() bool) {
	var began time.Time
	return func() bool {
		now, first := time.Now(), began.IsZero()
		took := now.Sub(began)
		began = now
		return c.ctx.Err() == nil && (first || now.Add(took).Before(until))
	}
}

// tell prints what was found.
func (c *campaign) tell(e *env, judge func(*results.File) []finding) error {
	all := judge(c.file)
	switch {
	case e.json:
		if err := e.printJSON(judgement{c.file, all}); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	case c.o.markdown:
		if _, err := io.WriteString(e.stdout, markdown(c.file, all)); err != nil {
			return fmt.Errorf("print the result: %w", err)
		}
	default:
		c.screen.print("")
		c.screen.print(findingLines(all)...)
		for _, why := range c.file.Meta.LeftOut {
			c.screen.print("Not measured: " + why)
		}
		for _, check := range c.file.Meta.Failed() {
			c.screen.printf("Not to be trusted: %s: %s, expected %s", check.Name, check.Value, check.Expected)
		}
	}
	return outcome(all)
}
