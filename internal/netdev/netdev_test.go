// SPDX-License-Identifier: Apache-2.0

package netdev_test

import (
	"errors"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// inside runs f in a namespace with a veth pair a, b.
func inside(t *testing.T, f func()) {
	t.Helper()
	netns.Require(t)
	ns, err := lab.NewNS("netdev")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	h, err := ns.Handle()
	if err != nil {
		t.Fatal(err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "a"
	veth := netlink.NewVeth(attrs)
	veth.PeerName = "b"
	if err := h.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	if err := ns.Do(func() error { f(); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestDriver(t *testing.T) {
	inside(t, func() {
		if name, err := netdev.Driver("a"); name != "veth" || err != nil {
			t.Errorf("%q, %v", name, err)
		}
		for _, bad := range []string{"none", "", "a-name-that-is-too-long", "a/b"} {
			if _, err := netdev.Driver(bad); !errors.Is(err, netdev.ErrNoDevice) {
				t.Errorf("device %q: %v", bad, err)
			}
		}
	})
}

func TestSetFeature(t *testing.T) {
	inside(t, func() {
		for _, feature := range []string{
			netdev.TSO, netdev.GSO, netdev.TxChecksum, netdev.RxVLAN, netdev.RxSTagVLAN,
			netdev.TxVLAN, netdev.TxSTagVLAN, netdev.GRO,
		} {
			for _, on := range []bool{false, true, false, false} {
				// Segmentation cannot be on without checksums.
				if on && feature == netdev.TSO {
					if err := netdev.SetFeature("a", netdev.TxChecksum, true); err != nil {
						t.Error(err)
					}
				}
				if err := netdev.SetFeature("a", feature, on); err != nil {
					t.Errorf("%s %v: %v", feature, on, err)
				}
				if got, err := netdev.Feature("a", feature); got != on || err != nil {
					t.Errorf("%s is %v, %v, want %v", feature, got, err, on)
				}
			}
		}
	})
}

func TestSetFeatureRefused(t *testing.T) {
	inside(t, func() {
		for _, feature := range []string{netdev.LRO, "no-such-feature"} {
			err := netdev.SetFeature("a", feature, true)
			var refused *netdev.RefusedError
			if !errors.As(err, &refused) || !refused.Fixed || !errors.Is(err, netdev.ErrUnsupported) {
				t.Errorf("%s: %v", feature, err)
			}
			if err := netdev.SetFeature("a", feature, false); err != nil {
				t.Errorf("turning %s off, which is off: %v", feature, err)
			}
		}
		// What the loopback device always does.
		err := netdev.SetFeature("lo", netdev.TxChecksum, false)
		var refused *netdev.RefusedError
		if !errors.As(err, &refused) || refused.Device != "lo" {
			t.Errorf("checksums of lo: %v", err)
		}
		if err := netdev.SetFeature("a", netdev.TSO, false); err != nil {
			t.Error(err)
		}
		if err := netdev.SetFeature("a", netdev.TxChecksum, false); err != nil {
			t.Error(err)
		}
		if err := netdev.SetFeature("a", netdev.TSO, true); !errors.As(err, &refused) || refused.Fixed {
			t.Errorf("segmentation without checksums: %v", err)
		}
		if _, err := netdev.Features("none"); !errors.Is(err, netdev.ErrNoDevice) {
			t.Errorf("no device: %v", err)
		}
	})
}

func TestLinkSpeed(t *testing.T) {
	inside(t, func() {
		// A veth says 10 Gbit/s whatever it does.
		s, err := netdev.LinkSpeed("a")
		if err != nil || s.Mbps != 10000 || s.Duplex != netdev.DuplexFull {
			t.Errorf("%+v, %v", s, err)
		}
		if _, err := netdev.LinkSpeed("lo"); !errors.Is(err, netdev.ErrUnsupported) {
			t.Errorf("speed of lo: %v", err)
		}
		if _, err := netdev.LinkSpeed("none"); !errors.Is(err, netdev.ErrNoDevice) {
			t.Errorf("no device: %v", err)
		}
	})
}
