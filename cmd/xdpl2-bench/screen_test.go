// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestScreenPlain(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.draw(true, []string{"head"}, []string{"1"})
	s.draw(false, []string{"head"}, []string{"2"})
	s.erase()
	s.print("end")
	if got, want := out.String(), "head\n1\n2\nend\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestScreenTerminal(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.terminal = true
	long := strings.Repeat("x", 200)
	s.draw(true, []string{"head"}, []string{"1", long})
	s.draw(false, []string{"head"}, []string{"2"})
	s.erase()
	s.print("end")
	// Three lines, three up, two lines, two up.
	want := "\x1b[Jhead\n1\n" + long[:79] + "…\n" + "\x1b[3A\x1b[Jhead\n2\n" + "\x1b[2A\x1b[J" + "end\n"
	if got := out.String(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	// What is printed stays: the next state is drawn below it.
	out.Reset()
	s.draw(false, nil, []string{"3"})
	if got := out.String(); got != "\x1b[J3\n" {
		t.Errorf("got %q", got)
	}
}
