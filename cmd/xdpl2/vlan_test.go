// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/binary"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// hideTags has a host send its frames with a VLAN tag that is kept outside the
// data, as a NIC does that takes tags out. It needs no VLAN device.
func hideTags(t *testing.T, h *lab.Host, vid uint16) {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{
			asm.Mov.Imm(asm.R2, int32(htons(unix.ETH_P_8021Q))),
			asm.Mov.Imm(asm.R3, int32(vid)),
			asm.FnSkbVlanPush.Call(),
			asm.Mov.Imm(asm.R0, -1),
			asm.Return(),
		},
	})
	must(t, err)
	t.Cleanup(func() { prog.Close() })
	must(t, h.NS.Do(func() error {
		dev, err := netlink.LinkByName(h.Dev())
		if err != nil {
			return err
		}
		index := dev.Attrs().Index
		if err := netlink.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}}); err != nil {
			return err
		}
		return netlink.FilterAdd(&netlink.BpfFilter{
			FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1, Priority: 1, Protocol: unix.ETH_P_ALL},
			Fd:          prog.FD(), Name: "hide", DirectAction: true,
		})
	}))
}

func htons(n uint16) uint16 {
	var b [2]byte
	b[0], b[1] = byte(n>>8), byte(n)
	return binary.NativeEndian.Uint16(b[:])
}

// TestHiddenTagsDoNotLeak: a tag that is kept outside the data is invisible to
// XDP, and a device that does not insert tags would send the frame without it.
// Such frames must go through the bridge, whichever engine is asked for.
func TestHiddenTagsDoNotLeak(t *testing.T) {
	forEachWay(t, lab.Options{NoIPv6: true}, func(t *testing.T, w way, b *box) {
		h1, h2, h3 := b.lab.Hosts[0], b.lab.Hosts[1], b.lab.Hosts[2]
		b.learn(h1, h2, h3)
		must(t, b.lab.Router.Do(func() error { return netdev.SetFeature("eth2", netdev.TxVLAN, false) }))
		hideTags(t, h1, 10)
		ctx := testContext(t)
		sender, err := h1.Sender()
		must(t, err)
		if w.engine == "generic" { // the daemon hears of the feature from the kernel
			b.wait("the change of eth2's features to be noticed", func() bool {
				must(t, sender.Send(ether.UDP(lab.Between(h1, h2))))
				return b.count("eth1", "pass_vlan") > 0
			})
		}
		for _, to := range []*lab.Host{h2, h3} {
			got, err := to.Capture()
			must(t, err)
			frame := ether.UDP(lab.Between(h1, to))
			want := ether.Tag(frame, unix.ETH_P_8021Q, 10)
			const frames = 50
			for range frames {
				must(t, sender.Send(frame))
			}
			for range frames {
				_, err := got.Expect(ctx, func(f []byte) bool { return lab.From(h1.MAC)(f) && lab.To(to.MAC)(f) })
				must(t, err)
			}
			// None of them without its tag: Expect has taken as many as were sent.
			for range frames {
				must(t, sender.Send(frame))
			}
			for range frames {
				if _, err := got.Expect(ctx, lab.Equal(want)); err != nil {
					t.Fatalf("to %s: %v", to.Name, err)
				}
			}
			if n := got.Count(lab.Equal(frame)); n > 0 {
				t.Errorf("%d frames to %s lost their tag", n, to.Name)
			}
		}
		// Towards eth3, which inserts tags, XDP may redirect; towards eth2 not.
		if w.engine == "generic" {
			if n := b.count("eth1", "pass_vlan"); n < 100 {
				t.Errorf("only %d frames passed for their VLAN", n)
			}
		} else if n := b.count("eth1", "pass_vlan"); n > 0 {
			t.Errorf("tc passed %d frames for their VLAN, although it sees tags", n)
		}
		if n := b.count("eth1", "redirected"); n < 100 {
			t.Errorf("only %d frames redirected", n)
		}
	})
}

// TestVLANDeviceOnPort: tagged frames belong to a VLAN device that sits on the
// port, before the bridge sees them.
func TestVLANDeviceOnPort(t *testing.T) {
	if !lab.Has8021q() {
		t.Skip("needs VLAN devices (kernel without 8021q)")
	}
	forEachWay(t, lab.Options{NoIPv6: true, NoTxVLAN: true}, func(t *testing.T, w way, b *box) {
		h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
		b.learn(h1, h2)
		ctx := testContext(t)
		must(t, b.lab.Router.Do(func() error {
			dev, err := netlink.LinkByName("eth1")
			if err != nil {
				return err
			}
			v := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "eth1.10", ParentIndex: dev.Attrs().Index}, VlanId: 10}
			if err := netlink.LinkAdd(v); err != nil {
				return err
			}
			return netlink.LinkSetUp(v)
		}))
		above, err := b.lab.Router.Capture("eth1.10", lab.CaptureOptions{})
		must(t, err)
		at2, err := h2.Capture()
		must(t, err)
		sender, err := h1.Sender()
		must(t, err)
		frame := ether.UDP(lab.Between(h1, h2))
		tagged := ether.Tag(frame, unix.ETH_P_8021Q, 10)
		b.wait("the VLAN device to be noticed", func() bool {
			must(t, sender.Send(tagged))
			return b.count("eth1", "pass_vlan") > 0
		})
		if _, err := above.Expect(ctx, lab.Equal(frame)); err != nil {
			t.Errorf("the VLAN device: %v", err)
		}
		at2.Drain()
		for range 100 {
			must(t, sender.Send(tagged))
		}
		must(t, sender.Send(frame))
		if _, err := at2.Expect(ctx, lab.Equal(frame)); err != nil {
			t.Error(err)
		}
		if n := at2.Count(lab.Equal(tagged)); n > 0 {
			t.Errorf("%d frames for the VLAN device were forwarded", n)
		}
	})
}

// TestXDPBelowVLANDeviceWithXDP: from 6.1 on the kernel refuses generic XDP on
// a device whose VLAN device has a program. That is no failure: the bridge
// carries the port, and status says why.
func TestXDPBelowVLANDeviceWithXDP(t *testing.T) {
	if !lab.Has8021q() {
		t.Skip("needs VLAN devices (kernel without 8021q)")
	}
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	prog := passXDP(t)
	refused := false
	must(t, l.Router.Do(func() error {
		dev, err := netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		v := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "eth1.10", ParentIndex: dev.Attrs().Index}, VlanId: 10}
		if err := netlink.LinkAdd(v); err != nil {
			return err
		}
		if err := netlink.LinkSetXdpFdWithFlags(v, prog.FD(), unix.XDP_FLAGS_SKB_MODE); err != nil {
			return err
		}
		// What this kernel does, tried with a program of nobody's.
		if err := netlink.LinkSetXdpFdWithFlags(dev, prog.FD(), unix.XDP_FLAGS_SKB_MODE); err != nil {
			refused = true
			return nil
		}
		return netlink.LinkSetXdpFdWithFlags(dev, -1, unix.XDP_FLAGS_SKB_MODE)
	}))
	b := newBox(t, l, confOf("generic"))
	b.start()
	p := b.portStatus("eth1")
	if refused && (p.State != api.NotAccelerated || p.Reason == "") || !refused && p.State != api.Accelerating {
		t.Errorf("kernel refuses: %v, status %+v", refused, p)
	}
	b.learn(l.Hosts[0], l.Hosts[1])
	transfer(t, l.Hosts[0], l.Hosts[1], false)
}

// TestForeignProgram: a device with somebody else's XDP program is left alone
// by XDP engines, and tc works beside it.
func TestForeignProgram(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	prog := passXDP(t)
	must(t, l.Router.Do(func() error {
		dev, err := netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		return netlink.LinkSetXdpFdWithFlags(dev, prog.FD(), unix.XDP_FLAGS_SKB_MODE)
	}))
	before := traces(t, l)
	b := newBox(t, l, confOf("generic"))
	b.start()
	if p := b.portStatus("eth1"); p.State != api.NotAccelerated {
		t.Errorf("status %+v", p)
	} else {
		contains(t, p.Reason, "another XDP program is attached")
	}
	if p := b.portStatus("eth2"); p.State != api.Accelerating {
		t.Errorf("status of another port %+v", p)
	}
	b.learn(l.Hosts[0], l.Hosts[1])
	b.configure(confOf("tc"))
	reload(b)
	if p := b.portStatus("eth1"); p.State != api.Accelerating {
		t.Errorf("with tc: %+v", p)
	}
	transfer(t, l.Hosts[0], l.Hosts[1], false)
	if b.count("eth1", "redirected") == 0 {
		t.Error("nothing redirected")
	}
	b.end(unix.SIGTERM)
	if after := traces(t, l); after != before {
		t.Errorf("the foreign program: before:\n%safter:\n%s", before, after)
	}
}

func passXDP(t *testing.T) *ebpf.Program {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.XDP, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()},
	})
	must(t, err)
	t.Cleanup(func() { prog.Close() })
	return prog
}

// TestLowMemoryLimit: before 5.11 maps count against RLIMIT_MEMLOCK, which is
// 64 KiB by default; the daemon raises it.
func TestLowMemoryLimit(t *testing.T) {
	l := lab.ForTest(t, lab.Options{})
	var old unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_MEMLOCK, &old))
	must(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &unix.Rlimit{Cur: 64 << 10, Max: old.Max}))
	t.Cleanup(func() { must(t, unix.Setrlimit(unix.RLIMIT_MEMLOCK, &old)) })
	b := newBox(t, l, confOf("auto", "option max_stations '16384'"))
	b.start()
	if p := b.portStatus("eth1"); p.State != api.Accelerating {
		t.Errorf("status %+v", p)
	}
}
