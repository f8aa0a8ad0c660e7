// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// XDPFeatures is what a device's driver can do with XDP programs of its own
// hook, as the kernel tells since Linux 6.3. It may change: with the driver's
// settings, with the program that is attached, or with a veth's other end.
type XDPFeatures uint64

// The features, with the kernel's numbers (enum netdev_xdp_act).
const (
	XDPBasic    XDPFeatures = 1 << iota // programs can pass, drop and abort
	XDPRedirect                         // and redirect
	XDPTransmit                         // sends what others redirect there (ndo_xdp_xmit)
)

// Of generic netlink's family netdev (include/uapi/linux/netdev.h).
const (
	xdpFamily       = "netdev"
	xdpFamilyGroup  = "mgmt"
	cmdDevGet       = 1
	attrDevIfindex  = 1
	attrDevFeatures = 3
)

// genlHeader is struct genlmsghdr: command, version, and two bytes that must be
// 0. The library's type is without them, and sends what lies behind it.
type genlHeader [nl.SizeofGenlmsg]byte

func (h genlHeader) Len() int          { return len(h) }
func (h genlHeader) Serialize() []byte { return h[:] }

// theXDPFamily is asked for once: its number is the same in all namespaces and
// does not change while the kernel runs.
var theXDPFamily = sync.OnceValues(func() (*netlink.GenlFamily, error) {
	f, err := netlink.GenlFamilyGet(xdpFamily)
	if errors.Is(err, unix.ENOENT) {
		return nil, fmt.Errorf("ask for XDP features: no family %s before Linux 6.3: %w", xdpFamily, ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("ask for XDP features: %w", err)
	}
	return f, nil
})

// XDP returns what a device can do with XDP. The error wraps ErrUnsupported on
// kernels that do not tell, and ErrNoDevice if there is no such device.
func XDP(ifindex int) (XDPFeatures, error) {
	family, err := theXDPFamily()
	if err != nil {
		return 0, err
	}
	req := nl.NewNetlinkRequest(int(family.ID), 0)
	req.AddData(genlHeader{cmdDevGet, 1})
	req.AddData(nl.NewRtAttr(attrDevIfindex, nl.Uint32Attr(uint32(ifindex))))
	msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if errors.Is(err, unix.ENODEV) {
		return 0, fmt.Errorf("ask for XDP features of ifindex %d: %w", ifindex, ErrNoDevice)
	}
	if err != nil {
		return 0, fmt.Errorf("ask for XDP features of ifindex %d: %w", ifindex, err)
	}
	for _, msg := range msgs {
		if _, features, ok := parseXDP(msg); ok {
			return features, nil
		}
	}
	return 0, fmt.Errorf("ask for XDP features of ifindex %d: no answer: %w", ifindex, ErrUnsupported)
}

// parseXDP reads a message of the family, header included.
func parseXDP(msg []byte) (ifindex int, features XDPFeatures, ok bool) {
	if len(msg) < nl.SizeofGenlmsg {
		return 0, 0, false
	}
	attrs, err := nl.ParseRouteAttr(msg[nl.SizeofGenlmsg:])
	if err != nil {
		return 0, 0, false
	}
	for _, a := range attrs {
		switch {
		case a.Attr.Type == attrDevIfindex && len(a.Value) == 4:
			ifindex = int(binary.NativeEndian.Uint32(a.Value))
		case a.Attr.Type == attrDevFeatures && len(a.Value) == 8:
			features, ok = XDPFeatures(binary.NativeEndian.Uint64(a.Value)), true
		}
	}
	return ifindex, features, ok && ifindex != 0
}

// XDPWatcher hears of changes of devices' XDP features.
type XDPWatcher struct{ sock *nl.NetlinkSocket }

// WatchXDP subscribes to the changes in the namespace of the calling thread.
// The error wraps ErrUnsupported on kernels that do not tell.
func WatchXDP() (*XDPWatcher, error) {
	family, err := theXDPFamily()
	if err != nil {
		return nil, err
	}
	sock, err := nl.Subscribe(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, fmt.Errorf("follow XDP features: %w", err)
	}
	for _, g := range family.Groups {
		if g.Name != xdpFamilyGroup {
			continue
		}
		if err := unix.SetsockoptInt(sock.GetFd(), unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, int(g.ID)); err != nil {
			sock.Close()
			return nil, fmt.Errorf("follow XDP features: %w", err)
		}
		return &XDPWatcher{sock}, nil
	}
	sock.Close()
	return nil, fmt.Errorf("follow XDP features: no group %s: %w", xdpFamilyGroup, ErrUnsupported)
}

// Run calls f with each device of which the kernel told something, and with 0
// if it had more to tell than there was room for. It ends with the context.
func (w *XDPWatcher) Run(ctx context.Context, f func(ifindex int)) error {
	defer w.sock.Close()
	stop := context.AfterFunc(ctx, w.sock.Close)
	defer stop()
	for {
		msgs, _, err := w.sock.Receive()
		switch {
		case ctx.Err() != nil || errors.Is(err, os.ErrClosed):
			return nil
		case errors.Is(err, unix.ENOBUFS):
			f(0)
			continue
		case errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN):
			continue
		case err != nil:
			return fmt.Errorf("follow XDP features: %w", err)
		}
		for _, msg := range msgs {
			if ifindex, _, ok := parseXDP(msg.Data); ok {
				f(ifindex)
			}
		}
	}
}
