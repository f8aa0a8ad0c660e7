// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
)

// TestNULStep has a NUL byte at different places of a long line. The numbers are
// what libuci reads.
func TestNULStep(t *testing.T) {
	for _, tc := range []struct{ before, after int }{{10, 290}, {20, 300}, {40, 288}, {60, 244}, {100, 284}, {130, 186}, {260, 60}} {
		text := "config a b\noption x '" + strings.Repeat("a", tc.before) + "\x00" + strings.Repeat("b", 300) + "'\n"
		p, err := Parse("x", "file", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.Repeat("a", tc.before) + strings.Repeat("b", tc.after)
		if got := p.Section("b").Option("x").Last(); got != want {
			t.Errorf("NUL after %d: %d bytes, want %d", tc.before, len(got), len(want))
		}
	}
}

func TestReference(t *testing.T) {
	p, err := Parse("x", "file", []byte("config a b\nconfig a\nconfig c d\n"))
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"b", p.Sections[1].Name, "d"}
	for _, tc := range []struct {
		ref   string
		index int
		err   error
	}{
		{"b", 0, nil},
		{all[1], 1, nil},
		{"nosuch", 0, ErrNotFound},
		{"@a[0]", 0, nil},
		{"@a[1]", 1, nil},
		{"@a[2]", 0, ErrNotFound},
		{"@a[-1]", 1, nil},
		{"@a[-2]", 0, nil},
		{"@a[-3]", 0, ErrNotFound},
		{"@c[0]", 2, nil},
		{"@[2]", 2, nil},
		{"@[-1]", 2, nil},
		{"@[]", 0, nil},
		{"@a[+1]", 1, nil},
		{"@a[ 1]", 1, nil},
		{"@a[4294967297]", 1, nil}, // an int has 32 bits
		{"@a[99999999999999999999]", 1, nil},
		{"@a[-99999999999999999999]", 0, nil},
		{"@nosuch[0]", 0, ErrNotFound},
		{"@a[1 ]", 0, ErrInvalid},
		{"@a[0x1]", 0, ErrInvalid},
		{"@a[-]", 0, ErrInvalid},
		{"@a[0]]", 0, ErrInvalid},
		{"@a[[0]", 0, ErrInvalid},
		{"@a b[0]", 0, ErrInvalid},
		{"@a", 0, ErrInvalid},
		{"@", 0, ErrInvalid},
		{"@[", 0, ErrInvalid},
		{"", 0, ErrInvalid},
		{"a-b", 0, ErrInvalid},
	} {
		s, err := p.section(tc.ref)
		if !errors.Is(err, tc.err) || err == nil && s.Name != all[tc.index] {
			t.Errorf("%q: %v, %v", tc.ref, s, err)
		}
	}
}

// named is something to keep in a list.
type named struct{ name string }

func (n *named) key() string { return n.name }

// TestList does random things to a list, and the same to a plain slice.
func TestList(t *testing.T) {
	seed := rand.Int63()
	r := rand.New(rand.NewSource(seed))
	for round := range 200 {
		var l list[*named]
		var plain []*named
		names := 1 + r.Intn(40) // few names, many of the same
		for range 150 {
			name := fmt.Sprint(r.Intn(names))
			var it *named
			if len(plain) > 0 {
				it = plain[r.Intn(len(plain))]
			}
			switch what := r.Intn(6); {
			case what < 3 || it == nil:
				it = &named{name}
				l.add(it)
				plain = append(plain, it)
			case what == 3:
				l.remove(it)
				plain = slices.DeleteFunc(plain, func(n *named) bool { return n == it })
			case what == 4:
				l.rename(it, func() { it.name = name })
			default:
				to := r.Intn(len(plain)+2) - 1
				from := slices.Index(plain, it)
				at := min(max(to, 0), len(plain)-1)
				plain = slices.Insert(slices.Delete(plain, from, from+1), at, it)
				if moved := l.move(it, to); moved != (from != at) {
					t.Fatalf("seed %d, round %d: moved from %d to %d: %v", seed, round, from, to, moved)
				}
			}
			if !slices.Equal(l.items, plain) {
				t.Fatalf("seed %d, round %d: the items differ", seed, round)
			}
			for i := range names {
				name := fmt.Sprint(i)
				var want *named
				if at := slices.IndexFunc(plain, func(n *named) bool { return n.name == name }); at >= 0 {
					want = plain[at]
				}
				if got := l.find(name); got != want {
					t.Fatalf("seed %d, round %d: find(%s) = %v, want %v", seed, round, name, got, want)
				}
			}
		}
	}
}
