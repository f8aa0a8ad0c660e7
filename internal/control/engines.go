// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// Which engine a port gets. What can be known of the port and of those that its
// frames leave by is gathered first (facts); what follows from it is a pure
// function (candidates). The change itself is in change.go.

// facts is what the choice of a port's engine depends on. Reasons are sentences
// for people; an empty one means that nothing is in the way.
type facts struct {
	asked string // option engine: auto or an engine's name
	// native is why the drivers cannot do it (native.go).
	native string
	// lone: the port is one end of a wire that has nothing behind it (lone.go).
	// Where an engine cannot carry everything there, another must.
	lone bool
	// pastEgress is what XDP would send past at a port that frames leave by.
	pastEgress string
	// brokenWire is why a lone wire by XDP would carry nothing.
	brokenWire string
	// blind is why XDP would have to leave every frame to the bridge.
	blind string
	// unfinished is why XDP may send frames on that nobody takes.
	unfinished string
	// merging is what generic XDP would switch off.
	merging string
	// preferred is what the second step of auto wants; nil: it wants nothing.
	preferred *preference
}

// preference is what the second step of auto has found out about a port: which
// of the engines that the first step allows is better there at the moment.
type preference struct {
	engine datapath.Engine // EngineTC or EngineGeneric
	why    string          // one sentence, for the engine that is not used
}

// candidate is an engine in the order in which they are tried.
type candidate struct {
	engine datapath.Engine
	why    string // not empty: it is not tried, for this reason
}

// candidates says which engines a port may have, the one to try first in front,
// and of the others why not. An engine that is asked for by name is what the
// port gets, if frames can get through at all; native, which depends on drivers,
// has tc and generic behind it.
func candidates(f facts) []candidate {
	native := candidate{datapath.EngineNative, f.native}
	generic := candidate{datapath.EngineGeneric, f.whyNotXDP(config.EngineGeneric)}
	tc := candidate{datapath.EngineTC, ""}
	byName := fmt.Sprintf("option engine asks for %s", f.asked)
	switch f.asked {
	case config.EngineTC:
		native.why, generic.why = byName, byName
		return []candidate{tc, native, generic}
	case config.EngineGeneric:
		native.why = byName
		if !f.lone {
			tc.why = byName
		}
		return []candidate{generic, tc, native}
	}
	if f.preferred != nil && f.preferred.engine == datapath.EngineGeneric {
		return []candidate{native, generic, tc}
	}
	return []candidate{native, tc, generic}
}

// whyNotXDP says why an XDP engine would do harm at a port, or no good. Who
// asks for one by name gets it where the data path can leave the frames in
// question to the bridge, or where they can only be told from others by who
// knows the network; status then says what is at risk.
func (f facts) whyNotXDP(engine string) string {
	byName := f.asked == engine
	switch {
	case f.lone && f.brokenWire != "":
		return f.brokenWire
	case f.pastEgress != "" && (f.lone || !byName):
		return f.pastEgress
	case byName:
		return ""
	case f.blind != "":
		return f.blind
	case f.unfinished != "":
		return f.unfinished
	case engine == config.EngineGeneric:
		return f.merging
	}
	return ""
}

// warning says what is at risk with the engine that a port has got, or that it
// is not the one that was asked for, or "".
func (f facts) warning(used datapath.Engine, why map[string]string) string {
	switch {
	case f.asked == config.EngineNative && used != datapath.EngineNative:
		return fmt.Sprintf("not native: %s", why[config.EngineNative])
	case used != datapath.EngineTC && f.asked == string(used):
		return f.unfinished
	}
	return ""
}

// factsOf gathers what the choice of a port's engine depends on.
func (c *Controller) factsOf(p *port) facts {
	l := c.links[p.ifindex]
	return facts{
		asked:      c.config.EngineOf(p.section),
		native:     p.native.why,
		lone:       c.lone(p),
		pastEgress: c.pastEgress(p),
		brokenWire: c.replaced.noXDP[p.ifindex],
		blind:      c.whyBlind(l),
		unfinished: c.unfinished(l),
		merging:    merging(l),
		preferred:  p.preferred,
	}
}

// allows says whether auto may choose between tc and generic at a port, and if
// not, why. The second step of auto asks this before it tries anything.
func (c *Controller) allows(p *port) (why string, ok bool) {
	switch {
	case p.section == nil || p.state != api.Accelerating || p.attachment == nil:
		return "the port is not accelerated", false
	case c.captures > 0:
		return capturing, false
	case p.attachment.Engine() == datapath.EngineNative:
		return "native is in use", false
	}
	f := c.factsOf(p)
	if f.asked != config.EngineAuto {
		return fmt.Sprintf("option engine asks for %s", f.asked), false
	}
	for _, candidate := range candidates(f) {
		if candidate.engine == datapath.EngineGeneric && candidate.why != "" {
			return candidate.why, false
		}
	}
	return "", true
}

// prefer has a port use another of the engines that auto may choose from, as
// its second step found out, or leaves the choice to the first step again
// (nil). What auto has ruled out stays so. While there is a preference, what
// generic XDP needs of the device stays as it is with tc, too: a driver may
// restart when that is changed.
func (c *Controller) prefer(p *port, want *preference) {
	p.preferred = want
	if p.section == nil || p.attachment == nil {
		return // reconcile will see to it
	}
	p.state, p.reason, p.engines = api.Accelerating, "", map[string]string{}
	c.reconcileProgram(p)
	c.reconcileWatch(p)
	c.nameFilters()
	c.tellPorts()
}

// nameEngines says of each engine that it is in use, or why not.
func (c *Controller) nameEngines(p *port, f facts, all []candidate) {
	used := p.attachment.Engine()
	for _, e := range all {
		name := string(e.engine)
		switch {
		case e.engine == used:
			p.engines[name] = "in use"
		case e.why != "":
			p.engines[name] = e.why
		case p.engines[name] != "": // it was tried
		case f.asked != config.EngineAuto:
			p.engines[name] = fmt.Sprintf("option engine asks for %s", f.asked)
		case f.preferred != nil && used != datapath.EngineNative:
			p.engines[name] = f.preferred.why
		default:
			p.engines[name] = whyLater[used]
		}
	}
}

// whyLater is why auto prefers the engine in use to those that it could have,
// too.
var whyLater = map[datapath.Engine]string{
	datapath.EngineTC:      "auto prefers tc: it is never slower than the bridge, TCP included",
	datapath.EngineNative:  "auto prefers native: it is the fastest",
	datapath.EngineGeneric: "generic is in use",
}
