// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// What random scenarios have found and find again only now and then, by hand.

var (
	alice = [6]byte{0x02, 0x10, 0, 0, 0, 1}
	bob   = [6]byte{0x02, 0x10, 0, 0, 0, 2}
)

// byHand begins a scenario with alice behind eth1 and bob behind eth2.
func byHand(box Box) *generator {
	g := &generator{box: box, s: &Scenario{Box: box, Layout: Layout{Managed: []Managed{{Port: 0}, {Port: 1}, {Port: 2}}}}}
	g.add(0, "hello", g.plain([6]byte(ether.Broadcast), alice, 60))
	g.add(1, "hello", g.plain([6]byte(ether.Broadcast), bob, 60))
	g.settle()
	return g
}

// foreignTags: a VLAN-aware bridge of one kind puts a tag of the other kind back
// into the data, where it counts for the length.
func foreignTags() *Scenario {
	box := NewBox()
	box.VLANAware, box.Protocol = true, ether.TypeSVLAN
	box.Ports[1].MTU = 1400
	g := byHand(box)
	for length := 1400; length < 1430; length++ {
		g.add(0, "a tag of the other kind", ether.Tag(g.plain(bob, alice, length), ether.TypeVLAN, 10))
		g.add(0, "a tag of the bridge's kind", ether.Tag(g.plain(bob, alice, length), ether.TypeSVLAN, 1))
		g.add(0, "no tag", g.plain(bob, alice, length))
	}
	return g.s
}

// cutTags: the kernel drops frames whose tag is cut off.
func cutTags() *Scenario {
	g := byHand(NewBox())
	for _, tpid := range []byte{0x81, 0x88} {
		for length := 14; length < 24; length++ {
			f := g.plain(bob, alice, length)
			f[12], f[13] = tpid, map[byte]byte{0x81: 0x00, 0x88: 0xa8}[tpid]
			g.add(0, "cut tag", f)
		}
	}
	return g.s
}

// lockedPort: the bridge learns from control frames on a locked port.
func lockedPort() *Scenario {
	box := NewBox()
	box.Ports[2].Locked = true
	g := byHand(box)
	for i := range 20 {
		g.add(2, "moved to a locked port", g.typed([6]byte(ether.EAPOLGroup), alice, ether.TypeEAPOL, 60))
		g.add(1, "to the one who moved", g.plain(alice, bob, 60+i))
		g.add(0, "moved back", g.plain(bob, alice, 60+i))
		g.settle()
	}
	return g.s
}

func TestFound(t *testing.T) {
	netns.Require(t)
	scenarios := map[string]func() *Scenario{"cut tags": cutTags, "locked port": lockedPort}
	if lab.HasVLANFiltering() {
		scenarios["foreign tags"] = foreignTags
	}
	for _, engine := range []string{"generic", "tc"} {
		t.Run(engine, func(t *testing.T) {
			b := newBench(t, optionsOf(engine))
			for name, scenario := range scenarios {
				r, err := b.Play(context.Background(), scenario())
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range r.Differences {
					t.Errorf("%s: %s", name, d)
				}
			}
		})
	}
}
