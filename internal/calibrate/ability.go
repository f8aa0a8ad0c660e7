// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// ability is what the box can do of what measuring needs: nil, or why not.
type ability struct {
	namespaces error
	veth, tap  error
	twoCores   error // generator and forwarding on a core each
	live       bool  // sk_buffs with room in front can be made
	merges     bool  // virtual devices put TCP together (GRO)
	generic    error
	tc         error
}

// look tries it all, in namespaces that are thrown away.
func look() ability {
	a := ability{namespaces: netns.Supported()}
	if a.namespaces != nil {
		return a
	}
	a.veth = inNamespace(func(ns *netns.NS) error {
		h, err := ns.Handle()
		if err == nil {
			_, err = netns.AddVeth(h, "a", "b")
		}
		return err
	})
	a.tap = inNamespace(func(ns *netns.NS) error {
		tap, err := rig.OpenTap(ns, "a")
		if err != nil {
			return err
		}
		return tap.Close()
	})
	if a.veth != nil {
		return a
	}
	a.twoCores = rig.Unsupported()
	a.live = rig.HasLiveFrames()
	a.merges = rig.HasThreadedNAPI() // both came with veth's GRO
	a.generic = tryEngine(datapath.EngineGeneric)
	a.tc = tryEngine(datapath.EngineTC)
	return a
}

func inNamespace(f func(*netns.NS) error) error {
	ns, err := netns.New("probe")
	if err != nil {
		return err
	}
	return errors.Join(f(ns), ns.Close())
}

// tryEngine attaches a program to a veth.
func tryEngine(engine datapath.Engine) error {
	return inNamespace(func(ns *netns.NS) error {
		h, err := ns.Handle()
		if err != nil {
			return err
		}
		if _, err := netns.AddVeth(h, "a", "b"); err != nil {
			return err
		}
		e, err := newEngines(ns, []string{"a"}, stationsForTrial)
		if err != nil {
			return err
		}
		return errors.Join(e.enter(engine), e.leave(), e.close())
	})
}

// engines are those that can be measured.
func (a ability) engines() (list []datapath.Engine) {
	if a.generic == nil {
		list = append(list, datapath.EngineGeneric)
	}
	if a.tc == nil {
		list = append(list, datapath.EngineTC)
	}
	return list
}

// works are those that can be measured.
func (a ability) works() []work {
	if a.namespaces != nil || a.veth != nil || len(a.engines()) == 0 {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(allWorks), func(w work) bool {
		switch w.kind {
		case workTCP:
			return !a.merges
		case workRoomy:
			return a.tap != nil || !a.live
		}
		return a.tap != nil
	})
}

// missing says what cannot be measured, why, and what would help; a line each.
func (a ability) missing() []string {
	out := []string{}
	if a.veth != nil {
		return append(out, because("everything: measuring needs pairs of virtual devices (veth)", "kmod-veth", a.veth))
	}
	if a.tap != nil {
		out = append(out, because("all sizes of frames: they need a tap device to leave by", "kmod-tun", a.tap))
	} else {
		if a.twoCores != nil {
			out = append(out, fmt.Sprintf("forwarding on a core of its own (%v): measured together with what makes the frames, less what that costs alone", a.twoCores))
		}
		if !a.live {
			out = append(out, "frames with room in front (roomy): this kernel cannot make them (Linux 5.18)")
		}
	}
	if !a.merges {
		out = append(out, "one TCP stream: this kernel's virtual devices do not put segments together as network cards' drivers do (GRO, Linux 5.13)")
	}
	if a.generic != nil {
		out = append(out, fmt.Sprintf("engine generic: %v", a.generic))
	}
	if a.tc != nil {
		out = append(out, because("engine tc", "kmod-sched-core and kmod-sched-bpf", a.tc))
	}
	return out
}

// because names the package that brings what the kernel does not have.
func because(what, packages string, err error) string {
	for _, absent := range []error{unix.EOPNOTSUPP, unix.ENOENT, unix.ENODEV, unix.ENXIO, os.ErrNotExist} {
		if errors.Is(err, absent) {
			return fmt.Sprintf("%s: this kernel has none; install %s (%v)", what, packages, err)
		}
	}
	return fmt.Sprintf("%s: %v", what, err)
}
