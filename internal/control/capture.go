// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// A tap on a port (tcpdump) sees frames that tc forwards, and none that XDP
// does. While somebody captures, the ports use tc.

// capturing is why the other engines are not used then.
const capturing = "frames are being captured, and taps see those of tc only"

// Capture implements api.Capturer.
func (c *Controller) Capture(ctx context.Context) error {
	var blind []string
	err := c.call(ctx, func() {
		c.changeCaptures(1)
		for _, p := range c.ordered() {
			if p.attachment != nil && p.attachment.Engine() != datapath.EngineTC {
				blind = append(blind, fmt.Sprintf("%s (%s)", p.device, p.engines[string(datapath.EngineTC)]))
			}
		}
	})
	if err != nil {
		return err
	}
	release := func() { _ = c.call(context.Background(), func() { c.changeCaptures(-1) }) } // fails when all is over
	if len(blind) > 0 {
		release()
		return fmt.Errorf("not all frames can be captured, tc is not possible on %s", strings.Join(blind, ", "))
	}
	if ctx.Err() != nil { // it may have ended while the engines changed
		release()
		return context.Cause(ctx)
	}
	context.AfterFunc(ctx, release)
	return nil
}

var _ api.Capturer = (*Controller)(nil)

// changeCaptures counts those who capture; the first and the last change the
// ports' engines.
func (c *Controller) changeCaptures(by int) {
	before := c.captures
	c.captures += by
	switch {
	case before == 0:
		c.log.Info("frames are being captured: all ports use tc")
	case c.captures == 0:
		c.log.Info("no frames are being captured any more")
	default:
		return
	}
	c.reconcile()
}

// visible puts tc in front while frames are captured. What the port had before
// stays behind it, for a kernel without tc.
func (c *Controller) visible(f *facts, all []candidate) []candidate {
	if c.captures == 0 {
		return all
	}
	f.asked = config.EngineAuto
	slices.SortStableFunc(all, func(a, b candidate) int {
		switch {
		case a.engine == datapath.EngineTC:
			return -1
		case b.engine == datapath.EngineTC:
			return 1
		}
		return 0
	})
	all[0].why = ""
	return all
}

// nameCapture says why a port does not use the engine that it would.
func (c *Controller) nameCapture(p *port) {
	if c.captures == 0 || p.attachment == nil || p.attachment.Engine() != datapath.EngineTC {
		return
	}
	for engine := range p.engines {
		if engine != string(datapath.EngineTC) {
			p.engines[engine] = capturing
		}
	}
}
