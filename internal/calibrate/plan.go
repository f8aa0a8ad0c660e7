// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// The kinds of work.
const (
	workRoomy = "roomy" // frames whose sk_buffs have room for XDP in front
	workTight = "tight" // frames whose sk_buffs have not
	workTCP   = "tcp"   // one stream
)

// work is something to forward.
type work struct {
	kind string
	size int // bytes of a frame, without check sequence; 0 for tcp
}

// words names it for people.
func (w work) words() string {
	if w.kind == workTCP {
		return "one TCP stream"
	}
	return fmt.Sprintf("%d bytes, %s", w.size, w.kind)
}

func (w work) bench() string {
	if w.kind == workTCP {
		return workTCP
	}
	return "frames"
}

// allWorks is everything that can be measured, the most telling first: when
// there is too little time, the last are left out.
var allWorks = []work{
	{workTight, 64}, {workTCP, 0}, {workRoomy, 64}, {workTight, 1514}, {workRoomy, 1514},
	{workTight, 512}, {workRoomy, 512}, {workTight, 256}, {workRoomy, 256},
}

// inOrder is the order of a table.
func inOrder(a, b api.CalibrationRow) int {
	kinds := []string{workTight, workRoomy, workTCP}
	return cmp.Or(cmp.Compare(slices.Index(kinds, a.Work), slices.Index(kinds, b.Work)), cmp.Compare(a.Size, b.Size))
}

const (
	// leastTurns is how many turns an interval needs to say anything at all.
	leastTurns = 3
	// tcpTurns is how many times longer than a turn of frames one of a stream
	// takes, until it is known.
	tcpTurns = 2
)

// schedule spends the time that there is: on all kinds of work in turn, or on as
// many of the first as get enough turns.
type schedule struct {
	items []*item
	guess time.Duration // how long a turn of frames takes, until it is known
}

// item is a kind of work with what was measured of it.
type item struct {
	work
	costs turns
	done  int           // turns
	took  time.Duration // all of them
}

func newSchedule(works []work) *schedule {
	s := &schedule{}
	for _, w := range works {
		s.items = append(s.items, &item{work: w, costs: turns{}})
	}
	return s
}

// turn is how long a turn takes.
func (s *schedule) turn(i *item) time.Duration {
	switch {
	case i.done > 0:
		return i.took / time.Duration(i.done)
	case i.kind == workTCP:
		return tcpTurns * s.guess
	}
	return s.guess
}

// next is what to measure when so much time is left; nil: nothing more. A kind
// of work is begun only if there is time for enough turns of it and of all that
// were begun before.
func (s *schedule) next(left time.Duration) *item {
	reserved := time.Duration(0)
	var rarest *item
	for _, i := range s.items {
		if i.done == 0 {
			continue
		}
		reserved += time.Duration(max(leastTurns-i.done, 0)) * s.turn(i)
		if rarest == nil || i.done < rarest.done {
			rarest = i
		}
	}
	for _, i := range s.items {
		if i.done == 0 && left >= reserved+leastTurns*s.turn(i) {
			return i
		}
	}
	if rarest == nil || left < s.turn(rarest) {
		return nil
	}
	return rarest
}

// remaining estimates how many turns are to come.
func (s *schedule) remaining(left time.Duration) int {
	sum, n := time.Duration(0), 0
	for _, i := range s.items {
		sum += s.turn(i)
		n++
	}
	if sum <= 0 {
		return 0
	}
	return int(left * time.Duration(n) / sum)
}

// tooLittle says which kinds of work the budget left out.
func tooLittle(left []work, budget time.Duration) []string {
	if len(left) == 0 {
		return nil
	}
	var names []string
	for _, w := range left {
		names = append(names, w.words())
	}
	return []string{fmt.Sprintf("%s: too little time in %.0f seconds on this box", strings.Join(names, "; "), budget.Seconds())}
}

func (w work) load() rig.Load {
	input := rig.Tight
	if w.kind == workRoomy {
		input = rig.Roomy
	}
	return rig.Load{Input: input, Length: w.size}
}

func round(v float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(v*p) / p
}
