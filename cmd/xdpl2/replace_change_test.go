// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/topology"
)

// master names a device's master, empty if it has none.
func master(t testing.TB, l *lab.Lab, device string) string {
	t.Helper()
	dev, err := l.Router.Link(device)
	must(t, err)
	if dev.Attrs().MasterIndex == 0 {
		return ""
	}
	handle, err := l.Router.Handle()
	must(t, err)
	m, err := handle.LinkByIndex(dev.Attrs().MasterIndex)
	must(t, err)
	return m.Attrs().Name
}

func promisc(t testing.TB, l *lab.Lab, device string) bool {
	t.Helper()
	dev, err := l.Router.Link(device)
	must(t, err)
	return dev.Attrs().RawFlags&syscall.IFF_PROMISC != 0
}

// setMaster does what netifd would.
func setMaster(t testing.TB, l *lab.Lab, device, bridge string) {
	t.Helper()
	handle, err := l.Router.Handle()
	must(t, err)
	dev, err := l.Router.Link(device)
	must(t, err)
	if bridge == "" {
		must(t, handle.LinkSetNoMaster(dev))
		return
	}
	br, err := l.Router.Link(bridge)
	must(t, err)
	must(t, handle.LinkSetMaster(dev, br))
}

// TestReplaceMAC: the ports' hosts reach each other, by the fast path and
// without it, and the box only over the port that it keeps.
func TestReplaceMAC(t *testing.T) {
	for _, w := range ways(t) {
		t.Run(w.name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{})
			b := newBox(t, l, replaceConf("mac", w.engine, []string{"eth1", "eth2"}))
			b.start(w.args...)
			b.waitAccelerating()
			h1, h2, h3 := l.Hosts[0], l.Hosts[1], l.Hosts[2]
			b.ping(h1.NS, h2) // from cold: somebody floods
			ping6(t, h2.NS, h1.IP6)
			b.waitStation(h1, "eth1")
			b.waitStation(h2, "eth2")
			transfer(t, h1, h2, false)
			if n := b.count("eth1", "redirected"); n < uint64(scaled(1000)) {
				t.Errorf("only %d frames redirected", n)
			}
			heard, err := h1.Capture()
			must(t, err)
			b.pingsNot(h1.NS, lab.RouterIP4)
			b.pingsNot(h1.NS, h3.IP4)
			if n := heard.Count(func(f []byte) bool { return lab.Type(0x0806)(f) && !lab.From(h1.MAC)(f) && !lab.From(h2.MAC)(f) }); n > 0 {
				t.Errorf("%d ARP frames from others than the two hosts: %x", n, heard.Drain())
			}
			b.ping(h3.NS, nil)
			if s := b.status(); s.OwnBridge != topology.OwnName {
				t.Errorf("own bridge %q", s.OwnBridge)
			}
			stdout, _, _ := b.cli("status")
			contains(t, stdout, "topology replace (into br-xdpl2)")
			addrs := boxAddresses(t, l, topology.OwnName)
			if len(addrs) > 0 {
				t.Errorf("the box has addresses in the bridge of the ports: %v", addrs)
			}
			// Without the daemon the bridge goes on, and the next one takes over.
			b.end(syscall.SIGKILL)
			b.ping(h1.NS, h2)
			b.start(w.args...)
			b.waitAccelerating()
			b.waitLog("restored what an earlier daemon changed")
			b.ping(h2.NS, h1)
		})
	}
}

func boxAddresses(t testing.TB, l *lab.Lab, device string) []netlink.Addr {
	t.Helper()
	handle, err := l.Router.Handle()
	must(t, err)
	dev, err := l.Router.Link(device)
	must(t, err)
	addrs, err := handle.AddrList(dev, netlink.FAMILY_ALL)
	must(t, err)
	return addrs
}

// withoutNumbers leaves out the ports' numbers. A bridge gives the lowest that is
// free, and a port that comes back alone finds more of them free.
func withoutNumbers(topology string) string {
	return regexp.MustCompile(` (15|17|18)=[0-9a-f]+`).ReplaceAllString(topology, "")
}

// TestReplaceReload switches topology and mode, and adds and removes ports,
// each time with the least that has to change.
func TestReplaceReload(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 4, NoIPv6: true})
	setPort(t, l, "eth1", map[uint16][]byte{3: nl.Uint32Attr(77), 31: nl.Uint16Attr(8)})
	setPort(t, l, "eth2", map[uint16][]byte{2: nl.Uint16Attr(16), 4: {1}})
	before := topologyOf(t, l)
	b := newBox(t, l, confOf("tc"))
	b.start()
	h1, h2 := l.Hosts[0], l.Hosts[1]
	ownIndex := 0
	for _, step := range []struct {
		name, config string
		masters      map[string]string
		promisc      string // devices
	}{
		{"mac, two ports", replaceConf("mac", "tc", []string{"eth1", "eth2"}),
			map[string]string{"eth1": "br-xdpl2", "eth2": "br-xdpl2", "eth3": "br-lan", "eth4": "br-lan"}, ""},
		{"mac, a third", replaceConf("mac", "tc", []string{"eth1", "eth2", "eth3"}),
			map[string]string{"eth1": "br-xdpl2", "eth2": "br-xdpl2", "eth3": "br-xdpl2", "eth4": "br-lan"}, ""},
		{"mac, generic", replaceConf("mac", "generic", []string{"eth1", "eth2"}),
			map[string]string{"eth1": "br-xdpl2", "eth2": "br-xdpl2", "eth3": "br-lan", "eth4": "br-lan"}, ""},
		{"a wire", replaceConf("port", "tc", []string{"eth1>eth2", "eth2>eth1"}),
			map[string]string{"eth1": "", "eth2": "", "eth3": "br-lan", "eth4": "br-lan"}, "eth1 eth2"},
		{"one way", replaceConf("port", "tc", []string{"eth1>eth2"}),
			map[string]string{"eth1": "", "eth2": "", "eth3": "br-lan", "eth4": "br-lan"}, "eth1"},
		{"mac again", replaceConf("mac", "tc", []string{"eth1", "eth2"}),
			map[string]string{"eth1": "br-xdpl2", "eth2": "br-xdpl2", "eth3": "br-lan", "eth4": "br-lan"}, ""},
		{"coexist", confOf("tc"), nil, ""},
		{"a wire", replaceConf("port", "generic", []string{"eth1>eth2", "eth2>eth1"}),
			map[string]string{"eth1": "", "eth2": "", "eth3": "br-lan", "eth4": "br-lan"}, "eth1 eth2"},
		{"off", replaceConf("port", "generic", []string{"eth1>eth2", "eth2>eth1"}, "option enabled '0'"), nil, ""},
	} {
		b.configure(step.config)
		reload(b)
		if step.masters == nil {
			if diff := changes(withoutNumbers(before), withoutNumbers(topologyOf(t, l))); diff != "" {
				t.Errorf("%s: different:\n%s", step.name, diff)
			}
			ownIndex = 0
			continue
		}
		var watching []string
		for device, want := range step.masters {
			if got := master(t, l, device); got != want {
				t.Errorf("%s: master of %s is %q, want %q", step.name, device, got, want)
			}
		}
		for _, device := range []string{"eth1", "eth2", "eth3", "eth4"} {
			if promisc(t, l, device) {
				watching = append(watching, device)
			}
		}
		if got := strings.Join(watching, " "); got != step.promisc {
			t.Errorf("%s: promiscuous are %q, want %q", step.name, got, step.promisc)
		}
		if own, err := l.Router.Link(topology.OwnName); step.masters["eth1"] == "" {
			if err == nil {
				t.Errorf("%s: %s is still there", step.name, topology.OwnName)
			}
			ownIndex = 0
		} else if must(t, err); ownIndex != 0 && own.Attrs().Index != ownIndex {
			t.Errorf("%s: %s was made anew", step.name, topology.OwnName)
		} else {
			ownIndex = own.Attrs().Index
		}
		b.waitAccelerating()
		if step.name != "one way" {
			b.ping(h1.NS, h2)
		}
	}
}

// TestReplaceMovedByOthers: who moves a port back is right, until somebody asks
// for the port again.
func TestReplaceMovedByOthers(t *testing.T) {
	for name, r := range map[string]struct {
		config string
		away   string // where the port is while it is taken
	}{
		"mac":  {replaceConf("mac", "tc", []string{"eth1", "eth2"}), "br-xdpl2"},
		"port": {replaceConf("port", "tc", []string{"eth1>eth2", "eth2>eth1"}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{NoIPv6: true})
			b := newBox(t, l, r.config)
			b.start()
			b.waitAccelerating()
			setMaster(t, l, "eth1", lab.BridgeName)
			b.wait("eth1 to be left", func() bool { return b.portStatus("eth1").State == api.NotAccelerated })
			contains(t, b.portStatus("eth1").Reason, "somebody has moved eth1 back into br-lan; xdpl2 leaves it there (xdpl2 reload takes it again)")
			if got := master(t, l, "eth1"); got != lab.BridgeName {
				t.Errorf("eth1 was moved once more, to %q", got)
			}
			if promisc(t, l, "eth1") {
				t.Error("eth1 is still promiscuous")
			}
			b.ping(l.Hosts[0].NS, nil)
			if name == "port" {
				// The other end alone is no wire.
				b.wait("eth2 to be given back", func() bool { return master(t, l, "eth2") == lab.BridgeName })
			}
			reload(b)
			b.waitAccelerating()
			if got := master(t, l, "eth1"); got != r.away {
				t.Errorf("after a reload eth1 is in %q, want %q", got, r.away)
			}
			b.ping(l.Hosts[0].NS, l.Hosts[1])
			// What others do to a port that they have moved stays when xdpl2 ends.
			setMaster(t, l, "eth1", lab.BridgeName)
			must(t, l.SetHairpin(l.Hosts[0].Port(), true))
			b.wait("eth1 to be left", func() bool { return b.portStatus("eth1").State == api.NotAccelerated })
			during := topologyOf(t, l)
			b.end(syscall.SIGTERM)
			line := func(all, of string) string {
				for _, line := range strings.Split(all, "\n") {
					if strings.HasPrefix(line, of+" index") {
						return line
					}
				}
				return ""
			}
			after := topologyOf(t, l)
			if line(after, "eth1") != line(during, "eth1") {
				t.Errorf("eth1 before the end:\n%s\nafter:\n%s", line(during, "eth1"), line(after, "eth1"))
			}
			if got := master(t, l, "eth2"); got != lab.BridgeName {
				t.Errorf("eth2 is in %q", got)
			}
		})
	}
	t.Run("bridge removed", func(t *testing.T) {
		l := lab.ForTest(t, lab.Options{NoIPv6: true})
		b := newBox(t, l, replaceConf("mac", "tc", []string{"eth1", "eth2"}))
		b.start()
		b.waitAccelerating()
		handle, err := l.Router.Handle()
		must(t, err)
		own, err := l.Router.Link(topology.OwnName)
		must(t, err)
		must(t, handle.LinkDel(own))
		b.wait("eth1 to be left", func() bool { return b.portStatus("eth1").State == api.NotAccelerated })
		contains(t, b.portStatus("eth1").Reason, "somebody has moved eth1 out of br-xdpl2")
		if _, err := l.Router.Link(topology.OwnName); err == nil {
			t.Error("the bridge was made again")
		}
		reload(b)
		b.waitAccelerating()
		b.ping(l.Hosts[0].NS, l.Hosts[1])
		b.end(syscall.SIGTERM)
		if got := master(t, l, "eth1"); got != lab.BridgeName {
			t.Errorf("at the end eth1 is in %q", got)
		}
	})
	t.Run("elsewhere", func(t *testing.T) {
		l := lab.ForTest(t, lab.Options{NoIPv6: true})
		b := newBox(t, l, replaceConf("mac", "tc", []string{"eth1", "eth2"}))
		b.start()
		b.waitAccelerating()
		handle, err := l.Router.Handle()
		must(t, err)
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "br-guest"
		must(t, handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
		setMaster(t, l, "eth1", "br-guest")
		b.wait("eth1 to be left", func() bool { return b.portStatus("eth1").State == api.NotAccelerated })
		contains(t, b.portStatus("eth1").Reason, "somebody has moved eth1 into br-guest")
		b.end(syscall.SIGTERM)
		if got := master(t, l, "eth1"); got != "br-guest" {
			t.Errorf("eth1 was moved to %q", got)
		}
	})
}

// TestReplaceKeepsTheBoxReachable refuses to take the last way to the box.
func TestReplaceKeepsTheBoxReachable(t *testing.T) {
	last := "eth1 and eth2 are the last ports of br-lan, which has the box's address 192.168.77.1: it could not be reached any more (option force '1' of section main"
	for name, r := range map[string]struct {
		config, forced string
		prepare        func(*testing.T, *lab.Lab)
		want           string
		taken          []string
	}{
		"the last ports, mac": {
			config: replaceConf("mac", "tc", []string{"eth1", "eth2"}),
			forced: replaceConf("mac", "tc", []string{"eth1", "eth2"}, "option force '1'"),
			want:   last, taken: []string{"eth1", "eth2"},
		},
		"the last ports, a wire": {
			config: replaceConf("port", "tc", []string{"eth1>eth2", "eth2>eth1"}),
			forced: replaceConf("port", "tc", []string{"eth1>eth2", "eth2>eth1"}, "option force '1'"),
			want:   last, taken: []string{"eth1", "eth2"},
		},
		"a port with an address": {
			prepare: func(t *testing.T, l *lab.Lab) {
				handle, err := l.Router.Handle()
				must(t, err)
				dev, err := l.Router.Link("eth1")
				must(t, err)
				must(t, handle.AddrAdd(dev, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(192, 0, 2, 1).To4(), Mask: net.CIDRMask(24, 32)}}))
			},
			config: replaceConf("mac", "tc", []string{"eth1"}),
			forced: replaceConf("mac", "tc", []string{"eth1"}, "option force '1'"),
			want:   "eth1 has the box's address 192.0.2.1, which could not be reached any more (option force '1' of section main", taken: []string{"eth1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true})
			if r.prepare != nil {
				r.prepare(t, l)
			}
			before := topologyOf(t, l)
			b := newBox(t, l, r.config)
			b.start()
			for _, p := range b.status().Ports {
				if p.State != api.NotAccelerated {
					t.Errorf("%s: %s", p.Device, p.State)
				}
				contains(t, p.Reason, r.want)
			}
			if diff := changes(before, topologyOf(t, l)); diff != "" {
				t.Errorf("something was changed:\n%s", diff)
			}
			b.configure(r.forced)
			reload(b)
			b.waitAccelerating()
			for _, device := range r.taken {
				if master(t, l, device) == lab.BridgeName {
					t.Errorf("%s was not taken by force", device)
				}
			}
			b.end(syscall.SIGTERM)
			if diff := changes(before, topologyOf(t, l)); diff != "" {
				t.Errorf("different at the end:\n%s", diff)
			}
		})
	}
}

// TestReplaceAddressComesLater: at boot the ports may be there before the
// bridge has its address.
func TestReplaceAddressComesLater(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true, Bridge: lab.BridgeOptions{AgeingTime: 8 * time.Second}}) // the daemon looks every second
	handle, err := l.Router.Handle()
	must(t, err)
	br, err := l.Router.Link(lab.BridgeName)
	must(t, err)
	addrs := boxAddresses(t, l, lab.BridgeName)
	for i := range addrs {
		must(t, handle.AddrDel(br, &addrs[i]))
	}
	b := newBox(t, l, replaceConf("mac", "tc", []string{"eth1", "eth2"}))
	b.start()
	b.waitAccelerating()
	if got := master(t, l, "eth1"); got != topology.OwnName {
		t.Errorf("without any address eth1 is in %q", got)
	}
	must(t, handle.AddrAdd(br, &netlink.Addr{IPNet: &net.IPNet{IP: lab.RouterIP4.AsSlice(), Mask: net.CIDRMask(24, 32)}}))
	b.wait("the ports to be given back", func() bool {
		return master(t, l, "eth1") == lab.BridgeName && master(t, l, "eth2") == lab.BridgeName
	})
	b.waitFiltered("eth1", "eth1 and eth2 are the last ports of br-lan")
	b.ping(l.Hosts[0].NS, nil)
}

// TestReplaceReplug: a port that is unplugged and comes back is taken again.
func TestReplaceReplug(t *testing.T) {
	for name, config := range map[string]string{
		"mac":  replaceConf("mac", "tc", []string{"eth2", "eth3"}),
		"port": replaceConf("port", "tc", []string{"eth3>eth2", "eth2>eth3"}),
	} {
		t.Run(name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{NoIPv6: true})
			b := newBox(t, l, config)
			b.start()
			b.waitAccelerating()
			home, h2, h3 := master(t, l, "eth3"), l.Hosts[1], l.Hosts[2]
			must(t, l.DeletePort(h3.Port()))
			b.wait("eth3 to go", func() bool { return b.portStatus("eth3").State == api.Waiting })
			if got := master(t, l, "eth2"); got != home {
				t.Errorf("eth2 fell back into %q", got)
			}
			port, err := l.AddPort()
			must(t, err)
			b.waitAccelerating()
			b.wait("eth3 to be taken again", func() bool { return master(t, l, "eth3") == home })
			if home != "" { // the lab waits for a bridge's port
				must(t, h3.Replug(testContext(t), port))
				b.ping(h3.NS, h2)
			}
			b.end(syscall.SIGTERM)
			for _, device := range []string{"eth2", "eth3"} {
				if got := master(t, l, device); got != lab.BridgeName {
					t.Errorf("at the end %s is in %q", device, got)
				}
			}
		})
	}
}

// TestReplaceFailsWhole: what cannot be written down, or whose program cannot
// be attached, is left or brought back.
func TestReplaceFailsWhole(t *testing.T) {
	t.Run("no journal", func(t *testing.T) {
		l := lab.ForTest(t, lab.Options{NoIPv6: true})
		b := newBox(t, l, replaceConf("port", "tc", []string{"eth1>eth2", "eth2>eth1"}))
		must(t, os.MkdirAll(filepath.Join(b.dir, "run", "restore.json.new"), 0o700)) // so that no file of that name can be written
		before := topologyOf(t, l)
		b.start()
		for _, p := range b.status().Ports {
			if p.State == api.Accelerating {
				t.Errorf("%s: %s", p.Device, p.State)
			}
			contains(t, p.Reason, "write down what has to be restored")
		}
		if diff := changes(before, topologyOf(t, l)); diff != "" {
			t.Errorf("different:\n%s", diff)
		}
	})
	t.Run("no program", func(t *testing.T) {
		l := lab.ForTest(t, lab.Options{NoIPv6: true})
		foreignProgram(t, l, "eth1")
		before := topologyOf(t, l)
		b := newBox(t, l, replaceConf("port", "generic", []string{"eth1>eth2", "eth2>eth1"}))
		b.start()
		b.wait("the ports to be given back", func() bool {
			return master(t, l, "eth1") == lab.BridgeName && master(t, l, "eth2") == lab.BridgeName
		})
		b.waitFiltered("eth1", "another XDP program")
		b.waitFiltered("eth2", "target eth1 cannot be used")
		if diff := changes(before, topologyOf(t, l)); diff != "" {
			t.Errorf("different:\n%s", diff)
		}
		b.ping(l.Hosts[0].NS, l.Hosts[1])
	})
}

// foreignProgram attaches somebody else's XDP program.
func foreignProgram(t testing.TB, l *lab.Lab, device string) {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "MIT",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}})
	must(t, err)
	t.Cleanup(func() { prog.Close() })
	dev, err := l.Router.Link(device)
	must(t, err)
	must(t, l.Router.Do(func() error {
		held, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: dev.Attrs().Index, Flags: link.XDPGenericMode})
		if err == nil {
			t.Cleanup(func() { held.Close() })
		}
		return err
	}))
}

// TestReplaceOwnNameTaken: a user's bridge of xdpl2's name is left alone.
func TestReplaceOwnNameTaken(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	handle, err := l.Router.Handle()
	must(t, err)
	attrs := netlink.NewLinkAttrs()
	attrs.Name = topology.OwnName
	must(t, handle.LinkAdd(&netlink.Bridge{LinkAttrs: attrs}))
	before := topologyOf(t, l)
	b := newBox(t, l, replaceConf("mac", "tc", []string{"eth1", "eth2"}))
	b.start()
	b.waitAccelerating()
	if got := master(t, l, "eth1"); got != topology.OwnName+"-1" {
		t.Errorf("eth1 is in %q", got)
	}
	b.end(syscall.SIGKILL)
	if _, stderr, code := b.cli("cleanup"); code != exitFine {
		t.Errorf("cleanup: %d, %s", code, stderr)
	}
	b.wait("the programs to be detached", func() bool { return topologyOf(t, l) == before })
}
