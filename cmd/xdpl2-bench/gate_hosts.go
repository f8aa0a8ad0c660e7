// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/xdpl2/xdpl2/internal/results"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// What the hosts of a network notice. Connections stay up while the engine
// changes beneath them, so no window has a slow start in it.

const (
	// window is how long the traffic is looked at at a time, runIn what passes
	// before that after a change of the engine.
	window = 200 * time.Millisecond
	// stall is for how long a transfer may stand still.
	stall = 5 * time.Second
	runIn = 60 * time.Millisecond
	// autoWatch is how long auto is watched at most with the traffic first, to
	// see whether it stays with an engine. If not, it gets as much time before each
	// window as it needed then.
	autoWatch = 5 * time.Second
)

// hosts is a network with its daemon.
type hosts struct {
	*rig.Network
	*switcher
	engines []string // to compare, the bridge first
	auto    trail    // what auto did when it was watched
	close   func() error
}

// network builds a network for a part.
func (c *campaign) network(o rig.NetworkOptions) (*hosts, error) {
	n, err := rig.NewNetwork(c.ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := newSwitcher(c.ctx, c.have.daemon, filepath.Join(c.dir, c.part.name), n.Router, n.Bridge, n.Ports...)
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	h := &hosts{Network: n, switcher: s, close: func() error { return errors.Join(s.daemon.stop(), n.Close()) }}
	can, err := c.possible(s, gateEngines)
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.engines = append(append([]string{viaBridge, again}, can...), auto)
	return h, nil
}

// values is what a window yields, by kind of work.
type values map[string]float64

// windows lets the engines take turns until a time and collects what each
// window yields: in each round every engine has two windows, in a random order
// and back. It returns a series for each kind of work.
func (c *campaign) windows(h *hosts, until time.Time, cells map[string]results.Cell, look func(time.Duration) (values, error)) error {
	all := map[string]*series{}
	for work, cell := range cells {
		cell.Work = work
		all[work] = newSeries(viaBridge, cell)
	}
	if err := c.watchAuto(h, min(autoWatch, time.Until(until)/4)); err != nil {
		return err
	}
	for more := c.roundsUntil(until); more(); {
		order := rand.Perm(len(h.engines))
		for i := len(order) - 1; i >= 0; i-- {
			order = append(order, order[i])
		}
		sums := map[string]values{}
		for _, i := range order {
			got, err := c.window(h, h.engines[i], look)
			if err != nil {
				return err
			}
			if sums[h.engines[i]] == nil {
				sums[h.engines[i]] = values{}
			}
			for work, v := range got {
				sums[h.engines[i]][work] += v / 2
			}
		}
		for _, engine := range h.engines {
			for work, s := range all {
				s.add(engine, sums[engine][work])
			}
		}
		for work, s := range all {
			if s.cell.Unit.MoreIsBetter() {
				c.progress("%s: %d rounds, %s", work, s.rounds(), s.standing())
			}
		}
	}
	for _, s := range all {
		s.notes[auto] = h.auto.words()
		if err := c.put(s); err != nil {
			return err
		}
	}
	return nil
}

// watchAuto lets auto forward the traffic for a while and notes what it uses.
func (c *campaign) watchAuto(h *hosts, d time.Duration) error {
	if err := h.use(auto); err != nil {
		return err
	}
	h.auto = trail{}
	last := ""
	for start, n := time.Now(), 0; n == 0 || time.Since(start) < d; n++ {
		engine, err := h.present(h.ports[0])
		if err != nil {
			return err
		}
		if last != "" && engine != last {
			h.auto.settled = time.Since(start)
		}
		last = engine
		h.auto.saw(engine)
		c.progress("auto with this traffic")
		if err := rig.Sleep(c.ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// window measures an engine once.
func (c *campaign) window(h *hosts, engine string, look func(time.Duration) (values, error)) (values, error) {
	use, wait := engine, runIn
	switch engine {
	case viaBridge, again:
		use = ""
	case auto:
		wait = max(runIn, h.auto.settled)
	}
	if err := h.use(use); err != nil {
		return nil, err
	}
	if err := rig.Sleep(c.ctx, wait); err != nil {
		return nil, err
	}
	return look(window)
}

// transfers looks at a bulk transfer: its throughput and what the forwarding
// core spends on it.
func (c *campaign) transfers(h *hosts, b *rig.Bulk, work string) func(time.Duration) (values, error) {
	return func(d time.Duration) (values, error) {
		bytes, run, took, err := c.observe(h, b, d)
		if err != nil {
			return nil, err
		}
		return values{work: bytes * 8 / took.Seconds(), costOf(work): float64(run.Nanoseconds()) / (bytes / 1024)}, nil
	}
}

// observe counts for a time what arrives and how long the router works.
func (c *campaign) observe(h *hosts, b *rig.Bulk, d time.Duration) (bytes float64, run, took time.Duration, err error) {
	began, before := time.Now(), b.Received()
	ran, err := h.ForwardingTime()
	if err != nil {
		return 0, 0, 0, err
	}
	// After a loss TCP may be silent for longer than a window: then it is
	// measured until something comes.
	for b.Received() == before || time.Since(began) < d {
		if time.Since(began) > d+stall {
			return 0, 0, 0, fmt.Errorf("nothing has arrived for %s", stall)
		}
		if err := rig.Sleep(c.ctx, max(d-time.Since(began), 5*time.Millisecond)); err != nil {
			return 0, 0, 0, err
		}
	}
	after, err := h.ForwardingTime()
	return float64(b.Received() - before), after - ran, time.Since(began), err
}

// transferCells are the cells of a bulk transfer.
func transferCells(work string, streams int) map[string]results.Cell {
	return map[string]results.Cell{
		work:         {Flows: streams, Unit: results.BitsPerS},
		costOf(work): {Flows: streams, Unit: results.NsPerKiB},
	}
}

// bulk measures one bulk transfer.
func (c *campaign) bulk(h *hosts, from, to *rig.Host, streams int, work string, until time.Time) (err error) {
	b, err := h.Bulk(c.ctx, from, to, streams)
	if err != nil {
		return err
	}
	defer closeAll(&err, b.Close)
	return c.windows(h, until, transferCells(work, streams), c.transfers(h, b, work))
}

func (c *campaign) gateTCP() (err error) {
	h, err := c.network(rig.NetworkOptions{})
	if err != nil {
		return err
	}
	defer closeAll(&err, h.close)
	half := time.Now().Add(time.Until(c.until) / 2)
	if err := c.bulk(h, h.Hosts[0], h.Hosts[1], 1, workTCP, half); err != nil {
		return err
	}
	return c.bulk(h, h.Hosts[0], h.Hosts[1], 8, workTCP, c.until)
}

func (c *campaign) gateRouted() (err error) {
	h, err := c.network(rig.NetworkOptions{WAN: true})
	if err != nil {
		return err
	}
	defer closeAll(&err, h.close)
	half := time.Now().Add(time.Until(c.until) / 2)
	if err := c.bulk(h, h.Hosts[0], h.Far, 1, workRouted, half); err != nil {
		return err
	}
	return c.bulk(h, h.Far, h.Hosts[0], 1, workBackward, c.until)
}

func (c *campaign) gateLatency() (err error) {
	h, err := c.network(rig.NetworkOptions{})
	if err != nil {
		return err
	}
	defer closeAll(&err, h.close)
	x, err := h.Exchange(c.ctx, h.Hosts[0], h.Hosts[1])
	if err != nil {
		return err
	}
	defer closeAll(&err, x.Close)
	cells := map[string]results.Cell{workRTT: {Unit: results.Microsecond}, workRTT99: {Unit: results.Microsecond}}
	return c.windows(h, c.until, cells, func(d time.Duration) (values, error) {
		us, err := x.RoundTrips(d)
		if err != nil {
			return nil, err
		}
		return values{workRTT: rig.Median(us), workRTT99: rig.Percentile(us, 0.99)}, nil
	})
}

// mixedRate is how many small frames a second there are beside the transfer: a
// few per cent of a core.
const mixedRate = 50_000

func (c *campaign) gateMixed() (err error) {
	h, err := c.network(rig.NetworkOptions{Hosts: 4})
	if err != nil {
		return err
	}
	defer closeAll(&err, h.close)
	b, err := h.Bulk(c.ctx, h.Hosts[0], h.Hosts[1], 1)
	if err != nil {
		return err
	}
	defer closeAll(&err, b.Close)
	// The receiver speaks once, or its bridge would flood what it gets.
	x, err := h.Exchange(c.ctx, h.Hosts[2], h.Hosts[3])
	if err != nil {
		return err
	}
	if err := x.Close(); err != nil {
		return err
	}
	p, err := h.Paced(h.Hosts[2], h.Hosts[3], mixedRate)
	if err != nil {
		return err
	}
	defer closeAll(&err, p.Close)
	cells := map[string]results.Cell{
		workMixedTCP:  {Flows: 1, Unit: results.BitsPerS},
		workMixedUDP:  {Size: 60, Unit: results.FramesPerS},
		workMixedCost: {Flows: 1, Unit: results.NsPerKiB},
	}
	return c.windows(h, c.until, cells, func(d time.Duration) (values, error) {
		sent, received, err := p.Counts()
		if err != nil {
			return nil, err
		}
		bytes, run, took, err := c.observe(h, b, d)
		if err != nil {
			return nil, err
		}
		sentNow, receivedNow, err := p.Counts()
		if err != nil {
			return nil, err
		}
		if sentNow == sent {
			return nil, errors.New("no small frames are sent")
		}
		return values{
			workMixedTCP:  bytes * 8 / took.Seconds(),
			workMixedUDP:  float64(receivedNow-received) / took.Seconds(),
			workMixedCost: float64(run.Nanoseconds()) / (bytes / 1024),
		}, nil
	})
}
