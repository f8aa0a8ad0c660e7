// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/httpapi"
)

var eventKinds = []string{api.EventPort, api.EventStation, api.EventEngine, api.EventConfig, api.EventCalibrate}

func eventsCommand() *command {
	var kinds string
	return &command{
		name: "events", json: true,
		short: "Print what happens, line by line, until it is interrupted",
		long: "Ports that change state, stations that come, move and go, changes of engine,\n" +
			"configurations that are loaded or refused, and how far a calibration is. With --json each line is an object. If more\n" +
			"happens than is told (200 events of a kind at once, 50 a second), the next line says how\n" +
			"many were left out.",
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&kinds, "kind", "", "only these `KINDS`, separated by commas: "+strings.Join(eventKinds, ", "))
		},
		run: func(ctx context.Context, e *env, _ []string) error {
			var only []string
			if kinds != "" {
				only = strings.Split(kinds, ",")
			}
			for _, kind := range only {
				if !slices.Contains(eventKinds, kind) {
					return usagef("events: --kind %q: expected %s", kind, strings.Join(eventKinds, ", "))
				}
			}
			events, err := httpapi.NewClient(e.runDir).Events(ctx)
			if err != nil {
				return err
			}
			enc := json.NewEncoder(e.stdout)
			for event := range events {
				switch {
				case only != nil && !slices.Contains(only, event.Kind):
					continue
				case e.json:
					err = enc.Encode(event)
				default:
					err = printEvent(e, event)
				}
				if err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("%w any more", httpapi.ErrNotRunning)
		},
	}
}

func printEvent(e *env, event api.Event) error {
	missed := ""
	if event.Missed > 0 {
		missed = fmt.Sprintf(" (%d events before this one were left out)", event.Missed)
	}
	_, err := fmt.Fprintf(e.stdout, "%s %-8s %s%s\n", event.Time.Local().Format(time.DateTime), event.Kind,
		strings.ReplaceAll(event.Text, "\n", "; "), missed)
	return err
}
