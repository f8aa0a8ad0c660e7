-- SPDX-License-Identifier: Apache-2.0
-- xdpl2's metrics for OpenWrt's prometheus-node-exporter-lua, under the names
-- that the daemon itself uses.

local ubus = require "ubus"

local function scrape()
  local bus = ubus.connect()
  if not bus then
    error("no connection to ubusd")
  end
  local status = bus:call("xdpl2", "status", {})
  local counters = bus:call("xdpl2", "counters", {})
  bus:close()

  metric("xdpl2_up", "gauge", nil, status and 1 or 0)
  if not status or not counters then
    return -- the daemon is not running
  end

  metric("xdpl2_info", "gauge", {
    version = status.version, kernel = status.kernel, mode = status.mode,
    topology = status.topology, bridge = status.bridge,
  }, 1)
  metric("xdpl2_enabled", "gauge", nil, status.enabled and 1 or 0)
  metric("xdpl2_uptime_seconds", "gauge", nil, status.uptime_seconds)
  metric("xdpl2_stations", "gauge", nil, status.stations)
  metric("xdpl2_stations_max", "gauge", nil, status.max_stations)
  metric("xdpl2_stations_overflow", "gauge", nil, status.stations_overflow)
  metric("xdpl2_resyncs_total", "counter", nil, status.resyncs)
  local problems = metric("xdpl2_config_problems", "gauge")
  problems({ severity = "error" }, #status.config_errors)
  problems({ severity = "warning" }, #status.config_warnings)

  local info = metric("xdpl2_port_info", "gauge")
  for _, port in ipairs(status.ports) do
    info({
      port = port.device, state = port.state, engine = port.engine or "",
      hook = port.hook or "", reason = (port.reason or ""):gsub("[\\\"\n]", " "),
    }, 1)
  end
  local accelerating = metric("xdpl2_port_accelerating", "gauge")
  for _, port in ipairs(status.ports) do
    accelerating({ port = port.device }, port.state == "accelerating" and 1 or 0)
  end
  local changes = metric("xdpl2_port_engine_changes_total", "counter")
  for _, port in ipairs(status.ports) do
    changes({ port = port.device }, port.engine_changes)
  end
  local stations = metric("xdpl2_port_stations", "gauge")
  for _, port in ipairs(status.ports) do
    stations({ port = port.device }, port.stations)
  end

  for name, key in pairs({ xdpl2_frames_total = "packets", xdpl2_bytes_total = "bytes" }) do
    local count = metric(name, "counter")
    for _, port in ipairs(counters.counters) do
      for _, verdict in ipairs(port.verdicts) do
        -- As an integer: Lua's own way keeps 14 digits.
        count({ port = port.device, verdict = verdict.verdict }, string.format("%.0f", verdict[key]))
      end
    end
  end
end

return { scrape = scrape }
