// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// switcher makes a router forward with one engine or another, as its user does:
// through the daemon's UCI file and a reload.
type switcher struct {
	ctx    context.Context
	daemon *daemon
	bridge string
	ports  []string // that are managed

	engine string // in force; "" is the bridge
	known  bool   // whether it is
}

// newSwitcher starts a daemon in the router, switched off.
func newSwitcher(ctx context.Context, program, dir string, router *netns.NS, bridge string, ports ...string) (*switcher, error) {
	s := &switcher{ctx: ctx, bridge: bridge, ports: ports}
	var err error
	s.daemon, err = startDaemon(ctx, program, dir, router, s.config(""))
	return s, err
}

func (s *switcher) config(engine string) string { return uciConfig(s.bridge, engine, s.ports...) }

// use makes the router forward with an engine, or with the bridge alone, and
// sees to it that it does.
func (s *switcher) use(engine string) error {
	if s.known && s.engine == engine {
		return nil
	}
	s.known = false
	if err := s.daemon.configure(s.config(engine)); err != nil {
		return err
	}
	if _, err := s.daemon.client.Reload(s.ctx); err != nil {
		return err
	}
	status, err := s.daemon.client.Status(s.ctx)
	if err != nil {
		return err
	}
	if err := wanted(status, engine, len(s.ports)); err != nil {
		return err
	}
	s.engine, s.known = engine, true
	return nil
}

// wanted tells what differs from the state that an engine was asked for; auto
// may have chosen any.
func wanted(s *api.Status, engine string, ports int) error {
	state := api.Accelerating
	if engine == "" {
		state = api.Off
	}
	if len(s.Ports) != ports {
		return fmt.Errorf("the daemon has %d ports, expected %d", len(s.Ports), ports)
	}
	for _, p := range s.Ports {
		if p.State != state || p.Engine != engine && engine != auto {
			return fmt.Errorf("%s is %s with engine %q (%s), expected %s with %q", p.Device, p.State, p.Engine, p.Reason, state, engine)
		}
	}
	return nil
}

// auto is the engine that chooses one of the others.
const auto = "auto"
