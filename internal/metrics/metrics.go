// SPDX-License-Identifier: Apache-2.0

// Package metrics tells Prometheus how a service does.
package metrics

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/xdpl2/xdpl2/internal/api"
)

// ContentType of the text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Text is everything, in the text format of Prometheus.
func Text(ctx context.Context, s api.Service) ([]byte, error) {
	status, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	counters, err := s.Counters(ctx, "")
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, f := range of(status, counters) {
		f.write(&b)
	}
	for _, f := range process() {
		f.write(&b)
	}
	return b.Bytes(), nil
}

// of lists what the daemon knows.
func of(status *api.Status, counters []api.PortCounters) []*family {
	info := &family{name: "xdpl2_info", kind: "gauge", help: "What runs here; always 1."}
	info.number(1, "version", status.Version, "kernel", status.Kernel, "mode", status.Mode, "topology", status.Topology, "bridge", status.Bridge)
	enabled := &family{name: "xdpl2_enabled", kind: "gauge", help: "Whether acceleration is switched on."}
	enabled.number(oneIf(status.Enabled))
	uptime := &family{name: "xdpl2_uptime_seconds", kind: "gauge", help: "How long the daemon has run."}
	uptime.number(status.Uptime)
	stations := &family{name: "xdpl2_stations", kind: "gauge", help: "Stations in the fast path."}
	stations.number(float64(status.Stations))
	most := &family{name: "xdpl2_stations_max", kind: "gauge", help: "How many stations there is room for."}
	most.number(float64(status.MaxStations))
	overflow := &family{name: "xdpl2_stations_overflow", kind: "gauge", help: "Stations that did not fit and are left to the bridge."}
	overflow.number(float64(status.Overflow))
	resyncs := &family{name: "xdpl2_resyncs_total", kind: "counter", help: "How often the bridge was read as a whole."}
	resyncs.count(uint64(status.Resyncs))
	problems := &family{name: "xdpl2_config_problems", kind: "gauge", help: "What is wrong with the configuration on disk."}
	problems.number(float64(len(status.ConfigErrors)), "severity", "error")
	problems.number(float64(len(status.ConfigWarnings)), "severity", "warning")
	all := []*family{info, enabled, uptime, stations, most, overflow, resyncs, problems}
	return append(all, ofPorts(status.Ports, counters)...)
}

func ofPorts(ports []api.PortStatus, counters []api.PortCounters) []*family {
	info := &family{name: "xdpl2_port_info", kind: "gauge", help: "Whether a port is accelerated, by which engine, and if not, why; always 1."}
	accelerating := &family{name: "xdpl2_port_accelerating", kind: "gauge", help: "Whether the port's frames go through the fast path."}
	changes := &family{name: "xdpl2_port_engine_changes_total", kind: "counter", help: "How often the port went over to another engine."}
	behind := &family{name: "xdpl2_port_stations", kind: "gauge", help: "Stations behind the port."}
	for _, p := range ports {
		info.number(1, "port", p.Device, "state", p.State, "engine", p.Engine, "hook", p.Hook, "reason", p.Reason)
		accelerating.number(oneIf(p.State == api.Accelerating), "port", p.Device)
		changes.count(uint64(p.EngineChanges), "port", p.Device)
		behind.number(float64(p.Stations), "port", p.Device)
	}
	frames := &family{name: "xdpl2_frames_total", kind: "counter", help: "Frames that arrived at the port, by what became of them."}
	octets := &family{name: "xdpl2_bytes_total", kind: "counter", help: "Bytes of these frames."}
	for _, p := range counters {
		for _, v := range p.Verdicts {
			frames.count(v.Packets, "port", p.Device, "verdict", v.Verdict)
			octets.count(v.Bytes, "port", p.Device, "verdict", v.Verdict)
		}
	}
	return []*family{info, accelerating, changes, behind, frames, octets}
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// process tells what the daemon itself takes, under the names that every
// exporter has.
func process() []*family {
	memory := &family{name: "process_resident_memory_bytes", kind: "gauge", help: "Resident memory of the daemon."}
	var size, resident uint64
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if _, err := fmt.Fscan(strings.NewReader(string(text)), &size, &resident); err == nil {
			memory.number(float64(resident) * float64(os.Getpagesize()))
		}
	}
	cpu := &family{name: "process_cpu_seconds_total", kind: "counter", help: "Processor time of the daemon."}
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err == nil {
		seconds := float64(used.Utime.Nano()+used.Stime.Nano()) / 1e9
		cpu.number(seconds)
	}
	return []*family{memory, cpu}
}
