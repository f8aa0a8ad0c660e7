// SPDX-License-Identifier: Apache-2.0

// Package rpcd stands in for uhttpd's /ubus and for rpcd in tests of the web
// pages: JSON-RPC over HTTP, sessions with access groups, and the uci object
// with staged changes, apply and rollback. All else it passes on to a ubusd.
// Recordings of the real ones say how it has to behave.
package rpcd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
)

// Table is the arguments or the answer of a call.
type Table = map[string]any

// Method answers a call in place of an object on the bus: data (nil: none) and
// a ubus status.
type Method func(s *Session, args Table) (any, ubus.Status)

// The errors of JSON-RPC, as uhttpd words them.
var (
	parseError     = &rpcError{-32700, "Parse error"}
	methodNotFound = &rpcError{-32601, "Method not found"}
	objectNotFound = &rpcError{-32000, "Object not found"}
	accessDenied   = &rpcError{-32002, "Access denied"}
	invalidParams  = &rpcError{-32602, "Invalid parameters"}
	timedOut       = &rpcError{-32003, "Request timed out"}
)

type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// callTimeout is how long uhttpd waits for an object.
const callTimeout = 30 * time.Second

// ServeHTTP answers /ubus.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
	case http.MethodOptions:
		return
	default:
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 1<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.answer(r.Context(), body)) // the browser has gone
}

func (s *Server) answer(ctx context.Context, body []byte) any {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		var batch []json.RawMessage
		if json.Unmarshal(body, &batch) != nil {
			return failed(nil, parseError)
		}
		answers := make([]any, len(batch))
		for i, one := range batch {
			answers[i] = s.one(ctx, one)
		}
		return answers
	}
	return s.one(ctx, body)
}

func failed(id json.RawMessage, e *rpcError) response {
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return response{Version: "2.0", ID: id, Error: e}
}

func (s *Server) one(ctx context.Context, body []byte) response {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil || fields == nil {
		return failed(nil, parseError)
	}
	id := fields["id"]
	var version, method string
	var params []json.RawMessage
	if text(fields["jsonrpc"], &version) != nil || version != "2.0" || text(fields["method"], &method) != nil {
		return failed(id, parseError)
	}
	result, e := any(nil), methodNotFound
	switch method {
	case "call":
		if json.Unmarshal(fields["params"], &params) != nil {
			return failed(id, parseError)
		}
		result, e = s.call(ctx, params)
	case "list":
		if len(fields["params"]) > 0 && json.Unmarshal(fields["params"], &params) != nil {
			return failed(id, parseError)
		}
		result, e = s.list(ctx, params)
	}
	if e != nil {
		return failed(id, e)
	}
	if len(id) == 0 {
		id = json.RawMessage("null")
	}
	return response{Version: "2.0", ID: id, Result: result}
}

func text(raw json.RawMessage, into *string) error {
	if len(raw) == 0 || raw[0] != '"' {
		return errors.New("no text")
	}
	return json.Unmarshal(raw, into)
}

// call is params [session, object, method, arguments].
func (s *Server) call(ctx context.Context, params []json.RawMessage) (any, *rpcError) {
	var sid, object, method string
	if len(params) < 4 || text(params[0], &sid) != nil || text(params[1], &object) != nil || text(params[2], &method) != nil ||
		len(params[3]) == 0 || params[3][0] != '{' {
		return nil, parseError
	}
	table, err := blobmsg.ParseJSON(string(params[3]))
	if err != nil {
		return nil, parseError
	}
	for _, f := range table {
		if f.Name == ubus.SessionKey {
			return nil, invalidParams
		}
	}
	own := s.objects()[object]
	if own == nil {
		if _, err := s.bus.LookupID(ctx, object); err != nil {
			return nil, objectNotFound
		}
	}
	session := s.session(sid)
	if !session.May("ubus", object, method) {
		return nil, accessDenied
	}
	if own != nil {
		f := own[method]
		if f == nil {
			return []any{ubus.StatusMethodNotFound}, nil
		}
		var args Table
		if err := json.Unmarshal(params[3], &args); err != nil {
			return nil, parseError
		}
		data, status := f(session, args)
		return result(status, data, data != nil), nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	reply, err := s.bus.Call(ctx, object, method, append(table, blobmsg.Field{Name: ubus.SessionKey, Value: sid}))
	var status ubus.Status
	switch {
	case err == nil:
	case errors.As(err, &status):
	case errors.Is(err, context.DeadlineExceeded):
		return nil, timedOut
	default:
		return nil, objectNotFound
	}
	return result(status, reply, len(reply) > 0), nil
}

// Local calls one of the own objects for a session, as LuCI's server side does.
func (s *Server) Local(sid, object, method string, args Table) (any, ubus.Status) {
	session := s.session(sid)
	f := s.objects()[object][method]
	switch {
	case f == nil:
		return nil, ubus.StatusMethodNotFound
	case !session.May("ubus", object, method):
		return nil, ubus.StatusPermissionDenied
	}
	return f(session, args)
}

func result(status ubus.Status, data any, has bool) []any {
	if has {
		return []any{int32(status), data}
	}
	return []any{int32(status)}
}

var typeNames = map[blobmsg.Type]string{
	blobmsg.String: "string", blobmsg.Int32: "number", blobmsg.Bool: "boolean", blobmsg.Arr: "array", blobmsg.Tab: "object",
}

// list shows everybody all objects with their signatures, or the names alone.
func (s *Server) list(ctx context.Context, params []json.RawMessage) (any, *rpcError) {
	var patterns []string
	for _, p := range params {
		var pattern string
		if text(p, &pattern) == nil {
			patterns = append(patterns, pattern)
		}
	}
	if len(patterns) == 0 {
		var names []string
		found, err := s.bus.Lookup(ctx, "")
		if err != nil {
			return nil, objectNotFound
		}
		for _, o := range found {
			names = append(names, o.Path)
		}
		for name := range s.objects() {
			names = append(names, name)
		}
		return names, nil
	}
	out := map[string]any{}
	for _, pattern := range patterns {
		found, err := s.bus.Lookup(ctx, pattern)
		if err != nil {
			continue
		}
		for _, o := range found {
			methods := map[string]any{}
			for _, m := range o.Methods {
				args := map[string]string{}
				for _, a := range m.Args {
					name := typeNames[a.Type]
					if name == "" {
						name = "unknown"
					}
					args[a.Name] = name
				}
				methods[m.Name] = args
			}
			out[o.Path] = methods
		}
	}
	return out, nil
}
