// SPDX-License-Identifier: Apache-2.0

package control

import (
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/datapath"
)

func TestCandidates(t *testing.T) {
	generic := &preference{datapath.EngineGeneric, "generic is faster now"}
	tc := &preference{datapath.EngineTC, "tc is faster now"}
	for _, c := range []struct {
		name  string
		facts facts
		tried string            // in this order
		why   map[string]string // of others: a part of the reason
	}{
		{"auto", facts{asked: "auto"}, "native tc generic", nil},
		{"auto, a driver without XDP", facts{asked: "auto", native: "no driver"}, "tc generic", map[string]string{"native": "no driver"}},
		{"auto, generic preferred", facts{asked: "auto", native: "no driver", preferred: generic}, "generic tc", nil},
		{"auto, generic preferred, native after all", facts{asked: "auto", preferred: generic}, "native generic tc", nil},
		{"auto, tc preferred", facts{asked: "auto", native: "no driver", preferred: tc}, "tc generic", nil},
		{"auto, preferred and ruled out", facts{asked: "auto", native: "no driver", preferred: generic, pastEgress: "eth2 has cake"}, "tc",
			map[string]string{"generic": "eth2 has cake"}},
		{"auto, blind", facts{asked: "auto", native: "tags hide", preferred: generic, blind: "tags hide"}, "tc", map[string]string{"generic": "tags hide"}},
		{"auto, unfinished frames", facts{asked: "auto", native: "a veth", preferred: generic, unfinished: "a veth"}, "tc", map[string]string{"generic": "a veth"}},
		{"auto, hardware GRO", facts{asked: "auto", preferred: generic, merging: "eth1 merges"}, "native tc", map[string]string{"generic": "eth1 merges"}},
		{"auto, a broken wire", facts{asked: "auto", native: "tags would be lost", lone: true, brokenWire: "tags would be lost"}, "tc",
			map[string]string{"generic": "tags would be lost"}},
		{"tc by name", facts{asked: "tc"}, "tc", map[string]string{"generic": "asks for tc", "native": "asks for tc"}},
		{"tc by name, generic preferred", facts{asked: "tc", preferred: generic}, "tc", map[string]string{"generic": "asks for tc"}},
		// The data path leaves what would go past a shaper to the bridge.
		{"generic by name", facts{asked: "generic", pastEgress: "eth2 has cake", blind: "tags hide", unfinished: "a veth", merging: "eth1 merges"}, "generic",
			map[string]string{"tc": "asks for generic", "native": "asks for generic"}},
		{"generic by name, tc preferred", facts{asked: "generic", preferred: tc}, "generic", map[string]string{"tc": "asks for generic"}},
		{"native by name", facts{asked: "native", pastEgress: "eth2 has cake", unfinished: "a veth"}, "native tc",
			map[string]string{"generic": "eth2 has cake"}},
		{"native by name, a driver without XDP", facts{asked: "native", native: "no driver"}, "tc generic",
			map[string]string{"native": "no driver"}},
		// Behind a lone wire there is no bridge to leave frames to.
		{"a lone wire by generic", facts{asked: "generic", lone: true}, "generic tc", nil},
		{"a lone wire by generic, past a shaper", facts{asked: "generic", lone: true, pastEgress: "eth2 has cake"}, "tc",
			map[string]string{"generic": "eth2 has cake"}},
		{"a broken wire by generic", facts{asked: "generic", lone: true, brokenWire: "tags would be lost"}, "tc",
			map[string]string{"generic": "tags would be lost"}},
		{"a wire that is not broken now", facts{asked: "auto", native: "no driver", brokenWire: "tags would be lost"}, "tc generic", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tried []string
			told := map[string]string{}
			for _, candidate := range candidates(c.facts) {
				if candidate.why == "" {
					tried = append(tried, string(candidate.engine))
				} else {
					told[string(candidate.engine)] = candidate.why
				}
			}
			if got := strings.Join(tried, " "); got != c.tried {
				t.Errorf("tried: %s, want %s", got, c.tried)
			}
			if len(tried)+len(told) != 3 {
				t.Errorf("%d engines tried and %d ruled out, want all 3", len(tried), len(told))
			}
			if why := c.facts.whyNotXDP("native"); c.facts.lone && c.facts.pastEgress != "" && why != c.facts.pastEgress {
				t.Errorf("a lone wire by native, past a shaper: %q", why)
			}
			for engine, want := range c.why {
				if !strings.Contains(told[engine], want) {
					t.Errorf("why not %s: %q, want %q", engine, told[engine], want)
				}
			}
		})
	}
}
