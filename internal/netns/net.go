// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"context"
	"net"
)

// DialContext connects from inside the namespace, as net.Dialer does. The
// address is a literal: there is no name service inside. It fits
// http.Transport and grpc alike.
func (ns *NS) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	var conn net.Conn
	err := ns.Do(func() error {
		var d net.Dialer
		// One literal address is dialled on the calling goroutine, so the
		// socket is made on this thread.
		c, err := d.DialContext(ctx, network, address)
		conn = c
		return err
	})
	return conn, err
}

// Listen announces inside the namespace, as net.ListenConfig does.
func (ns *NS) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	var l net.Listener
	err := ns.Do(func() error {
		var lc net.ListenConfig
		lc.SetMultipathTCP(false) // plain TCP on every kernel
		r, err := lc.Listen(ctx, network, address)
		l = r
		return err
	})
	return l, err
}

// ListenPacket opens a datagram or raw IP socket inside the namespace.
func (ns *NS) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	var c net.PacketConn
	err := ns.Do(func() error {
		var lc net.ListenConfig
		r, err := lc.ListenPacket(ctx, network, address)
		c = r
		return err
	})
	return c, err
}
