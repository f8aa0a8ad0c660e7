// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"bytes"
	"io"
	"net"
	"strconv"
	"testing"

	"github.com/xdpl2/xdpl2/internal/ubus/internal/golden"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// FuzzBus lets a client send whatever it likes.
func FuzzBus(f *testing.F) {
	for _, path := range golden.Traces(f, golden.Kept(f)) {
		names, conns := golden.Load(f, path).ByConn()
		for _, name := range names {
			var b []byte
			for _, s := range conns[name] {
				if s.FromClient && len(s.Bytes) < 4096 {
					// An object's id is drawn after its signature's.
					b = append(b, s.Mask(func(name string, _ uint32) uint32 {
						n, _ := strconv.Atoi(name[1:])
						return uint32(wire.FirstID + 2*n - 1)
					})...)
				}
			}
			f.Add(b)
		}
	}
	acl, err := newACL(map[string]string{"x": `{"user":"nobody","access":{"a*":{"methods":["*"],"acl":{}}},"send":["*"],"listen":["a*"]}`})
	if err != nil {
		f.Fatal(err)
	}
	conn := sink(f)
	f.Fuzz(func(t *testing.T, stream []byte) {
		b := newBus(acl)
		last := uint32(wire.FirstID - 1)
		b.draw = func() uint32 {
			last++
			return last
		}
		root := &client{conn: conn, id: 2000, Credentials: Credentials{User: "root", Group: "root"}, wake: make(chan struct{}, 1)}
		cl := &client{conn: conn, id: 2001, Credentials: Credentials{UID: 1, User: "nobody", Group: "nogroup"}, wake: make(chan struct{}, 1)}
		b.clients[2000], b.clients[2001] = root, cl
		n := 0
		for in := bytes.NewReader(stream); ; n++ {
			m, err := wire.Read(in, wire.MaxLen)
			if err != nil {
				break
			}
			who := []*client{root, cl}[n%2]
			b.monitor(who, m, false)
			b.handle(who, m)
		}
		b.disconnect(root)
		b.disconnect(cl)
		if len(b.objects) != 3 || len(b.paths)+len(b.types)+len(b.listeners)+len(b.monitors)+len(b.clients) > 0 {
			t.Errorf("left: %v", b)
		}
	})
}

// sink is a connection whose other end reads everything.
func sink(tb testing.TB) *net.UnixConn {
	tb.Helper()
	dir := Start(tb, Options{}).Socket() + "2"
	l, err := net.Listen("unix", dir)
	if err != nil {
		tb.Fatal(err)
	}
	defer l.Close()
	conn, err := net.Dial("unix", dir)
	if err != nil {
		tb.Fatal(err)
	}
	other, err := l.Accept()
	if err != nil {
		tb.Fatal(err)
	}
	go io.Copy(io.Discard, other)
	tb.Cleanup(func() {
		conn.Close()
		other.Close()
	})
	return conn.(*net.UnixConn)
}
