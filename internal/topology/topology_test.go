// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// inBox runs a test in a namespace with two bridges, br-a with ports p1 and p2
// and br-b without any.
func inBox(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	netns.Require(t)
	ns, err := lab.NewNS("box")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ns.Close(); err != nil {
			t.Error(err)
		}
	})
	err = ns.Do(func() error {
		for _, name := range []string{"br-a", "br-b"} {
			if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrsOf(name)}); err != nil {
				return err
			}
		}
		for i, name := range []string{"p1", "p2"} {
			attrs := attrsOf(name)
			attrs.HardwareAddr = []byte{2, 0, 0, 0, 0, byte(i + 1)}
			veth := netlink.NewVeth(attrs)
			veth.PeerName = "far-" + name
			if err := netlink.LinkAdd(veth); err != nil {
				return err
			}
			if err := netlink.LinkSetMaster(linkOf(t, name), linkOf(t, "br-a")); err != nil {
				return err
			}
		}
		f(t)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func attrsOf(name string) netlink.LinkAttrs {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	return attrs
}

func linkOf(t *testing.T, name string) netlink.Link {
	t.Helper()
	dev, err := netlink.LinkByName(name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return dev
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeepMAC: a bridge that was given no address has that of a port; it keeps
// it when that port goes.
func TestKeepMAC(t *testing.T) {
	inBox(t, func(t *testing.T) {
		mac := func() string { return linkOf(t, "br-a").Attrs().HardwareAddr.String() }
		p1 := linkOf(t, "p1").Attrs().Index
		if mac() != "02:00:00:00:00:01" {
			t.Skipf("the bridge has address %s, not that of a port", mac())
		}
		must(t, netlink.LinkSetNoMaster(linkOf(t, "p1")))
		if mac() != "02:00:00:00:00:02" {
			t.Fatalf("the bridge's address is %s; this test shows nothing", mac())
		}
		must(t, netlink.LinkSetMaster(linkOf(t, "p1"), linkOf(t, "br-a")))
		must(t, KeepMAC(linkOf(t, "br-a").Attrs().Index, p1))
		must(t, netlink.LinkSetNoMaster(linkOf(t, "p1")))
		if mac() != "02:00:00:00:00:01" {
			t.Errorf("the bridge's address is %s now", mac())
		}
	})
}

// TestMovedAtTheSameTime: a snapshot that is out of date is not used.
func TestMovedAtTheSameTime(t *testing.T) {
	inBox(t, func(t *testing.T) {
		s, err := Take(linkOf(t, "p1").Attrs().Index)
		must(t, err)
		must(t, netlink.LinkSetMaster(linkOf(t, "p1"), linkOf(t, "br-b")))
		if err := s.Move(Place{}); !errors.Is(err, ErrMoved) {
			t.Errorf("moved with an old snapshot: %v", err)
		}
		if linkOf(t, "p1").Attrs().MasterIndex != linkOf(t, "br-b").Attrs().Index {
			t.Error("the device was moved all the same")
		}
	})
}

// TestGroupsComeAlong: permanent entries of the multicast database.
func TestGroupsComeAlong(t *testing.T) {
	inBox(t, func(t *testing.T) {
		d, err := read(0, "p1")
		must(t, err)
		must(t, netlink.LinkSetUp(linkOf(t, "br-a")))
		must(t, netlink.LinkSetUp(linkOf(t, "far-p1")))
		must(t, netlink.LinkSetUp(linkOf(t, "p1")))
		// 239.1.2.3, permanent: state, flags, VLAN, address, protocol.
		entry := append([]byte{1, 0, 0, 0, 239, 1, 2, 3}, make([]byte, 12)...)
		entry = append(entry, 8, 0, 0, 0)
		err = applyGroup(d.master, d.index, Group(hex.EncodeToString(entry)))
		if err != nil && strings.Contains(err.Error(), "not supported") {
			t.Skipf("needs multicast snooping: %v", err)
		}
		must(t, err)
		s, err := Take(d.index)
		must(t, err)
		if len(s.Groups) != 1 {
			t.Fatalf("groups %v", s.Groups)
		}
		must(t, s.Move(Place{}))
		must(t, s.Return(0))
		must(t, s.Settle())
		back, err := Take(d.index)
		must(t, err)
		if !slices.Equal(back.Groups, s.Groups) {
			t.Errorf("groups %v, before %v", back.Groups, s.Groups)
		}
	})
}

// TestOwnBridgeIsToldApart: only the bridge with the address that was written
// down is removed.
func TestOwnBridgeIsToldApart(t *testing.T) {
	inBox(t, func(t *testing.T) {
		own, err := PlanOwn()
		must(t, err)
		if own.Name != OwnName {
			t.Errorf("name %s", own.Name)
		}
		// Between the plan and the crash nothing was made, but somebody else did.
		must(t, netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attrsOf(OwnName)}))
		must(t, own.Remove())
		linkOf(t, OwnName)
		second, err := PlanOwn()
		must(t, err)
		if second.Name != OwnName+"-1" {
			t.Errorf("name %s", second.Name)
		}
		_, err = second.Create("br-a")
		must(t, err)
		must(t, second.Remove())
		if _, err := netlink.LinkByName(second.Name); err == nil {
			t.Error("the bridge is still there")
		}
	})
}

// TestNobodysDevice is brought up for a wire and down again.
func TestNobodysDevice(t *testing.T) {
	inBox(t, func(t *testing.T) {
		must(t, netlink.LinkSetNoMaster(linkOf(t, "p2")))
		s, err := Take(linkOf(t, "p2").Attrs().Index)
		must(t, err)
		must(t, s.Move(Place{Promisc: true}))
		up := func() bool { return linkOf(t, "p2").Attrs().RawFlags&1 != 0 }
		if !up() {
			t.Error("not brought up")
		}
		must(t, s.Return(0))
		if up() {
			t.Error("still up")
		}
	})
}
