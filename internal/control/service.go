// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

var _ api.Service = (*Controller)(nil)

// Status implements api.Service.
func (c *Controller) Status(ctx context.Context) (*api.Status, error) {
	var s *api.Status
	if err := c.call(ctx, func() { s = c.status() }); err != nil {
		return nil, err
	}
	c.calibrations.describe(s, c.opts.Calibrator)
	for i := range s.Ports {
		s.Ports[i].Speed = speedOf(&s.Ports[i])
	}
	return s, nil
}

// speedOf asks a port's driver, outside the loop: drivers may take their time.
func speedOf(p *api.PortStatus) int {
	if !p.Up {
		return 0
	}
	speed, err := netdev.LinkSpeed(p.Device)
	if err != nil {
		return 0 // virtual devices have none
	}
	return speed.Mbps
}

func (c *Controller) status() *api.Status {
	main := &c.config.Main
	s := &api.Status{
		Version: c.opts.Version, Kernel: kernelRelease(), Uptime: time.Since(c.began).Seconds(),
		Enabled: main.Enabled, Mode: main.Mode, Topology: main.Topology, Bridge: main.Bridge,
		Ports: []api.PortStatus{}, MaxStations: int(main.MaxStations), Overflow: len(c.overflow),
		Filters: c.filterList(), Resyncs: c.resyncs, ConfigErrors: []api.Problem{}, ConfigWarnings: []api.Problem{},
	}
	if own := c.replaced.own; own != nil {
		s.OwnBridge = own.Name
	}
	for _, st := range c.stations {
		if !st.Local {
			s.Stations++
		}
	}
	for _, p := range c.problems {
		if p.Severity == config.Error {
			s.ConfigErrors = append(s.ConfigErrors, apiProblem(p))
		} else {
			s.ConfigWarnings = append(s.ConfigWarnings, apiProblem(p))
		}
	}
	behind := c.stationsBehind()
	var sum datapath.Counters
	for _, p := range c.ordered() {
		if p.section == nil {
			continue
		}
		counters := c.countersOf(p)
		s.Ports = append(s.Ports, c.portStatus(p, behind, &counters))
		for v := range counters {
			sum[v].Packets += counters[v].Packets
			sum[v].Bytes += counters[v].Bytes
		}
	}
	s.Verdicts = verdictCounts(&sum)
	s.Accelerated = -1
	if carried, passed := sum.Accelerated().Packets, sum.Passed().Packets; carried+passed > 0 {
		s.Accelerated = float64(carried) / float64(carried+passed)
	}
	return s
}

func (c *Controller) portStatus(p *port, behind map[uint32]int, counters *datapath.Counters) api.PortStatus {
	s := api.PortStatus{
		Device: p.device, State: p.state, Reason: p.reason, Engines: map[string]string{}, Stations: behind[p.slot], EngineChanges: p.engineChanges,
		Redirected: api.Count(counters.Accelerated()), Passed: api.Count(counters.Passed()),
	}
	if l, ok := c.links[p.ifindex]; ok {
		s.Up, s.Carrier = l.Up, l.Carrier
	}
	if c.config.Main.Mode == config.ModePort {
		s.Target = p.section.Target
	}
	for engine, why := range p.engines {
		s.Engines[engine] = why
	}
	if p.attachment != nil {
		s.Engine, s.Hook = string(p.attachment.Engine()), p.attachment.Hook()
	}
	return s
}

func (c *Controller) countersOf(p *port) datapath.Counters {
	counters, err := c.dp.Counters(p.slot)
	if err != nil {
		c.log.Error("counters not read", "device", p.device, "error", err)
	}
	return counters
}

// Ports implements api.Service.
func (c *Controller) Ports(ctx context.Context) ([]api.Port, error) {
	var ports []api.Port
	if err := c.call(ctx, func() { ports = c.portList() }); err != nil {
		return nil, err
	}
	for i := range ports {
		p := &ports[i]
		if p.Ifindex != 0 {
			p.Driver, _ = netdev.Driver(p.Device)
			p.Speed = speedOf(&p.PortStatus)
		}
	}
	return ports, nil
}

func (c *Controller) portList() []api.Port {
	behind := c.stationsBehind()
	ports := []api.Port{}
	for _, p := range c.ordered() {
		if p.section == nil {
			continue
		}
		counters := c.countersOf(p)
		out := api.Port{PortStatus: c.portStatus(p, behind, &counters), Ifindex: p.ifindex}
		if l, ok := c.links[p.ifindex]; ok {
			out.MTU, out.Master = l.MTU, c.links[l.Master].Name
			out.Shaper = c.guards.state.Shapers[p.ifindex]
			if l.Port != nil {
				out.STP = l.Port.State.String()
			}
		}
		ports = append(ports, out)
	}
	return ports
}

// stationsBehind counts the stations behind each slot, the box itself left out.
func (c *Controller) stationsBehind() map[uint32]int {
	behind := map[uint32]int{}
	for _, s := range c.stations {
		if !s.Local {
			behind[s.Slot]++
		}
	}
	return behind
}

// Counters implements api.Service.
func (c *Controller) Counters(ctx context.Context, device string) ([]api.PortCounters, error) {
	var all []api.PortCounters
	err := c.call(ctx, func() {
		for _, p := range c.ordered() {
			if p.section != nil && (device == "" || p.device == device) {
				all = append(all, c.portCounters(p))
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if device != "" && len(all) == 0 {
		return nil, &api.UnknownPortError{Port: device}
	}
	return all, nil
}

func (c *Controller) portCounters(p *port) api.PortCounters {
	counters := c.countersOf(p)
	return api.PortCounters{Device: p.device, Since: p.since, Verdicts: verdictCounts(&counters)}
}

func verdictCounts(counters *datapath.Counters) []api.VerdictCount {
	out := make([]api.VerdictCount, 0, len(counters))
	for v := range datapath.Verdict(datapath.NumVerdicts) {
		out = append(out, api.VerdictCount{Verdict: v.String(), Words: v.Words(), Count: api.Count(counters[v])})
	}
	return out
}

// Reload implements api.Service.
func (c *Controller) Reload(ctx context.Context) (*api.ReloadResult, error) {
	var result *api.ReloadResult
	var err error
	if callErr := c.call(ctx, func() {
		result, err = c.reload()
		c.tellConfig(result, err)
	}); callErr != nil {
		return nil, callErr
	}
	return result, err
}

func apiProblem(p *config.Problem) api.Problem {
	return api.Problem{Severity: p.Severity, File: p.File, Line: p.Line, Section: p.Section, Option: p.Option,
		Value: p.Value, Message: p.Message, Expected: p.Expected, Text: p.Error()}
}

func apiProblems(ps config.Problems) []api.Problem {
	out := []api.Problem{}
	for _, p := range ps {
		out = append(out, apiProblem(p))
	}
	return out
}
