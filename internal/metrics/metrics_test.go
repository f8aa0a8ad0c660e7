// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/api/apitest"
)

// parse reads the text as Prometheus does.
func parse(t *testing.T, text string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

func TestText(t *testing.T) {
	s := apitest.New()
	const reason = "odd \\ \"name\"\nin two lines"
	s.Change(func(status *api.Status) {
		status.Ports[0].Reason, status.Ports[0].EngineChanges = reason, 3
		status.ConfigErrors = []api.Problem{{}, {}}
	})
	text, err := Text(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	families := parse(t, string(text))
	value := func(name string, labels ...string) (float64, bool) {
		f := families[name]
		if f == nil {
			return 0, false
		}
	next:
		for _, m := range f.Metric {
			have := map[string]string{}
			for _, l := range m.Label {
				have[l.GetName()] = l.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if have[labels[i]] != labels[i+1] {
					continue next
				}
			}
			if f.GetType() == dto.MetricType_COUNTER {
				return m.Counter.GetValue(), true
			}
			return m.Gauge.GetValue(), true
		}
		return 0, false
	}
	for _, want := range []struct {
		value  float64
		name   string
		labels []string
	}{
		{1, "xdpl2_info", []string{"version", "1.2.3", "mode", "mac", "bridge", "br-lan"}},
		{1, "xdpl2_enabled", nil},
		{2500, "xdpl2_stations", nil},
		{2, "xdpl2_config_problems", []string{"severity", "error"}},
		{0, "xdpl2_config_problems", []string{"severity", "warning"}},
		{1, "xdpl2_port_info", []string{"port", "eth1", "engine", "tc", "state", "accelerating", "reason", reason}},
		{1, "xdpl2_port_accelerating", []string{"port", "eth1"}},
		{3, "xdpl2_port_engine_changes_total", []string{"port", "eth1"}},
		{7, "xdpl2_frames_total", []string{"port", "eth1", "verdict", "pass_group"}},
		{700, "xdpl2_bytes_total", []string{"port", "eth1", "verdict", "pass_group"}},
	} {
		if got, ok := value(want.name, want.labels...); !ok || got != want.value {
			t.Errorf("%s%v = %v, %v; want %v", want.name, want.labels, got, ok, want.value)
		}
	}
	if n, _ := value("process_resident_memory_bytes"); n < 1<<20 {
		t.Errorf("resident memory %v", n)
	}
	// No counter is rounded.
	if exact := fmt.Sprintf(`verdict="redirected"} %d`, apitest.Big); !strings.Contains(string(text), exact) {
		t.Errorf("no %s in\n%s", exact, text)
	}
	for name, f := range families {
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", name)
		}
		if counter := f.GetType() == dto.MetricType_COUNTER; counter != strings.HasSuffix(name, "_total") {
			t.Errorf("%s: counters alone end in _total", name)
		}
	}
}

func TestServe(t *testing.T) {
	s := apitest.New()
	// The address is taken at first.
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := taken.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	told := make(chan string, 10)
	go func() { ended <- Serve(ctx, address, s, slog.New(slog.NewTextHandler(writer(told), nil))) }()
	if line := <-told; !strings.Contains(line, "no metrics yet") {
		t.Errorf("log %q", line)
	}
	taken.Close()
	if line := <-told; !strings.Contains(line, "http://"+address+"/metrics") {
		t.Errorf("log %q", line)
	}
	get := func(path string) (int, string) {
		t.Helper()
		client := http.Client{Timeout: 30 * time.Second}
		defer client.CloseIdleConnections()
		resp, err := client.Get("http://" + address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if code, body := get("/metrics"); code != http.StatusOK || parse(t, body)["xdpl2_info"] == nil {
		t.Errorf("%d %s", code, body)
	}
	// Nothing else is to be had on the network.
	for _, path := range []string{"/", "/v1/status", "/v1/reload", "/debug/pprof/"} {
		if code, _ := get(path); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	s.Fail(errors.New("out of order"))
	if code, body := get("/metrics"); code != http.StatusServiceUnavailable || !strings.Contains(body, "out of order") {
		t.Errorf("%d %s", code, body)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if l, err := net.Listen("tcp", address); err != nil {
		t.Errorf("the address is still taken: %v", err)
	} else {
		l.Close()
	}
}

// writer sends each line of a log.
type writer chan<- string

func (w writer) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}
