// SPDX-License-Identifier: Apache-2.0

package config

import "net/netip"

// field ties an option's declaration to where its value is kept.
type field[T any] struct {
	Option
	store func(*T, any)
}

// notBuiltIgnored is what the warnings say about what cannot be had yet.
const notBuiltIgnored = "not built in this version, ignored"

var engines = []string{EngineAuto, EngineNative, EngineGeneric, EngineTC}

var mainFields = []field[Main]{
	{Option{Name: "enabled", Type: Boolean, Default: "0", Help: "Switches acceleration on. Off after installing."},
		func(m *Main, v any) { m.Enabled = v.(bool) }},
	{Option{Name: "mode", Type: Choice, Choices: []string{ModeMAC, ModePort}, Default: ModeMAC,
		Help: "mac: the destination address decides, as in a bridge. port: what comes in by one port leaves by its target, a wire."},
		func(m *Main, v any) { m.Mode = v.(string) }},
	{Option{Name: "topology", Type: Choice, Choices: []string{TopologyCoexist, TopologyReplace}, Default: TopologyCoexist,
		Help: "coexist: the ports stay in the bridge. replace: they leave it, and are a network of their own, without the box."},
		func(m *Main, v any) { m.Topology = v.(string) }},
	{Option{Name: "engine", Type: Choice, Choices: engines, Default: EngineAuto,
		Help: "Where the program runs: native (driver XDP), generic (XDP on the sk_buff), tc, or auto: whichever is best there."},
		func(m *Main, v any) { m.Engine = v.(string) }},
	{Option{Name: "adapt", Type: Boolean, Default: "1", Help: "Whether auto may try generic against tc under load."},
		func(m *Main, v any) { m.Adapt = v.(bool) }},
	{Option{Name: "bridge", Type: Device, Default: "br-lan", Help: "The bridge whose ports are accelerated, or (replace) taken."},
		func(m *Main, v any) { m.Bridge = v.(string) }},
	{Option{Name: "force", Type: Boolean, Default: "0", Help: "Topology replace: take ports even if the box cannot be reached any more."},
		func(m *Main, v any) { m.Force = v.(bool) }},
	{Option{Name: "max_stations", Type: Number, Min: 16, Max: 1 << 20, Default: "4096", Help: "How many stations the fast path can know."},
		func(m *Main, v any) { m.MaxStations = v.(uint32) }},
	{Option{Name: "bypass_filters", Type: Boolean, Default: "0", Help: "Accelerate although the bridge has filters, which then see less."},
		func(m *Main, v any) { m.BypassFilters = v.(bool) }},
	{Option{Name: "wireless", Type: Boolean, Default: "0", Help: "Whether a wireless port may be accelerated."},
		func(m *Main, v any) { m.Wireless = v.(bool) }},
	{Option{Name: "dbus", Type: Boolean, Default: "0", Help: "Whether to offer org.xdpl2 on the system's D-Bus."},
		func(m *Main, v any) { m.DBus = v.(bool) }},
	{Option{Name: "metrics", Type: Address, Help: "Where Prometheus can fetch metrics, without a password: 127.0.0.1:9420, say. Unset: at the control socket alone."},
		func(m *Main, v any) { m.Metrics = v.(netip.AddrPort) }},
	{Option{Name: "log_level", Type: Choice, Choices: []string{LogError, LogWarn, LogInfo, Debug}, Default: LogInfo, Help: "How much is logged."},
		func(m *Main, v any) { m.LogLevel = v.(string) }},
}

var portFields = []field[Port]{
	{Option{Name: "device", Type: Device, Required: true, Help: "The port, by name; it may come and go."},
		func(p *Port, v any) { p.Device = v.(string) }},
	{Option{Name: "enabled", Type: Boolean, Default: "1", Help: "Whether this port is accelerated."},
		func(p *Port, v any) { p.Enabled = v.(bool) }},
	{Option{Name: "target", Type: Device, Help: "Mode port: the device that frames from here leave by."},
		func(p *Port, v any) { p.Target = v.(string) }},
	{Option{Name: "pass", Type: Choice, List: true, Choices: []string{PassLocal, PassGroup}, Default: "local and group in coexist, none in replace",
		Help: "Mode port: what still goes to the box. local: frames to its own addresses. group: broadcast and multicast, so that ARP finds it."},
		func(p *Port, v any) { p.pass = append(p.pass, v.(string)); p.passSet = true }},
	{Option{Name: "engine", Type: Choice, Choices: engines, Help: "As main's, for this port alone."},
		func(p *Port, v any) { p.Engine = v.(string) }},
	{Option{Name: "echo", Type: Choice, List: true, Choices: []string{"icmp", "udp"}, Default: "none", Ignored: notBuiltIgnored, Help: "Answer echo requests to the box in the data path."},
		func(p *Port, v any) { p.Echo = append(p.Echo, v.(string)) }},
}

var stationFields = []field[Station]{
	{Option{Name: "mac", Type: MAC, Required: true, Help: "The station's address."},
		func(s *Station, v any) { s.MAC = v.([6]byte) }},
	{Option{Name: "port", Type: Device, Required: true, Help: "The port that it is behind."},
		func(s *Station, v any) { s.Port = v.(string) }},
	{Option{Name: "vlan", Type: Number, Min: 1, Max: 4094,
		Help: "Its VLAN, in a VLAN-aware bridge (unset: that of the port's untagged frames). In other bridges a station with a VLAN is not used."},
		func(s *Station, v any) { s.VLAN = uint16(v.(uint32)) }},
}

var tuningFields = []field[Tuning]{
	{Option{Name: "enabled", Type: Boolean, Default: "0", Ignored: notBuiltIgnored, Help: "Whether interrupts and steering of the ports are set."},
		func(t *Tuning, v any) { t.Enabled = v.(bool) }},
	{Option{Name: "cpu", Type: Choice, Choices: cpus(), Default: "auto", Help: "The core for the ports' interrupts."},
		func(t *Tuning, v any) { t.CPU = v.(string) }},
	{Option{Name: "steering", Type: Choice, Choices: []string{"off", "on"}, Default: "off", Help: "Receive packet steering for the ports."},
		func(t *Tuning, v any) { t.Steering = v.(string) == "on" }},
}

func cpus() []string {
	all := []string{"auto"}
	for _, n := range "0123456789" {
		all = append(all, string(n))
	}
	return all
}

// sections maps a section type to the one name that is read, or "" for any.
var sections = map[string]string{"xdpl2": "main", "port": "", "station": "", "tuning": "tuning"}

// Options returns the declarations of all options, section type by section
// type, in the order in which the reference lists them.
func Options() []Option {
	var all []Option
	all = appendOptions(all, "xdpl2", mainFields)
	all = appendOptions(all, "port", portFields)
	all = appendOptions(all, "station", stationFields)
	return appendOptions(all, "tuning", tuningFields)
}

func appendOptions[T any](all []Option, section string, fields []field[T]) []Option {
	for _, f := range fields {
		f.Section = section
		all = append(all, f.Option)
	}
	return all
}
