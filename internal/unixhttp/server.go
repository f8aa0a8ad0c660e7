// SPDX-License-Identifier: Apache-2.0

// Package unixhttp carries HTTP/1.1 over a Unix socket (or another stream, as
// package metrics uses it), between net/http's
// handlers and net/http's requests, but without net/http's server and transport:
// these can do TLS, and so link all of it, which makes a router's binary an
// eighth larger for nothing.
//
// A connection carries one request, and its end is the end of the answer. That
// is plain HTTP, so that curl and others can talk to it; a stream needs no more,
// and nothing is gained from keeping local connections open.
package unixhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

const (
	headerTimeout = 5 * time.Second
	requestLimit  = 64 << 10 // bytes of a request, with its body
	acceptPause   = 100 * time.Millisecond
)

// Serve answers on l until the context ends, which then ends the requests, too.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	closeOnce := sync.OnceFunc(func() { l.Close() })
	defer closeOnce() // waits if it is being closed
	stop := context.AfterFunc(ctx, closeOnce)
	defer stop()
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			go serve(ctx, conn, h)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ECONNABORTED):
			time.Sleep(acceptPause) // of others' making; it may pass
		default:
			return fmt.Errorf("accept: %w", err)
		}
	}
}

// serve answers one request.
func serve(ctx context.Context, conn net.Conn, h http.Handler) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hangUp := sync.OnceFunc(func() { conn.Close() })
	stop := context.AfterFunc(ctx, hangUp)
	defer stop()
	defer hangUp()
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			log.Printf("request failed: panic: %v\n%s", v, debug.Stack())
		}
	}()

	in := bufio.NewReader(io.LimitReader(conn, requestLimit))
	if err := conn.SetReadDeadline(time.Now().Add(headerTimeout)); err != nil {
		return
	}
	r, err := http.ReadRequest(in)
	w := &response{out: bufio.NewWriter(conn), header: http.Header{}}
	if err != nil {
		if !errors.Is(err, io.EOF) {
			w.WriteHeader(http.StatusBadRequest)
			w.finish()
		}
		return
	}
	if err := conn.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	w.bodyless = r.Method == http.MethodHead
	if r.Body == http.NoBody {
		// Nothing more is to come, so what ends a read is that the caller went.
		go func() {
			for {
				if _, err := in.ReadByte(); err != nil {
					cancel()
					return
				}
			}
		}()
	}
	h.ServeHTTP(w, r.WithContext(ctx))
	w.finish()
}

// response is a handler's view of the answer.
type response struct {
	out      *bufio.Writer
	header   http.Header
	begun    bool
	bodyless bool
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(code int) {
	if w.begun {
		return
	}
	w.begun = true
	w.bodyless = w.bodyless || code == http.StatusNoContent || code == http.StatusNotModified
	w.header.Set("Connection", "close")
	w.header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	fmt.Fprintf(w.out, "HTTP/1.1 %d %s\r\n", code, http.StatusText(code))
	w.header.Write(w.out) // out keeps the first error, here and below
	w.out.WriteString("\r\n")
}

// Write implements http.ResponseWriter.
func (w *response) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.bodyless {
		return 0, http.ErrBodyNotAllowed
	}
	return w.out.Write(p)
}

// FlushError sends what was written so far, for http.ResponseController.
func (w *response) FlushError() error {
	w.WriteHeader(http.StatusOK)
	return w.out.Flush()
}

func (w *response) finish() {
	w.WriteHeader(http.StatusOK)
	w.out.Flush() // if that fails, the caller has gone
}
