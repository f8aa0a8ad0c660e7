// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
)

// fake answers with what it is given, and keeps what it was asked.
type fake struct {
	query api.StationQuery
	port  string
	err   error
}

func (f *fake) Status(context.Context) (*api.Status, error) {
	return &api.Status{Version: "1", Ports: []api.PortStatus{{Device: "eth1", Engines: map[string]string{"tc": "in use"}}}}, f.err
}
func (f *fake) Ports(context.Context) ([]api.Port, error) {
	return []api.Port{{PortStatus: api.PortStatus{Redirected: api.Count{Packets: 1 << 60}}, MTU: 1500}}, f.err
}
func (f *fake) Stations(_ context.Context, q api.StationQuery) (*api.StationList, error) {
	f.query = q
	return &api.StationList{Total: 3}, f.err
}
func (f *fake) Counters(_ context.Context, port string) ([]api.PortCounters, error) {
	f.port = port
	return []api.PortCounters{{Device: port, Since: time.Unix(5, 0).UTC()}}, f.err
}
func (f *fake) Explain(_ context.Context, q api.ExplainQuery) (*api.Explanation, error) {
	return &api.Explanation{Verdict: "pass_group", Text: fmt.Sprint(q)}, f.err
}
func (f *fake) Reload(context.Context) (*api.ReloadResult, error) {
	return &api.ReloadResult{Changed: true}, f.err
}

func (f *fake) Calibrate(_ context.Context, seconds int) (*api.Calibration, error) {
	return &api.Calibration{Time: time.Unix(int64(seconds), 0).UTC(), Rows: []api.CalibrationRow{{Work: "tcp", Ratio: 0.5}}}, f.err
}

func (f *fake) Events(ctx context.Context) (<-chan api.Event, error) {
	events := make(chan api.Event, 2)
	events <- api.Event{Kind: api.EventPort, Text: "one", Missed: 3}
	events <- api.Event{Kind: api.EventConfig, Text: "two"}
	context.AfterFunc(ctx, func() { close(events) })
	return events, f.err
}

func serve(t *testing.T, s api.Service) (runDir string) {
	t.Helper()
	runDir = t.TempDir()
	l, err := Listen(runDir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, s) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(filepath.Join(runDir, SocketName)); !os.IsNotExist(err) {
			t.Errorf("the socket is left: %v", err)
		}
	})
	return runDir
}

func TestRoundTrip(t *testing.T) {
	ctx := context.Background()
	f := &fake{}
	dir := serve(t, f)
	c := NewClient(dir)
	if info, err := os.Stat(filepath.Join(dir, SocketName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v; want mode 0600", info, err)
	}
	want, _ := f.Status(ctx)
	if got, err := c.Status(ctx); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("status: %+v, %v", got, err)
	}
	if got, err := c.Ports(ctx); err != nil || got[0].Redirected.Packets != 1<<60 {
		t.Errorf("ports: %+v, %v", got, err)
	}
	q := api.StationQuery{Port: "eth1", Search: "02:00", VLAN: 0, Limit: 5, Offset: 6}
	if got, err := c.Stations(ctx, q); err != nil || got.Total != 3 || f.query != q {
		t.Errorf("stations: %+v, %v, asked %+v", got, err, f.query)
	}
	q = api.StationQuery{VLAN: -1}
	if _, err := c.Stations(ctx, q); err != nil || f.query != q {
		t.Errorf("all stations: %v, asked %+v", err, f.query)
	}
	if got, err := c.Counters(ctx, "eth2"); err != nil || got[0].Device != "eth2" || !got[0].Since.Equal(time.Unix(5, 0)) {
		t.Errorf("counters: %+v, %v", got, err)
	}
	if got, err := c.Reload(ctx); err != nil || !got.Changed {
		t.Errorf("reload: %+v, %v", got, err)
	}
}

func TestEventsAreAStream(t *testing.T) {
	c := NewClient(serve(t, &fake{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events, err := c.Events(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if one, two := <-events, <-events; one.Text != "one" || one.Missed != 3 || two.Kind != api.EventConfig {
		t.Errorf("%+v, %+v", one, two)
	}
	cancel()
	if event, open := <-events; open {
		t.Errorf("after the end: %+v", event)
	}
	f := &fake{err: errors.New("out of order")}
	if _, err := NewClient(serve(t, f)).Events(t.Context()); err == nil || err.Error() != "out of order" {
		t.Errorf("refused: %v", err)
	}
}

func TestErrorsArriveAsTheyWere(t *testing.T) {
	ctx := context.Background()
	f := &fake{err: &api.ConfigError{Problems: []api.Problem{{File: "x", Line: 3, Text: "x:3: wrong"}}}}
	c := NewClient(serve(t, f))
	var wrong *api.ConfigError
	if _, err := c.Reload(ctx); !errors.As(err, &wrong) || wrong.Problems[0].Line != 3 || err.Error() != "x:3: wrong" {
		t.Errorf("configuration: %v", err)
	}
	f.err = &api.UnknownPortError{Port: "eth9"}
	var unknown *api.UnknownPortError
	if _, err := c.Counters(ctx, "eth9"); !errors.As(err, &unknown) || unknown.Port != "eth9" {
		t.Errorf("unknown port: %v", err)
	}
	f.err = errors.New("out of order")
	if _, err := c.Status(ctx); err == nil || err.Error() != "out of order" {
		t.Errorf("any other: %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	dir := serve(t, &fake{})
	c := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return net.Dial("unix", filepath.Join(dir, SocketName))
	}}}
	for request, want := range map[string]int{
		"GET /v1/nothing":          http.StatusNotFound,
		"POST /v1/status":          http.StatusNotFound,
		"GET /v1/reload":           http.StatusNotFound,
		"GET /v1/stations?limit=x": http.StatusBadRequest,
		"GET /v1/stations?vlan=-2": http.StatusBadRequest,
		"GET /v1/stations?prot=x":  http.StatusBadRequest,
		"POST /v1/reload?force=1":  http.StatusBadRequest,
		"POST /v1/events":          http.StatusNotFound,
	} {
		method, path, _ := strings.Cut(request, " ")
		req, err := http.NewRequest(method, "http://x"+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %s, %s", request, resp.Status, resp.Header.Get("Content-Type"))
		}
	}
}

func TestNotRunning(t *testing.T) {
	dir := t.TempDir()
	if _, err := NewClient(dir).Status(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("no socket: %v", err)
	}
	// A socket that a killed daemon left.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, SocketName), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if _, err := NewClient(dir).Status(context.Background()); !errors.Is(err, ErrNotRunning) {
		t.Errorf("old socket: %v", err)
	}
	again, err := Listen(dir)
	if err != nil {
		t.Fatalf("an old socket is in the way: %v", err)
	}
	again.Close()
}
