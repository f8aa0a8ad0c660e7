// SPDX-License-Identifier: Apache-2.0

// Command xdpl2 is the daemon that accelerates a bridge, and the command line
// that asks it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/xdpl2/xdpl2/internal/calibrate"
	"github.com/xdpl2/xdpl2/internal/httpapi"
)

//go:generate go test -run TestDocumentsAreCurrent -update .

// version is set by the linker from the file VERSION.
var version = "0.0.0-dev"

// Exit codes; part of the interface.
const (
	exitFine       = 0
	exitFailed     = 1
	exitUsage      = 2
	exitNotRunning = 3
)

// env is what a subcommand gets from the outside.
type env struct {
	stdout, stderr io.Writer

	configDir, saveDir, runDir string
	ubusSocket, dbusAddress    string
	calibration                string
	json                       bool
}

// command is one subcommand.
type command struct {
	name, args, short string
	long              string
	flags             func(*flag.FlagSet) // its own, beside the shared ones
	json              bool                // takes --json
	run               func(context.Context, *env, []string) error
}

func commands() []*command {
	return []*command{
		daemonCommand(), statusCommand(), portsCommand(), stationsCommand(), countersCommand(),
		explainCommand(), topCommand(), eventsCommand(), captureCommand(), calibrateCommand(), reloadCommand(), checkCommand(), cleanupCommand(), versionCommand(),
	}
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errQuiet ends with exitFailed after everything has been said.
var errQuiet = errors.New("")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	e := &env{stdout: stdout, stderr: stderr}
	err := dispatch(ctx, e, args)
	var usage usageError
	switch {
	case err == nil:
		return exitFine
	case errors.Is(err, flag.ErrHelp):
		return exitFine
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "xdpl2: %v\nTry: xdpl2 help\n", err)
		return exitUsage
	case errors.Is(err, httpapi.ErrNotRunning):
		fmt.Fprintf(stderr, "xdpl2: %v\nStart it with: /etc/init.d/xdpl2 start (or: xdpl2 daemon)\n", err)
		return exitNotRunning
	case errors.Is(err, errQuiet):
		return exitFailed
	default:
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(stderr, "xdpl2: %s\n", line)
		}
		return exitFailed
	}
}

func dispatch(ctx context.Context, e *env, args []string) error {
	shared := flag.NewFlagSet("xdpl2", flag.ContinueOnError)
	shared.SetOutput(io.Discard)
	sharedFlags(shared, e)
	if err := shared.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			help(e.stdout)
			return err
		}
		return usageError{err}
	}
	args = shared.Args()
	if len(args) == 0 {
		help(e.stderr)
		return usagef("a command is missing")
	}
	name := args[0]
	if name == "help" {
		if len(args) > 1 {
			return dispatch(ctx, e, []string{args[1], "--help"})
		}
		help(e.stdout)
		return nil
	}
	if name == workerName {
		return runWorker(ctx, e, args[1:])
	}
	for _, c := range commands() {
		if c.name == name {
			return c.start(ctx, e, args[1:])
		}
	}
	return usagef("unknown command %q", name)
}

// flagSet is all options that the command takes.
func (c *command) flagSet(e *env) *flag.FlagSet {
	fs := flag.NewFlagSet("xdpl2 "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	sharedFlags(fs, e)
	if c.json {
		fs.BoolVar(&e.json, "json", false, "print JSON for programs")
	}
	if c.flags != nil {
		c.flags(fs)
	}
	return fs
}

func (c *command) start(ctx context.Context, e *env, args []string) error {
	fs := c.flagSet(e)
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			c.help(e.stdout, fs)
			return err
		}
		return usageError{fmt.Errorf("%s: %w", c.name, err)}
	}
	if c.args == "" && fs.NArg() > 0 {
		return usagef("%s: unexpected argument %q", c.name, fs.Arg(0))
	}
	return c.run(ctx, e, fs.Args())
}

// sharedFlags may stand before the command or after it.
func sharedFlags(fs *flag.FlagSet, e *env) {
	either := func(p *string, name, standard, usage string) {
		if *p != "" {
			standard = *p
		}
		fs.StringVar(p, name, standard, usage)
	}
	either(&e.configDir, "config-dir", "/etc/config", "`DIR` of the UCI file xdpl2")
	either(&e.saveDir, "save-dir", "/tmp/.uci", "`DIR` of staged UCI changes")
	either(&e.runDir, "run-dir", "/var/run/xdpl2", "`DIR` of the control socket and the lock")
	either(&e.ubusSocket, "ubus-socket", "/var/run/ubus/ubus.sock", "`SOCKET` of ubusd")
	either(&e.calibration, "calibration-file", calibrate.DefaultFile, "`FILE` of the last calibration")
	either(&e.dbusAddress, "dbus-address", "", "`ADDRESS` of the D-Bus bus; empty: the system bus")
}

func help(w io.Writer) {
	fmt.Fprint(w, "xdpl2 makes a box forward Layer-2 traffic faster than the Linux bridge.\n\nUsage: xdpl2 COMMAND [OPTION]...\n\n")
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-10s %s\n", c.name, c.short)
	}
	fmt.Fprint(w, `
To begin, name the ports of the bridge that are to be accelerated, and switch it on:

  uci add xdpl2 port; uci set xdpl2.@port[-1].device=eth1    (and so on, a section a port)
  uci set xdpl2.main.enabled=1; uci commit xdpl2
  xdpl2 check                                                says all that is wrong, if anything
  /etc/init.d/xdpl2 enable; /etc/init.d/xdpl2 start
  xdpl2 status                                               what is accelerated, and why the rest is not

xdpl2 COMMAND --help tells the options. Exit codes: 0 fine, 1 failed, 2 usage,
3 the daemon is not running.
`)
}

func (c *command) help(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprintf(w, "Usage: xdpl2 %s [OPTION]... %s\n\n%s.\n", c.name, c.args, c.short)
	if c.long != "" {
		fmt.Fprintf(w, "\n%s\n", c.long)
	}
	fmt.Fprint(w, "\nOptions:\n")
	fs.VisitAll(func(f *flag.Flag) {
		name, usage := flag.UnquoteUsage(f)
		left := strings.TrimSpace("--" + f.Name + " " + name)
		if d := defaultOf(f); d != "" {
			usage += " (default " + d + ")"
		}
		fmt.Fprintf(w, "  %-24s %s\n", left, usage)
	})
}

// defaultOf is an option's default if it means anything to people.
func defaultOf(f *flag.Flag) string {
	switch f.DefValue {
	case "false", "0", "-1":
		return ""
	}
	return f.DefValue
}
