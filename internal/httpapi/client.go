// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/unixhttp"
)

// ErrNotRunning is returned when nobody listens on the control socket.
var ErrNotRunning = errors.New("the daemon is not running")

// Client asks the daemon over its control socket. It implements api.Service.
type Client struct {
	path string
}

var (
	_ api.Service  = (*Client)(nil)
	_ api.Capturer = (*Client)(nil)
)

// NewClient returns a client for the daemon with a run directory.
func NewClient(runDir string) *Client {
	return &Client{path: filepath.Join(runDir, SocketName)}
}

// Status implements api.Service.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return ask[*api.Status](ctx, c, "status", nil)
}

// Ports implements api.Service.
func (c *Client) Ports(ctx context.Context) ([]api.Port, error) {
	list, err := ask[api.PortList](ctx, c, "ports", nil)
	return list.Ports, err
}

// Stations implements api.Service.
func (c *Client) Stations(ctx context.Context, q api.StationQuery) (*api.StationList, error) {
	return ask[*api.StationList](ctx, c, "stations", url.Values{
		"port": {q.Port}, "search": {q.Search}, "vlan": {strconv.Itoa(q.VLAN)},
		"limit": {strconv.Itoa(q.Limit)}, "offset": {strconv.Itoa(q.Offset)},
	})
}

// Counters implements api.Service.
func (c *Client) Counters(ctx context.Context, port string) ([]api.PortCounters, error) {
	list, err := ask[api.CounterList](ctx, c, "counters", url.Values{"port": {port}})
	return list.Counters, err
}

// Explain implements api.Service.
func (c *Client) Explain(ctx context.Context, q api.ExplainQuery) (*api.Explanation, error) {
	return ask[*api.Explanation](ctx, c, "explain", url.Values{
		"device": {q.Device}, "source": {q.Source}, "destination": {q.Destination}, "vlan": {strconv.Itoa(q.VLAN)},
	})
}

// Reload implements api.Service.
func (c *Client) Reload(ctx context.Context) (*api.ReloadResult, error) {
	return ask[*api.ReloadResult](ctx, c, "reload", nil)
}

// Calibrate implements api.Service. When the context ends, so does the
// measuring.
func (c *Client) Calibrate(ctx context.Context, seconds int) (*api.Calibration, error) {
	return ask[*api.Calibration](ctx, c, "calibrate", url.Values{"seconds": {strconv.Itoa(seconds)}})
}

// Events implements api.Service.
func (c *Client) Events(ctx context.Context) (<-chan api.Event, error) {
	resp, err := c.request(ctx, http.MethodGet, "events", nil)
	if err != nil {
		return nil, err
	}
	events := make(chan api.Event)
	go func() {
		defer close(events)
		defer resp.Body.Close()
		dec := json.NewDecoder(resp.Body)
		for {
			var event api.Event
			if err := dec.Decode(&event); err != nil {
				return // the daemon has ended, or the context
			}
			select {
			case events <- event:
			case <-ctx.Done():
				return
			}
		}
	}()
	return events, nil
}

// Capture implements api.Capturer.
func (c *Client) Capture(ctx context.Context) error {
	resp, err := c.request(ctx, http.MethodGet, "capture", nil)
	if err != nil {
		return err
	}
	// Closing the connection is what ends it; so does the end of this process.
	context.AfterFunc(ctx, func() { resp.Body.Close() })
	return nil
}

// ask calls a method.
func ask[T any](ctx context.Context, c *Client, what string, values url.Values) (result T, err error) {
	verb := http.MethodGet
	if m := api.MethodNamed(what); m != nil && m.Changes {
		verb = http.MethodPost
	}
	resp, err := c.request(ctx, verb, what, values)
	if err != nil {
		return result, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&result); err != nil {
		return result, fmt.Errorf("read the answer to %s: %w", what, err)
	}
	return result, nil
}

// request returns an answer that is no error.
func (c *Client) request(ctx context.Context, verb, what string, values url.Values) (*http.Response, error) {
	resp, err := unixhttp.Do(ctx, c.path, verb, "/v1/"+what, values)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return nil, fmt.Errorf("%w (no one answers at %s)", ErrNotRunning, c.path)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("open %s: not permitted (needs root)", c.path)
	case err != nil:
		return nil, fmt.Errorf("ask for %s: %w", what, err)
	case resp.StatusCode == http.StatusOK:
		return resp, nil
	}
	defer resp.Body.Close()
	var f api.Failure
	if err := json.NewDecoder(resp.Body).Decode(&f); err != nil {
		return nil, fmt.Errorf("ask for %s: the daemon answered %s", what, resp.Status)
	}
	return nil, f.Err()
}
