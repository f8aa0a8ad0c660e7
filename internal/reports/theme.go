// SPDX-License-Identifier: Apache-2.0

package reports

import (
	"image/color"

	"github.com/xdpl2/xdpl2/internal/results"
)

// Theme is the colours of a chart.
type Theme struct {
	Name       string
	Background color.Color
	Ink        color.Color // text, error bars
	Faint      color.Color // axes, grid
	engines    map[string]color.Color
	others     []color.Color
}

// Light and Dark are the two themes; the page shows the one that its reader's
// system has.
var (
	Light = &Theme{
		Name: "light", Background: color.White, Ink: hex(0x1f2933), Faint: hex(0xd5dbe1),
		engines: map[string]color.Color{
			results.EngineBridge: hex(0x7b8794), results.EngineAgain: hex(0xa7b1bb),
			"generic": hex(0x1f6fd1), "tc": hex(0xe07b00), "native": hex(0x0f8a5f), "auto": hex(0x8a3fc7),
			results.EngineDropXDP: hex(0xb9c2cb), results.EngineDropTC: hex(0xcfd6dc),
		},
		others: []color.Color{hex(0xc2255c), hex(0x0b7285), hex(0x846800), hex(0x5c3d2e)},
	}
	Dark = &Theme{
		Name: "dark", Background: hex(0x14181d), Ink: hex(0xe4e9ee), Faint: hex(0x3a434d),
		engines: map[string]color.Color{
			results.EngineBridge: hex(0x98a4b0), results.EngineAgain: hex(0x6d7883),
			"generic": hex(0x5ea2f2), "tc": hex(0xffa640), "native": hex(0x3fbf8f), "auto": hex(0xbd8aec),
			results.EngineDropXDP: hex(0x5a6570), results.EngineDropTC: hex(0x49535d),
		},
		others: []color.Color{hex(0xf06595), hex(0x3bc9db), hex(0xd9b310), hex(0xb58a74)},
	}
)

func hex(rgb uint32) color.Color {
	return color.NRGBA{R: uint8(rgb >> 16), G: uint8(rgb >> 8), B: uint8(rgb), A: 255}
}

// engine returns an engine's colour, the same in every chart; names that have
// none take the next of the others by their place in the chart.
func (t *Theme) engine(name string, place int) color.Color {
	if c, ok := t.engines[name]; ok {
		return c
	}
	return t.others[place%len(t.others)]
}

// mix blends two colours: 0 is the first.
func mix(a, b color.Color, share float64) color.Color {
	ra, ga, ba, _ := a.RGBA()
	rb, gb, bb, _ := b.RGBA()
	blend := func(x, y uint32) uint8 { return uint8((float64(x)*(1-share) + float64(y)*share) / 257) }
	return color.NRGBA{R: blend(ra, rb), G: blend(ga, gb), B: blend(ba, bb), A: 255}
}
