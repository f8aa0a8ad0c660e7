// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/test/vm/guest"
	"github.com/xdpl2/xdpl2/test/vm/testlog"
)

// errCut says that a guest was ended at a limit.
var errCut = errors.New("cut at the limit")

// runGuest boots a kernel and fills in its result.
func (r *runner) runGuest(ctx context.Context, result *kernelResult, fs *initramfs) {
	began := time.Now()
	archive := filepath.Join(r.work, result.Kernel+".cpio")
	defer os.Remove(archive)
	if err := fs.write(archive); err != nil {
		result.problem("%v", err)
		return
	}
	cpus := settingOf(result.Kernel).cpus
	m := machine{bundle: fs.bundle, initramfs: archive, cpus: cpus}
	r.out.progress("%s: booting (%d CPU, %d MiB)", result.Kernel, cpus, guestMemory)
	g := &guestRun{runner: r, result: result, began: began}
	if err := g.boot(ctx, m); err != nil && ctx.Err() == nil {
		result.problem("%v", err)
	}
	if ctx.Err() != nil {
		return
	}
	g.conclude()
	result.Seconds = time.Since(began).Seconds()
	r.out.progress("%s: %s after %.1f s", result.Kernel, result.verdict(), result.Seconds)
}

// A guestRun follows one guest from its boot to its end.
type guestRun struct {
	*runner
	result *kernelResult
	began  time.Time
	tail   tail
	parser *testlog.Parser // of the package that runs
	listed strings.Builder // its tests' names
	pkg    *packageResult  // the package that runs
	pkgAt  time.Time
	done   bool            // the exit line was seen
	seen   map[string]bool // kernel messages, which a panic prints once more
}

// boot runs QEMU until the guest has switched itself off or is cut.
func (g *guestRun) boot(ctx context.Context, m machine) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := func(d time.Duration, what string) *time.Timer {
		return time.AfterFunc(d, func() {
			cancel(fmt.Errorf("hang: %s %w of %v", what, errCut, d))
		})
	}
	timer := limit(g.bootLimit, "the boot was")
	defer func() { timer.Stop() }()

	cmd := m.command(ctx, g.qemu)
	if g.verbose {
		g.out.progress("%s: %s", g.result.Kernel, strings.Join(cmd.Args, " "))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	console, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start QEMU: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start QEMU: %w", err)
	}
	reader := guest.NewReader(console)
	for {
		f, err := reader.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				g.result.problem("read the console: %v", err)
			}
			break
		}
		if f.Kind == guest.Ready {
			timer.Stop()
			timer = limit(g.timeout, "the tests were")
		}
		g.take(f)
	}
	err = cmd.Wait()
	if state := cmd.ProcessState; state != nil {
		g.result.CPUSeconds = (state.UserTime() + state.SystemTime()).Seconds()
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if err != nil {
		return fmt.Errorf("QEMU: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// take takes one frame of the guest.
func (g *guestRun) take(f guest.Frame) {
	kernel := g.result.Kernel
	switch f.Kind {
	case guest.Hello:
		g.result.Release = f.Subject
	case guest.Ready:
		g.result.BootSeconds = time.Since(g.began).Seconds()
		g.out.progress("%s: ready after %.1f s (%s)", kernel, g.result.BootSeconds, g.result.Release)
	case guest.Log:
		g.kernelLine(f.Text, f.Subject == guest.FromKernel)
	case guest.Raw:
		// Only the kernel and a dying /init write outside of frames.
		g.kernelLine(f.Text, true)
	case guest.Damaged:
		g.show("#", f.Text, true)
		g.result.problem("a line of the console is damaged: %q", f.Text)
	case guest.Problem:
		g.result.problem("%s", f.Text)
		g.show("#", f.Text, true)
	case guest.Note:
		g.result.Notes = append(g.result.Notes, fmt.Sprintf("%s: %s", f.Subject, f.Text))
		g.show("#", f.Subject+": "+f.Text, true)
	case guest.Begin:
		g.begin(f.Subject)
	case guest.List:
		g.listed.WriteString(f.Text)
	case guest.Output:
		g.output(f.Text)
	case guest.End:
		if g.pkg != nil {
			g.pkg.Exit = f.Text
		}
		g.end()
	case guest.Done:
		g.done = true
	}
}

// show keeps a line for the case of an early end, and prints it if it matters.
func (g *guestRun) show(sign, text string, matters bool) {
	g.tail.add(text)
	if matters || g.verbose {
		g.out.guestLine(g.result.Kernel, sign, text)
	}
}

// kernelLine takes a line of the kernel's log; those that programs wrote into
// it count for nothing.
func (g *guestRun) kernelLine(text string, fromKernel bool) {
	bad := fromKernel && trouble(text)
	g.show("#", text, bad)
	if !bad || g.seen[text] {
		return
	}
	if g.seen == nil {
		g.seen = map[string]bool{}
	}
	g.seen[text] = true
	g.result.problem("kernel log: %s", text)
}

// begin takes the start of a package.
func (g *guestRun) begin(name string) {
	g.pkg = g.result.newPackage(name)
	g.pkgAt = time.Now()
	g.listed.Reset()
	g.parser = &testlog.Parser{OnLine: func(l testlog.Line) {
		g.show("|", l.Text, !l.Frame || strings.HasPrefix(l.Text, "---"))
	}}
	g.out.progress("%s: testing %s", g.result.Kernel, name)
}

// testName matches what `-test.list` prints for what a plain run executes.
var testName = regexp.MustCompile(`^(Test|Example|Fuzz)\w*$`)

// output takes a piece of the running package's output.
func (g *guestRun) output(text string) {
	if g.parser == nil {
		return
	}
	if g.listed.Len() > 0 {
		if g.filter == "" {
			names := strings.Fields(g.listed.String())
			names = slices.DeleteFunc(names, func(s string) bool { return !testName.MatchString(s) })
			g.parser.Expect(names...)
		}
		g.listed.Reset()
	}
	g.parser.Write([]byte(text))
}

// end takes the end of a package, or of the guest while it ran.
func (g *guestRun) end() {
	if g.pkg == nil {
		return
	}
	g.output("") // the names, if it printed nothing at all
	g.pkg.Tests = g.parser.Tests()
	g.pkg.Seconds = time.Since(g.pkgAt).Seconds()
	for _, t := range g.pkg.Tests {
		if t.Status != testlog.Failed && t.Status != testlog.Unfinished {
			t.Output = nil
		}
	}
	count := g.pkg.count()
	if g.pkg.Exit != "" && g.pkg.Exit != guest.Exited && count.failed == 0 {
		g.result.problem("%s: %s without a failed test", g.pkg.Name, g.pkg.Exit)
	}
	g.out.progress("%s: %s: %s in %.1f s", g.result.Kernel, g.pkg.Name, count, g.pkg.Seconds)
	g.pkg, g.parser = nil, nil
}

// conclude looks at what must be there at a guest's end.
func (g *guestRun) conclude() {
	running := g.pkg
	g.end()
	if g.done {
		return
	}
	where := "before any test"
	if running != nil {
		where = "in " + running.Name
	} else if len(g.result.Packages) > 0 {
		where = "between packages"
	}
	g.result.problem("the guest ended without its exit line, %s", where)
	lines := g.tail.all()
	g.out.progress("%s: last %d lines:", g.result.Kernel, len(lines))
	for _, line := range lines {
		g.out.guestLine(g.result.Kernel, ">", line)
	}
}

// troubles are the words in a kernel's log that no test run may cause, and
// those of a guest that is too small.
var troubles = regexp.MustCompile(`\bBUG\b|\bOops\b|WARNING:|Kernel panic|Internal error:|` +
	`Initramfs unpacking failed|Out of memory|^init: `)

// trouble tells whether the kernel complains about itself. "init: " is what a
// dying /init prints.
func trouble(text string) bool { return troubles.MatchString(text) }
