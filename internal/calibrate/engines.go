// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"errors"
	"fmt"
	"net"

	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// engines forwards between ports of a bridge in a namespace as the daemon
// does: with the same programs and maps.
type engines struct {
	dp     *datapath.Datapath
	router *netns.NS
	ports  []int // ifindex by slot
	at     []*datapath.Attachment
	before datapath.Counters
}

// longest is what a port of MTU 1500 carries: header and tag beside it.
const longest = 1500 + 14 + 4

// newEngines makes the programs' maps: the stations are behind the ports in
// the same order.
func newEngines(router *netns.NS, devices []string, stations []net.HardwareAddr) (*engines, error) {
	dp, err := datapath.Open(datapath.Options{})
	if err != nil {
		return nil, err
	}
	e := &engines{dp: dp, router: router}
	for slot, device := range devices {
		link, err := router.Link(device)
		if err == nil {
			e.ports = append(e.ports, link.Attrs().Index)
			port := datapath.Port{Ifindex: uint32(link.Attrs().Index), MaxLen: longest,
				Flags: datapath.PortEnabled | datapath.PortForwarding | datapath.PortLearns}
			// The kernel looks the device up in the thread's namespace.
			err = router.Do(func() error { return dp.SetPort(uint32(slot), port) })
		}
		if err == nil {
			err = dp.PutStation(datapath.StationKey{MAC: [6]byte(stations[slot])}, datapath.Station{Slot: uint32(slot)})
		}
		if err != nil {
			return nil, errors.Join(err, dp.Close())
		}
	}
	return e, nil
}

// enter has the ports' frames go through an engine; with "" through the bridge
// alone.
func (e *engines) enter(engine datapath.Engine) error {
	if engine == "" {
		return nil
	}
	var err error
	if e.before, err = e.counters(); err != nil {
		return err
	}
	return e.router.Do(func() error {
		for slot, ifindex := range e.ports {
			a, err := e.dp.Attach(engine, ifindex, datapath.Program{Slot: uint32(slot), Mode: datapath.ModeMAC})
			if err != nil {
				return err
			}
			e.at = append(e.at, a)
		}
		return nil
	})
}

// leave undoes enter, and makes sure that the engine carried what it was to:
// a number for another way would be worse than none.
func (e *engines) leave() error {
	if len(e.at) == 0 {
		return nil
	}
	after, err := e.counters()
	engine := e.at[0].Engine()
	for _, a := range e.at {
		err = errors.Join(err, e.router.Do(a.Detach))
		if engine == datapath.EngineTC && e.dp.NeedsClsact() {
			err = errors.Join(err, e.router.Do(func() error { return datapath.RemoveClsact(a.Ifindex()) }))
		}
	}
	e.at = e.at[:0]
	if err != nil {
		return err
	}
	carried := after.Accelerated().Packets - e.before.Accelerated().Packets
	passed := after.Passed().Packets - e.before.Passed().Packets
	if carried < 9*passed {
		return fmt.Errorf("engine %s carried %d frames and passed %d to the bridge", engine, carried, passed)
	}
	return nil
}

// counters sums over the ports.
func (e *engines) counters() (sum datapath.Counters, err error) {
	for slot := range e.ports {
		c, err := e.dp.Counters(uint32(slot))
		if err != nil {
			return sum, err
		}
		for v := range c {
			sum[v].Packets += c[v].Packets
			sum[v].Bytes += c[v].Bytes
		}
	}
	return sum, nil
}

func (e *engines) close() error { return e.dp.Close() }

// variant is one way to forward in a turn.
type variant struct {
	name   string
	engine datapath.Engine // "": the bridge
}

// variantsOf are the ways that a turn compares.
func variantsOf(list []datapath.Engine) []variant {
	out := []variant{{bridge, ""}}
	for _, engine := range list {
		out = append(out, variant{string(engine), engine})
	}
	return append(out, variant{again, ""})
}

func names(variants []variant) (list []string) {
	for _, v := range variants {
		list = append(list, v.name)
	}
	return list
}
