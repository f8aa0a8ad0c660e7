// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/httpapi"
)

// sample is what the daemon told of its ports at one time.
type sample struct {
	at    time.Duration // since the beginning
	ports []port
}

// port is a port with what became of the frames that arrived there.
type port struct {
	Device     string             `json:"device"`
	State      string             `json:"state"`
	Reason     string             `json:"reason,omitempty"`
	Engine     string             `json:"engine"`
	Hook       string             `json:"hook"`
	Redirected uint64             `json:"redirected"`
	Passed     uint64             `json:"passed"`
	Verdicts   []api.VerdictCount `json:"verdicts"` // those that occurred
}

func (p *port) frames() uint64 { return p.Redirected + p.Passed }

// The verdicts for frames that did not go to the stack.
const (
	redirected = "redirected"
	reflected  = "reflected"
)

// ask takes a sample.
func ask(ctx context.Context, client *httpapi.Client, start time.Time) (*sample, error) {
	status, err := client.Status(ctx)
	if err != nil {
		return nil, err
	}
	counters, err := client.Counters(ctx, "")
	if err != nil {
		return nil, err
	}
	s := &sample{at: time.Since(start)}
	for _, p := range status.Ports {
		at := slices.IndexFunc(counters, func(c api.PortCounters) bool { return c.Device == p.Device })
		if at < 0 {
			return nil, fmt.Errorf("the daemon has no counters for %s", p.Device)
		}
		s.ports = append(s.ports, portOf(p, counters[at]))
	}
	return s, nil
}

func portOf(p api.PortStatus, c api.PortCounters) port {
	out := port{Device: p.Device, State: p.State, Reason: p.Reason, Engine: p.Engine, Hook: p.Hook}
	for _, v := range c.Verdicts {
		if v.Packets == 0 {
			continue
		}
		out.Verdicts = append(out.Verdicts, v)
		if v.Verdict == redirected || v.Verdict == reflected {
			out.Redirected += v.Packets
		} else {
			out.Passed += v.Packets
		}
	}
	return out
}

var liveHead = []string{"TIME", "PORT", "ENGINE", "REDIRECTED", "PASSED", "FRAMES/S", "SHARE", "PASSED BECAUSE"}

func liveTable() *table { return newTable("rllrrrrl") }

// liveRows are the rows of a sample; the rate is that since the last one, which
// is nil at the beginning.
func liveRows(last, now *sample) [][]string {
	var rows [][]string
	for _, p := range now.ports {
		var before uint64
		var since time.Duration
		if last != nil {
			since = last.at
			for _, q := range last.ports {
				if q.Device == p.Device {
					before = q.frames()
				}
			}
		}
		rows = append(rows, []string{
			fmt.Sprintf("%.0f s", now.at.Seconds()), p.Device, cmp.Or(p.Engine, "-"),
			grouped(p.Redirected), grouped(p.Passed), grouped(int(rate(before, p.frames(), now.at-since))),
			percent(p.Redirected, p.frames()), topReasons(p.Verdicts, 3),
		})
	}
	return rows
}

// rate is frames a second; 0 when a counter began anew.
func rate(before, now uint64, d time.Duration) float64 {
	if d <= 0 || now < before {
		return 0
	}
	return float64(now-before) / d.Seconds()
}

// topReasons names the most frequent reasons for passing.
func topReasons(verdicts []api.VerdictCount, most int) string {
	var passed []api.VerdictCount
	for _, v := range verdicts {
		if v.Verdict != redirected && v.Verdict != reflected {
			passed = append(passed, v)
		}
	}
	slices.SortStableFunc(passed, func(a, b api.VerdictCount) int { return cmp.Compare(b.Packets, a.Packets) })
	var parts []string
	for i, v := range passed {
		if i == most {
			parts = append(parts, "...")
			break
		}
		name := strings.ReplaceAll(strings.TrimPrefix(v.Verdict, "pass_"), "_", " ")
		parts = append(parts, fmt.Sprintf("%s %s", name, grouped(v.Packets)))
	}
	return strings.Join(parts, ", ")
}

// verdictLines is the final table: every port with all verdicts in words.
func verdictLines(ports []port) []string {
	rows := [][]string{{"PORT", "ENGINE", "VERDICT", "FRAMES", "WHAT IT MEANS"}}
	for _, p := range ports {
		device, engine := p.Device, cmp.Or(p.Engine, "-")
		if p.Hook != "" && p.Hook != p.Engine {
			engine += " (" + p.Hook + ")"
		}
		if p.State != api.Accelerating {
			rows = append(rows, []string{device, engine, strings.ReplaceAll(p.State, "_", " "), "", p.Reason})
			device, engine = "", ""
		}
		for _, v := range p.Verdicts {
			rows = append(rows, []string{device, engine, v.Verdict, grouped(v.Packets), v.Words})
			device, engine = "", ""
		}
	}
	return newTable("lllrl").lines(rows...)
}
