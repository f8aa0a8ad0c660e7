// SPDX-License-Identifier: Apache-2.0

// Command xdpl2-bench is the laboratory beside xdpl2: it shows and measures
// what the program on the router does, in networks of its own making.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// version is set by the linker from the file VERSION.
var version = "0.0.0-dev"

// Exit codes; part of the interface.
const (
	exitFine   = 0
	exitFailed = 1
	exitUsage  = 2
)

// env is what a subcommand gets from the outside.
type env struct {
	stdin          io.Reader
	stdout, stderr io.Writer

	json bool
}

func (e *env) printJSON(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// command is one subcommand.
type command struct {
	name, args, short string
	long              string
	flags             func(*flag.FlagSet)
	json              bool // takes --json
	hidden            bool // not for people
	mixed             bool // options may follow arguments
	run               func(context.Context, *env, []string) error
}

func commands() []*command {
	return []*command{demoCommand(), budgetsCommand(), gateCommand(), callsCommand(), modelCommand(), reportCommand(), versionCommand(), insideCommand()}
}

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// errQuiet ends with exitFailed after everything has been said.
var errQuiet = errors.New("")

func main() {
	os.Exit(run(context.Background(), os.Args[1:], &env{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}))
}

// run is main without the process. Which signals end a subcommand is its own
// business.
func run(ctx context.Context, args []string, e *env) int {
	err := dispatch(ctx, e, args)
	var usage usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitFine
	case errors.As(err, &usage):
		fmt.Fprintf(e.stderr, "xdpl2-bench: %v\nTry: xdpl2-bench help\n", err)
		return exitUsage
	case errors.Is(err, errQuiet):
		return exitFailed
	default:
		for line := range strings.SplitSeq(err.Error(), "\n") {
			fmt.Fprintf(e.stderr, "xdpl2-bench: %s\n", line)
		}
		return exitFailed
	}
}

func dispatch(ctx context.Context, e *env, args []string) error {
	if len(args) == 0 {
		help(e.stderr)
		return usagef("a command is missing")
	}
	name := args[0]
	switch {
	case name == "help" && len(args) > 1:
		return dispatch(ctx, e, []string{args[1], "--help"})
	case name == "help", name == "-h", name == "-help", name == "--help":
		help(e.stdout)
		return nil
	}
	for _, c := range commands() {
		if c.name == name {
			return c.start(ctx, e, args[1:])
		}
	}
	return usagef("unknown command %q", name)
}

func (c *command) start(ctx context.Context, e *env, args []string) error {
	fs := flag.NewFlagSet("xdpl2-bench "+c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	if c.json {
		fs.BoolVar(&e.json, "json", false, "print JSON for programs")
	}
	if c.flags != nil {
		c.flags(fs)
	}
	rest, err := c.parse(fs, args)
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			c.help(e.stdout, fs)
			return err
		}
		return usageError{fmt.Errorf("%s: %w", c.name, err)}
	}
	if c.args == "" && len(rest) > 0 {
		return usagef("%s: unexpected argument %q", c.name, rest[0])
	}
	return c.run(ctx, e, rest)
}

// parse reads options and returns the arguments. Package flag ends at the
// first argument; where options may follow, it is begun again behind it.
func (c *command) parse(fs *flag.FlagSet, args []string) (rest []string, err error) {
	for {
		if err := fs.Parse(args); err != nil {
			return nil, err
		}
		parsed := len(args) - fs.NArg()
		ended := parsed > 0 && args[parsed-1] == "--"
		if args = fs.Args(); len(args) == 0 || ended || !c.mixed {
			return append(rest, args...), nil
		}
		rest, args = append(rest, args[0]), args[1:]
	}
}

func help(w io.Writer) {
	fmt.Fprint(w, "xdpl2-bench shows and measures what xdpl2 does, in networks of its own making.\n\n"+
		"Usage: xdpl2-bench COMMAND [OPTION]...\n\n")
	for _, c := range commands() {
		if !c.hidden {
			fmt.Fprintf(w, "  %-10s %s\n", c.name, c.short)
		}
	}
	fmt.Fprint(w, "\nxdpl2-bench COMMAND --help tells the options. Exit codes: 0 fine, 1 failed, 2 usage.\n")
}

func (c *command) help(w io.Writer, fs *flag.FlagSet) {
	fmt.Fprintf(w, "Usage: %s\n\n%s.\n", strings.TrimSpace("xdpl2-bench "+c.name+" [OPTION]... "+c.args), c.short)
	if c.long != "" {
		fmt.Fprintf(w, "\n%s\n", c.long)
	}
	options := false
	fs.VisitAll(func(f *flag.Flag) {
		if !options {
			fmt.Fprint(w, "\nOptions:\n")
			options = true
		}
		name, usage := flag.UnquoteUsage(f)
		fmt.Fprintf(w, "  %-18s %s\n", strings.TrimSpace("--"+f.Name+" "+name), usage)
	})
}
