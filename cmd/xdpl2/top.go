// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/httpapi"
)

func topCommand() *command {
	var interval float64
	var count int
	return &command{
		name: "top", json: true,
		short: "Show live what the ports carry: rates, engine, share accelerated, reasons",
		long: "On a terminal the picture is refreshed in place, elsewhere it is printed again and again.\n" +
			"SHARE is how much of what arrived in the last interval the fast path carried; the rest is\n" +
			"under PASSED BECAUSE, in frames a second. With --json each line is one interval.",
		flags: func(fs *flag.FlagSet) {
			fs.Float64Var(&interval, "interval", 2, "`SECONDS` between two pictures")
			fs.IntVar(&count, "count", 0, "end after `N` pictures")
		},
		run: func(ctx context.Context, e *env, _ []string) error {
			if interval < 0.1 || interval > 3600 || count < 0 {
				return usagef("top: --interval is from 0.1 to 3600 seconds, --count a number from 0 on")
			}
			t := &top{client: httpapi.NewClient(e.runDir), every: time.Duration(interval * float64(time.Second)), count: count}
			return t.run(ctx, e)
		},
	}
}

// top is a live view of the ports.
type top struct {
	client *httpapi.Client
	every  time.Duration
	count  int
	last   *topMoment
}

// topMoment is everything at one time.
type topMoment struct {
	at       time.Time
	status   *api.Status
	counters []api.PortCounters
}

// picture is what happened between two moments.
type picture struct {
	Time    time.Time     `json:"time"`
	Seconds float64       `json:"seconds"` // the interval
	Status  *api.Status   `json:"-"`
	Ports   []picturePort `json:"ports"`
}

type picturePort struct {
	Device string `json:"device"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Engine string `json:"engine,omitempty"`
	// Of what arrived at this port, a second.
	Frames float64 `json:"frames_per_second"`
	Bits   float64 `json:"bits_per_second"`
	// Share that was accelerated; -1 if nothing arrived.
	Share  float64            `json:"accelerated_share"`
	Passed map[string]float64 `json:"passed_per_second"` // by verdict

	link string
}

func (t *top) run(ctx context.Context, e *env) error {
	screen := newScreen(e.stdout)
	if err := t.next(ctx); err != nil {
		return err
	}
	// The screen is restored before an error is printed.
	defer screen.close()
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		before := t.last
		if err := t.next(ctx); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		p := draw(before, t.last)
		var err error
		if e.json {
			err = json.NewEncoder(e.stdout).Encode(p)
		} else {
			err = screen.show(p)
		}
		if err != nil || n == t.count {
			return err
		}
	}
}

func (t *top) next(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	status, err := t.client.Status(ctx)
	if err != nil {
		return err
	}
	counters, err := t.client.Counters(ctx, "")
	if err != nil {
		return err
	}
	t.last = &topMoment{time.Now(), status, counters}
	return nil
}

// draw compares two moments.
func draw(before, now *topMoment) *picture {
	p := &picture{Time: now.at, Seconds: now.at.Sub(before.at).Seconds(), Status: now.status, Ports: []picturePort{}}
	for _, s := range now.status.Ports {
		port := picturePort{Device: s.Device, State: s.State, Reason: s.Reason, Engine: s.Engine, Share: -1, Passed: map[string]float64{}, link: linkWords(s.State != api.Waiting, &s)}
		old := countersOf(before.counters, s.Device)
		var carried float64
		for verdict, c := range countersOf(now.counters, s.Device) {
			was := old[verdict]
			if c.Packets < was.Packets { // they began anew
				was = api.Count{}
			}
			rate := float64(c.Packets-was.Packets) / p.Seconds
			port.Frames += rate
			port.Bits += 8 * float64(c.Bytes-was.Bytes) / p.Seconds
			switch {
			case strings.HasPrefix(verdict, "pass_") || verdict == "redirect_failed":
				if rate > 0 {
					port.Passed[verdict] = rate
				}
			default:
				carried += rate
			}
		}
		if port.Frames > 0 {
			port.Share = carried / port.Frames
		}
		p.Ports = append(p.Ports, port)
	}
	return p
}

func countersOf(all []api.PortCounters, device string) map[string]api.Count {
	out := map[string]api.Count{}
	for _, p := range all {
		if p.Device == device {
			for _, v := range p.Verdicts {
				out[v.Verdict] = v.Count
			}
		}
	}
	return out
}

func (p *picture) table() table {
	t := table{{"PORT", "LINK", "ENGINE", "FRAMES/S", "MBIT/S", "SHARE", "PASSED BECAUSE"}}
	for _, port := range p.Ports {
		row := []string{port.Device, port.link, port.Engine, "", "", "", port.Reason}
		if port.State == api.Accelerating || port.Frames > 0 {
			row[3], row[4] = fmt.Sprintf("%.0f", port.Frames), fmt.Sprintf("%.1f", port.Bits/1e6)
			if port.Share >= 0 {
				row[5] = fmt.Sprintf("%.1f%%", 100*port.Share)
			}
		}
		if port.State == api.Accelerating {
			row[6] = passedWords(port.Passed)
		} else if row[6] == "" {
			row[6] = strings.ReplaceAll(port.State, "_", " ")
		}
		t = append(t, row)
	}
	return t
}

// passedWords lists the most frequent reasons first.
func passedWords(passed map[string]float64) string {
	var names []string
	for name := range passed {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(passed[b], passed[a]), strings.Compare(a, b))
	})
	for i, name := range names {
		short := strings.ReplaceAll(strings.TrimPrefix(name, "pass_"), "_", " ")
		names[i] = fmt.Sprintf("%s %.0f", short, max(1, passed[name]))
	}
	return strings.Join(names, ", ")
}

// screen shows pictures, in place if it is a terminal.
type screen struct {
	out      io.Writer
	terminal *os.File // nil: none
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate one, without a cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	fromTheTop  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearRest   = "\x1b[J"
)

func newScreen(out io.Writer) *screen {
	s := &screen{out: out}
	if f, ok := out.(*os.File); ok {
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
			s.terminal = f
		}
	}
	return s
}

func (s *screen) show(p *picture) error {
	var text bytes.Buffer
	printHeadline(&text, p.Status)
	fmt.Fprintln(&text)
	p.table().print(&text)
	if s.terminal == nil {
		_, err := fmt.Fprintf(s.out, "%s  %s\n", p.Time.Format(time.DateTime), text.String())
		return err
	}
	width, height := 80, 24
	if size, err := unix.IoctlGetWinsize(int(s.terminal.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 && size.Row > 0 {
		width, height = int(size.Col), int(size.Row)
	}
	var frame strings.Builder
	frame.WriteString(enterScreen + fromTheTop)
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	for i, line := range lines[:min(len(lines), height)] {
		if i > 0 {
			frame.WriteByte('\n')
		}
		if runes := []rune(line); len(runes) > width {
			line = string(runes[:width])
		}
		frame.WriteString(line + clearLine)
	}
	frame.WriteString(clearRest)
	_, err := io.WriteString(s.out, frame.String())
	return err
}

func (s *screen) close() {
	if s.terminal != nil {
		_, _ = io.WriteString(s.out, leaveScreen) // the terminal has gone
	}
}
