// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"flag"
	"fmt"
	"strconv"
	"strings"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

// input is the results file that a command works on: one that is named, or the
// built-in one.
type input struct{ paper bool }

func (i *input) flags(fs *flag.FlagSet) {
	fs.BoolVar(&i.paper, "paper", false, "take the built-in numbers of the paper, its Table 4, instead of a file")
}

func (i *input) read(command string, args []string) (*results.File, error) {
	switch {
	case i.paper && len(args) > 0:
		return nil, usagef("%s: either --paper or a file", command)
	case i.paper:
		return model.Paper(), nil
	case len(args) != 1:
		return nil, usagef("%s: one results file is needed (or --paper)", command)
	}
	return results.ReadFile(args[0])
}

func modelCommand() *command {
	var in input
	var sizes, links string
	var overhead int
	return &command{
		name: "model", args: "[FILE.json]", json: true, mixed: true,
		short: "Explain what forwarding costs, and predict it where it was not measured",
		long: "The model takes a results file of forward or wire. It fits C(L) = a + b*L, the cost of a\n" +
			"frame of L bytes, for each way of forwarding; says which bound holds at each size, the\n" +
			"core (R_cpu = 1/C) or the link (R_link = rate / 8L); splits the cost in what all ways\n" +
			"share and what each has besides; checks the three hypotheses of the paper; and predicts\n" +
			"rate and gain at other sizes and link rates. docs/bench-model.md explains all of it.\n\n" +
			"  xdpl2-bench model --paper\n" +
			"  xdpl2-bench model forward.json --sizes 64,300,1514 --link 1G,2.5G",
		flags: func(fs *flag.FlagSet) {
			in.flags(fs)
			fs.StringVar(&sizes, "sizes", "", "predict for frames of these `LIST` of bytes (those measured)")
			fs.StringVar(&links, "link", "", "predict for these `RATES`, as 1G,2.5G (the one measured)")
			fs.IntVar(&overhead, "overhead", model.WireOverhead, "`BYTES` that a frame takes on the wire besides its own; 0: equation 1 as it is written")
		},
		run: func(_ context.Context, e *env, args []string) error {
			o, err := modelOptions(sizes, links, overhead)
			if err != nil {
				return err
			}
			f, err := in.read("model", args)
			if err != nil {
				return err
			}
			a, err := model.Analyze(f, o)
			if err != nil {
				return fmt.Errorf("model: %w", err)
			}
			if e.json {
				return e.printJSON(a)
			}
			_, err = fmt.Fprintln(e.stdout, strings.Join(modelLines(f, a), "\n"))
			return err
		},
	}
}

func modelOptions(sizes, links string, overhead int) (model.Options, error) {
	o := model.Options{Overhead: overhead}
	if overhead < 0 || overhead > 1000 {
		return o, usagef("model: --overhead %d: expected 0 to 1000", overhead)
	}
	for _, word := range words(sizes) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 14 || n > 65535 {
			return o, usagef("model: --sizes: %q: expected frames of 14 to 65535 bytes", word)
		}
		o.Sizes = append(o.Sizes, n)
	}
	for _, word := range words(links) {
		rate, err := model.ParseRate(word)
		if err != nil {
			return o, usagef("model: --link: %w", err)
		}
		o.Links = append(o.Links, rate)
	}
	return o, nil
}

// words splits a list at commas.
func words(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// modelLines is the analysis for people.
func modelLines(f *results.File, a *model.Analysis) []string {
	lines := []string{"Numbers: " + sourceWords(f), "Costs are of the forwarding core, per frame. Intervals are of 95%."}
	for i := range a.Series {
		lines = append(lines, seriesLines(&a.Series[i], a.Overhead)...)
	}
	if len(a.Remarks) > 0 {
		lines = append(lines, "", "Beside the paper's text. Its measurements stand; in these places they say something else than the text:")
		for _, r := range a.Remarks {
			lines = append(lines, bullet(fmt.Sprintf("%s: %s. The numbers: %s.", r.Where, r.Says, r.Data))...)
		}
	}
	for _, text := range a.LeftOut {
		lines = append(lines, "", "Left out: "+text)
	}
	return lines
}

func sourceWords(f *results.File) string {
	m := f.Meta.Machine
	text := fmt.Sprintf("%s on %s, Linux %s", f.Meta.Command, m.CPU, m.Kernel)
	if f.Meta.Source != "" {
		text = f.Meta.Source + "\n         (" + text + ")"
	}
	return text
}

func seriesLines(s *model.Series, overhead int) []string {
	lines := []string{"", "== " + s.Name}
	section := func(title string, t *table, rows ...[]string) {
		if len(rows) > 1 {
			lines = append(lines, "", title)
			lines = append(lines, indentLines(t.lines(rows...))...)
		}
	}
	section("What a frame of L bytes costs: C(L) = a + b*L", newTable("lrlrlrr"), fitRows(s)...)
	section(fmt.Sprintf("Which bound holds (equations 1 to 3; a frame takes %d bytes on the wire besides its own)", overhead), newTable("rlrrrrrlr"), boundRows(s)...)
	section(splitTitle(s), newTable("rlrr"), splitRows(s)...)
	lines = append(lines, "", "What the numbers say")
	for _, text := range s.Findings {
		lines = append(lines, bullet(text+".")...)
	}
	if len(s.Hypotheses) > 0 {
		lines = append(lines, "", "The paper's hypotheses")
	}
	for _, h := range s.Hypotheses {
		lines = append(lines, fmt.Sprintf("  %s, %s: %s. It says that %s.", h.Name, h.Engine, strings.ToUpper(string(h.Verdict)), h.Says))
		for _, text := range h.Evidence {
			lines = append(lines, "     "+text)
		}
	}
	section("Predicted by the lines (* outside of what was measured)", newTable("lrlrrlll"), predictionRows(s)...)
	section("From which size on the link is the bound", newTable("lrl"), crossoverRows(s)...)
	for _, text := range s.Notes {
		lines = append(lines, "", "Note: "+text)
	}
	return lines
}

func fitRows(s *model.Series) [][]string {
	rows := [][]string{{"PATH", "a (ns)", "95%", "b (ns/B)", "95%", "R²", "OFF THE LINE (ns)"}}
	for _, p := range s.Paths {
		l := p.Line
		rows = append(rows, []string{
			p.Engine, fmt.Sprintf("%.0f", l.A.Value), interval(l.A, 0), fmt.Sprintf("%.2f", l.B.Value), interval(l.B, 2),
			fmt.Sprintf("%.2f", l.R2), fmt.Sprintf("%.0f", l.Residual),
		})
	}
	for _, c := range s.Contrasts {
		rows = append(rows, []string{
			"bridge - " + c.Engine, fmt.Sprintf("%.0f", c.Fixed.Value), interval(c.Fixed, 0),
			fmt.Sprintf("%.2f", c.PerByte.Value), interval(c.PerByte, 2), "", fmt.Sprintf("%.0f", c.Line().Residual),
		})
	}
	return rows
}

func boundRows(s *model.Series) [][]string {
	rows := [][]string{{"BYTES", "PATH", "COST (ns)", "R_cpu", "R_link", "LINK USED", "HEADROOM", "BOUND", "OVER THE BRIDGE"}}
	for _, b := range s.Bounds {
		link, used, room, gain := "none", "", "", ""
		if b.Link != nil {
			link, used, room = grouped(int(*b.Link)), fmt.Sprintf("%.0f%%", 100**b.Used), fmt.Sprintf("%.2f", *b.Room)
		}
		if b.Gain != nil {
			gain = model.PercentGain(*b.Gain)
		}
		rows = append(rows, []string{
			fmt.Sprint(b.Size), b.Engine, fmt.Sprintf("%.0f", b.Cost.Value), grouped(int(b.Core.Value)), link, used, room, string(b.Regime), gain,
		})
	}
	return rows
}

func splitTitle(s *model.Series) string {
	if s.SharedMeasured {
		return "Shared cost (measured: receive and drop) and differential cost (equations 4 and 5)"
	}
	return "Shared cost (not measured: at most this) and differential cost (at least this; equations 4 and 5)"
}

func splitRows(s *model.Series) [][]string {
	rows := [][]string{{"BYTES", "PATH", "SHARED (ns)", "DIFFERENTIAL (ns)"}}
	for _, sp := range s.Split {
		for _, p := range sp.Parts {
			rows = append(rows, []string{fmt.Sprint(sp.Size), p.Engine, fmt.Sprintf("%.0f", sp.Shared.Value), fmt.Sprintf("%.0f", p.Diff.Value)})
		}
	}
	return rows
}

func predictionRows(s *model.Series) [][]string {
	rows := [][]string{{"PATH", "BYTES", "LINK", "FRAMES/S", "MBIT/S", "BOUND", "OVER THE BRIDGE", "95%"}}
	for _, p := range s.Predictions {
		size := fmt.Sprint(p.Size)
		if p.Outside {
			size = "*" + size
		}
		gain, around := "", ""
		if p.Engine != results.EngineBridge {
			gain = fmt.Sprintf("%+.1f%%", 100*p.Gain.Value)
			around = fmt.Sprintf("%+.1f%% to %+.1f%%", 100*p.Gain.Low, 100*p.Gain.High)
		}
		rows = append(rows, []string{
			p.Engine, size, linkWords(p.Link), grouped(int(p.Rate.Value)), grouped(int(p.Bits / 1e6)), string(p.Regime), gain, around,
		})
	}
	return rows
}

func crossoverRows(s *model.Series) [][]string {
	rows := [][]string{{"PATH", "LINK", "FRAMES OF"}}
	for _, c := range s.Crossovers {
		size := "never: the cost grows faster than the frame's time on the wire"
		switch {
		case c.Size != nil && *c.Size <= 60:
			size = "every size"
		case c.Size != nil:
			size = fmt.Sprintf("%.0f bytes and more", *c.Size)
			if *c.Size > 1518 {
				size += " (larger than frames are without jumbo frames)"
			}
		}
		rows = append(rows, []string{c.Engine, linkWords(c.Link), size})
	}
	return rows
}

func linkWords(link float64) string {
	if link <= 0 {
		return "none"
	}
	return model.Rate(link)
}

// interval writes the interval of an estimate.
func interval(e model.Estimate, digits int) string {
	if !e.HasInterval() {
		return ""
	}
	return fmt.Sprintf("%.*f to %.*f", digits, e.Low, digits, e.High)
}

func indentLines(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = "  " + l
	}
	return out
}

// bullet wraps a sentence below a dash.
func bullet(text string) []string {
	const width = 110
	var lines []string
	line := "  -"
	for _, word := range strings.Fields(text) {
		if len([]rune(line))+1+len([]rune(word)) > width {
			lines = append(lines, line)
			line = "   "
		}
		line += " " + word
	}
	return append(lines, line)
}
