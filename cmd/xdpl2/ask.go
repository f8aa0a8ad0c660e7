// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/httpapi"
)

// The commands that ask the daemon.

const askTimeout = 15 * time.Second

func (e *env) client(ctx context.Context) (context.Context, context.CancelFunc, *httpapi.Client) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	return ctx, cancel, httpapi.NewClient(e.runDir)
}

func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func statusCommand() *command {
	return &command{
		name: "status", json: true,
		short: "Tell whether it is on, how much it carries, and what is not accelerated and why",
		run: func(ctx context.Context, e *env, _ []string) error {
			ctx, cancel, client := e.client(ctx)
			defer cancel()
			s, err := client.Status(ctx)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(s)
			}
			printStatus(e, s)
			return nil
		},
	}
}

// printHeadline says in two lines how things are.
func printHeadline(w io.Writer, s *api.Status) {
	on := 0
	for _, p := range s.Ports {
		if p.State == api.Accelerating {
			on++
		}
	}
	headline := fmt.Sprintf("accelerating %d of %d ports", on, len(s.Ports))
	switch {
	case !s.Enabled:
		headline = "switched off"
	case s.Accelerated >= 0:
		headline += fmt.Sprintf(", %.1f%% of frames", 100*s.Accelerated)
	}
	fmt.Fprintf(w, "xdpl2 %s: %s\n", s.Version, headline)
	topology := s.Topology
	if s.OwnBridge != "" {
		topology += " (into " + s.OwnBridge + ")"
	}
	fmt.Fprintf(w, "mode %s, topology %s, bridge %s, %d of %d stations, up %s, Linux %s\n",
		s.Mode, topology, s.Bridge, s.Stations, s.MaxStations, time.Duration(s.Uptime*float64(time.Second)).Round(time.Second), s.Kernel)
}

func printStatus(e *env, s *api.Status) {
	printHeadline(e.stdout, s)
	if s.Overflow > 0 {
		fmt.Fprintf(e.stdout, "%d stations did not fit (option max_stations): the bridge carries them\n", s.Overflow)
	}
	for _, p := range s.ConfigErrors {
		fmt.Fprintf(e.stdout, "CONFIGURATION ERROR, the last good one is in force: %s\n", p.Text)
	}
	for _, p := range s.ConfigWarnings {
		fmt.Fprintf(e.stdout, "configuration warning: %s\n", p.Text)
	}
	if s.Calibration != nil {
		fmt.Fprintln(e.stdout, calibrationWords(s.Calibration))
	}
	if c := s.Calibrating; c != nil {
		fmt.Fprintf(e.stdout, "calibrating: %s (turn %d of %d)\n", c.Text, c.Done, c.Of)
	}
	for _, f := range s.Filters {
		ports := strings.Join(f.Ports, ", ")
		switch {
		case f.Bypassed:
			fmt.Fprintf(e.stdout, "FILTER BYPASSED (option bypass_filters): %s; frames of %s are accelerated past it\n", f.Text, ports)
		case f.Place == api.FilterLeaving:
			fmt.Fprintf(e.stdout, "filter: %s; frames to %s go through the bridge where it would not see them else\n", f.Text, ports)
		}
	}
	if len(s.Ports) == 0 {
		return
	}
	fmt.Fprintln(e.stdout)
	t := table{{"PORT", "STATE", "ENGINE", "HOOK", "REASON"}}
	for _, p := range s.Ports {
		t = append(t, []string{p.Device, strings.ReplaceAll(p.State, "_", " "), p.Engine, p.Hook, p.Reason})
	}
	t.print(e.stdout)
}

func portsCommand() *command {
	return &command{
		name: "ports", json: true,
		short: "List the ports: device, driver, link, engine, frames",
		run: func(ctx context.Context, e *env, _ []string) error {
			ctx, cancel, client := e.client(ctx)
			defer cancel()
			ports, err := client.Ports(ctx)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(api.PortList{Ports: ports})
			}
			t := table{{"PORT", "IFINDEX", "DRIVER", "LINK", "MASTER", "STP", "MTU", "SHAPER", "ENGINE", "TARGET", "STATIONS", "REDIRECTED", "PASSED"}}
			for _, p := range ports {
				t = append(t, []string{p.Device, number(p.Ifindex), p.Driver, linkWords(p.Ifindex != 0, &p.PortStatus), p.Master, p.STP, number(p.MTU), p.Shaper, p.Engine,
					p.Target, fmt.Sprint(p.Stations), fmt.Sprint(p.Redirected.Packets), fmt.Sprint(p.Passed.Packets)})
			}
			t.print(e.stdout)
			return nil
		},
	}
}

func linkWords(present bool, p *api.PortStatus) string {
	switch {
	case !present:
		return "absent"
	case !p.Up:
		return "down"
	case !p.Carrier:
		return "no carrier"
	case p.Speed > 0:
		return fmt.Sprintf("%d Mbit/s", p.Speed)
	}
	return "up"
}

func number(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func stationsCommand() *command {
	q := api.StationQuery{VLAN: -1}
	return &command{
		name: "stations", json: true,
		short: "List the stations that the fast path knows",
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&q.Port, "port", "", "only those behind this `DEVICE`")
			fs.StringVar(&q.Search, "search", "", "only those with `TEXT` in their address or their port's name")
			fs.IntVar(&q.VLAN, "vlan", -1, "only those in this `VLAN`; 0: outside of any")
			fs.IntVar(&q.Limit, "limit", 0, "at most `N` of them")
			fs.IntVar(&q.Offset, "offset", 0, "leave out `N` at the beginning")
		},
		run: func(ctx context.Context, e *env, _ []string) error {
			if q.Limit < 0 || q.Offset < 0 || q.VLAN < -1 || q.VLAN > 4094 {
				return usagef("stations: --limit and --offset are numbers from 0 on, --vlan from 0 to 4094")
			}
			ctx, cancel, client := e.client(ctx)
			defer cancel()
			list, err := client.Stations(ctx, q)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(list)
			}
			t := table{{"STATION", "VLAN", "PORT", "SOURCE", "SEEN"}}
			for _, s := range list.Stations {
				t = append(t, []string{s.MAC, number(s.VLAN), s.Port, s.Source, seenWords(s)})
			}
			t.print(e.stdout)
			if len(list.Stations) < list.Total {
				fmt.Fprintf(e.stdout, "%d of %d\n", len(list.Stations), list.Total)
			}
			return nil
		},
	}
}

func seenWords(s api.Station) string {
	switch {
	case s.Source == "local": // the box does not send through its ports' programs
		return ""
	case s.Seen < 0:
		return "not yet"
	}
	return fmt.Sprintf("%.0f s ago", s.Seen)
}

func countersCommand() *command {
	var port string
	return &command{
		name: "counters", json: true,
		short: "Tell what became of the frames, with reasons",
		flags: func(fs *flag.FlagSet) { fs.StringVar(&port, "port", "", "only of this `DEVICE`") },
		run: func(ctx context.Context, e *env, _ []string) error {
			ctx, cancel, client := e.client(ctx)
			defer cancel()
			all, err := client.Counters(ctx, port)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(api.CounterList{Counters: all})
			}
			for i, p := range all {
				if i > 0 {
					fmt.Fprintln(e.stdout)
				}
				fmt.Fprintf(e.stdout, "%s, since %s\n", p.Device, p.Since.Format(time.DateTime))
				t := table{{"VERDICT", "FRAMES", "BYTES", "WHAT IT MEANS"}}
				for _, v := range p.Verdicts {
					if v.Packets > 0 {
						t = append(t, []string{v.Verdict, fmt.Sprint(v.Packets), fmt.Sprint(v.Bytes), v.Words})
					}
				}
				if len(t) == 1 {
					fmt.Fprintln(e.stdout, "no frames")
					continue
				}
				t.print(e.stdout)
			}
			return nil
		},
	}
}

func reloadCommand() *command {
	return &command{
		name: "reload", json: true,
		short: "Have the daemon read the configuration again, staged changes included",
		run: func(ctx context.Context, e *env, _ []string) error {
			ctx, cancel, client := e.client(ctx)
			defer cancel()
			result, err := client.Reload(ctx)
			if err != nil {
				return err
			}
			if e.json {
				return e.printJSON(result)
			}
			for _, w := range result.Warnings {
				fmt.Fprintf(e.stdout, "warning: %s\n", w.Text)
			}
			if result.Changed {
				fmt.Fprintln(e.stdout, "reloaded")
			} else {
				fmt.Fprintln(e.stdout, "reloaded, nothing has changed")
			}
			return nil
		},
	}
}

func versionCommand() *command {
	return &command{
		name: "version", json: true,
		short: "Print the version",
		run: func(_ context.Context, e *env, _ []string) error {
			if e.json {
				return e.printJSON(map[string]string{"version": version})
			}
			_, err := fmt.Fprintf(e.stdout, "xdpl2 %s\n", version)
			return err
		},
	}
}

// table is printed in columns as wide as they need to be; empty columns are
// left out.
type table [][]string

func (t table) print(w interface{ Write([]byte) (int, error) }) {
	width := make([]int, len(t[0]))
	for i, row := range t {
		for col, cell := range row {
			if i > 0 && cell != "" {
				width[col] = max(width[col], len([]rune(cell)), len(t[0][col]))
			}
		}
	}
	for _, row := range t {
		var line strings.Builder
		for col, cell := range row {
			if width[col] > 0 {
				line.WriteString(cell + strings.Repeat(" ", width[col]-len([]rune(cell))+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}
