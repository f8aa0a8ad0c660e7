// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// screen prints what stays and what changes. On a terminal, what changes is
// drawn anew in its place; elsewhere each state of it is printed.
type screen struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	drawn    int // lines of the present state, above the cursor
}

// newScreen takes any writer; only a file can be a terminal.
func newScreen(w io.Writer) *screen {
	s := &screen{w: w}
	if f, ok := w.(*os.File); ok && os.Getenv("TERM") != "dumb" {
		_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		s.terminal = err == nil
	}
	return s
}

// print prints lines that stay. What was drawn in place stays, too.
func (s *screen) print(lines ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawn = 0
	s.write(strings.Join(lines, "\n") + "\n")
}

func (s *screen) printf(format string, args ...any) { s.print(fmt.Sprintf(format, args...)) }

// draw shows a state: head and body on a terminal, in the place of the state
// before; elsewhere the body, with the head above the first one only.
func (s *screen) draw(first bool, head, body []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.terminal {
		if first {
			body = append(append([]string{}, head...), body...)
		}
		s.write(strings.Join(body, "\n") + "\n")
		return
	}
	var b strings.Builder
	if s.drawn > 0 && !first {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn) // up
	}
	b.WriteString("\x1b[J") // clear what is below
	width := s.width()
	lines := append(append([]string{}, head...), body...)
	for _, line := range lines {
		// A line that wraps would be two, and the way up be wrong.
		if r := []rune(line); len(r) > width {
			line = string(r[:width-1]) + "…"
		}
		b.WriteString(line + "\n")
	}
	s.drawn = len(lines)
	s.write(b.String())
}

// erase takes away what was drawn in place.
func (s *screen) erase() {
	if s.terminal {
		s.draw(false, nil, nil)
	}
}

func (s *screen) width() int {
	if f, ok := s.w.(*os.File); ok {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && size.Col > 20 {
			return int(size.Col)
		}
	}
	return 80
}

// write ignores errors: when the reader has gone (a closed pipe), cleaning up
// must still happen.
func (s *screen) write(text string) { _, _ = io.WriteString(s.w, text) }
