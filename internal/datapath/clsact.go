// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/bpf"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// Where our filter sits among those of a device's ingress: in front of what
// people and other daemons add (bridger uses 0xbb00), and found again by these
// numbers and its name after a crash.
const (
	clsactPriority = 2
	clsactHandle   = 0x78_64 // "xd"
)

// NeedsClsact reports whether the tc engine needs a clsact qdisc on its
// devices: on kernels before tcx.
func (d *Datapath) NeedsClsact() bool { return d.noTCX }

// HasClsact reports whether a device has a clsact qdisc, anybody's.
func HasClsact(ifindex int) (bool, error) {
	dev := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}
	qdiscs, err := netdev.Dump(func() ([]netlink.Qdisc, error) { return netlink.QdiscList(dev) })
	if err != nil {
		return false, fmt.Errorf("list the qdiscs of ifindex %d: %w", ifindex, err)
	}
	for _, q := range qdiscs {
		if q.Type() == "clsact" || q.Type() == "ingress" {
			return true, nil
		}
	}
	return false, nil
}

// AddClsact gives a device a clsact qdisc if it has none. While one is added
// or removed the kernel drops what is queued on the device and what is sent
// (qdisc_graft deactivates the device), so it is done once, when a port is
// taken, and not when its engine changes.
func AddClsact(ifindex int) error {
	if err := netlink.QdiscAdd(clsactQdisc(ifindex)); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add a clsact qdisc (kernel without CONFIG_NET_SCH_INGRESS, package kmod-sched-core?): %w", err)
	}
	return nil
}

// RemoveClsact removes a device's clsact qdisc unless somebody has a filter in
// it. That there is no such device or qdisc is no error.
func RemoveClsact(ifindex int) error {
	if !onlyOurs(ifindex) {
		return nil
	}
	if err := netlink.QdiscDel(clsactQdisc(ifindex)); err != nil && !gone(err) {
		return fmt.Errorf("remove the clsact qdisc of ifindex %d: %w", ifindex, err)
	}
	return nil
}

// clsactHook is a filter of the clsact qdisc, for kernels before tcx. It
// outlives the process: its program looks at the lease, and Cleanup removes
// what a crash left.
type clsactHook struct {
	ifindex int
}

func attachClsact(ifindex int, prog *ebpf.Program) (*clsactHook, error) {
	h := &clsactHook{ifindex: ifindex}
	if err := h.update(prog); err != nil {
		return nil, fmt.Errorf("add a tc filter (kernel without CONFIG_NET_CLS_BPF, package kmod-sched-bpf?): %w", err)
	}
	return h, nil
}

func clsactQdisc(ifindex int) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}}
}

func clsactFilter(ifindex int) *netlink.BpfFilter {
	return &netlink.BpfFilter{FilterAttrs: netlink.FilterAttrs{
		LinkIndex: ifindex,
		Parent:    netlink.HANDLE_MIN_INGRESS,
		Handle:    clsactHandle,
		Priority:  clsactPriority,
		Protocol:  unix.ETH_P_ALL,
	}}
}

func (h *clsactHook) update(prog *ebpf.Program) error {
	f := clsactFilter(h.ifindex)
	f.Fd, f.Name, f.DirectAction = prog.FD(), bpf.DatapathProgXdpl2Tc, true
	return netlink.FilterReplace(f)
}

func (h *clsactHook) detach() error {
	if err := netlink.FilterDel(clsactFilter(h.ifindex)); err != nil && !gone(err) {
		return err
	}
	return nil
}

func (h *clsactHook) name() string   { return "clsact" }
func (h *clsactHook) outlives() bool { return true }

// gone reports whether the device, its qdisc or the filter is not there.
func gone(err error) bool {
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL)
}

// onlyOurs reports whether the clsact qdisc has no filter left, so that
// removing it takes nothing from anybody.
func onlyOurs(ifindex int) bool {
	dev := &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}
	for _, parent := range []uint32{netlink.HANDLE_MIN_INGRESS, netlink.HANDLE_MIN_EGRESS} {
		if filters, err := filtersOf(dev, parent); err != nil || len(filters) > 0 {
			return false
		}
	}
	return true
}

func filtersOf(dev netlink.Link, parent uint32) ([]netlink.Filter, error) {
	return netdev.Dump(func() ([]netlink.Filter, error) { return netlink.FilterList(dev, parent) })
}

// Cleanup removes the filters that a daemon left which was killed, on all
// devices, and returns the names of the devices where it found some. The
// qdiscs stay: who added them knows whether they were there before.
func Cleanup() (devices []string, err error) {
	links, err := netdev.Dump(netlink.LinkList)
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	for _, dev := range links {
		filters, ferr := filtersOf(dev, netlink.HANDLE_MIN_INGRESS)
		if ferr != nil {
			continue // a device without clsact
		}
		for _, f := range filters {
			b, ok := f.(*netlink.BpfFilter)
			if !ok || b.Attrs().Priority != clsactPriority || !strings.HasPrefix(b.Name, bpf.DatapathProgXdpl2Tc) {
				continue
			}
			h := clsactHook{ifindex: dev.Attrs().Index}
			if derr := h.detach(); derr != nil {
				err = errors.Join(err, fmt.Errorf("remove a left-over filter from %s: %w", dev.Attrs().Name, derr))
				continue
			}
			devices = append(devices, dev.Attrs().Name)
			break
		}
	}
	return devices, err
}
