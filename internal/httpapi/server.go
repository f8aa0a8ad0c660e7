// SPDX-License-Identifier: Apache-2.0

// Package httpapi carries package api over the control socket: HTTP with JSON
// on a Unix socket that only root can open, so that everything can be asked
// where no ubusd runs.
//
//	GET  /v1/status
//	GET  /v1/ports
//	GET  /v1/stations?port=eth1&vlan=10&search=02:00&limit=100&offset=0
//	GET  /v1/counters?port=eth1
//	POST /v1/reload
//
// An answer other than 200 carries {"error": "...", "kind": "...", ...}.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
)

// SocketName is the control socket's name in the run directory.
const SocketName = "control.sock"

// failure is the body of an answer that is not 200.
type failure struct {
	Error    string        `json:"error"`
	Kind     string        `json:"kind"` // config, unknown_port, usage, failed
	Port     string        `json:"port,omitempty"`
	Problems []api.Problem `json:"problems,omitempty"`
}

// Listen makes the control socket, mode 0600, in a run directory. The caller
// must be the only daemon there: a socket that is left from an earlier one is
// replaced.
func Listen(runDir string) (net.Listener, error) {
	path := filepath.Join(runDir, SocketName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove an old control socket: %w", err)
	}
	// Made under another name and with its mode before anybody can find it.
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove an old control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make the control socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	err = os.Chmod(temp, 0o600)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the control socket: %w", err), l.Close(), os.Remove(temp))
	}
	return &listener{l, path}, nil
}

// listener removes its socket under the name that it was given in the end.
type listener struct {
	net.Listener
	path string
}

func (l *listener) Close() error {
	err := l.Listener.Close()
	if rerr := os.Remove(l.path); rerr != nil && !errors.Is(rerr, os.ErrNotExist) {
		err = errors.Join(err, rerr)
	}
	return err
}

// Serve answers on l until the context ends.
func Serve(ctx context.Context, l net.Listener, s api.Service) error {
	srv := &http.Server{
		Handler:           Handler(s),
		ReadHeaderTimeout: 5 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { srv.Close() })
	defer stop()
	if err := srv.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	return nil
}

// Handler returns the HTTP face of a service.
func Handler(s api.Service) http.Handler {
	mux := http.NewServeMux()
	handle(mux, "GET /v1/status", func(r *http.Request) (any, error) { return s.Status(r.Context()) })
	handle(mux, "GET /v1/ports", func(r *http.Request) (any, error) { return s.Ports(r.Context()) })
	handle(mux, "GET /v1/counters", func(r *http.Request) (any, error) {
		return s.Counters(r.Context(), r.FormValue("port"))
	})
	handle(mux, "GET /v1/stations", func(r *http.Request) (any, error) {
		q := api.StationQuery{Port: r.FormValue("port"), Search: r.FormValue("search"), VLAN: -1}
		for name, to := range map[string]*int{"vlan": &q.VLAN, "limit": &q.Limit, "offset": &q.Offset} {
			if text := r.FormValue(name); text != "" {
				n, err := strconv.Atoi(text)
				if err != nil || n < 0 {
					return nil, usageError(fmt.Sprintf("%s=%q: expected a number from 0 on", name, text))
				}
				*to = n
			}
		}
		return s.Stations(r.Context(), q)
	})
	handle(mux, "POST /v1/reload", func(r *http.Request) (any, error) { return s.Reload(r.Context()) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, failure{Error: "no such path or method: " + r.Method + " " + r.URL.Path, Kind: "usage"})
	})
	return mux
}

type usageError string

func (e usageError) Error() string { return string(e) }

func handle(mux *http.ServeMux, pattern string, f func(*http.Request) (any, error)) {
	mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		result, err := f(r)
		var wrong *api.ConfigError
		var unknown *api.UnknownPortError
		var usage usageError
		switch {
		case err == nil:
			answer(w, http.StatusOK, result)
		case errors.As(err, &wrong):
			answer(w, http.StatusConflict, failure{Error: err.Error(), Kind: "config", Problems: wrong.Problems})
		case errors.As(err, &unknown):
			answer(w, http.StatusNotFound, failure{Error: err.Error(), Kind: "unknown_port", Port: unknown.Port})
		case errors.As(err, &usage):
			answer(w, http.StatusBadRequest, failure{Error: err.Error(), Kind: "usage"})
		default:
			answer(w, http.StatusInternalServerError, failure{Error: err.Error(), Kind: "failed"})
		}
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the caller has gone
}
