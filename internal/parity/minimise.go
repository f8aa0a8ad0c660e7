// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"slices"
)

// Minimise plays shorter scenarios as long as they still show a difference, and
// returns the report of the shortest. It gives up after a number of plays, or
// when ctx ends.
func (b *Bench) Minimise(ctx context.Context, r *Report, plays int) (*Report, error) {
	m := minimiser{b: b, best: r, plays: plays}
	if err := m.steps(ctx); err != nil {
		return m.best, err
	}
	return m.best, m.settings(ctx)
}

type minimiser struct {
	b     *Bench
	best  *Report
	plays int
}

// try plays a scenario and keeps it if it still differs.
func (m *minimiser) try(ctx context.Context, sc Scenario) (bool, error) {
	if m.plays <= 0 || ctx.Err() != nil {
		return false, nil
	}
	m.plays--
	r, err := m.b.Play(ctx, &sc)
	if err != nil || len(r.Differences) == 0 {
		return false, err
	}
	m.best = r
	return true, nil
}

// steps drops steps, many at first and then one by one. Waiting is not dropped
// but where there was nothing to wait for.
func (m *minimiser) steps(ctx context.Context) error {
	for size := len(m.best.Scenario.Steps) / 2; size >= 1; size /= 2 {
		for at := 0; at < len(m.best.Scenario.Steps); {
			sc := *m.best.Scenario
			sc.Steps = without(sc.Steps, at, size)
			if len(sc.Steps) == len(m.best.Scenario.Steps) {
				at += size
				continue
			}
			shorter, err := m.try(ctx, sc)
			if err != nil {
				return err
			}
			if !shorter {
				at += size
			}
		}
	}
	return nil
}

func without(steps []Step, at, size int) []Step {
	end := min(at+size, len(steps))
	rest := slices.Clone(steps[:at])
	for i := at; i < end; i++ {
		if steps[i].Settle {
			rest = append(rest, steps[i])
		}
	}
	rest = append(rest, steps[end:]...)
	return slices.CompactFunc(rest, func(a, b Step) bool { return a.Settle && b.Settle })
}

// settings makes ports and bridge the kernel's defaults again, one by one.
func (m *minimiser) settings(ctx context.Context) error {
	for i := range PortCount {
		sc := *m.best.Scenario
		sc.Box = sc.Box.clone()
		vlans := sc.Box.Ports[i].VLANs
		sc.Box.Ports[i] = NewBox().Ports[i]
		if sc.Box.VLANAware {
			sc.Box.Ports[i].VLANs = vlans
		}
		if _, err := m.try(ctx, sc); err != nil {
			return err
		}
	}
	for i := len(m.best.Scenario.FDB) - 1; i >= 0; i-- {
		sc := *m.best.Scenario
		sc.FDB = slices.Delete(slices.Clone(sc.FDB), i, i+1)
		if _, err := m.try(ctx, sc); err != nil {
			return err
		}
	}
	return nil
}
