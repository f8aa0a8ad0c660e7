// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ether"
)

func TestCaptureAndSender(t *testing.T) {
	l := ForTest(t, Options{Hosts: 3})
	ctx := testContext(t)
	h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
	mustPing(t, h2, h1.IP4) // the bridge knows both
	mustPing(t, h3, h1.IP4)
	at2, err := h2.Capture()
	if err != nil {
		t.Fatal(err)
	}
	at3, err := h3.Capture()
	if err != nil {
		t.Fatal(err)
	}
	router, err := l.Router.Capture(h1.Port().Name, CaptureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	send, err := h1.Sender()
	if err != nil {
		t.Fatal(err)
	}
	udp := ether.UDP(Between(h1, h2))
	tagged := ether.Tag(udp, ether.TypeVLAN, 5<<13|7)
	double := ether.Tag(tagged, ether.TypeSVLAN, 9)
	for _, f := range [][]byte{udp, tagged, double} {
		if err := send.Send(f); err != nil {
			t.Fatal(err)
		}
	}
	// Whatever the order of the questions.
	for _, f := range [][]byte{double, udp, tagged} {
		if _, err := at2.Expect(ctx, Equal(f)); err != nil {
			t.Error(err)
		}
		if _, err := router.Expect(ctx, Equal(f)); err != nil {
			t.Error(err)
		}
	}
	if at3.Count(UDPPort(9)) != 0 {
		t.Error("a known station's frames were flooded")
	}
	// A frame for nobody is flooded, and shows that nothing else was.
	nobody := Between(h1, h2)
	nobody.Dst = []byte{0x02, 0, 0, 0, 0x77, 0x77}
	if err := send.Send(ether.UDP(nobody)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Capture{at2, at3} {
		if f, err := c.Expect(ctx, All(From(h1.MAC), UDPPort(9))); err != nil || !bytes.Equal(f, ether.UDP(nobody)) {
			t.Errorf("frame % x, %v", f, err)
		}
		if lost, err := c.Lost(); lost != 0 || err != nil {
			t.Errorf("lost %d, %v", lost, err)
		}
	}
	short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	if err := at3.None(short, UDPPort(9)); err != nil {
		t.Error(err)
	}
	if _, err := at3.Expect(short, UDPPort(9)); err == nil {
		t.Error("expected frame came from nowhere")
	}
	if err := send.Send(ether.UDP(nobody)); err != nil {
		t.Fatal(err)
	}
	if err := at3.None(ctx, UDPPort(9)); err == nil {
		t.Error("unexpected frame went unnoticed")
	}
}

func TestSendAll(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	ctx := testContext(t)
	h1, h2 := l.Hosts[0], l.Hosts[1]
	mustPing(t, h2, h1.IP4)
	c, err := h2.Capture()
	if err != nil {
		t.Fatal(err)
	}
	send, err := h1.Sender()
	if err != nil {
		t.Fatal(err)
	}
	var frames [][]byte
	for i := range 1000 {
		s := Between(h1, h2)
		s.Payload = []byte{byte(i >> 8), byte(i)}
		s.Length = 1514
		frames = append(frames, ether.UDP(s))
	}
	if n, err := send.SendAll(frames); n != len(frames) || err != nil {
		t.Fatalf("sent %d, %v", n, err)
	}
	if _, err := c.Expect(ctx, Equal(frames[len(frames)-1])); err != nil {
		t.Fatal(err)
	}
	if n := c.Count(UDPPort(9)); n != len(frames)-1 {
		t.Errorf("%d frames besides the last arrived", n)
	}
}

func TestCaptureLimitAndOutgoing(t *testing.T) {
	l := ForTest(t, Options{Hosts: 1, NoIPv6: true}) // nobody else fills the limit
	ctx := testContext(t)
	h := l.Hosts[0]
	c, err := h.NS.Capture("eth0", CaptureOptions{Outgoing: true, Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	send, err := h.Sender()
	if err != nil {
		t.Fatal(err)
	}
	frame := ether.LLDP(h.MAC)
	for range 3 {
		if err := send.Send(frame); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Expect(ctx, Equal(frame)); err != nil {
		t.Error(err)
	}
	if err := send.Send(frame); err != nil {
		t.Fatal(err)
	}
	for c.Seen() < 4 {
		if _, err := c.Expect(ctx, Equal(frame)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStackAnswers has the kernel judge the built frames.
func TestStackAnswers(t *testing.T) {
	l := ForTest(t, Options{Hosts: 2})
	ctx := testContext(t)
	h1, h2 := l.Hosts[0], l.Hosts[1]
	c, err := h1.Capture()
	if err != nil {
		t.Fatal(err)
	}
	send, err := h1.Sender()
	if err != nil {
		t.Fatal(err)
	}
	if err := send.Send(ether.ARPRequest(h1.MAC, h1.IP4, h2.IP4)); err != nil {
		t.Fatal(err)
	}
	reply, err := c.Expect(ctx, All(Type(ether.TypeARP), From(h2.MAC)))
	if err != nil {
		t.Fatal(err)
	}
	// A veth does not pad.
	if want := ether.ARPReply(h1.MAC, h2.MAC, h1.IP4, h2.IP4); !bytes.Equal(ether.Pad(reply, ether.MinFrame), want) {
		t.Errorf("reply % x, built % x", reply, want)
	}
	if err := send.Send(ether.NeighborSolicitation(h1.MAC, h1.IP6, h2.IP6)); err != nil {
		t.Fatal(err)
	}
	isAdvert := func(f []byte) bool { return len(f) > 54 && f[54] == 136 }
	if _, err := c.Expect(ctx, All(Type(ether.TypeIPv6), From(h2.MAC), isAdvert)); err != nil {
		t.Error(err)
	}
	for _, v6 := range []bool{false, true} {
		s := Between(h1, h2)
		listen := h2.IP4
		if v6 {
			s.DstIP, s.SrcIP, listen = h2.IP6, h1.IP6, h2.IP6
		}
		s.DstPort, s.Payload, s.Length = 7777, []byte("datagram"), 101
		conn, err := h2.NS.ListenPacket(ctx, "udp", "["+listen.String()+"]:7777")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := send.Send(ether.UDP(s)); err != nil {
			t.Fatal(err)
		}
		deadline, _ := ctx.Deadline()
		conn.SetReadDeadline(deadline)
		buf := make([]byte, 2000)
		n, _, err := conn.ReadFrom(buf)
		if err != nil || !bytes.HasPrefix(buf[:n], s.Payload) {
			t.Errorf("v6 %v: %q, %v", v6, buf[:n], err)
		}
	}
}

func TestFrameLengths(t *testing.T) {
	l := &Host{MAC: ether.STPGroup}
	for name, f := range map[string][]byte{
		"BPDU": ether.BPDU(l.MAC, 0, 1), "EAPOL": ether.EAPOL(l.MAC), "LLDP": ether.LLDP(l.MAC),
	} {
		if len(f) != ether.MinFrame {
			t.Errorf("%s: %d bytes", name, len(f))
		}
	}
	if f := ether.Tag(ether.Pad(nil, 60), ether.TypeVLAN, 0xe123); len(f) != 64 || !VID(0x123)(f) || VID(0)(f) {
		t.Errorf("tagged frame % x", f)
	}
}
