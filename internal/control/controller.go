// SPDX-License-Identifier: Apache-2.0

// Package control is the only place where configuration, bridge and data path
// meet: it computes what should be from the first two and makes the third so.
package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// Options of a Controller.
type Options struct {
	Version            string
	ConfigDir, SaveDir string
	// RunDir keeps what has to be restored after a crash; empty: nowhere.
	RunDir string
	NoTCX  bool // use clsact filters even where the kernel has tcx
	// TrustTags takes it for granted that virtual devices leave VLAN tags in
	// the frames. It is for tests that see to it.
	TrustTags bool
	// FrameCost is taken for the CPU time of a frame with each engine, instead of
	// what the clocks say. It is for tests of what follows from that.
	FrameCost map[string]time.Duration
	// TrustFrames takes it for granted that what virtual devices hand over is
	// finished, as on a wire. It is for tests that see to it.
	TrustFrames bool
	// NoXDPFeatures has drivers tried that could be asked, as on kernels that
	// do not tell what they can do.
	NoXDPFeatures bool
	Log           *slog.Logger
	Level         *slog.LevelVar // set from option log_level; may be nil
	// Applied is called with each configuration that a reload has put into
	// force; it must not wait for the controller. May be nil.
	Applied func(*config.Config)
	// Taken is called with the devices that another fast path should leave to
	// this one, whenever they change; it must not wait for the controller. May
	// be nil.
	Taken func(devices []string)
	// Calibrator measures; nil: nothing can be measured.
	Calibrator Calibrator
}

// Controller runs the fast path. One goroutine (Run's) owns all of its state;
// everything else asks that goroutine.
type Controller struct {
	opts  Options
	log   *slog.Logger
	calls chan func()
	ended chan struct{} // closed when Run no longer answers
	began time.Time

	config   *config.Config // in force
	problems config.Problems
	dp       *datapath.Datapath
	mirror   *bridge.Mirror
	resyncs  int

	links    links
	ports    map[string]*port // by device
	fdb      map[bridge.Key]bridge.Entry
	stations map[datapath.StationKey]*station
	overflow map[datapath.StationKey]struct{} // did not fit
	unsure   unsure
	ageing   ageing
	journal  *journal
	guards   guards
	replaced replaced
	verifier verifier
	events   *events
	resizing bool // stations come again that never went
	captures int  // who looks at frames with a tap (capture.go)
	adapting adapting

	calibrations calibrations
}

// New loads the data path for a configuration. Nothing on the system changes
// before Run.
func New(cfg *config.Config, warnings config.Problems, opts Options) (*Controller, error) {
	c := &Controller{
		opts: opts, log: opts.Log, config: cfg, problems: warnings,
		calls: make(chan func()), ended: make(chan struct{}), began: time.Now(),
		ports:    map[string]*port{},
		fdb:      map[bridge.Key]bridge.Entry{},
		stations: map[datapath.StationKey]*station{},
		overflow: map[datapath.StationKey]struct{}{},
		unsure:   newUnsure(),
		adapting: newAdapting(),
		verifier: newVerifier(),
		events:   newEvents(),
	}
	c.setLevel()
	c.loadCalibration()
	var err error
	c.dp, err = datapath.Open(datapath.Options{MaxStations: cfg.Main.MaxStations, NoTCX: opts.NoTCX})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Run keeps the fast path in step with the bridge until the context ends, and
// then detaches everything. ready is called when the first frame can be
// accelerated. It returns an error if the bridge can no longer be followed;
// everything is detached then, too.
func (c *Controller) Run(ctx context.Context, ready func()) (err error) {
	defer close(c.ended)
	defer c.events.close()
	defer func() { err = errors.Join(err, c.detachAll(), c.dp.Close()) }()

	if err := c.cleanUp(); err != nil {
		return err
	}
	mirror, err := bridge.Open()
	if err != nil {
		return err
	}
	c.mirror = mirror
	ctx, cancel := context.WithCancel(ctx)
	if err := c.watchFilters(ctx); err != nil {
		cancel()
		mirror.Close()
		return err
	}
	drivers := c.watchXDP(ctx)
	updates := make(chan bridge.Update)
	mirrored := make(chan error, 1)
	go func() {
		mirrored <- mirror.Run(ctx, func(u bridge.Update) {
			select {
			case updates <- u:
			case <-ctx.Done():
			}
		})
	}()
	running := true
	defer func() {
		cancel()
		if running {
			<-mirrored
		}
		<-c.guards.ended
	}()
	c.ageing.start()
	defer c.ageing.stop()
	for {
		select {
		case u := <-updates:
			c.follow(u)
			if ready != nil {
				c.confirmStations()
				c.nameAbsent()
				ready()
				ready = nil
			}
		case s := <-c.guards.updates:
			c.followFilters(s)
			c.reconcile()
		case err := <-c.guards.ended:
			c.guards.ended <- err // for who waits for it
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("follow filters: %w", err)
		case ifindex := <-drivers:
			if c.featuresTold(ifindex) {
				c.reconcile()
			}
		case <-c.verifier.timer.C:
			c.verify()
		case f := <-c.calls:
			f()
		case <-c.unsure.timer.C:
			c.confirmStations()
		case <-c.adapting.timer.C:
			c.adapt()
		case <-c.ageing.ticks():
			c.age()
		case err := <-mirrored:
			running = false
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("follow the bridge: %w", err)
		case <-ctx.Done():
			return nil
		}
	}
}

// cleanUp undoes what an earlier daemon left that was killed.
func (c *Controller) cleanUp() error {
	devices, err := datapath.Cleanup()
	if err != nil {
		c.log.Warn("cannot clean up after an earlier daemon", "error", err)
	}
	if len(devices) > 0 {
		c.log.Info("removed filters that an earlier daemon left", "devices", devices)
	}
	devices, err = Cleanup(c.opts.RunDir)
	if err != nil {
		c.log.Warn("cannot restore what an earlier daemon changed", "error", err)
	}
	if len(devices) > 0 {
		c.log.Info("restored what an earlier daemon changed", "devices", devices)
	}
	c.journal, err = openJournal(c.opts.RunDir)
	if err != nil { // unreadable: a person may want to see it, and nobody else can use it
		path := filepath.Join(c.opts.RunDir, journalName)
		if err := os.Rename(path, path+".broken"); err != nil {
			return fmt.Errorf("set a broken journal aside: %w", err)
		}
		c.journal, err = openJournal(c.opts.RunDir)
	}
	return err
}

// follow applies what the mirror saw.
func (c *Controller) follow(u bridge.Update) {
	if u.Resync {
		c.resyncs++
		clear(c.fdb)
	}
	for _, ch := range u.FDB {
		if ch.Gone {
			delete(c.fdb, ch.Key)
		} else {
			c.fdb[ch.Key] = ch.Entry
		}
	}
	if u.Links != nil {
		c.links = u.Links
	}
	switch {
	case u.Resync || u.Links != nil || c.featuresChanged(u.Touched):
		c.reconcile()
		if !u.Resync {
			c.followStations(u.FDB)
		}
	default:
		c.followStations(u.FDB)
	}
}

// reload reads the configuration again and puts it into force if it is good.
func (c *Controller) reload() (*api.ReloadResult, error) {
	cfg, problems := config.Load(c.opts.ConfigDir, c.opts.SaveDir)
	c.problems = problems
	for _, p := range problems {
		c.log.Warn("configuration", "severity", p.Severity, "problem", p.Error())
	}
	if err := problems.Err(); err != nil {
		c.log.Error("configuration not loaded, the last good one stays in force")
		return nil, &api.ConfigError{Problems: apiProblems(problems.Errors())}
	}
	changed := !reflect.DeepEqual(c.config, cfg)
	before := c.config
	c.config = cfg
	c.setLevel()
	c.loadCalibration()
	if before.Main.MaxStations != cfg.Main.MaxStations {
		if err := c.resize(cfg.Main.MaxStations); err != nil {
			c.log.Error("the station table keeps its size", "error", err)
		}
	}
	c.arrangeAnew()
	c.reconcile()
	c.nameAbsent()
	c.log.Info("configuration loaded", "changed", changed)
	if c.opts.Applied != nil {
		c.opts.Applied(cfg)
	}
	return &api.ReloadResult{Changed: changed, Warnings: apiProblems(problems)}, nil
}

// nameAbsent logs devices that the configuration names and the box lacks: they
// are waited for, since they may be plugged in later, but they may also be
// misspelt.
func (c *Controller) nameAbsent() {
	problems := c.config.CheckDevices(func(name string) bool {
		_, ok := c.links.byName(name)
		return ok
	})
	for _, p := range problems {
		c.log.Warn("waiting for a device", "problem", p.Error())
	}
}

// resize gives the stations a map of another size. Programs go on with the
// old map until the new one is filled.
func (c *Controller) resize(n uint32) error {
	old, err := c.dp.ResizeStations(n)
	if err != nil {
		return err
	}
	clear(c.stations)
	c.resizing = true
	c.reconcile()
	c.resizing = false
	for _, p := range c.ports {
		for _, a := range p.attachments() {
			err = errors.Join(err, a.Reload())
		}
	}
	return errors.Join(err, old.Close())
}

func (c *Controller) setLevel() {
	if c.opts.Level == nil {
		return
	}
	c.opts.Level.Set(map[string]slog.Level{
		config.LogError: slog.LevelError, config.LogWarn: slog.LevelWarn,
		config.LogInfo: slog.LevelInfo, config.Debug: slog.LevelDebug,
	}[c.config.Main.LogLevel])
}

// call runs f on Run's goroutine.
func (c *Controller) call(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case c.calls <- func() { f(); close(done) }:
	case <-c.ended:
		return errors.New("the daemon is stopping")
	case <-ctx.Done():
		return ctx.Err()
	}
	<-done
	return nil
}

func kernelRelease() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return "unknown"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// Close frees what New made, if Run is never called.
func (c *Controller) Close() error { return c.dp.Close() }
