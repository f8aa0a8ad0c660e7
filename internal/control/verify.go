// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// What native XDP redirects to a driver that does not send it is lost, and no
// error is told. So while native is in use, what the programs redirected is
// compared with what the leaving ports' drivers say that they sent. Where frames
// go in and none come out, the ports in front go back to another engine.
//
// What must not look like that:
//   - a quiet network: nothing is said before enough frames were redirected;
//   - a link that goes down: what was counted before is void then;
//   - counters that are behind (virtio_net counts a frame when it sends the next
//     ones): frames have to be missing twice, in two spans with traffic;
//   - a port that loses some because it is slower: only a port where next to
//     none come out is meant;
//   - a port to which nothing was redirected, in mode mac: frames must be missing
//     in the sum as well, and others than the port itself must have redirected some.
//
// A driver that does not count what it sends for XDP cannot be told from one
// that does not send it. The port then has tc: slower, and safe.

const (
	// verifySoon is how often is looked until frames were seen to come out,
	// verifyLater how often then.
	verifySoon  = 250 * time.Millisecond
	verifyLater = 2 * time.Second
	// verifyFrames is how many frames say something.
	verifyFrames = 16
)

// verifier compares what goes in with what comes out.
type verifier struct {
	timer *time.Timer
	base  map[*port]passage // when the present comparison began
	last  map[*port]uint64  // what was redirected at the last strike
	// strikes is how often frames were missing at a leaving port.
	strikes map[*port]int
	proven  bool // frames have come out since the last change
}

// passage is what a port has taken in for others, and what its driver has sent.
type passage struct {
	ifindex    int
	up         bool
	engine     datapath.Engine
	redirected uint64
	sent       uint64
}

func newVerifier() verifier {
	v := verifier{timer: time.NewTimer(time.Hour)}
	v.timer.Stop()
	return v
}

func (v *verifier) begin(now map[*port]passage) {
	v.base, v.last, v.strikes, v.proven = now, map[*port]uint64{}, map[*port]int{}, false
	v.timer.Reset(verifySoon)
}

// verifyNative begins to compare if a port has native and nobody compares yet.
func (c *Controller) verifyNative() {
	if c.verifier.base == nil && c.usesNative() {
		c.verifier.begin(c.passages())
	}
}

func (c *Controller) usesNative() bool {
	return slices.ContainsFunc(c.ordered(), (*port).isNative)
}

func (p *port) isNative() bool {
	return p.attachment != nil && p.attachment.Engine() == datapath.EngineNative
}

// verify compares, and takes native from ports whose frames do not come out.
func (c *Controller) verify() {
	v := &c.verifier
	if !c.usesNative() {
		v.base = nil
		return
	}
	now := c.passages()
	if !comparable(v.base, now) {
		v.begin(now)
		return
	}
	var guilty []*port
	for _, group := range c.groups() {
		guilty = append(guilty, v.compare(group, now, c.reachedByNative)...)
	}
	if len(guilty) > 0 {
		c.swallowed(guilty)
		v.base = nil
		c.reconcile()
		return
	}
	if v.proven && len(v.strikes) == 0 {
		v.timer.Reset(verifyLater)
	} else {
		v.timer.Reset(verifySoon)
	}
}

// group is ports that frames are redirected from and to.
type group struct{ in, out []*port }

// groups are the ports whose sums can be compared: in mode port those that lead
// to one target, else all.
func (c *Controller) groups() []group {
	var groups []group
	var all group
	targets := map[string]int{}
	for _, p := range c.ordered() {
		if !p.set {
			continue
		}
		if c.config.Main.Mode != config.ModePort {
			all.in, all.out = append(all.in, p), append(all.out, p)
			continue
		}
		target := c.ports[targetOf(p)]
		if target == nil || !target.set {
			continue
		}
		i, ok := targets[target.device]
		if !ok {
			i = len(groups)
			targets[target.device] = i
			groups = append(groups, group{out: []*port{target}})
		}
		groups[i].in = append(groups[i].in, p)
	}
	if all.in != nil {
		groups = append(groups, all)
	}
	return groups
}

func targetOf(p *port) string {
	if p.section == nil {
		return ""
	}
	return p.section.Target
}

// compare looks at a group of ports and returns those where frames went in by
// native XDP and did not come out, twice in a row. reached reports whether
// native XDP redirects anything to a port.
func (v *verifier) compare(g group, now map[*port]passage, reached func(*port) bool) (guilty []*port) {
	var redirected, native, sent uint64
	for _, p := range g.in {
		n := now[p].redirected - v.base[p].redirected
		redirected += n
		if now[p].engine == datapath.EngineNative {
			native += n
		}
	}
	for _, p := range g.out {
		sent += now[p].sent - v.base[p].sent
	}
	if native < verifyFrames {
		return nil
	}
	var silent []*port
	recovered := false
	if missing := int64(redirected) - int64(sent); missing >= max(verifyFrames, int64(redirected/10)) {
		for _, out := range g.out {
			came := int64(now[out].sent - v.base[out].sent)
			others := native
			if now[out].engine == datapath.EngineNative && slices.Contains(g.in, out) {
				others -= now[out].redirected - v.base[out].redirected
			}
			switch {
			case now[out].up && others >= verifyFrames && 20*came < missing && reached(out):
				silent = append(silent, out)
			case v.strikes[out] > 0:
				recovered = true
			}
		}
	}
	if len(silent) == 0 || recovered { // as it should be; the next span begins
		v.proven = true
		for _, p := range append(slices.Clone(g.in), g.out...) {
			v.base[p] = now[p]
			delete(v.strikes, p)
			delete(v.last, p)
		}
		return nil
	}
	for _, out := range silent {
		if v.strikes[out] > 0 && native < v.last[out]+verifyFrames {
			continue // nothing new
		}
		v.strikes[out]++
		v.last[out] = native
		if v.strikes[out] >= 2 {
			guilty = append(guilty, out)
		}
	}
	return guilty
}

// reachedByNative reports whether native XDP redirects frames to a port: to a
// station behind it, in mode mac.
func (c *Controller) reachedByNative(out *port) bool {
	if c.config.Main.Mode == config.ModeMAC && c.stationsBehind()[out.slot] == 0 {
		return false
	}
	return slices.ContainsFunc(c.ordered(), func(p *port) bool { return p.isNative() && slices.Contains(c.outs(p), out) })
}

// swallowed remembers of all ports whose frames go to one of these that they do
// not come out there. Where nothing comes out at several ports, it may be any
// of them.
func (c *Controller) swallowed(guilty []*port) {
	var names []string
	for _, out := range guilty {
		names = append(names, out.device)
	}
	where := strings.Join(names, " or ")
	for _, p := range c.ordered() {
		leads := func(out *port) bool { return slices.Contains(c.outs(p), out) }
		if p.isNative() && slices.ContainsFunc(guilty, leads) {
			c.rememberFailure(p, fmt.Sprintf("native XDP was tried, and what it redirected to %s did not come out there", where))
			c.log.Warn("frames go into native XDP and do not come out: another engine is used", "from", p.device, "to", where)
		}
	}
}

// passages reads all ports' counters.
func (c *Controller) passages() map[*port]passage {
	all := map[*port]passage{}
	for _, p := range c.ordered() {
		if !p.set {
			continue
		}
		s := passage{ifindex: p.ifindex}
		if p.attachment != nil {
			s.engine = p.attachment.Engine()
			counters := c.countersOf(p)
			s.redirected = counters[datapath.Redirected].Packets
		}
		l := c.links[p.ifindex]
		s.up = l.Up && l.Carrier && p.live.Flags&datapath.PortForwarding != 0
		dev, err := netlink.LinkByIndex(p.ifindex)
		if err != nil || dev.Attrs().Statistics == nil {
			s.up = false // nothing can be said about it
		} else {
			// What it has dropped has not come out: a veth counts so what nobody
			// takes at its other end (5.10).
			s.sent = dev.Attrs().Statistics.TxPackets
		}
		all[p] = s
	}
	return all
}

// comparable reports whether the same ports are in the same state.
func comparable(a, b map[*port]passage) bool {
	if len(a) != len(b) {
		return false
	}
	for p, now := range b {
		before, ok := a[p]
		if !ok || before.ifindex != now.ifindex || before.up != now.up || before.engine != now.engine ||
			now.redirected < before.redirected || now.sent < before.sent {
			return false
		}
	}
	return true
}
