// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"log/slog"
)

// newLog writes a line an event, level and key=value, without a time: procd and
// journald add their own. What is wrong goes to standard error, the rest to
// standard output, since procd tells syslog's levels by that: daemon.err and
// daemon.info.
func newLog(stdout, stderr io.Writer, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey && len(groups) == 0 {
				return slog.Attr{}
			}
			return a
		},
	}
	return slog.New(&byLevel{slog.NewTextHandler(stdout, options), slog.NewTextHandler(stderr, options)})
}

// byLevel hands warnings and errors to another handler than the rest.
type byLevel struct{ rest, wrong slog.Handler }

// Enabled implements slog.Handler.
func (h *byLevel) Enabled(ctx context.Context, l slog.Level) bool { return h.rest.Enabled(ctx, l) }

// Handle implements slog.Handler.
func (h *byLevel) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelWarn {
		return h.wrong.Handle(ctx, r)
	}
	return h.rest.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h *byLevel) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &byLevel{h.rest.WithAttrs(attrs), h.wrong.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h *byLevel) WithGroup(name string) slog.Handler {
	return &byLevel{h.rest.WithGroup(name), h.wrong.WithGroup(name)}
}
