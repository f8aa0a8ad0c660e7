// SPDX-License-Identifier: Apache-2.0

// Command vm runs the module's tests on the kernels that routers run: it
// builds them for aarch64, boots each kernel under QEMU, runs all of them
// inside, and ends with a table. README.md tells how to use it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/test/vm/kernels"
)

// errRed says that the run was carried out and is not green. What is wrong was
// printed by then.
var errRed = errors.New("the tests are not green on every kernel")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errRed):
		os.Exit(1)
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "vm: interrupted")
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "vm:", err)
		os.Exit(1)
	}
}

// config is what the command line says.
type config struct {
	kernels    []string
	packages   []string
	filter     string        // of tests, as for `go test -run`
	timeout    time.Duration // of one guest's tests
	bootLimit  time.Duration // until a guest is ready
	verbose    bool
	json       bool
	shell      bool
	noShared   bool
	noDownload bool
}

// parseFlags reads the command line.
func parseFlags(args []string, stderr io.Writer) (*config, error) {
	c := &config{bootLimit: 90 * time.Second}
	var names, packages string
	flags := flag.NewFlagSet("vm", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&names, "kernel", "", "run only these `kernels`, such as 5.10,6.1")
	flags.StringVar(&packages, "packages", "", "run the tests of these `packages` instead of the declared ones")
	flags.StringVar(&c.filter, "run", "", "run only tests that match this `regexp`")
	flags.DurationVar(&c.timeout, "timeout", 16*time.Minute, "limit of all tests in one guest")
	flags.BoolVar(&c.verbose, "verbose", false, "print the kernels' logs and each test's beginning too")
	flags.BoolVar(&c.json, "json", false, "print the results as JSON, everything else on standard error")
	flags.BoolVar(&c.shell, "shell", false, "boot one kernel (--kernel) with a shell on this terminal")
	flags.BoolVar(&c.noShared, "no-shared", false, "do not look for kernels in ../shared/kernels")
	flags.BoolVar(&c.noDownload, "no-download", false, "do not make kernels from Debian's packages")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if _, err := regexp.Compile(c.filter); err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	if c.timeout <= 0 {
		return nil, fmt.Errorf("--timeout: %v is no limit", c.timeout)
	}
	c.kernels = words(names)
	c.packages = words(packages)
	if c.shell && len(c.kernels) != 1 {
		return nil, errors.New("--shell boots one kernel: name it, for example --kernel 5.10")
	}
	return c, nil
}

// words divides a list at commas and spaces.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// run is the command: it boots guests until all is told, or the shell ended.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) error {
	c, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}
	r := &runner{config: c, out: newPrinter(stdout), stdin: stdin, stdout: stdout}
	if c.json {
		r.out = newPrinter(stderr)
	}
	if r.qemu, err = findQEMU(); err != nil {
		return err
	}
	if r.module, err = findModule(ctx); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "xdpl2-vm-"); err != nil {
		return fmt.Errorf("make working folder: %w", err)
	}
	defer os.RemoveAll(r.work)
	if c.shell {
		return r.runShell(ctx)
	}
	rep, err := r.runMatrix(ctx)
	if err != nil {
		return err
	}
	rep.print(r.out)
	if c.json {
		if err := rep.printJSON(stdout); err != nil {
			return err
		}
	}
	if !rep.green() {
		return errRed
	}
	return nil
}

// A runner is one call of the command.
type runner struct {
	*config
	out    *printer
	qemu   string
	module module
	work   string // a folder that goes away at the end

	stdin  io.Reader // for the shell
	stdout io.Writer
}

// source is where this run's kernels come from.
func (r *runner) source() (*kernels.Source, error) {
	s := &kernels.Source{Work: r.work}
	if !r.noShared {
		s.Shared = filepath.Join(r.module.root, "..", "shared", "kernels")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("find the kernels' cache: %w", err)
	}
	s.Cache = filepath.Join(cache, "xdpl2", "kernels")
	if !r.noDownload {
		s.Debian = &kernels.Debian{Log: r.out.progress}
	}
	return s, nil
}
