// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// controlled has f try a controller that has taken the lab's ports, without its
// loop: nothing happens but what f calls.
func controlled(t *testing.T, l *lab.Lab, cfg *config.Config, f func(*Controller) error) {
	t.Helper()
	err := l.Router.Do(func() (err error) {
		c, err := New(cfg, nil, Options{TrustFrames: true, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, c.detachAll(), c.Close()) }()
		if c.journal, err = openJournal(""); err != nil {
			return err
		}
		c.ageing.start()
		defer c.ageing.stop()
		mirror, err := bridge.Open()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if err := mirror.Run(ctx, func(u bridge.Update) { c.follow(u); cancel() }); err != nil {
			return err
		}
		return f(c)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestPrefer: the second step of auto chooses among what the first one allows.
func TestPrefer(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2})
	cfg := config.Default()
	cfg.Main.Enabled, cfg.Main.Bridge, cfg.Main.Adapt = true, lab.BridgeName, false
	for _, device := range []string{"eth1", "eth2"} {
		cfg.Ports = append(cfg.Ports, config.Port{Device: device, Enabled: true})
	}
	uses := func(p *port, used datapath.Engine, whyTC, whyGeneric string) {
		t.Helper()
		if p.state != api.Accelerating || p.attachment == nil || p.attachment.Engine() != used ||
			p.engines["tc"] != whyTC || p.engines["generic"] != whyGeneric {
			t.Errorf("%s: %s, %v; want engine %s, tc %q, generic %q", p.state, p.reason, p.engines, used, whyTC, whyGeneric)
		}
	}
	const first = "auto prefers tc: it is never slower than the bridge, TCP included"
	controlled(t, l, cfg, func(c *Controller) error {
		p := c.ports["eth1"]
		uses(p, datapath.EngineTC, "in use", first)
		if why, ok := c.allows(p); !ok {
			t.Errorf("not allowed: %s", why)
		}
		c.prefer(p, &preference{datapath.EngineGeneric, "generic is faster"})
		uses(p, datapath.EngineGeneric, "generic is faster", "in use")
		c.reconcile()
		uses(p, datapath.EngineGeneric, "generic is faster", "in use")
		c.prefer(p, &preference{datapath.EngineTC, "tc is faster"})
		uses(p, datapath.EngineTC, "in use", "tc is faster")
		c.prefer(p, nil)
		uses(p, datapath.EngineTC, "in use", first)
		if p.engineChanges != 2 {
			t.Errorf("%d changes of the engine counted, want 2", p.engineChanges)
		}
		cfg.Main.Engine = config.EngineTC
		c.prefer(p, &preference{datapath.EngineGeneric, "generic is faster"})
		uses(p, datapath.EngineTC, "in use", "option engine asks for tc")
		if why, ok := c.allows(p); ok || why != "option engine asks for tc" {
			t.Errorf("asked for by name: %v, %q", ok, why)
		}
		return nil
	})
}
