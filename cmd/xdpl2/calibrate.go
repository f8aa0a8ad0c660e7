// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/calibrate"
	"github.com/xdpl2/xdpl2/internal/httpapi"
)

func calibrateCommand() *command {
	var seconds int
	var last bool
	return &command{
		name: "calibrate", json: true,
		short: "Measure what forwarding costs on this box: by the bridge, and by the engines generic and tc",
		long: "Between virtual devices in network namespaces of its own: no port and no traffic of the box\n" +
			"is touched, but one or two cores are busy meanwhile. Each engine forwards the same frames as\n" +
			"the bridge in the same turn, and its ratio is the median over the turns with the range that\n" +
			"is 95% certain; the bridge against itself (NOISE) shows what the box makes of no difference.\n" +
			"The table is kept, 'xdpl2 status' names it, and engine auto may follow it. Without a daemon\n" +
			"it is measured all the same, as root. An interrupt ends it and leaves nothing behind.",
		flags: func(fs *flag.FlagSet) {
			fs.IntVar(&seconds, "seconds", api.DefaultCalibrationSeconds, fmt.Sprintf("measure for about `N` seconds, at most %d", api.MaxCalibrationSeconds))
			fs.BoolVar(&last, "last", false, "print the table of the last time, without measuring")
		},
		run: func(ctx context.Context, e *env, _ []string) error {
			if seconds < 0 || seconds > api.MaxCalibrationSeconds {
				return usagef("calibrate: --seconds %d: expected a number from 1 to %d", seconds, api.MaxCalibrationSeconds)
			}
			if last {
				seconds = 0
			}
			return e.calibrate(ctx, seconds)
		},
	}
}

func (e *env) calibrate(ctx context.Context, seconds int) error {
	bar := newBar(e.stderr, time.Duration(seconds)*time.Second)
	table, err := e.askCalibration(ctx, seconds, bar.show)
	if errors.Is(err, httpapi.ErrNotRunning) {
		table, err = e.calibrateHere(ctx, seconds, bar.show)
	}
	bar.close()
	switch {
	case ctx.Err() != nil && seconds > 0:
		return errors.New("calibrate: interrupted; the table of the last time stays")
	case errors.Is(err, api.ErrNoData):
		return fmt.Errorf("%w: xdpl2 calibrate does it", err)
	case err != nil:
		return err
	}
	if e.json {
		err = e.printJSON(table)
	} else {
		printCalibration(e, table)
	}
	if err == nil && len(table.Rows) == 0 {
		return errQuiet
	}
	return err
}

// askCalibration has the daemon measure, and follows its events.
func (e *env) askCalibration(ctx context.Context, seconds int, progress func(api.CalibrationProgress)) (*api.Calibration, error) {
	client := httpapi.NewClient(e.runDir)
	if seconds == 0 {
		return client.Calibrate(ctx, 0)
	}
	following, cancel := context.WithCancel(ctx)
	events, err := client.Events(following)
	if err != nil {
		cancel()
		return nil, err
	}
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		for event := range events {
			if event.Kind == api.EventCalibrate && event.State == "running" {
				progress(api.CalibrationProgress{Done: event.Done, Of: event.Of, Text: strings.TrimPrefix(event.Text, "calibration: ")})
			}
		}
	}()
	table, err := client.Calibrate(ctx, seconds)
	cancel()
	<-followed
	if errors.Is(err, httpapi.ErrNotRunning) { // it has ended meanwhile
		err = errors.New("calibrate: the daemon has ended")
	}
	return table, err
}

// calibrateHere measures in this process, where no daemon runs.
func (e *env) calibrateHere(ctx context.Context, seconds int, progress func(api.CalibrationProgress)) (*api.Calibration, error) {
	if seconds == 0 {
		return calibrate.Load(e.calibration)
	}
	if os.Geteuid() != 0 {
		return nil, errors.New("calibrate: no daemon is running, and without one measuring needs root: it makes network namespaces")
	}
	table, err := calibrate.Run(ctx, calibrate.Options{Budget: time.Duration(seconds) * time.Second, Progress: progress})
	if err == nil && len(table.Rows) > 0 {
		err = calibrate.Store(e.calibration, table)
	}
	return table, err
}

// workerName is the command that the daemon starts to have measured. It is not
// for people: it ends when its standard input does.
const workerName = "calibrate-worker"

func calibrationWorker(seconds int) *exec.Cmd {
	return exec.Command("/proc/self/exe", workerName, strconv.Itoa(seconds))
}

func runWorker(ctx context.Context, e *env, args []string) error {
	if len(args) != 1 {
		return usagef("%s: it is for the daemon to start", workerName)
	}
	seconds, err := strconv.Atoi(args[0])
	if err != nil || seconds < 1 || seconds > api.MaxCalibrationSeconds {
		return usagef("%s: it is for the daemon to start", workerName)
	}
	return calibrate.Work(ctx, os.Stdin, e.stdout, time.Duration(seconds)*time.Second)
}

// printCalibration prints a row for each kind of work, a column for each way to
// forward.
func printCalibration(e *env, c *api.Calibration) {
	fmt.Fprintf(e.stdout, "Measured %s, Linux %s, %s\n", c.Time.Local().Format(time.DateTime), c.Kernel, c.Machine)
	if why := calibrate.Stale(c); why != "" {
		fmt.Fprintf(e.stdout, "It does not speak for this box any more: %s\n", why)
	}
	if len(c.Rows) > 0 {
		fmt.Fprint(e.stdout, "\nTimes the bridge [95% certain]:\n\n")
		t := table{{"WORK", "BYTES", "BRIDGE", "TIME A FRAME", "NOISE", "GENERIC", "TC"}}
		columns := map[string]int{"bridge": 4, "generic": 5, "tc": 6}
		for _, r := range c.Rows {
			size := number(r.Size)
			at := slices.IndexFunc(t, func(row []string) bool { return row[0] == r.Work && row[1] == size })
			if at < 0 {
				at = len(t)
				t = append(t, []string{r.Work, size, "", "", "", "", ""})
			}
			if col := columns[r.Engine]; col > 0 {
				t[at][col] = fmt.Sprintf("%.2f [%.2f, %.2f]", r.Ratio, r.Low, r.High)
			}
			if r.Engine == "bridge" {
				t[at][2] = rateWords(r)
				if r.Nanos > 0 {
					t[at][3] = fmt.Sprintf("%.0f ns", r.Nanos)
				}
			}
		}
		t.print(e.stdout)
	}
	if len(c.Missing) > 0 {
		fmt.Fprint(e.stdout, "\nNot measured, or not as it should be:\n")
		for _, m := range c.Missing {
			fmt.Fprintf(e.stdout, "  - %s\n", m)
		}
	}
}

func rateWords(r api.CalibrationRow) string {
	if r.Work == "tcp" {
		return fmt.Sprintf("%.2f Gbit/s", r.Rate/1e9)
	}
	return fmt.Sprintf("%.3f Mframes/s", r.Rate/1e6)
}

// calibrationWords says in a line for status what was measured last.
func calibrationWords(n *api.CalibrationNote) string {
	text := fmt.Sprintf("calibrated %s, Linux %s", n.Time.Local().Format(time.DateTime), n.Kernel)
	if n.Stale != "" {
		text += "; " + n.Stale + ": measure again (xdpl2 calibrate)"
	}
	return text
}
