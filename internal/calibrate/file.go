// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/xdpl2/xdpl2/internal/api"
)

// DefaultFile is where the table of the last calibration is kept.
const DefaultFile = "/etc/xdpl2/calibration.json"

// fileLimit bounds what is read: a table has some 30 rows.
const fileLimit = 256 << 10

// Load reads the table of the last calibration. Without a file it returns
// api.ErrNoData.
func Load(path string) (*api.Calibration, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, api.ErrNoData
	case err != nil:
		return nil, fmt.Errorf("read the calibration: %w", err)
	case !info.Mode().IsRegular() || info.Size() > fileLimit:
		return nil, fmt.Errorf("read the calibration: %s: expected a file of at most %d bytes", path, fileLimit)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the calibration: %w", err)
	}
	c := &api.Calibration{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("read the calibration: %s: %w", path, err)
	}
	for i, r := range c.Rows {
		if r.Work == "" || r.Engine == "" || !(r.Rate > 0) || !(r.Low > 0 && r.Low <= r.Ratio && r.Ratio <= r.High) {
			return nil, fmt.Errorf("read the calibration: %s: row %d makes no sense", path, i+1)
		}
	}
	if c.Time.IsZero() || c.Kernel == "" {
		return nil, fmt.Errorf("read the calibration: %s: it does not say when and on which kernel", path)
	}
	if c.Missing == nil {
		c.Missing = []string{}
	}
	return c, nil
}

// Store keeps a table for Load: whole, or as before if anything goes wrong.
func Store(path string, c *api.Calibration) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the calibration: %w", err)
		}
	}()
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".calibration-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
