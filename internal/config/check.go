// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"net"
)

// check looks at what no single option shows.
func (l *loader) check() {
	c := l.config
	if m := c.Main.Metrics; m.IsValid() && !m.Addr().Unmap().IsLoopback() {
		l.add(&Problem{Severity: Warning, Section: "xdpl2 'main'", Option: "metrics", Value: m.String(),
			Message: "whoever can reach this address may read the metrics, without a password", Expected: "127.0.0.1 or ::1, or a firewall before it"})
	}
	devices := map[string]*Port{}
	for i := range c.Ports {
		p := &c.Ports[i]
		if p.passSet {
			for _, what := range p.pass {
				p.PassLocal = p.PassLocal || what == PassLocal
				p.PassGroup = p.PassGroup || what == PassGroup
			}
		} else {
			coexist := c.Main.Topology == TopologyCoexist
			p.PassLocal, p.PassGroup = coexist, coexist
		}
		if first := devices[p.Device]; first != nil {
			l.fault(p.Place, "device", p.Device, "the same device is in section "+first.Place.Section+" already", "each device once")
			continue
		}
		devices[p.Device] = p
		if p.Device == c.Main.Bridge {
			l.fault(p.Place, "device", p.Device, "is the bridge itself", "one of the bridge's ports")
		}
		l.checkTarget(p)
	}
	stations := map[string]*Station{}
	for i := range c.Stations {
		s := &c.Stations[i]
		name := fmt.Sprintf("%s %d", net.HardwareAddr(s.MAC[:]), s.VLAN)
		if first := stations[name]; first != nil {
			l.fault(s.Place, "mac", net.HardwareAddr(s.MAC[:]).String(),
				"the same station is in section "+first.Place.Section+" already", "each station once")
			continue
		}
		stations[name] = s
		if devices[s.Port] == nil {
			l.fault(s.Place, "port", s.Port, "no section of type port has this device", "the device of a port section")
		}
	}
}

func (l *loader) checkTarget(p *Port) {
	switch {
	case p.Target != "" && p.Target == p.Device:
		l.fault(p.Place, "target", p.Target, "is the port itself: frames would leave where they came from", "another device")
	case p.Target != "" && p.Target == l.config.Main.Bridge:
		l.fault(p.Place, "target", p.Target, "is the bridge itself", "a port")
	case p.Target == "" && p.Enabled && l.config.Main.Mode == ModePort:
		l.fault(p.Place, "target", "", "missing, and mode is port", "the device that frames from "+p.Device+" leave by")
	}
}

func (l *loader) fault(at Place, option, value, message, expected string) {
	l.add(&Problem{Severity: Error, File: at.File, Line: at.Line, Section: at.Section,
		Option: option, Value: value, Message: message, Expected: expected})
}

// CheckDevices reports ports and targets that the box does not have. At run
// time such a port waits for its device; a person who checks a file wants to
// know.
func (c *Config) CheckDevices(exists func(name string) bool) (problems Problems) {
	l := loader{}
	const expected = "a network device of this box (the daemon waits for it)"
	for _, p := range c.Ports {
		if !exists(p.Device) {
			l.fault(p.Place, "device", p.Device, "no such network device", expected)
		}
		if p.Target != "" && c.Main.Mode == ModePort && !exists(p.Target) {
			l.fault(p.Place, "target", p.Target, "no such network device", expected)
		}
	}
	// Replace needs none: its ports may be nobody's.
	if len(c.Ports) > 0 && c.Main.Topology == TopologyCoexist && !exists(c.Main.Bridge) {
		l.fault(Place{File: c.File, Section: "xdpl2 'main'"}, "bridge", c.Main.Bridge, "no such network device", expected)
	}
	return l.problems
}
