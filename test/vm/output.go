// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A printer prints whole lines of several guests, each with the name of its
// guest, and what the runner itself is doing, with the time since its start.
type printer struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

func newPrinter(w io.Writer) *printer {
	return &printer{w: w, start: time.Now()}
}

// progress prints what is being done.
func (p *printer) progress(format string, args ...any) {
	p.line(fmt.Sprintf("vm %5.1fs  "+format, append([]any{time.Since(p.start).Seconds()}, args...)...))
}

// guestLine prints a line that a guest's test (sign "|") or kernel (sign "#")
// printed.
func (p *printer) guestLine(kernel, sign, text string) {
	p.line(kernel + " " + sign + " " + printable(text))
}

// line prints a line as it is.
func (p *printer) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	io.WriteString(p.w, text+"\n")
}

// printable keeps control characters of a guest away from the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if (r < ' ' && r != '\t') || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// A tail keeps the last lines of a guest.
type tail struct {
	lines []string
	next  int
}

// tailLength is how many lines are shown when a guest ends too early.
const tailLength = 50

func (t *tail) add(line string) {
	if len(t.lines) < tailLength {
		t.lines = append(t.lines, line)
		return
	}
	t.lines[t.next] = line
	t.next = (t.next + 1) % tailLength
}

// all returns the kept lines, the oldest first.
func (t *tail) all() []string {
	return append(append([]string(nil), t.lines[t.next:]...), t.lines[:t.next]...)
}
