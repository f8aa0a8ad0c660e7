// SPDX-License-Identifier: Apache-2.0

// Package api is what can be asked of the daemon and told to it: types and one
// interface. The control socket, ubus and D-Bus carry the same.
package api

import (
	"context"
	"strings"
	"time"
)

// Service is implemented by package control.
type Service interface {
	// Status tells how things are, port by port.
	Status(ctx context.Context) (*Status, error)
	// Ports tells what is known of each port.
	Ports(ctx context.Context) ([]Port, error)
	// Stations lists stations, ordered by address and VLAN.
	Stations(ctx context.Context, q StationQuery) (*StationList, error)
	// Counters tells what became of the frames that arrived, for one port or,
	// with an empty name, for all. An unknown port is an error.
	Counters(ctx context.Context, port string) ([]PortCounters, error)
	// Explain tells what would become of a frame now, and why. A query that
	// makes no sense is an *ExplainError.
	Explain(ctx context.Context, q ExplainQuery) (*Explanation, error)
	// Reload reads the configuration again. If it is wrong, the error is a
	// *ConfigError and the daemon goes on with the last good one.
	Reload(ctx context.Context) (*ReloadResult, error)
	// Calibrate measures what forwarding costs on this box, for about so many
	// seconds; with 0 it tells the table of the last time. While one runs, a
	// second is refused with ErrBusy; with nothing
	// to tell, the error is ErrNoData. The end of the context ends it.
	Calibrate(ctx context.Context, seconds int) (*Calibration, error)
	// Events tells what happens from now on. The channel is closed when the
	// context ends, or when there will be no more events. Who reads too slowly
	// misses some, and the next event says how many.
	Events(ctx context.Context) (<-chan Event, error)
}

// Capturer is a service that lets taps (tcpdump) see every frame for a while.
type Capturer interface {
	// Capture has every port use an engine whose frames taps see, tc, until the
	// context ends. It returns when that is so.
	Capture(ctx context.Context) error
}

// The states of a port.
const (
	// Accelerating: its frames go through the fast path.
	Accelerating = "accelerating"
	// Waiting: the device is not there.
	Waiting = "waiting"
	// Off: switched off by the configuration.
	Off = "off"
	// NotAccelerated: the bridge does all of it; the reason says why.
	NotAccelerated = "not_accelerated"
	// Failed: the kernel refused; the reason says what.
	Failed = "failed"
)

// Status is the daemon's state.
type Status struct {
	Version  string  `json:"version"`
	Kernel   string  `json:"kernel"`
	Uptime   float64 `json:"uptime_seconds"`
	Enabled  bool    `json:"enabled"`
	Mode     string  `json:"mode"`
	Topology string  `json:"topology"`
	Bridge   string  `json:"bridge"`
	// OwnBridge is the bridge that xdpl2 has made for the ports (topology
	// replace, mode mac).
	OwnBridge string       `json:"own_bridge,omitempty"`
	Ports     []PortStatus `json:"ports"`
	// Stations in the fast path (the box itself not among them), how many there is room for, and how many
	// did not fit.
	Stations    int `json:"stations"`
	MaxStations int `json:"max_stations"`
	Overflow    int `json:"stations_overflow"`
	// Verdicts is what became of the frames, summed over the ports: all
	// verdicts, in one order.
	Verdicts []VerdictCount `json:"verdicts"`
	// Accelerated is the share of all frames that the fast path carried, 0 to
	// 1; -1 if there were none.
	Accelerated float64 `json:"accelerated_share"`
	// Calibrating is how far a calibration is; absent while there is none.
	Calibrating *CalibrationProgress `json:"calibrating,omitempty"`
	// Calibration says when was measured last; absent if nothing was yet.
	Calibration *CalibrationNote `json:"calibration,omitempty"`
	// Filters is what else on the box wants to see frames of the ports.
	Filters []Filter `json:"filters"`
	// Resyncs counts how often the bridge was read as a whole: once at the
	// start, then whenever the kernel had more to tell than fitted.
	Resyncs int `json:"resyncs"`
	// ConfigErrors is what is wrong with the configuration on disk; while it
	// is, the last good one is in force. ConfigWarnings does no harm.
	ConfigErrors   []Problem `json:"config_errors"`
	ConfigWarnings []Problem `json:"config_warnings"`
}

// PortStatus says whether a port is accelerated, how, and if not, why; and how
// much it carries, so that one question tells all that an overview shows.
type PortStatus struct {
	Device string `json:"device"`
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	Engine string `json:"engine,omitempty"`
	Hook   string `json:"hook,omitempty"`
	// Engines says of each engine "in use" or why not.
	Engines  map[string]string `json:"engines"`
	Up       bool              `json:"up"`
	Carrier  bool              `json:"carrier"`
	Speed    int               `json:"speed_mbit"` // 0: unknown
	Target   string            `json:"target,omitempty"`
	Stations int               `json:"stations"`
	// EngineChanges counts how often the port went over to another engine.
	EngineChanges int `json:"engine_changes"`
	// Redirected and Passed sum the frames that arrived at this port.
	Redirected Count `json:"redirected"`
	Passed     Count `json:"passed"`
}

// FilterLeaving is the place of filters that see what leaves a port.
const FilterLeaving = "leaving"

// Filter is a firewall's table, a tc filter or the like, that sees frames of
// managed ports.
type Filter struct {
	Kind  string `json:"kind"`  // nftables, ebtables, iptables, ip6tables, arptables, conntrack, tc
	Place string `json:"place"` // bridged, arriving, leaving: which frames it sees
	Text  string `json:"text"`  // what it is and where
	// Remedy is what can be done about it.
	Remedy string `json:"remedy"`
	// Ports are those whose frames it sees.
	Ports []string `json:"ports"`
	// Bypassed: the configuration has frames accelerated although it does not
	// see them then.
	Bypassed bool `json:"bypassed"`
}

// Port is what is known of a port.
type Port struct {
	PortStatus
	Ifindex int    `json:"ifindex"` // 0: the device is not there
	Driver  string `json:"driver,omitempty"`
	Master  string `json:"master,omitempty"`
	// Shaper is the kind of the qdisc that delays or orders what leaves here.
	Shaper string `json:"shaper,omitempty"`
	STP    string `json:"stp_state,omitempty"`
	MTU    int    `json:"mtu"`
}

// Count counts frames and their bytes (from the destination address on,
// without FCS).
type Count struct {
	Packets uint64 `json:"packets"`
	Bytes   uint64 `json:"bytes"`
}

// StationQuery selects stations.
type StationQuery struct {
	Port   string // device name; empty: all
	Search string // part of the address or of the port's name; empty: all
	VLAN   int    // -1: all
	Limit  int    // 0: all
	Offset int
}

// StationList is a page of stations.
type StationList struct {
	Total    int       `json:"total"` // that match, on all pages
	Stations []Station `json:"stations"`
}

// Station is an address in the fast path.
type Station struct {
	MAC    string `json:"mac"`
	VLAN   int    `json:"vlan"`
	Port   string `json:"port"`
	Source string `json:"source"` // bridge, static, local
	// Seen is how many seconds ago the fast path last saw it send, to the
	// nearest ageing check; -1: never.
	Seen float64 `json:"seen_seconds"`
}

// PortCounters is what became of the frames that arrived at a port.
type PortCounters struct {
	Device   string         `json:"device"`
	Since    time.Time      `json:"since"`
	Verdicts []VerdictCount `json:"verdicts"` // all of them, in one order
}

// VerdictCount is one verdict's counter.
type VerdictCount struct {
	Verdict string `json:"verdict"`
	Words   string `json:"words"`
	Count
}

// ReloadResult is what a reload has to say.
type ReloadResult struct {
	Changed  bool      `json:"changed"` // whether the configuration differs from before
	Warnings []Problem `json:"warnings"`
}

// Problem is one thing that is wrong with the configuration, and where.
type Problem struct {
	Severity string `json:"severity"` // error, warning
	File     string `json:"file"`
	Line     int    `json:"line,omitempty"`
	Section  string `json:"section,omitempty"`
	Option   string `json:"option,omitempty"`
	Value    string `json:"value,omitempty"`
	Message  string `json:"message"`
	Expected string `json:"expected,omitempty"`
	Text     string `json:"text"` // all of it in a line
}

// ConfigError is the answer to a reload of a configuration that is wrong.
type ConfigError struct {
	Problems []Problem `json:"problems"`
}

// Error lists the problems, one per line.
func (e *ConfigError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Text
	}
	return strings.Join(lines, "\n")
}

// UnknownPortError is the answer to a question about a port that is not
// configured.
type UnknownPortError struct{ Port string }

// Error names the port.
func (e *UnknownPortError) Error() string {
	return "no port " + e.Port + " is configured"
}
