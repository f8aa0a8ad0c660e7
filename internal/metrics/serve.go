// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/unixhttp"
)

// Handler answers with the text. It asks the service once at a time, however
// many want to know.
func Handler(s api.Service) http.Handler {
	var one sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one.Lock()
		text, err := Text(r.Context(), s)
		one.Unlock()
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", ContentType)
		_, _ = w.Write(text) // the caller has gone
	})
}

// retryListen is how long to wait for an address that the box does not have
// yet.
const retryListen = time.Second

// Serve answers GET /metrics on a network address until the context ends, and
// nothing else. An address that cannot be had is told once and tried again.
func Serve(ctx context.Context, address string, s api.Service, log *slog.Logger) error {
	var l net.Listener
	for told := ""; l == nil; {
		var err error
		l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		if err.Error() != told {
			log.Warn("no metrics yet", "address", address, "error", err)
			told = err.Error()
		}
		select {
		case <-time.After(retryListen):
		case <-ctx.Done():
			return nil
		}
	}
	log.Info("metrics are served", "url", fmt.Sprintf("http://%s/metrics", l.Addr()))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", Handler(s))
	// Whoever can reach the address may ask: not many at once, and nobody for
	// long.
	l = netutil.LimitListener(&impatient{l}, mostReaders)
	if err := unixhttp.Serve(ctx, l, mux); err != nil {
		return fmt.Errorf("serve metrics at %s: %w", address, err)
	}
	return nil
}

const (
	mostReaders  = 16
	writeTimeout = 10 * time.Second
)

// impatient gives its connections a time by which all must be written.
type impatient struct{ net.Listener }

// Accept implements net.Listener.
func (l *impatient) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		err = conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	}
	return conn, err
}
