// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/topology"
)

// dieAt makes the program kill itself after so many changes to the system, as
// a power cut or the out-of-memory killer would.
const dieAt = "XDPL2_TEST_DIE_AT"

func dieAtStep() {
	left, err := strconv.Atoi(os.Getenv(dieAt))
	if err != nil {
		return
	}
	topology.Step = func() {
		if left--; left == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal is on its way
		}
	}
}

// replaceConf writes a configuration of topology replace: devices are "eth1"
// or, with a target, "eth1>eth2"; extra are lines of section main.
func replaceConf(mode, engine string, devices []string, extra ...string) string {
	text := fmt.Sprintf("config xdpl2 'main'\n\toption enabled '1'\n\toption topology 'replace'\n\toption mode '%s'\n\toption engine '%s'\n", mode, engine)
	for _, line := range extra {
		text += "\t" + line + "\n"
	}
	return text + portSections(devices)
}

func portSections(devices []string) (text string) {
	for _, d := range devices {
		device, target, _ := strings.Cut(d, ">")
		text += fmt.Sprintf("\nconfig port\n\toption device '%s'\n", device)
		if target != "" {
			text += fmt.Sprintf("\toption target '%s'\n", target)
		}
	}
	return text
}

// topologyOf is all about the router's devices, bridges and ports that topology
// replace could change, byte for byte.
func topologyOf(t testing.TB, l *lab.Lab) string {
	t.Helper()
	var lines []string
	must(t, l.Router.Do(func() error {
		links, err := listLinks(unix.AF_UNSPEC)
		if err != nil {
			return err
		}
		for _, msg := range links {
			lines = append(lines, describeLink(t, msg))
		}
		ports, err := listLinks(unix.AF_BRIDGE)
		if err != nil {
			return err
		}
		for _, msg := range ports {
			attrs := parseAttrs(t, msg[unix.SizeofIfInfomsg:])
			lines = append(lines, fmt.Sprintf("%s vlans %x", text(attrs[unix.IFLA_IFNAME]), attrs[unix.IFLA_AF_SPEC]))
		}
		fdb, err := bridge.ReadFDB()
		for _, e := range fdb {
			if e.Entry.Static {
				lines = append(lines, fmt.Sprintf("station %x vlan %d of bridge %d %+v", e.Key.MAC, e.Key.VLAN, e.Key.Bridge, e.Entry))
			}
		}
		return err
	}))
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

func listLinks(family int) ([][]byte, error) {
	return netdev.Dump(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(unix.RTM_GETLINK, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfInfomsg(family))
		req.AddData(nl.NewRtAttr(unix.IFLA_EXT_MASK, nl.Uint32Attr(2))) // RTEXT_FILTER_BRVLAN
		return req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	})
}

func parseAttrs(t testing.TB, data []byte) map[uint16][]byte {
	t.Helper()
	list, err := nl.ParseRouteAttr(data)
	must(t, err)
	all := map[uint16][]byte{}
	for _, a := range list {
		all[a.Attr.Type&^unix.NLA_F_NESTED] = a.Value
	}
	return all
}

func text(v []byte) string { return strings.TrimRight(string(v), "\x00") }

// changes lists the lines that are not in both; empty if there are none.
func changes(before, after string) string {
	var out strings.Builder
	old, now := strings.Split(before, "\n"), strings.Split(after, "\n")
	for _, line := range old {
		if !slices.Contains(now, line) {
			fmt.Fprintln(&out, "-", line)
		}
	}
	for _, line := range now {
		if !slices.Contains(old, line) {
			fmt.Fprintln(&out, "+", line)
		}
	}
	return out.String()
}

// describeLink writes a device's attributes that stay the same by themselves.
func describeLink(t testing.TB, msg []byte) string {
	head := nl.DeserializeIfInfomsg(msg)
	attrs := parseAttrs(t, msg[unix.SizeofIfInfomsg:])
	info := parseAttrs(t, attrs[unix.IFLA_LINKINFO])
	var out strings.Builder
	fmt.Fprintf(&out, "%s index %d flags %#x promiscuity %x mtu %x master %x address %x kind %s", text(attrs[unix.IFLA_IFNAME]), head.Index,
		head.Flags, attrs[unix.IFLA_PROMISCUITY], attrs[unix.IFLA_MTU], attrs[unix.IFLA_MASTER], attrs[unix.IFLA_ADDRESS], text(info[1]))
	// Timers, what the spanning tree has found out, how many stations are learned.
	brVolatile := []uint16{14, 15, 16, 17, 18, 19, 47, 48}
	portVolatile := []uint16{19, 20, 21, 22, 23}
	if text(info[1]) == "bridge" {
		out.WriteString(" bridge" + hexAttrs(parseAttrs(t, info[2]), brVolatile))
	}
	if text(info[4]) == "bridge" {
		out.WriteString(" port" + hexAttrs(parseAttrs(t, info[5]), portVolatile))
	}
	return out.String()
}

func hexAttrs(attrs map[uint16][]byte, without []uint16) string {
	var all []string
	for number, value := range attrs {
		if !slices.Contains(without, number) {
			all = append(all, fmt.Sprintf("%02d=%s", number, hex.EncodeToString(value)))
		}
	}
	slices.Sort(all)
	return " " + strings.Join(all, " ")
}

// disturb gives the lab's bridge and ports settings that are not the default,
// so that losing one shows.
func disturb(t testing.TB, l *lab.Lab) {
	t.Helper()
	must(t, l.SetIsolated(l.Hosts[0].Port(), true))
	must(t, l.SetHairpin(l.Hosts[1].Port(), true))
	for device, settings := range map[string]map[uint16][]byte{
		"eth1": {2: nl.Uint16Attr(16), 3: nl.Uint32Attr(77), 9: {0}, 25: {2}, 31: nl.Uint16Attr(8)},
		"eth2": {5: {1}, 7: {1}, 8: {0}, 27: {0}, 30: {0}, 32: {1}},
		"eth3": {1: {1}}, // listening, by hand
	} {
		setPort(t, l, device, settings)
	}
	if lab.HasVLANFiltering() {
		must(t, l.AddPortVLAN(l.Hosts[0].Port(), 10, true, true))
		for vid := uint16(20); vid < 30; vid++ {
			must(t, l.AddPortVLAN(l.Hosts[0].Port(), vid, false, vid == 25))
		}
		must(t, l.DelPortVLAN(l.Hosts[1].Port(), 1))
	}
	handle, err := l.Router.Handle()
	must(t, err)
	dev, err := l.Router.Link("eth1")
	must(t, err)
	must(t, handle.NeighAdd(&netlink.Neigh{LinkIndex: dev.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER,
		State: netlink.NUD_NOARP, HardwareAddr: []byte{2, 0, 0, 0, 9, 9}}))
	if lab.HasVLANFiltering() { // which had it added in every VLAN
		must(t, handle.NeighDel(&netlink.Neigh{LinkIndex: dev.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_MASTER, Vlan: 20, HardwareAddr: []byte{2, 0, 0, 0, 9, 9}}))
	}
	br, err := l.Router.Link(lab.BridgeName)
	must(t, err)
	must(t, l.Router.Do(func() error {
		data := nl.NewRtAttr(2, nil)
		data.AddRtAttr(4, nl.Uint32Attr(12000)) // ageing_time
		data.AddRtAttr(23, []byte{0})           // mcast_snooping
		data.AddRtAttr(9, nl.Uint16Attr(16))    // group_fwd_mask
		info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
		info.AddRtAttr(1, nl.NonZeroTerminated("bridge"))
		info.AddChild(data)
		req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK)
		msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
		msg.Index = int32(br.Attrs().Index)
		req.AddData(msg)
		req.AddData(info)
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	}))
}

// setPort sets attributes of a bridge port (IFLA_BRPORT_*).
func setPort(t testing.TB, l *lab.Lab, device string, settings map[uint16][]byte) {
	t.Helper()
	dev, err := l.Router.Link(device)
	must(t, err)
	must(t, l.Router.Do(func() error {
		nest := nl.NewRtAttr(unix.IFLA_PROTINFO|unix.NLA_F_NESTED, nil)
		for number, value := range settings {
			nest.AddRtAttr(int(number), value)
		}
		req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
		msg := nl.NewIfInfomsg(unix.AF_BRIDGE)
		msg.Index = int32(dev.Attrs().Index)
		req.AddData(msg)
		req.AddData(nest)
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	}))
}

func TestReplaceMovesAndReturns(t *testing.T) {
	for _, c := range []struct {
		mode    string
		devices []string
	}{
		{"mac", []string{"eth1", "eth2", "eth3"}},
		{"port", []string{"eth1>eth2", "eth2>eth1"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{Hosts: 4, NoIPv6: true})
			disturb(t, l)
			before := topologyOf(t, l)
			b := newBox(t, l, replaceConf(c.mode, "tc", c.devices))
			b.start()
			if during := topologyOf(t, l); during == before {
				t.Fatalf("nothing has changed; this test would notice nothing:\n%s", during)
			}
			if code := b.end(syscall.SIGTERM); code != exitFine {
				t.Errorf("exit code %d", code)
			}
			for _, line := range b.log {
				if strings.Contains(line, "not quite") {
					t.Error(line)
				}
			}
			if diff := changes(before, topologyOf(t, l)); diff != "" {
				t.Errorf("different afterwards:\n%s", diff)
			}
		})
	}
}

// replacements are configurations of topology replace that change as much as
// can be changed.
var replacements = map[string]struct {
	mode    string
	devices []string
}{
	"mac":  {"mac", []string{"eth1", "eth2", "eth3"}},
	"port": {"port", []string{"eth1>eth2", "eth2>eth1", "eth3>eth1"}},
}

// TestReplaceKilledAtEachStep kills the daemon after its first change to the
// system, after the second and so on, through start and stop, and the cleanup
// as well: afterwards everything is as it was before.
func TestReplaceKilledAtEachStep(t *testing.T) {
	for name, r := range replacements {
		t.Run(name, func(t *testing.T) {
			l := lab.ForTest(t, lab.Options{Hosts: 4, NoIPv6: true})
			disturb(t, l)
			before := topologyOf(t, l)
			b := newBox(t, l, replaceConf(r.mode, "tc", r.devices))
			during, stopping, stride := 0, 0, 1
			if inGuest {
				stride = 15
			}
			for n := 1; ; n += stride {
				b.env = []string{fmt.Sprintf("%s=%d", dieAt, n)}
				b.launch()
				if !b.saysOrEnds("msg=ready") {
					during++
				} else if code := b.end(syscall.SIGTERM); code == exitFine {
					break
				} else {
					stopping++
				}
				if b.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
					t.Fatalf("step %d: the daemon ended by itself: %v", n, b.cmd.ProcessState)
				}
				cleanUpAndCompare(t, b, fmt.Sprintf("killed at step %d", n), before)
			}
			t.Logf("killed at %d steps of the start and %d of the stop", during, stopping)
			if during < 9/stride || stopping < 20/stride {
				t.Error("too few steps; this test shows nothing")
			}
			b.env = nil
			killed := 0
			for n := 1; ; n += stride {
				b.start()
				b.end(syscall.SIGKILL)
				b.env = []string{fmt.Sprintf("%s=%d", dieAt, n)}
				cmd := b.program("cleanup")
				must(t, l.Router.Start(cmd))
				err := cmd.Wait()
				b.env = nil
				if err == nil {
					break
				}
				killed++
				cleanUpAndCompare(t, b, fmt.Sprintf("cleanup killed at step %d", n), before)
			}
			if diff := changes(before, topologyOf(t, l)); diff != "" {
				t.Errorf("different after cleanup:\n%s", diff)
			}
			if killed < 20/stride {
				t.Errorf("only %d steps of the cleanup", killed)
			}
		})
	}
}

func cleanUpAndCompare(t *testing.T, b *box, when, before string) {
	t.Helper()
	if _, stderr, code := b.cli("cleanup"); code != exitFine {
		t.Errorf("%s: cleanup: exit code %d, %s", when, code, stderr)
	}
	if diff := changes(before, topologyOf(t, b.lab)); diff != "" {
		t.Fatalf("%s; different:\n%s", when, diff)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "run", "restore.json")); !os.IsNotExist(err) {
		t.Errorf("%s: journal: %v", when, err)
	}
}

// TestReplaceVLANAware: xdpl2's own bridge keeps the VLANs apart that the
// bridge kept apart.
func TestReplaceVLANAware(t *testing.T) {
	if !lab.HasVLANFiltering() {
		t.Skip("needs bridge VLAN filtering (CONFIG_BRIDGE_VLAN_FILTERING)")
	}
	l := lab.ForTest(t, lab.Options{Hosts: 5, NoIPv6: true, Bridge: lab.BridgeOptions{VLANFiltering: true}})
	h := l.Hosts
	for i, vid := range []uint16{10, 10, 20, 10} {
		must(t, l.AddPortVLAN(h[i].Port(), vid, true, true))
		must(t, l.DelPortVLAN(h[i].Port(), 1))
	}
	before := topologyOf(t, l)
	vlans := func() (lines []string) {
		for _, line := range strings.Split(topologyOf(t, l), "\n") {
			if strings.HasPrefix(line, "eth") && strings.Contains(line, " vlans ") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	tables := vlans()
	b := newBox(t, l, replaceConf("mac", "auto", []string{"eth1", "eth2", "eth3", "eth4"}))
	b.start()
	b.waitAccelerating()
	if now := vlans(); !slices.Equal(now, tables) {
		t.Errorf("VLANs in the bridge:\n%s\nand in xdpl2's:\n%s", strings.Join(tables, "\n"), strings.Join(now, "\n"))
	}
	b.ping(h[0].NS, h[1])
	b.ping(h[3].NS, h[0])
	b.pingsNot(h[0].NS, h[2].IP4)
	b.waitStationIn(h[0], 10, "eth1")
	b.waitStationIn(h[1], 10, "eth2")
	transfer(t, h[0], h[1], false)
	if n := b.count("eth1", "redirected"); n == 0 {
		t.Error("nothing was redirected")
	}
	b.end(syscall.SIGTERM)
	if diff := changes(before, topologyOf(t, l)); diff != "" {
		t.Errorf("different afterwards:\n%s", diff)
	}
}
