// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// guestPorts returns two network cards with a cable between them; a guest of
// test/vm has such. It skips the test elsewhere.
func guestPorts(t *testing.T) (here, there string) {
	t.Helper()
	ports := strings.Fields(strings.ReplaceAll(os.Getenv("XDPL2_GUEST_PORTS"), ",", " "))
	if len(ports) != 2 {
		t.Skip("needs two network cards with a cable between them, as the guests of make test-vm have")
	}
	return ports[0], ports[1]
}

// lend moves a card of the machine into a namespace until the test ends.
func lend(t *testing.T, ns *lab.NS, card string) {
	t.Helper()
	home, err := os.Open("/proc/self/ns/net")
	must(t, err)
	dev, err := netlink.LinkByName(card)
	must(t, err)
	must(t, netlink.LinkSetNsFd(dev, ns.FD()))
	// Its ifindex may be another one there.
	must(t, ns.Do(func() error {
		if dev, err = netlink.LinkByName(card); err != nil {
			return err
		}
		return netlink.LinkSetUp(dev)
	}))
	t.Cleanup(func() {
		defer home.Close()
		must(t, ns.Do(func() error { return netlink.LinkSetNsFd(dev, int(home.Fd())) }))
	})
}

// TestHiddenTagsOnCards is TestHiddenTagsDoNotLeak with a card that does not
// insert VLAN tags (virtio_net): there the leak is real. The test first shows
// that it is, with a program that redirects blindly.
func TestHiddenTagsOnCards(t *testing.T) {
	here, there := guestPorts(t)
	for _, engine := range []string{"generic", "tc"} {
		t.Run(engine, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{Hosts: 1, NoIPv6: true})
			far, err := lab.NewNS("far")
			must(t, err)
			t.Cleanup(func() { far.Close() })
			lend(t, l.Router, here)
			lend(t, far, there)
			var farMAC [6]byte
			must(t, far.Do(func() error {
				dev, err := netlink.LinkByName(there)
				if err == nil {
					farMAC = [6]byte(dev.Attrs().HardwareAddr)
				}
				return err
			}))
			must(t, l.Router.Do(func() error { return joinBridge(here) }))
			must(t, l.Router.Do(func() error {
				if inserts, err := netdev.Feature(here, netdev.TxVLAN); err != nil || inserts {
					t.Fatalf("%s inserts tags itself (%v): it shows nothing here", here, err)
				}
				return nil
			}))
			h1 := l.Hosts[0]
			hideTags(t, h1, 10)
			got, err := far.Capture(there, lab.CaptureOptions{})
			must(t, err)
			sender, err := h1.Sender()
			must(t, err)
			back, err := far.Sender(there)
			must(t, err)
			spec := lab.Between(h1, h1)
			spec.Dst = farMAC[:]
			frame := ether.UDP(spec)
			tagged := ether.Tag(frame, unix.ETH_P_8021Q, 10)
			ctx := testContext(t)

			if engine == "generic" {
				detach := redirectBlindly(t, l.Router, "eth1", here)
				// Cards drop frames for a moment after they come up.
				b := box{t: t}
				t.Cleanup(func() {
					if t.Failed() {
						frames := got.Drain()
						t.Logf("%s captured %d frames, the first ones % x", there, len(frames), frames[:min(3, len(frames))])
						t.Logf("router:\n%s", traces(t, l))
					}
				})
				b.wait("the trap to bite: a frame without its tag", func() bool {
					must(t, sender.Send(frame))
					return got.Count(lab.Equal(frame)) > 0
				})
				detach()
				got.Drain()
			}

			b := newBox(t, l, "config xdpl2 'main'\n\toption enabled '1'\n\toption engine '"+engine+"'\n"+
				"config port\n\toption device 'eth1'\nconfig port\n\toption device '"+here+"'\n")
			b.start()
			if p := b.portStatus(here); p.State != api.Accelerating || p.Engine != engine {
				t.Fatalf("status of %s: %+v", here, p)
			}
			answer := ether.UDP(ether.UDPSpec{Dst: h1.MAC, Src: farMAC[:], DstIP: h1.IP4, SrcIP: h1.IP4, DstPort: lab.DiscardPort, SrcPort: 1})
			b.wait("both stations", func() bool {
				must(t, back.Send(answer))
				must(t, sender.Send(frame))
				return b.status().Stations >= 2
			})
			b.wait("a frame to arrive with its tag", func() bool {
				must(t, sender.Send(frame))
				return got.Count(lab.Equal(tagged)) > 0
			})
			got.Drain()
			before := b.count("eth1", "redirected")
			const frames = 50
			for range frames {
				must(t, sender.Send(frame))
			}
			for range frames {
				if _, err := got.Expect(ctx, lab.Equal(tagged)); err != nil {
					t.Fatal(err)
				}
			}
			if n := got.Count(lab.Equal(frame)); n > 0 {
				t.Errorf("%d frames lost their tag", n)
			}
			redirected := b.count("eth1", "redirected") - before
			if engine == "tc" && redirected < frames || engine == "generic" && redirected > 0 {
				t.Errorf("%d of %d frames redirected", redirected, frames)
			}
			// The way back is free: a card that takes no tags out hides none.
			heard, err := h1.Capture()
			must(t, err)
			before = b.count(here, "redirected")
			must(t, back.Send(ether.Tag(answer, unix.ETH_P_8021Q, 10)))
			if _, err := heard.Expect(ctx, lab.Equal(ether.Tag(answer, unix.ETH_P_8021Q, 10))); err != nil {
				t.Error(err)
			}
			b.wait("the way back to be accelerated", func() bool { return b.count(here, "redirected") > before })
			b.end(unix.SIGTERM)
		})
	}
}

// TestNativeOnCards: native XDP in the driver of a card (virtio_net), from a
// veth to it and back. Whether it can is the kernel's to say; if it says so, or
// cannot say, frames get through.
func TestNativeOnCards(t *testing.T) {
	here, there := guestPorts(t)
	l := lab.ForTest(t, lab.Options{Hosts: 1, NoIPv6: true})
	far, err := lab.NewNS("far")
	must(t, err)
	t.Cleanup(func() { far.Close() })
	lend(t, l.Router, here)
	lend(t, far, there)
	must(t, l.Router.Do(func() error { return joinBridge(here) }))
	if vethsTakeXDP(t) {
		openWays(t, l)
	}
	var farMAC [6]byte
	must(t, far.Do(func() error {
		dev, err := netlink.LinkByName(there)
		if err == nil {
			farMAC = [6]byte(dev.Attrs().HardwareAddr)
		}
		return err
	}))
	h1 := l.Hosts[0]
	got, err := far.Capture(there, lab.CaptureOptions{})
	must(t, err)
	sender, err := h1.Sender()
	must(t, err)
	back, err := far.Sender(there)
	must(t, err)
	spec := lab.Between(h1, h1)
	spec.Dst = farMAC[:]
	frame := ether.UDP(spec)
	answer := ether.UDP(ether.UDPSpec{Dst: h1.MAC, Src: farMAC[:], DstIP: h1.IP4, SrcIP: h1.IP4, DstPort: lab.DiscardPort, SrcPort: 1})
	heard, err := h1.Capture()
	must(t, err)

	b := newBox(t, l, "config xdpl2 'main'\n\toption enabled '1'\n\toption engine 'native'\n"+
		"config port\n\toption device 'eth1'\nconfig port\n\toption device '"+here+"'\n")
	b.start("--trust-frames", "--trust-tags")
	for _, p := range b.status().Ports {
		t.Logf("%s: %s by %s; %v", p.Device, p.Engine, p.Hook, p.Engines)
		if p.State != api.Accelerating || p.Engine != "native" && !strings.HasPrefix(p.Reason, "not native: ") {
			t.Errorf("%+v", p)
		}
	}
	b.wait("both stations", func() bool {
		must(t, back.Send(answer))
		must(t, sender.Send(frame))
		return b.status().Stations >= 2
	})
	// Through whatever they have, in the end: what swallows is left.
	for _, way := range []struct {
		device string
		send   *netns.Sender
		frame  []byte
		at     *lab.Capture
	}{{"eth1", sender, frame, got}, {here, back, answer, heard}} {
		before := b.count(way.device, "redirected")
		b.wait("frames from "+way.device+" to be accelerated", func() bool {
			must(t, way.send.Send(way.frame))
			return b.count(way.device, "redirected") > before
		})
		way.at.Drain()
		b.wait("accelerated frames from "+way.device+" to arrive", func() bool {
			must(t, way.send.Send(way.frame))
			return way.at.Count(lab.Equal(way.frame)) > 0
		})
	}
	for _, p := range b.status().Ports {
		t.Logf("%s: %s in the end; %s", p.Device, p.Engine, p.Reason)
	}
	if code := b.end(unix.SIGTERM); code != exitFine {
		t.Errorf("exit code %d", code)
	}
}

func joinBridge(card string) error {
	dev, err := netlink.LinkByName(card)
	if err != nil {
		return err
	}
	br, err := netlink.LinkByName("br-lan")
	if err != nil {
		return err
	}
	return netlink.LinkSetMaster(dev, br)
}

// redirectBlindly attaches a generic XDP program that sends everything from
// one device out by another, as a forwarder does that does not know of hidden
// tags.
func redirectBlindly(t *testing.T, ns *lab.NS, from, to string) (detach func()) {
	t.Helper()
	var l link.Link
	must(t, ns.Do(func() error {
		in, err := netlink.LinkByName(from)
		if err != nil {
			return err
		}
		out, err := netlink.LinkByName(to)
		if err != nil {
			return err
		}
		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
			Type: ebpf.XDP, License: "Dual BSD/GPL",
			Instructions: asm.Instructions{
				asm.Mov.Imm(asm.R1, int32(out.Attrs().Index)),
				asm.Mov.Imm(asm.R2, 0),
				asm.FnRedirect.Call(),
				asm.Return(),
			},
		})
		if err != nil {
			return err
		}
		defer prog.Close()
		l, err = link.AttachXDP(link.XDPOptions{Program: prog, Interface: in.Attrs().Index, Flags: link.XDPGenericMode})
		return err
	}))
	runtime.KeepAlive(l)
	return func() { must(t, l.Close()) }
}
