// SPDX-License-Identifier: Apache-2.0

// Package httpapi carries package api over the control socket: HTTP with JSON
// on a Unix socket that only root can open, so that everything can be asked
// where no ubusd runs.
//
//	GET  /v1/METHOD?ARGUMENT=VALUE&...   for each method of package api
//	POST /v1/METHOD                      for those that change something
//	GET  /v1/events                      a stream of events, one JSON object a line
//	GET  /v1/capture                     taps see every frame until the caller goes
//	GET  /metrics                        package metrics, for Prometheus
//
// An answer other than 200 carries an api.Failure.
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
	"slices"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/metrics"
	"github.com/xdpl2/xdpl2/internal/unixhttp"
)

// SocketName is the control socket's name in the run directory.
const SocketName = "control.sock"

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
	if err := unixhttp.Serve(ctx, l, Handler(s)); err != nil {
		return fmt.Errorf("serve the control socket: %w", err)
	}
	return nil
}

// Handler returns the HTTP face of a service.
func Handler(s api.Service) http.Handler {
	mux := http.NewServeMux()
	for i := range api.Methods() {
		m := &api.Methods()[i]
		verb := http.MethodGet
		if m.Changes {
			verb = http.MethodPost
		}
		mux.HandleFunc(verb+" /v1/"+m.Name, func(w http.ResponseWriter, r *http.Request) {
			args, err := arguments(m, r)
			if err != nil {
				refuse(w, err)
				return
			}
			result, err := m.Call(r.Context(), s, args)
			if err != nil {
				refuse(w, err)
				return
			}
			answer(w, http.StatusOK, result)
		})
	}
	mux.Handle("GET /metrics", metrics.Handler(s))
	mux.HandleFunc("GET /v1/events", func(w http.ResponseWriter, r *http.Request) { stream(w, r, s) })
	if capturer, ok := s.(api.Capturer); ok {
		mux.HandleFunc("GET /v1/capture", func(w http.ResponseWriter, r *http.Request) { capture(w, r, capturer) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, http.StatusNotFound, &api.Failure{Text: "no such path or method: " + r.Method + " " + r.URL.Path, Kind: api.FailedUsage})
	})
	return mux
}

// arguments are the query's parameters, as the method's arguments.
func arguments(m *api.Method, r *http.Request) (api.Values, error) {
	args := api.Values{}
	for name, texts := range r.URL.Query() {
		i := slices.IndexFunc(m.Args, func(a api.Arg) bool { return a.Name == name })
		if i < 0 {
			args[name] = texts[0] // the method refuses it
			continue
		}
		if texts[0] == "" {
			continue
		}
		value, err := m.Args[i].Parse(m.Name, texts[0])
		if err != nil {
			return nil, err
		}
		args[name] = value
	}
	return args, nil
}

// stream writes events until the caller goes, or the daemon ends.
func stream(w http.ResponseWriter, r *http.Request, s api.Service) {
	events, err := s.Events(r.Context())
	if err != nil {
		refuse(w, err)
		return
	}
	flusher := http.NewResponseController(w)
	w.Header().Set("Content-Type", "application/x-ndjson")
	w.WriteHeader(http.StatusOK)
	if err := flusher.Flush(); err != nil { // tells the caller that events come from now on
		return
	}
	enc := json.NewEncoder(w)
	for event := range events {
		if err := enc.Encode(event); err != nil {
			return // the caller has gone
		}
		if len(events) > 0 {
			continue
		}
		if err := flusher.Flush(); err != nil {
			return
		}
	}
}

// capture tells the caller when taps see every frame, and keeps it so until the
// caller goes, however it goes.
func capture(w http.ResponseWriter, r *http.Request, s api.Capturer) {
	if err := s.Capture(r.Context()); err != nil {
		refuse(w, err)
		return
	}
	w.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(w).Flush(); err != nil {
		return
	}
	<-r.Context().Done()
}

var codes = map[string]int{
	api.FailedConfig: http.StatusConflict, api.FailedUnknownPort: http.StatusNotFound,
	api.FailedUsage: http.StatusBadRequest, api.FailedOther: http.StatusInternalServerError,
	api.FailedBusy: http.StatusConflict, api.FailedNoData: http.StatusNotFound,
}

func refuse(w http.ResponseWriter, err error) {
	f := api.FailureOf(err)
	answer(w, codes[f.Kind], f)
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the caller has gone
}
