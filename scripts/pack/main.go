// SPDX-License-Identifier: Apache-2.0

// Command pack makes OpenWrt packages, feeds and releases of xdpl2 without
// OpenWrt's build system. `make packages`, `make feed` and `make release` call it.
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
	"strings"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/pack"
	"github.com/xdpl2/xdpl2/internal/pack/usign"
)

const usage = `usage: go run ./scripts/pack COMMAND [OPTION...]

  packages   build all packages into build/packages, and print their sizes
  feed       make signed feeds of the packages in build/feed
  release    all of it from what is committed, with checksums and an SBOM, in dist
  verify DIR check a feed: signature, index, sizes and checksums

COMMAND --help lists a command's options.
`

// options are what the command line says.
type options struct {
	root, out, keys, url, arch string
	tags, sizes, key           string
	release                    int
	stdout, stderr             io.Writer
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintf(os.Stderr, "pack: %v\n\n%s", err, usage)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("wrong usage")

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "--help" || args[0] == "-h" {
		fmt.Fprint(stdout, usage)
		return nil
	}
	command, ok := map[string]func(context.Context, *options, []string) error{
		"packages": packages, "feed": feed, "release": release, "verify": verify,
	}[args[0]]
	if !ok {
		return fmt.Errorf("%w: unknown command %q", errUsage, args[0])
	}
	o := &options{stdout: stdout, stderr: stderr}
	f := flag.NewFlagSet("pack "+args[0], flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.root, "root", ".", "the source `tree`")
	f.StringVar(&o.out, "out", "", "`folder` for the result (default: see the list of commands)")
	f.StringVar(&o.arch, "arch", "", "only these `architectures`, such as aarch64_generic,x86_64")
	f.StringVar(&o.tags, "tags", "nethttpomithttp2", "`tags` for go build")
	f.StringVar(&o.sizes, "sizes", "openwrt/last-release.sizes", "`file` with the sizes to compare with")
	f.StringVar(&o.keys, "keys", defaultKeys(), "`folder` of the signing keys, outside of the tree; missing ones are made")
	f.StringVar(&o.url, "url", "https://xdpl2.github.io/xdpl2", "`address` where the feed will be found")
	f.StringVar(&o.key, "key", "", "public key `file` (verify)")
	f.IntVar(&o.release, "release", 1, "`number` of the package of the same version")
	if err := f.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	return command(ctx, o, f.Args())
}

// defaultKeys is in the user's own configuration.
func defaultKeys() string {
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "xdpl2", "feed-keys")
}

func (o *options) noMore(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%w: unexpected argument %q", errUsage, args[0])
	}
	return nil
}

// outDir is where the result goes.
func (o *options) outDir(standard string) string {
	if o.out != "" {
		return o.out
	}
	return filepath.Join(o.root, standard)
}

// log prints progress.
func (o *options) log(format string, args ...any) {
	fmt.Fprintf(o.stderr, "%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func packages(ctx context.Context, o *options, args []string) error {
	if err := o.noMore(args); err != nil {
		return err
	}
	b, err := o.builder(ctx, o.root)
	if err != nil {
		return err
	}
	sizes, err := o.buildPackages(ctx, b, o.outDir(packagesDir))
	if err != nil {
		return err
	}
	return o.printSizes(sizes)
}

// builder is what makes packages of a tree.
func (o *options) builder(ctx context.Context, tree string) (*pack.Builder, error) {
	version, err := pack.ReadVersion(tree)
	if err != nil {
		return nil, err
	}
	epoch, err := pack.FindEpoch(ctx, o.root)
	if err != nil {
		return nil, err
	}
	return &pack.Builder{
		Root: tree, Work: filepath.Join(o.root, "build", "programs"), Release: o.release, Epoch: epoch,
		Tags: o.tags, LDFlags: "-s -w -X main.version=" + version, Log: o.log,
	}, nil
}

func (o *options) printSizes(sizes []pack.Size) error {
	before, err := pack.ReadSizes(filepath.Join(o.root, o.sizes))
	if err != nil {
		return err
	}
	table, err := pack.CompareSizes(sizes, before)
	fmt.Fprint(o.stdout, table)
	if err != nil {
		return fmt.Errorf("too large: %w", err)
	}
	return nil
}

func verify(_ context.Context, o *options, args []string) error {
	if len(args) != 1 || o.key == "" {
		return fmt.Errorf("%w: expected verify --key FILE DIR", errUsage)
	}
	text, err := os.ReadFile(o.key)
	if err != nil {
		return err
	}
	key, err := usign.ParsePublicKey(text)
	if err != nil {
		return fmt.Errorf("%s: %w", o.key, err)
	}
	if err := pack.CheckFeed(args[0], key); err != nil {
		return err
	}
	fmt.Fprintf(o.stdout, "%s: signed by %s, all packages are there and unchanged\n", args[0], key.Fingerprint)
	return nil
}

// archList are the architectures to build for.
func (o *options) archList() []string {
	return strings.FieldsFunc(o.arch, func(r rune) bool { return r == ',' || r == ' ' })
}
