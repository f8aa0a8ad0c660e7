// SPDX-License-Identifier: Apache-2.0

package netdev_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// TestXDP: a veth can transmit when its other end has GRO on, and the kernel
// tells when that changes.
func TestXDP(t *testing.T) {
	netns.Require(t)
	here, err := netns.New("here")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close() })
	var watcher *netdev.XDPWatcher
	var index int
	err = here.Do(func() error {
		veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0"}, PeerName: "v1"}
		if err := netlink.LinkAdd(veth); err != nil {
			return err
		}
		index = veth.Attrs().Index
		for _, name := range []string{"v0", "v1"} {
			dev, err := netlink.LinkByName(name)
			if err == nil {
				err = netlink.LinkSetUp(dev)
			}
			if err != nil {
				return err
			}
		}
		watcher, err = netdev.WatchXDP()
		return err
	})
	if errors.Is(err, netdev.ErrUnsupported) {
		if _, err := netdev.XDP(1); !errors.Is(err, netdev.ErrUnsupported) {
			t.Errorf("a kernel that does not tell: %v", err)
		}
		t.Skipf("needs a kernel that tells XDP features (%v)", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan int, 64)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- watcher.Run(ctx, func(i int) { told <- i }) }()
	features := func(index int) netdev.XDPFeatures {
		t.Helper()
		var f netdev.XDPFeatures
		if err := here.Do(func() (err error) { f, err = netdev.XDP(index); return err }); err != nil {
			t.Fatal(err)
		}
		return f
	}
	const receives = netdev.XDPBasic | netdev.XDPRedirect
	if f := features(index); f&(receives|netdev.XDPTransmit) != receives {
		t.Errorf("v0, whose other end has no GRO: %b", f)
	}
	if err := here.Do(func() error { return netdev.SetFeature("v1", netdev.GRO, true) }); err != nil {
		t.Fatal(err)
	}
	for i := 0; i != index; {
		select {
		case i = <-told:
		case <-time.After(30 * time.Second):
			t.Fatal("the change is not told")
		}
	}
	if f := features(index); f&netdev.XDPTransmit == 0 {
		t.Errorf("v0, whose other end has GRO: %b", f)
	}
	const loopback = 1
	if f := features(loopback); f != 0 {
		t.Errorf("the loopback device: %b", f)
	}
	err = here.Do(func() error { _, err := netdev.XDP(1 << 20); return err })
	if !errors.Is(err, netdev.ErrNoDevice) {
		t.Errorf("a device that is not there: %v", err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
