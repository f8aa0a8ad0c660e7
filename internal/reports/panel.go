// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/model"
	"github.com/xdpl2/xdpl2/internal/results"
)

// panel is the cells of one picture: engines by what varies.
type panel struct {
	work, input string
	link        float64
	unit        results.Unit
	along       dimension
	rest        string // what does not vary, in words
	places      []int
	engines     []string
	cells       map[string]map[int]*results.Cell
}

// dimension is what may vary along the x axis.
type dimension struct {
	name  string
	words string // with a number in front
	of    func(*results.Cell) int
}

// dimensions, the one that is preferred first.
var dimensions = []dimension{
	{"frame size (bytes)", "B", func(c *results.Cell) int { return c.Size }},
	{"flows", "flows", func(c *results.Cell) int { return c.Flows }},
	{"stations", "stations", func(c *results.Cell) int { return c.Stations }},
}

// panels sorts cells into pictures.
func panels(cells []*results.Cell) []*panel {
	type kind struct {
		work, input string
		link        float64
		unit        results.Unit
	}
	var kinds []kind
	byKind := map[kind][]*results.Cell{}
	for _, c := range cells {
		k := kind{c.Work, c.Input, c.Link, c.Unit}
		if byKind[k] == nil {
			kinds = append(kinds, k)
		}
		byKind[k] = append(byKind[k], c)
	}
	var all []*panel
	for _, k := range kinds {
		along := varying(byKind[k])
		byRest := map[string]*panel{}
		for _, c := range byKind[k] {
			rest := restOf(c, along)
			p := byRest[rest]
			if p == nil {
				p = &panel{
					work: k.work, input: k.input, link: k.link, unit: k.unit, along: along, rest: rest,
					cells: map[string]map[int]*results.Cell{},
				}
				byRest[rest] = p
				all = append(all, p)
			}
			p.add(c)
		}
	}
	return all
}

// varying is the dimension with the most values.
func varying(cells []*results.Cell) dimension {
	best, most := dimensions[0], 0
	for _, d := range dimensions {
		values := map[int]bool{}
		for _, c := range cells {
			values[d.of(c)] = true
		}
		if len(values) > most {
			best, most = d, len(values)
		}
	}
	return best
}

func restOf(c *results.Cell, along dimension) string {
	var words []string
	for _, d := range dimensions {
		if n := d.of(c); d.name != along.name && n > 0 {
			words = append(words, fmt.Sprintf("%d %s", n, d.words))
		}
	}
	return strings.Join(words, ", ")
}

func (p *panel) add(c *results.Cell) {
	at := p.along.of(c)
	if !slices.Contains(p.places, at) {
		p.places = append(p.places, at)
		slices.Sort(p.places)
	}
	if p.cells[c.Engine] == nil {
		p.cells[c.Engine] = map[int]*results.Cell{}
		p.engines = append(p.engines, c.Engine)
		slices.SortStableFunc(p.engines, func(a, b string) int {
			rank := func(e string) int {
				if e == results.EngineBridge {
					return 0
				}
				return 1
			}
			return cmp.Compare(rank(a), rank(b))
		})
	}
	p.cells[c.Engine][at] = c
}

// forwarding is the panel without what receives and drops.
func (p *panel) forwarding() *panel {
	out := *p
	out.engines = nil
	for _, e := range p.engines {
		if e != results.EngineDropXDP && e != results.EngineDropTC {
			out.engines = append(out.engines, e)
		}
	}
	return &out
}

// flat tells that nothing varies but the engine.
func (p *panel) flat() bool { return len(p.places) == 1 && len(p.engines) > 1 }

func (p *panel) names() []string {
	var names []string
	for _, n := range p.places {
		text := fmt.Sprint(n)
		if n == 0 {
			text = "-"
		}
		names = append(names, text)
	}
	return names
}

// conditions tells what all cells have in common.
func (p *panel) conditions() string {
	var words []string
	if p.input != "" && p.input != p.work {
		words = append(words, p.input)
	}
	if p.link > 0 {
		words = append(words, model.Rate(p.link))
	}
	if len(p.places) == 1 && p.places[0] > 0 {
		words = append(words, fmt.Sprintf("%d %s", p.places[0], p.along.words))
	}
	if p.rest != "" {
		words = append(words, p.rest)
	}
	return strings.Join(words, ", ")
}

// titled joins a title and the conditions.
func titled(title, conditions string) string {
	if conditions == "" {
		return title
	}
	return title + " (" + conditions + ")"
}

// slug makes a file's name of a title.
func slug(title string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-.")
}
