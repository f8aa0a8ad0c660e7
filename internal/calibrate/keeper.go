// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"context"

	"github.com/xdpl2/xdpl2/internal/api"
)

// Keeper measures by a worker and keeps the tables in a file; it is what package
// control knows of this one.
type Keeper struct {
	File   string
	Worker Command
}

// Measure has a worker measure.
func (k *Keeper) Measure(ctx context.Context, seconds int, progress func(api.CalibrationProgress)) (*api.Calibration, error) {
	return k.Worker.Ask(ctx, seconds, progress)
}

// Load is Load of the file.
func (k *Keeper) Load() (*api.Calibration, error) { return Load(k.File) }

// Store is Store to the file.
func (k *Keeper) Store(c *api.Calibration) error { return Store(k.File, c) }

// Stale is Stale.
func (k *Keeper) Stale(c *api.Calibration) string { return Stale(c) }
