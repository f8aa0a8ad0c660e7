// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"log/slog"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/dbusapi"
	"github.com/xdpl2/xdpl2/internal/metrics"
)

// optionalWays are the ways in that the configuration switches on and off
// while the daemon runs: D-Bus (option dbus) and metrics on a network address
// (option metrics).
type optionalWays struct {
	dbusAddress string
	log         *slog.Logger
	applied     chan *config.Config // the last one that was put into force
}

// apply is told of a configuration. It does not wait.
func (o *optionalWays) apply(cfg *config.Config) {
	for {
		select {
		case o.applied <- cfg:
			return
		default:
		}
		select { // an older one that nobody has looked at
		case <-o.applied:
		default:
		}
	}
}

// run offers what the configuration asks for until the context ends.
func (o *optionalWays) run(ctx context.Context, s api.Service, cfg *config.Config) {
	onDBus, onMetrics := &wayIn{log: o.log}, &wayIn{log: o.log}
	defer onMetrics.stop()
	defer onDBus.stop()
	for {
		onDBus.want(ctx, cfg.Main.DBus, cfg.Main.DBus, func(ctx context.Context) error {
			return dbusapi.Run(ctx, s, dbusapi.Options{Address: o.dbusAddress, Log: o.log})
		})
		address := cfg.Main.Metrics
		onMetrics.want(ctx, address.IsValid(), address, func(ctx context.Context) error {
			return metrics.Serve(ctx, address.String(), s, o.log)
		})
		select {
		case cfg = <-o.applied:
		case <-ctx.Done():
			return
		}
	}
}

// wayIn is one that runs, or none.
type wayIn struct {
	log    *slog.Logger
	as     any // what was wanted last
	cancel context.CancelFunc
	ended  chan struct{}
}

// want has it run, or not, as something says. It is started anew if that is
// something else than before.
func (w *wayIn) want(ctx context.Context, on bool, as any, run func(context.Context) error) {
	if w.as == as {
		return
	}
	w.stop()
	w.as = as
	if !on {
		return
	}
	ctx, w.cancel = context.WithCancel(ctx)
	w.ended = make(chan struct{})
	go func() {
		defer close(w.ended)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			w.log.Error("a way to ask the daemon has failed", "error", err)
		}
	}()
}

func (w *wayIn) stop() {
	if w.cancel != nil {
		w.cancel()
		<-w.ended
		w.cancel = nil
	}
}
