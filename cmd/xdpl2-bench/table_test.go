// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestTable(t *testing.T) {
	tab := newTable("lr")
	got := tab.lines([]string{"NAME", "N"}, []string{"µs", "1,000"}, []string{"", "2"})
	want := []string{"NAME      N", "µs    1,000", "          2"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// Later rows stand below the earlier ones.
	if got := tab.lines([]string{"a", "3"}); !slices.Equal(got, []string{"a         3"}) {
		t.Errorf("got %q", got)
	}
}

func TestNumbers(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -12345: "-12,345"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %s, want %s", n, got, want)
		}
	}
	for _, c := range []struct {
		part, whole uint64
		want        string
	}{
		{0, 0, "-"}, {0, 5, "0.0%"}, {1, 3, "33.3%"}, {99_999_999, 100_000_000, "99.9%"}, {7, 7, "100.0%"},
	} {
		if got := percent(c.part, c.whole); got != c.want {
			t.Errorf("percent(%d, %d) = %s, want %s", c.part, c.whole, got, c.want)
		}
	}
	for rate, want := range map[float64]string{94e6: "94 Mbit/s", 1.234e9: "1.23 Gbit/s", 0: "0 Mbit/s"} {
		if got := bits(rate); got != want {
			t.Errorf("bits(%v) = %s, want %s", rate, got, want)
		}
	}
}
