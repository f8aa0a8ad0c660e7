// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table lays rows out in columns. It remembers how wide they were, so that
// rows that come later stand below the earlier ones.
type table struct {
	right  []bool // per column: numbers, which end below each other
	widths []int
}

// newTable takes one letter per column: l for text, r for numbers.
func newTable(columns string) *table {
	t := &table{}
	for _, c := range columns {
		t.right = append(t.right, c == 'r')
		t.widths = append(t.widths, 0)
	}
	return t
}

// lines returns the rows, each as a line without trailing spaces.
func (t *table) lines(rows ...[]string) []string {
	for _, row := range rows {
		for i, cell := range row {
			t.widths[i] = max(t.widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString("  ")
			}
			space := strings.Repeat(" ", t.widths[i]-utf8.RuneCountInString(cell))
			if t.right[i] {
				b.WriteString(space + cell)
			} else {
				b.WriteString(cell + space)
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// grouped writes a number with commas between the thousands.
func grouped[T int | int64 | uint64](n T) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	var parts []string
	for len(digits) > 3 {
		parts = append([]string{digits[len(digits)-3:]}, parts...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, parts...), ",")
}

// percent writes a part of a whole, "-" when there is no whole.
func percent(part, whole uint64) string {
	if whole == 0 {
		return "-"
	}
	p := 100 * float64(part) / float64(whole)
	if p > 99.9 && part < whole {
		p = 99.9 // 100% means all
	}
	return fmt.Sprintf("%.1f%%", p)
}

// bits writes a rate in bit/s.
func bits(rate float64) string {
	if rate >= 1e9 {
		return fmt.Sprintf("%.2f Gbit/s", rate/1e9)
	}
	return fmt.Sprintf("%.0f Mbit/s", rate/1e6)
}
