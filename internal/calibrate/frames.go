// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// frameSlice is how long a variant forwards frames at a time.
const frameSlice = 25 * time.Millisecond

// frameBench measures frames on the rig.
type frameBench struct {
	rig  *rig.Rig
	e    *engines
	list []variant
}

func newFrameBench(ctx context.Context, oneCore bool, list []datapath.Engine) (bench, error) {
	least := 8000
	if oneCore {
		least = 2000 // a slow core's slices shall not be much longer
	}
	r, err := rig.New(ctx, rig.Options{OneCore: oneCore, Least: least})
	if err != nil {
		return nil, err
	}
	e, err := newEngines(r.Router, []string{r.Ingress, r.Egress}, []net.HardwareAddr{rig.Source, rig.Destination})
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return &frameBench{rig: r, e: e, list: variantsOf(list)}, nil
}

func (b *frameBench) variants() []string { return names(b.list) }

func (b *frameBench) compare(ctx context.Context, w work, seed uint64) (map[string]float64, error) {
	var list []rig.Variant
	for _, v := range b.list {
		list = append(list, rig.Variant{Name: v.name, Enter: func() error { return b.e.enter(v.engine) }, Leave: b.e.leave})
	}
	c, err := b.rig.Compare(ctx, w.load(), list, rig.CompareOptions{Rounds: 1, Slice: frameSlice, Seed: seed})
	if err != nil {
		return nil, err
	}
	costs := map[string]float64{}
	for _, name := range c.Variants {
		cost, err := c.Cost(name)
		if err != nil {
			return nil, err
		}
		costs[name] = cost.Median
	}
	return costs, nil
}

func (b *frameBench) Close() error { return errors.Join(b.e.close(), b.rig.Close()) }
