// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/bridger"
	"github.com/xdpl2/xdpl2/internal/calibrate"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/control"
	"github.com/xdpl2/xdpl2/internal/httpapi"
	"github.com/xdpl2/xdpl2/internal/ubusapi"
)

func daemonCommand() *command {
	var opts control.Options
	return &command{
		name:  "daemon",
		short: "Run the daemon in the foreground",
		long: "It reads the configuration, accelerates the chosen ports and answers the other commands.\n" +
			"SIGHUP reads the configuration again, SIGTERM and SIGINT detach everything and end it.",
		flags: func(fs *flag.FlagSet) {
			fs.BoolVar(&opts.NoTCX, "no-tcx", false, "attach tc programs as clsact filters even where the kernel has tcx")
			fs.BoolVar(&opts.TrustFrames, "trust-frames", false, "take it for granted that virtual devices hand over finished frames: checksums complete, nothing to be segmented")
			fs.BoolVar(&opts.NoXDPFeatures, "no-xdp-features", false, "try native XDP instead of asking what drivers can do, as before Linux 6.3")
			fs.BoolVar(&opts.TrustTags, "trust-tags", false, "take it for granted that virtual devices leave VLAN tags in the frames")
			fs.Func("frame-cost", "take it for granted that a frame costs this much CPU time, instead of measuring it, for tests of option adapt: `ENGINE=TIME,...`, as in tc=900ns,generic=600ns", func(text string) (err error) {
				opts.FrameCost, err = frameCost(text)
				return err
			})
		},
		run: func(ctx context.Context, e *env, _ []string) error { return daemon(ctx, e, opts) },
	}
}

// frameCost reads what a frame costs with each engine that auto chooses from.
func frameCost(text string) (map[string]time.Duration, error) {
	cost := map[string]time.Duration{}
	for _, part := range strings.Split(text, ",") {
		engine, value, _ := strings.Cut(part, "=")
		d, err := time.ParseDuration(value)
		if err != nil || d <= 0 || engine != config.EngineTC && engine != config.EngineGeneric {
			return nil, fmt.Errorf("%q: expected tc=900ns or generic=600ns", part)
		}
		cost[engine] = d
	}
	if len(cost) != 2 {
		return nil, errors.New("expected the cost with tc and the cost with generic")
	}
	return cost, nil
}

func daemon(ctx context.Context, e *env, opts control.Options) error {
	if os.Geteuid() != 0 {
		return errors.New("the daemon needs root: it attaches programs to network devices (CAP_NET_ADMIN, CAP_BPF)")
	}
	// Everything that can be wrong is found before anything is changed.
	cfg, problems := config.Load(e.configDir, e.saveDir)
	if err := problems.Err(); err != nil {
		return err
	}
	level := &slog.LevelVar{}
	log := newLog(e.stdout, e.stderr, level)
	for _, p := range problems {
		log.Warn("configuration", "problem", p.Error())
	}
	unlock, err := lockRunDir(e.runDir)
	if err != nil {
		return err
	}
	defer unlock()
	opts.Version, opts.ConfigDir, opts.SaveDir, opts.RunDir = version, e.configDir, e.saveDir, e.runDir
	opts.Log, opts.Level = log, level
	ways := &optionalWays{dbusAddress: e.dbusAddress, log: log, applied: make(chan *config.Config, 1)}
	opts.Applied = ways.apply
	opts.Calibrator = &calibrate.Keeper{File: e.calibration, Worker: calibrationWorker}
	blacklist := bridger.New(bridger.Options{Socket: e.ubusSocket, Log: log})
	opts.Taken = blacklist.Set
	c, err := control.New(cfg, problems, opts)
	if err != nil {
		return err
	}
	if err := dropCapabilities(); errors.Is(err, errors.ErrUnsupported) {
		log.Debug("capabilities are kept: this binary is linked with C")
	} else if err != nil {
		log.Warn("capabilities are kept", "error", err)
	}
	listener, err := httpapi.Listen(e.runDir)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		err := httpapi.Serve(ctx, listener, c)
		cancel()
		served <- err
	}()
	onUbus := make(chan error, 1)
	go func() { onUbus <- ubusapi.Run(ctx, c, ubusapi.Options{Socket: e.ubusSocket, Log: log}) }()
	offBridger := make(chan error, 1)
	go func() { offBridger <- blacklist.Run(ctx) }()
	var optional sync.WaitGroup
	optional.Go(func() { ways.run(ctx, c, cfg) })
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	go func() {
		for {
			select {
			case <-hangups:
				_, _ = c.Reload(ctx) // what is wrong is logged and in status
			case <-ctx.Done():
				return
			}
		}
	}()
	log.Info("starting", "version", version, "enabled", cfg.Main.Enabled, "mode", cfg.Main.Mode, "bridge", cfg.Main.Bridge)
	err = c.Run(ctx, func() { log.Info("ready") })
	cancel()
	err = errors.Join(err, <-served, <-onUbus, <-offBridger)
	optional.Wait()
	if err == nil {
		log.Info("stopped, everything detached")
	}
	return err
}

// lockRunDir makes the run directory and keeps other daemons out of it, and out
// of this network namespace, until the returned function is called or the
// process ends.
func lockRunDir(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the run directory: %w", err)
	}
	path := filepath.Join(dir, "daemon.lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		pid, _ := io.ReadAll(io.LimitReader(f, 20))
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("a daemon is running already with run directory %s (process %s)", dir, strings.TrimSpace(string(pid)))
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Two daemons with different run directories would fight over the same
	// devices. A name in the abstract namespace belongs to the network namespace,
	// and goes with the process.
	only, err := net.Listen("unix", "@xdpl2")
	if err != nil {
		f.Close()
		if errors.Is(err, unix.EADDRINUSE) {
			return nil, errors.New("a daemon is running already, with another run directory")
		}
		return nil, fmt.Errorf("make sure that there is one daemon only: %w", err)
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if err != nil {
		only.Close()
		f.Close()
		return nil, fmt.Errorf("write %s: %w", path, err)
	}
	return func() {
		_ = f.Truncate(0)
		only.Close()
		f.Close()
	}, nil
}
