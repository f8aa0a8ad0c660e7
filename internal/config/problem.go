// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"strings"
)

// Severity of a Problem: Error or Warning.
type Severity = string

// An Error makes the configuration unusable, a Warning does not.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Problem is one thing that is wrong with a configuration, and where. Fields
// that do not apply are empty.
type Problem struct {
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`
	Section  string   `json:"section,omitempty"`
	Option   string   `json:"option,omitempty"`
	Value    string   `json:"value,omitempty"`
	Message  string   `json:"message"`
	Expected string   `json:"expected,omitempty"`
}

// Error returns the problem in one line, the place first.
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	if p.Section != "" {
		fmt.Fprintf(&b, "section %s: ", p.Section)
	}
	if p.Option != "" {
		fmt.Fprintf(&b, "option %s '%s': ", p.Option, p.Value)
	}
	b.WriteString(p.Message)
	if p.Expected != "" {
		fmt.Fprintf(&b, "; expected %s", p.Expected)
	}
	return b.String()
}

// Problems is all that is wrong with a configuration.
type Problems []*Problem

// Err returns nil if no problem is an Error, else an error that lists those.
func (ps Problems) Err() error {
	if len(ps.Errors()) == 0 {
		return nil
	}
	return ps.Errors()
}

// Errors returns the problems that make the configuration unusable.
func (ps Problems) Errors() (errs Problems) {
	for _, p := range ps {
		if p.Severity == Error {
			errs = append(errs, p)
		}
	}
	return errs
}

// Error lists the problems, one per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// closest returns the candidate that a word was probably meant to be, or "".
func closest(word string, candidates []string) string {
	limit := 1 + len(word)/3 // wrong letters; two swapped ones count twice
	if len(word) < 4 {
		limit = 1
	}
	best, bestDistance := "", limit+1
	for _, c := range candidates {
		if d := distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is Levenshtein's: single-byte insertions, deletions and changes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diagonal
			if a[i] != b[j] {
				next = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

func suggestion(word string, candidates []string) string {
	if c := closest(word, candidates); c != "" {
		return fmt.Sprintf(" (did you mean %s?)", c)
	}
	return ""
}
