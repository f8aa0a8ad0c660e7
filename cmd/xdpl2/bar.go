// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
)

// bar shows progress in the last line of a terminal, and nothing elsewhere.
type bar struct {
	out    io.Writer // nil: nowhere
	begin  time.Time
	budget time.Duration
	width  func() int
	drawn  bool
}

const barCells = 24

func newBar(out io.Writer, budget time.Duration) *bar {
	b := &bar{begin: time.Now(), budget: budget}
	f, ok := out.(*os.File)
	if !ok {
		return b
	}
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil {
		return b
	}
	b.out = out
	b.width = func() int {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 0 {
			return int(size.Col)
		}
		return 80
	}
	return b
}

func (b *bar) show(p api.CalibrationProgress) {
	if b.out == nil {
		return
	}
	line := barLine(p, time.Since(b.begin), b.budget)
	if most := b.width() - 1; len(line) > most {
		line = line[:max(most, 0)]
	}
	fmt.Fprintf(b.out, "\r%s\x1b[K", line)
	b.drawn = true
}

// barLine is what a bar shows. Time goes by the budget: it is what is spent,
// whatever is measured in it.
func barLine(p api.CalibrationProgress, elapsed, budget time.Duration) string {
	share := 0.0
	if budget > 0 {
		share = min(elapsed.Seconds()/budget.Seconds(), 1)
	}
	full := int(share * barCells)
	left := max(budget-elapsed, 0)
	line := fmt.Sprintf("[%s%s] %2.0f s left", strings.Repeat("#", full), strings.Repeat(".", barCells-full), left.Seconds())
	if p.Of > 0 {
		line += fmt.Sprintf(", turn %d of %d", p.Done, p.Of)
	}
	return line + ": " + p.Text
}

func (b *bar) close() {
	if b.drawn {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
