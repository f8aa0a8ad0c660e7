// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// demoOptions are the demo's options.
type demoOptions struct {
	daemon string
	shell  bool
	quick  bool
}

func demoCommand() *command {
	var o demoOptions
	return &command{
		name: "demo", json: true,
		short: "Show a bridge being accelerated, and measure how much",
		long: "It builds a router with a Linux bridge and three hosts in network namespaces, starts the\n" +
			"real daemon in it, sends traffic, and tells what became of the frames. Then it measures\n" +
			"what forwarding a frame costs through the bridge and through xdpl2. It needs root, ends\n" +
			"by itself within 30 s, and leaves nothing behind; nothing of the box itself is touched.",
		flags: func(fs *flag.FlagSet) {
			fs.StringVar(&o.daemon, "xdpl2", "", "`PATH` of the program xdpl2 (default: beside this one, else in PATH)")
			fs.BoolVar(&o.shell, "shell", false, "build the router, start the daemon, and open a shell in it")
			fs.BoolVar(&o.quick, "quick", false, "take a few seconds only; the numbers are rougher")
		},
		run: func(ctx context.Context, e *env, _ []string) error {
			if o.shell && (e.json || o.quick) {
				return usagef("demo: --shell goes with neither --json nor --quick")
			}
			return demo(ctx, e, o)
		},
	}
}

// plan says how long the demo's parts take.
type plan struct {
	traffic time.Duration // part 1
	compare time.Time     // when part 2 has to be through
	short   bool          // compare with the most important load only
}

// demoLimit is when the demo gives up; ending the daemon and taking down the
// networks may take up to 2 s after that.
const demoLimit = 28 * time.Second

func (o demoOptions) plan(start time.Time) plan {
	if o.quick {
		return plan{traffic: 2 * time.Second, compare: start.Add(10 * time.Second), short: true}
	}
	return plan{traffic: 5 * time.Second, compare: start.Add(25 * time.Second)}
}

// demo checks what is there and runs what can be run.
func demo(ctx context.Context, e *env, o demoOptions) error {
	start := time.Now()
	have := checkBox(o.daemon)
	if len(have.missing) > 0 {
		fmt.Fprintln(e.stderr, "The demo cannot run here:")
		for _, m := range have.missing {
			fmt.Fprintf(e.stderr, "  - %s\n", m)
		}
		return errQuiet
	}
	dir, err := os.MkdirTemp("", "xdpl2-demo-")
	if err != nil {
		return fmt.Errorf("make a directory: %w", err)
	}
	defer os.RemoveAll(dir)
	if o.shell {
		return demoShell(ctx, e, have, dir)
	}
	// SIGPIPE as well: whoever reads the output may go before the end.
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	defer stop()
	interrupted := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, errors.New("this machine is too busy: the demo ran out of time"))
	defer cancel()

	r := newReport(e)
	err = show(ctx, r, have, dir, o.plan(start))
	r.cleanUp(func() error { return os.RemoveAll(dir) })
	if interrupted.Err() != nil {
		return r.interrupted()
	}
	if err != nil {
		r.fail("%v", err)
	}
	r.result.Seconds = time.Since(start).Seconds()
	return r.finish()
}

// show runs both parts. What was shown but did not work is in the report; an
// error means that the demo could not go on.
func show(ctx context.Context, r *report, have *box, dir string, p plan) error {
	r.begin(have)
	if err := showTraffic(ctx, r, have, dir, p); err != nil {
		return err
	}
	if have.noCompare != "" {
		r.leaveOut(have.noCompare)
		return nil
	}
	return compare(ctx, r, have, dir, p)
}
