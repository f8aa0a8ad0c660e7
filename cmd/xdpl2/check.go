// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"time"

	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/control"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// The commands that need no daemon.

func checkCommand() *command {
	var ignoreAbsent bool
	return &command{
		name: "check", json: true,
		short: "Check the configuration, staged changes included, and say all that is wrong",
		long:  "Devices that the box does not have are errors here; the daemon waits for them.",
		flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&ignoreAbsent, "ignore-absent", false, "say nothing of devices that the box does not have")
		},
		run: func(_ context.Context, e *env, _ []string) error {
			cfg, problems := config.Load(e.configDir, e.saveDir)
			if cfg != nil && !ignoreAbsent {
				problems = append(problems, cfg.CheckDevices(func(name string) bool {
					_, err := net.InterfaceByName(name)
					return err == nil
				})...)
			}
			errs := len(problems.Errors())
			if e.json {
				if problems == nil {
					problems = config.Problems{}
				}
				if err := e.printJSON(map[string]any{"ok": errs == 0, "problems": problems}); err != nil {
					return err
				}
			} else {
				for _, p := range problems {
					fmt.Fprintf(e.stderr, "%s: %s\n", p.Severity, p.Error())
				}
				if errs == 0 {
					fmt.Fprintf(e.stdout, "%s is fine: %d ports, %d static stations, %s\n", cfg.File, len(cfg.Ports), len(cfg.Stations), onOff(cfg.Main.Enabled))
				}
			}
			if errs > 0 {
				return errQuiet
			}
			return nil
		},
	}
}

func onOff(on bool) string {
	if on {
		return "switched on"
	}
	return "switched off (option enabled of section main)"
}

func cleanupCommand() *command {
	var wait float64
	return &command{
		name:  "cleanup",
		short: "Undo what a daemon left that was killed (ports out of their bridge, device features, tc filters before Linux 6.6)",
		long:  "The daemon does the same when it starts. It must not be running.",
		flags: func(fs *flag.FlagSet) {
			fs.Float64Var(&wait, "wait", 0, "wait up to so many `SECONDS` for a daemon to end")
		},
		run: func(ctx context.Context, e *env, _ []string) error {
			unlock, err := lockRunDir(e.runDir)
			for deadline := time.Now().Add(time.Duration(wait * float64(time.Second))); err != nil && time.Now().Before(deadline); unlock, err = lockRunDir(e.runDir) {
				select { // nobody tells when a process of others ends
				case <-time.After(50 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			if err != nil {
				return err
			}
			defer unlock()
			devices, err := datapath.Cleanup()
			for _, d := range devices {
				fmt.Fprintf(e.stdout, "removed a filter from %s\n", d)
			}
			restored, rerr := control.Cleanup(e.runDir)
			for _, d := range restored {
				fmt.Fprintf(e.stdout, "restored %s\n", d)
			}
			err = errors.Join(err, rerr)
			if err == nil && len(devices)+len(restored) == 0 {
				fmt.Fprintln(e.stdout, "nothing was left")
			}
			return err
		},
	}
}
