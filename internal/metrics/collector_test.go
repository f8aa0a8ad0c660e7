// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/api/apitest"
)

const collector = "../../files/usr/lib/lua/prometheus-collectors/xdpl2.lua"

// exporter stands for prometheus-node-exporter-lua and for its ubus module.
const exporter = `
package.preload.ubus = function()
  return { connect = function()
    return { call = function(_, object, method) assert(object == "xdpl2"); return answers[method] end, close = function() end }
  end }
end
function metric(name, kind, labels, value)
  print("# TYPE " .. name .. " " .. kind)
  local function out(l, v)
    local text = {}
    for key, label in pairs(l or {}) do text[#text + 1] = key .. '="' .. label .. '"' end
    print(name .. (#text > 0 and "{" .. table.concat(text, ",") .. "}" or "") .. " " .. v)
  end
  if value then out(labels, value) end
  return out
end
dofile(arg[1]).scrape()
`

// literal writes what JSON decodes to as Lua.
func literal(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case string:
		return fmt.Sprintf("%q", v)
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, literal(e))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case map[string]any:
		var parts []string
		for key, e := range v {
			parts = append(parts, fmt.Sprintf("[%q]=%s", key, literal(e)))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprint(v)
}

func scrape(t *testing.T, answers map[string]any) string {
	t.Helper()
	lua, err := exec.LookPath("lua5.1")
	if err != nil {
		t.Skip("needs lua5.1 (Debian: apt-get install lua5.1), which is OpenWrt's Lua")
	}
	script := "answers = {}\n"
	for method, answer := range answers {
		text, err := json.Marshal(answer)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		dec := json.NewDecoder(strings.NewReader(string(text)))
		dec.UseNumber()
		if err := dec.Decode(&v); err != nil {
			t.Fatal(err)
		}
		script += fmt.Sprintf("answers.%s = %s\n", method, literal(v))
	}
	path := filepath.Join(t.TempDir(), "exporter.lua")
	if err := os.WriteFile(path, []byte(script+exporter), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(lua, path, collector).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// samples lists a text's samples, name, labels and value.
func samples(families map[string]*dto.MetricFamily) (all []string) {
	for name, f := range families {
		for _, m := range f.Metric {
			labels := []string{}
			for _, l := range m.Label {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			slices.Sort(labels)
			all = append(all, fmt.Sprintf("%s %v %v %v", name, labels, f.GetType(), m.GetCounter().GetValue()+m.GetGauge().GetValue()))
		}
	}
	slices.Sort(all)
	return all
}

// TestCollectorSaysTheSame as the daemon itself.
func TestCollectorSaysTheSame(t *testing.T) {
	s := apitest.New()
	s.Change(func(status *api.Status) {
		status.Ports = append(status.Ports, api.PortStatus{Device: "eth2", State: api.NotAccelerated, Reason: "eth2 is not a port of br-lan", EngineChanges: 2, Stations: 5})
		status.ConfigWarnings = []api.Problem{{}}
		status.Uptime, status.Resyncs, status.MaxStations = 12.5, 3, 4096
	})
	status, err := s.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counters, err := s.Counters(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	got := parse(t, scrape(t, map[string]any{"status": status, "counters": api.CounterList{Counters: counters}}))
	if f := got["xdpl2_up"]; f == nil || f.Metric[0].Gauge.GetValue() != 1 {
		t.Errorf("xdpl2_up: %v", f)
	}
	delete(got, "xdpl2_up")
	text, err := Text(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	want := parse(t, string(text))
	for _, name := range []string{"process_resident_memory_bytes", "process_cpu_seconds_total"} {
		delete(want, name)
	}
	if g, w := samples(got), samples(want); !slices.Equal(g, w) {
		t.Errorf("the collector says\n%s\nthe daemon says\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
}

func TestCollectorWithoutADaemon(t *testing.T) {
	if got := scrape(t, nil); got != "# TYPE xdpl2_up gauge\nxdpl2_up 0\n" {
		t.Errorf("%q", got)
	}
}

// TestDashboardAsksForWhatThereIs: every metric that the dashboard and the
// alerts name is one that the daemon has.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	text, err := Text(t.Context(), apitest.New())
	if err != nil {
		t.Fatal(err)
	}
	known := parse(t, string(text))
	for _, name := range []string{"../../docs/fleet/grafana-dashboard.json", "../../docs/fleet/prometheus-rules.yml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".json") && !json.Valid(text) {
			t.Errorf("%s is no JSON", name)
		}
		found := 0
		for _, word := range strings.FieldsFunc(string(text), func(r rune) bool {
			return r != '_' && r != ':' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
		}) {
			if !strings.HasPrefix(word, "xdpl2_") && word != "process_resident_memory_bytes" {
				continue
			}
			found++
			if known[word] == nil {
				t.Errorf("%s: there is no metric %s", name, word)
			}
		}
		if found == 0 {
			t.Errorf("%s names no metric", name)
		}
	}
}
