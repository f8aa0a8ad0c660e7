// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/netns"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// switcher makes a router forward with one engine or another, as its user does:
// through the daemon's UCI file and a reload.
type switcher struct {
	ctx    context.Context
	daemon *daemon
	bridge string
	ports  []string // that are managed
	// stations that the daemon has to know before it is measured; 0: none
	stations int

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

func (s *switcher) config(engine string) string {
	text := uciConfig(s.bridge, engine, s.ports...)
	if s.stations > int(config.Default().Main.MaxStations) {
		text += fmt.Sprintf("\nconfig xdpl2 'main'\n\toption max_stations '%d'\n", 2*s.stations)
	}
	return text
}

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
	if engine != "" {
		if err := s.waitStations(); err != nil {
			return err
		}
	}
	s.engine, s.known = engine, true
	return nil
}

// waitStations waits until the daemon knows the stations.
func (s *switcher) waitStations() error {
	for deadline := time.Now().Add(10 * time.Second); ; {
		list, err := s.daemon.client.Stations(s.ctx, api.StationQuery{VLAN: -1, Limit: 1})
		if err != nil {
			return err
		}
		if list.Total >= s.stations {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the daemon knows %d stations, expected %d", list.Total, s.stations)
		}
		if err := rig.Sleep(s.ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
}

// present is the engine that a port uses now.
func (s *switcher) present(device string) (string, error) {
	status, err := s.daemon.client.Status(s.ctx)
	if err != nil {
		return "", err
	}
	for _, p := range status.Ports {
		if p.Device == device {
			return p.Engine, nil
		}
	}
	return "", fmt.Errorf("the daemon does not know %s", device)
}

// wanted tells what differs from the state that an engine was asked for; auto
// may have chosen any. Native may be impossible in one direction only: what
// counts is the first port, where the frames arrive.
func wanted(s *api.Status, engine string, ports int) error {
	state := api.Accelerating
	if engine == "" {
		state = api.Off
	}
	if len(s.Ports) != ports {
		return fmt.Errorf("the daemon has %d ports, expected %d", len(s.Ports), ports)
	}
	for i, p := range s.Ports {
		other := engine == auto || engine == native && i > 0
		if p.State != state || p.Engine != engine && !other {
			return fmt.Errorf("%s is %s with engine %q (%s), expected %s with %q", p.Device, p.State, p.Engine, p.Reason, state, engine)
		}
	}
	return nil
}

// auto is the engine that chooses one of the others, native the one that needs
// help of the drivers.
const (
	auto   = "auto"
	native = "native"
)
