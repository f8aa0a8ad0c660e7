// SPDX-License-Identifier: Apache-2.0

package unixhttp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience bounds waits that a test that passes never waits out.
const patience = 20 * time.Second

// start serves a handler and returns the socket.
func start(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, l, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			t.Error("still listening after the end")
		}
	})
	return socket
}

// standard is net/http's client for a socket.
func standard(t *testing.T, socket string) *http.Client {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// echo tells what it was asked.
func echo(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusTeapot)
	fmt.Fprintf(w, "%s %s %v %q", r.Method, r.URL.Path, r.URL.Query(), body)
}

// TestServerWithStandardClient: what net/http sends is understood, and the other
// way round.
func TestServerWithStandardClient(t *testing.T) {
	c := standard(t, start(t, echo))
	for range 2 { // the second one on a new connection
		resp, err := c.Post("http://x/a%20b?k=1&k=2", "text/plain", strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		want := `POST /a b map[k:[1 2]] "body"`
		if err != nil || string(got) != want || resp.StatusCode != http.StatusTeapot || resp.Header.Get("Content-Type") != "text/plain" {
			t.Errorf("%s %v: %q, %v; want %q", resp.Status, resp.Header, got, err, want)
		}
	}
	resp, err := c.Head("http://x/")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusTeapot {
		t.Errorf("HEAD: %s", resp.Status)
	}
}

func TestClientWithStandardServer(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(echo))
	srv.Listener.Close()
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	resp, err := Do(context.Background(), socket, http.MethodGet, "/a b", url.Values{"k": {"ü&"}})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if want := `GET /a b map[k:[ü&]] ""`; err != nil || string(got) != want || resp.StatusCode != http.StatusTeapot {
		t.Errorf("%s: %q, %v; want %q", resp.Status, got, err, want)
	}
}

// TestStream: what is flushed arrives while the handler goes on, and the handler
// hears that the caller has gone.
func TestStream(t *testing.T) {
	gone := make(chan struct{})
	socket := start(t, func(w http.ResponseWriter, r *http.Request) {
		defer close(gone)
		fmt.Fprintln(w, "first")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
		case <-time.After(patience):
			t.Error("not told that the caller has gone")
		}
	})
	resp, err := Do(context.Background(), socket, http.MethodGet, "/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "first\n" {
		t.Errorf("%q, %v", line, err)
	}
	resp.Body.Close()
	<-gone
}

func TestClientContext(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	asked := make(chan struct{})
	socket := start(t, func(http.ResponseWriter, *http.Request) { close(asked); <-release })
	ctx, cancel := context.WithCancel(context.Background())
	go func() { <-asked; cancel() }()
	if _, err := Do(ctx, socket, http.MethodGet, "/", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled request: %v", err)
	}
}

// TestPanic: a handler that fails costs its own connection, not the daemon.
func TestPanic(t *testing.T) {
	socket := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			panic(http.ErrAbortHandler)
		}
	})
	if _, err := Do(context.Background(), socket, http.MethodGet, "/bad", nil); err == nil {
		t.Error("an answer from a handler that failed")
	}
	resp, err := Do(context.Background(), socket, http.MethodGet, "/good", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s from a handler that wrote nothing", resp.Status)
	}
}

func TestBadRequests(t *testing.T) {
	socket := start(t, func(http.ResponseWriter, *http.Request) { t.Error("a bad request came through") })
	for name, request := range map[string]string{
		"no HTTP":  "hello\r\n\r\n",
		"version":  "GET / HTTP/9\r\n\r\n",
		"too long": "GET / HTTP/1.1\r\nX: " + strings.Repeat("x", requestLimit) + "\r\n\r\n",
	} {
		conn, err := net.Dial("unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		_, werr := io.WriteString(conn, request)
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil && werr == nil {
			t.Errorf("%s: %v", name, err)
		} else if err == nil && resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", name, resp.Status)
		}
		conn.Close()
	}
}
