// SPDX-License-Identifier: Apache-2.0

package unixhttp

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// Do asks the server at a socket, without a body, and returns its answer, whose
// body the caller closes. The context ends both.
func Do(ctx context.Context, socket, verb, path string, query url.Values) (*http.Response, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	resp, err := exchange(conn, verb, &url.URL{Path: path, RawQuery: query.Encode()})
	if err != nil {
		stop()
		conn.Close()
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	resp.Body = &body{resp.Body, conn, stop}
	return resp, nil
}

func exchange(conn net.Conn, verb string, target *url.URL) (*http.Response, error) {
	if _, err := fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", verb, target.RequestURI()); err != nil {
		return nil, fmt.Errorf("send the request: %w", err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: verb})
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	return resp, nil
}

// body is an answer's body that takes its connection along.
type body struct {
	io.ReadCloser
	conn net.Conn
	stop func() bool
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.stop()
	return b.conn.Close()
}
