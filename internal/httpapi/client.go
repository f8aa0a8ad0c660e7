// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/xdpl2/xdpl2/internal/api"
)

// ErrNotRunning is returned when nobody listens on the control socket.
var ErrNotRunning = errors.New("the daemon is not running")

// Client asks the daemon over its control socket. It implements api.Service.
type Client struct {
	http http.Client
	path string
}

var _ api.Service = (*Client)(nil)

// NewClient returns a client for the daemon with a run directory.
func NewClient(runDir string) *Client {
	path := filepath.Join(runDir, SocketName)
	c := &Client{path: path}
	c.http.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}
	return c
}

// Status implements api.Service.
func (c *Client) Status(ctx context.Context) (*api.Status, error) {
	return ask[*api.Status](ctx, c, http.MethodGet, "status", nil)
}

// Ports implements api.Service.
func (c *Client) Ports(ctx context.Context) ([]api.Port, error) {
	return ask[[]api.Port](ctx, c, http.MethodGet, "ports", nil)
}

// Stations implements api.Service.
func (c *Client) Stations(ctx context.Context, q api.StationQuery) (*api.StationList, error) {
	values := url.Values{"port": {q.Port}, "search": {q.Search}, "limit": {strconv.Itoa(q.Limit)}, "offset": {strconv.Itoa(q.Offset)}}
	if q.VLAN >= 0 {
		values.Set("vlan", strconv.Itoa(q.VLAN))
	}
	return ask[*api.StationList](ctx, c, http.MethodGet, "stations", values)
}

// Counters implements api.Service.
func (c *Client) Counters(ctx context.Context, port string) ([]api.PortCounters, error) {
	return ask[[]api.PortCounters](ctx, c, http.MethodGet, "counters", url.Values{"port": {port}})
}

// Reload implements api.Service.
func (c *Client) Reload(ctx context.Context) (*api.ReloadResult, error) {
	return ask[*api.ReloadResult](ctx, c, http.MethodPost, "reload", nil)
}

func ask[T any](ctx context.Context, c *Client, method, what string, values url.Values) (result T, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://xdpl2/v1/"+what+"?"+values.Encode(), nil)
	if err != nil {
		return result, fmt.Errorf("ask for %s: %w", what, err)
	}
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, syscall.ENOENT), errors.Is(err, syscall.ECONNREFUSED):
		return result, fmt.Errorf("%w (no one answers at %s)", ErrNotRunning, c.path)
	case errors.Is(err, syscall.EACCES):
		return result, fmt.Errorf("open %s: not permitted (needs root)", c.path)
	case err != nil:
		return result, fmt.Errorf("ask for %s: %w", what, err)
	}
	defer resp.Body.Close()
	dec := json.NewDecoder(resp.Body)
	if resp.StatusCode != http.StatusOK {
		var f failure
		if err := dec.Decode(&f); err != nil {
			return result, fmt.Errorf("ask for %s: the daemon answered %s", what, resp.Status)
		}
		return result, f.err()
	}
	if err := dec.Decode(&result); err != nil {
		return result, fmt.Errorf("read the answer to %s: %w", what, err)
	}
	return result, nil
}

func (f failure) err() error {
	switch f.Kind {
	case "config":
		return &api.ConfigError{Problems: f.Problems}
	case "unknown_port":
		return &api.UnknownPortError{Port: f.Port}
	}
	return errors.New(f.Error)
}
