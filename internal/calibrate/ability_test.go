// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// TestMissing: what a box lacks is left out, and named with what would help.
func TestMissing(t *testing.T) {
	all := ability{live: true, merges: true}
	none := fmt.Errorf("create: %w", unix.EOPNOTSUPP)
	for name, c := range map[string]struct {
		change  func(*ability)
		works   int
		engines []datapath.Engine
		missing []string // parts of the lines
	}{
		"nothing":       {func(*ability) {}, 9, []datapath.Engine{"generic", "tc"}, nil},
		"veth":          {func(a *ability) { a.veth = none }, 0, nil, []string{"install kmod-veth"}},
		"tap":           {func(a *ability) { a.tap = unix.ENOENT }, 1, nil, []string{"install kmod-tun"}},
		"tap, refused":  {func(a *ability) { a.tap = unix.EPERM }, 1, nil, []string{"tap device to leave by: operation not permitted"}},
		"a second core": {func(a *ability) { a.twoCores = errors.New("only one CPU") }, 9, nil, []string{"only one CPU"}},
		"live frames":   {func(a *ability) { a.live = false }, 5, nil, []string{"Linux 5.18"}},
		"GRO":           {func(a *ability) { a.merges = false }, 8, nil, []string{"TCP stream"}},
		"tc":            {func(a *ability) { a.tc = unix.ENOENT }, 9, []datapath.Engine{"generic"}, []string{"install kmod-sched-core and kmod-sched-bpf"}},
		"both engines":  {func(a *ability) { a.tc, a.generic = unix.ENOENT, unix.EPERM }, 0, nil, []string{"engine generic", "engine tc"}},
		"Linux 5.10": {func(a *ability) {
			a.live, a.merges, a.twoCores = false, false, errors.New("Linux 5.13")
		}, 4, nil, []string{"5.13", "5.18", "GRO"}},
	} {
		a := all
		c.change(&a)
		if got := a.works(); len(got) != c.works {
			t.Errorf("%s: works %v, want %d", name, got, c.works)
		}
		if got := a.engines(); c.engines != nil && !slices.Equal(got, c.engines) {
			t.Errorf("%s: engines %v", name, got)
		}
		got := a.missing()
		if len(got) != len(c.missing) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i, part := range c.missing {
			if !strings.Contains(got[i], part) {
				t.Errorf("%s: %q has no %q", name, got[i], part)
			}
		}
	}
}

// TestLook: what this kernel can do is tried without an effect on anything.
func TestLook(t *testing.T) {
	netns.Require(t)
	a := look()
	t.Logf("%+v: %q", a, a.missing())
	if a.namespaces != nil {
		t.Error(a.namespaces)
	}
}
