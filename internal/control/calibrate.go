// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/xdpl2/xdpl2/internal/api"
)

// Calibrator measures and keeps the table. This process may not measure itself:
// it has given up the right to make network namespaces.
type Calibrator interface {
	// Measure measures, in another process, until it is done or the context ends.
	Measure(ctx context.Context, seconds int, progress func(api.CalibrationProgress)) (*api.Calibration, error)
	// Load returns the table of the last time, api.ErrNoData if there is none.
	Load() (*api.Calibration, error)
	Store(*api.Calibration) error
	// Stale says why a table does not speak for this box any more; empty if it
	// does.
	Stale(*api.Calibration) string
}

// calibrations is what is known of calibrations. Its methods may be called from
// any goroutine.
type calibrations struct {
	mu      sync.Mutex
	running *api.CalibrationProgress // nil: none is
	last    *api.Calibration         // nil: there is none
	problem error                    // why there is none, if something is wrong
}

// load reads the table of the last time.
func (s *calibrations) load(from Calibrator) error {
	if from == nil {
		return nil
	}
	last, err := from.Load()
	if errors.Is(err, api.ErrNoData) {
		err = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last, s.problem = last, err
	return err
}

// begin takes the one place that there is.
func (s *calibrations) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		return api.ErrBusy
	}
	s.running = &api.CalibrationProgress{Text: "starting"}
	return nil
}

func (s *calibrations) advance(p api.CalibrationProgress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = &p
}

// end gives the place back, and keeps the table if there is one.
func (s *calibrations) end(table *api.Calibration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = nil
	if table != nil {
		s.last, s.problem = table, nil
	}
}

// table returns the table of the last time.
func (s *calibrations) table() (*api.Calibration, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.problem != nil:
		return nil, s.problem
	case s.last == nil:
		return nil, api.ErrNoData
	}
	return s.last, nil
}

// describe adds to a status what there is to say.
func (s *calibrations) describe(status *api.Status, by Calibrator) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		p := *s.running
		status.Calibrating = &p
	}
	if s.last != nil {
		status.Calibration = &api.CalibrationNote{Time: s.last.Time, Kernel: s.last.Kernel, Machine: s.last.Machine, Stale: by.Stale(s.last)}
	}
}

// loadCalibration reads the table of the last time. A file that is broken is no
// reason not to forward.
func (c *Controller) loadCalibration() {
	if err := c.calibrations.load(c.opts.Calibrator); err != nil {
		c.log.Warn("no calibration", "error", err)
	}
}

// Calibrate implements api.Service.
func (c *Controller) Calibrate(ctx context.Context, seconds int) (*api.Calibration, error) {
	if c.opts.Calibrator == nil {
		return nil, errors.New("this daemon cannot measure")
	}
	if seconds == 0 {
		return c.calibrations.table()
	}
	if err := c.calibrations.begin(); err != nil {
		return nil, err
	}
	var kept *api.Calibration
	defer func() { c.calibrations.end(kept) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the daemon's end is the measuring's
		select {
		case <-c.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	c.log.Info("calibration begun", "seconds", seconds)
	table, err := c.opts.Calibrator.Measure(ctx, seconds, func(p api.CalibrationProgress) {
		c.calibrations.advance(p)
		c.events.tell(api.EventCalibrate, func() api.Event {
			return api.Event{State: "running", Done: p.Done, Of: p.Of, Text: "calibration: " + p.Text}
		})
	})
	if err == nil && len(table.Rows) > 0 {
		if err = c.opts.Calibrator.Store(table); err == nil {
			kept = table
		}
	}
	c.tellCalibrated(ctx, table, err)
	return table, err
}

// tellCalibrated tells how a calibration ended.
func (c *Controller) tellCalibrated(ctx context.Context, table *api.Calibration, err error) {
	state, text := "done", ""
	switch {
	case err == nil && len(table.Rows) == 0:
		state, text = "failed", "calibration: nothing could be measured"
		c.log.Warn("calibration: nothing could be measured", "missing", table.Missing)
	case err == nil:
		text = fmt.Sprintf("calibration done: %d rows", len(table.Rows))
		c.log.Info("calibration done", "rows", len(table.Rows), "missing", len(table.Missing))
	case ctx.Err() != nil:
		state, text = "cancelled", "calibration cancelled"
		c.log.Info("calibration cancelled")
	default:
		state, text = "failed", "calibration failed: "+err.Error()
		c.log.Error("calibration failed", "error", err)
	}
	c.events.tell(api.EventCalibrate, func() api.Event { return api.Event{State: state, Text: text} })
}
