// SPDX-License-Identifier: Apache-2.0

package ubustest

import (
	"context"
	"errors"
	"net"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/wire"
)

// peer is a client that knows nothing but frames.
type peer struct {
	t    *testing.T
	conn *net.UnixConn
	seq  uint16
}

func dial(t *testing.T, d *Daemon) *peer {
	t.Helper()
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: d.Socket(), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	p := &peer{t: t, conn: conn}
	if m := p.read(); m.Type != wire.Hello {
		t.Fatalf("got %v", m.Type)
	}
	return p
}

func (p *peer) read() *wire.Message {
	p.t.Helper()
	m, err := wire.Read(p.conn, wire.MaxLen)
	if err != nil {
		p.t.Fatal(err)
	}
	return m
}

// ask sends a request and reads up to its STATUS.
func (p *peer) ask(t wire.Type, body wire.Body) (data []*wire.Attrs, status uint32) {
	p.t.Helper()
	p.seq++
	out, err := (&wire.Message{Type: t, Seq: p.seq, Body: body}).Append(nil)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.conn.Write(out); err != nil {
		p.t.Fatal(err)
	}
	for {
		m := p.read()
		switch a := wire.Parse(m.Body); m.Type {
		case wire.Status:
			return data, a.Status
		case wire.Data:
			data = append(data, a)
		}
	}
}

func encode(t *testing.T, table blobmsg.Table) []byte {
	t.Helper()
	list, err := blobmsg.Encode(table)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (p *peer) add(path string) {
	p.t.Helper()
	sig := encode(p.t, blobmsg.Table{{Name: "x", Value: blobmsg.Table{}}})
	if _, status := p.ask(wire.AddObject, wire.Body{}.String(wire.AttrObjPath, path).Bytes(wire.AttrSignature, sig)); status != 0 {
		p.t.Fatalf("add %s: status %d", path, status)
	}
}

func (p *peer) callEvent(method string, args blobmsg.Table) {
	p.t.Helper()
	_, status := p.ask(wire.Invoke, wire.Body{}.Uint32(wire.AttrObjID, wire.EventObject).
		String(wire.AttrMethod, method).Bytes(wire.AttrData, encode(p.t, args)))
	if status != 0 {
		p.t.Fatalf("%s: status %d", method, status)
	}
}

func TestLife(t *testing.T) {
	d := Start(t, Options{})
	if err := d.Start(); err == nil {
		t.Error("it starts twice")
	}
	p := dial(t, d)
	p.add("b")
	p.add("a")
	if got := d.Objects(); !reflect.DeepEqual(got, []string{"a", "b"}) || d.Clients() != 1 {
		t.Errorf("objects %q, %d clients", got, d.Clients())
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := d.WaitObject(ctx, "a", true); err != nil {
		t.Error(err)
	}
	cancel()
	if err := d.WaitObject(ctx, "a", false); !errors.Is(err, context.Canceled) {
		t.Errorf("an object that stays: %v", err)
	}
	if err := d.Disconnect("c"); err == nil {
		t.Error("the owner of nothing is disconnected")
	}
	if err := d.Disconnect("a"); err != nil {
		t.Error(err)
	}
	if err := d.WaitObject(t.Context(), "b", false); err != nil {
		t.Error(err)
	}

	waited := make(chan error, 1)
	go func() { waited <- d.WaitListener(t.Context(), "x") }()
	d.Stop()
	if err := <-waited; err == nil {
		t.Error("a wait outlives the daemon")
	}
	if d.Objects() != nil || d.Clients() != 0 || d.WaitObject(t.Context(), "a", false) == nil || d.Disconnect("a") == nil {
		t.Error("a daemon that is stopped has something")
	}
	if _, err := net.Dial("unix", d.Socket()); err == nil {
		t.Error("a daemon that is stopped takes connections")
	}
	d.Stop()
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	p = dial(t, d)
	if list, status := p.ask(wire.Lookup, nil); len(list) != 0 || status != 0 {
		t.Errorf("a new bus has %d objects, status %d", len(list), status)
	}
}

// TestSlowClient sends events to a client that does not read: what is over a
// MiB behind what the kernel keeps is dropped, the connection stays.
func TestSlowClient(t *testing.T) {
	d := Start(t, Options{})
	slow, sender := dial(t, d), dial(t, d)
	data, _ := slow.ask(wire.AddObject, nil)
	slow.callEvent("register", blobmsg.Table{{Name: "object", Value: int32(data[0].ObjID)}, {Name: "pattern", Value: "*"}})
	if err := d.WaitListener(t.Context(), "*"); err != nil {
		t.Fatal(err)
	}
	const size, sent = 50000, 60
	big := blobmsg.Table{{Name: "id", Value: "big"}, {Name: "data", Value: blobmsg.Table{{Name: "v", Value: text(size)}}}}
	for range sent {
		sender.callEvent("send", big)
	}
	// A request behind the events: its answer is dropped, too, if there is no
	// room, so first what is there is read.
	read := 0
	for m := slow.read(); ; m = slow.read() {
		if int(m.Seq) != read+1 {
			t.Fatalf("event %d after %d", m.Seq, read)
		}
		if read++; read*size > maxQueue {
			break
		}
	}
	sender.callEvent("send", blobmsg.Table{{Name: "id", Value: "last"}, {Name: "data", Value: blobmsg.Table{}}})
	for m := slow.read(); ; m = slow.read() {
		if m.Seq == sent+1 {
			break
		}
		if read++; int(m.Seq) != read {
			t.Fatalf("event %d after %d", m.Seq, read)
		}
	}
	if kept := read * size; read == sent || kept > maxQueue+2<<20 {
		t.Errorf("%d of %d events arrived", read, sent)
	}
}

func text(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = 'x'
	}
	return string(b)
}

func TestPeerCredentials(t *testing.T) {
	who := make(chan Credentials, 1)
	d := Start(t, Options{Identify: func(c *net.UnixConn) (Credentials, error) {
		cred, err := peerCredentials(c)
		who <- cred
		return cred, err
	}})
	dial(t, d)
	if c := <-who; c.UID != uint32(os.Getuid()) || c.GID != uint32(os.Getgid()) || c.User == "" || c.Group == "" {
		t.Errorf("got %+v", c)
	}
}

func TestUnknownClient(t *testing.T) {
	d := Start(t, Options{Identify: func(*net.UnixConn) (Credentials, error) { return Credentials{}, errors.New("no") }})
	conn, err := net.Dial("unix", d.Socket())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("a client that nobody knows is served")
	}
}

func TestBadACL(t *testing.T) {
	if err := New(Options{Socket: t.TempDir() + "/s", ACL: map[string]string{"x": "{"}}).Start(); !errors.Is(err, blobmsg.ErrJSON) {
		t.Errorf("got %v", err)
	}
}
