// SPDX-License-Identifier: Apache-2.0

// Package config turns /etc/config/xdpl2 into a typed and validated
// configuration. Every option is declared once, in declare.go.
package config

import "net/netip"

//go:generate sh -c "go run ./reference > ../../docs/uci.md"
//go:generate sh -c "go run ./reference luci > ../../luci-app/htdocs/luci-static/resources/xdpl2/options.js"

// Package is the name of the UCI package.
const Package = "xdpl2"

// Config is what a user wants.
type Config struct {
	File     string // where it was read from
	Main     Main
	Ports    []Port
	Stations []Station
	Tuning   Tuning
}

// Modes, topologies and engines, as the options spell them.
const (
	ModeMAC, ModePort                 = "mac", "port"
	TopologyCoexist, TopologyReplace  = "coexist", "replace"
	EngineAuto, EngineNative          = "auto", "native"
	EngineGeneric, EngineTC           = "generic", "tc"
	PassLocal, PassGroup              = "local", "group"
	LogError, LogWarn, LogInfo, Debug = "error", "warn", "info", "debug"
)

// Main is the section xdpl2 'main'.
type Main struct {
	Enabled       bool
	Mode          string
	Topology      string
	Engine        string
	Adapt         bool
	Bridge        string
	Force         bool
	MaxStations   uint32
	BypassFilters bool
	Wireless      bool
	DBus          bool
	Metrics       netip.AddrPort // not valid: none
	LogLevel      string
}

// Port is a section of type port.
type Port struct {
	Place   Place
	Device  string
	Enabled bool
	Target  string // mode port; empty: none
	// PassLocal and PassGroup say what a wire leaves to the stack (mode port).
	PassLocal, PassGroup bool
	Engine               string   // empty: main's
	Echo                 []string // icmp, udp

	passSet bool
	pass    []string
}

// Station is a section of type station.
type Station struct {
	Place Place
	MAC   [6]byte
	Port  string
	VLAN  uint16 // 0: none
}

// Tuning is the section tuning 'tuning'.
type Tuning struct {
	Enabled  bool
	CPU      string
	Steering bool
}

// Place is where a section stands.
type Place struct {
	File    string
	Line    int
	Section string // as errors name it
}

// EngineOf returns the engine that a port asks for, main's if it has none of
// its own.
func (c *Config) EngineOf(p *Port) string {
	if p.Engine != "" {
		return p.Engine
	}
	return c.Main.Engine
}
