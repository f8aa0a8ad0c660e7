// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// lanPorts are the ports of the lab's router.
var lanPorts = []string{"eth1", "eth2", "eth3"}

// router is the lab with the daemon at work in it.
type router struct {
	*lab.Lab
	daemon *daemon
}

// buildRouter builds the lab and starts the daemon on a UCI file for its ports.
func buildRouter(ctx context.Context, have *box, dir, name string) (*router, error) {
	l, err := lab.New(ctx, lab.Options{Name: name, NoIPv6: !have.ipv6})
	if err != nil {
		return nil, err
	}
	d, err := startDaemon(ctx, have.daemon, dir, l.Router.NS, uciConfig(lab.BridgeName, "auto", lanPorts...))
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &router{l, d}, nil
}

// close ends the daemon and takes the lab down.
func (r *router) close() error { return errors.Join(r.daemon.stop(), r.Lab.Close()) }

// showTraffic is the first part: the main job, at work.
func showTraffic(ctx context.Context, r *report, have *box, dir string, p plan) error {
	box, err := buildRouter(ctx, have, filepath.Join(dir, "lan"), "")
	if err != nil {
		return err
	}
	defer r.cleanUp(box.close)
	status, err := box.daemon.client.Status(ctx)
	if err != nil {
		return err
	}
	r.router(box.daemon, status)

	start := time.Now()
	flows := make(chan []flow, 1)
	go func() { flows <- traffic(ctx, box.Lab, have.ipv6, p.traffic) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var last *sample
	for {
		select {
		case <-tick.C:
			now, err := ask(ctx, box.daemon.client, start)
			if err != nil {
				<-flows // it uses what is taken down now
				return errors.Join(err, box.daemon.alive())
			}
			r.live(last, now)
			last = now
		case done := <-flows:
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			now, err := ask(ctx, box.daemon.client, start)
			if err != nil {
				return errors.Join(err, box.daemon.alive())
			}
			if last == nil || r.screen.terminal || now.at-last.at > time.Second/2 {
				r.live(last, now)
			}
			r.traffic(done, now.ports)
			return nil
		}
	}
}

// trafficFailures tells what of the first part did not work.
func trafficFailures(flows []flow, ports []port) (failures []string) {
	for i := range flows {
		if f := &flows[i]; !f.OK {
			failures = append(failures, fmt.Sprintf("%s: %s", f.Name, f.words()))
		}
	}
	for _, p := range ports {
		switch {
		case p.State != api.Accelerating:
			failures = append(failures, fmt.Sprintf("%s is not accelerated: %s", p.Device, p.Reason))
		case p.Redirected == 0:
			failures = append(failures, fmt.Sprintf("%s: no frame was redirected", p.Device))
		}
	}
	return failures
}
