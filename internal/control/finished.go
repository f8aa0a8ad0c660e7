// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"slices"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// What comes off a wire is finished: its checksums are complete, and it fits
// into a frame. What another part of this box, another container or another
// virtual machine sends may not be: its checksums are left to whoever sends it
// to a wire, and it may be 64 KiB that are to be cut into frames there. The
// bridge and tc keep the notes about that beside the frame; XDP sends the frame
// as it is, and who gets it drops it. A program cannot see such checksums.

// paravirtual are the drivers behind which there is another system on the same
// machine. They hand over unfinished checksums where receive checksumming is
// on.
var paravirtual = []string{"virtio_net", "vif", "hv_netvsc", "vmxnet3"}

// isVirtual reports whether a device has no wire of its own. The ports of a
// hardware switch have.
func isVirtual(l bridge.Link) bool { return l.Kind != "" && l.Kind != "dsa" }

// unfinished says why frames that arrive at a device may be unfinished, or "".
// What the sender's end of a veth or tap does cannot be seen from here.
func (c *Controller) unfinished(l bridge.Link) string {
	if c.opts.TrustFrames {
		return ""
	}
	if isVirtual(l) {
		return fmt.Sprintf("%s is virtual (%s): its frames may have unfinished checksums, which XDP would send as they are", l.Name, l.Kind)
	}
	driver, err := netdev.Driver(l.Name)
	if err != nil || !slices.Contains(paravirtual, driver) {
		return ""
	}
	states, err := netdev.Features(l.Name)
	if err == nil && !states[netdev.RxChecksum].Active {
		return ""
	}
	return fmt.Sprintf("%s is a virtual machine's card (%s): its frames may have unfinished checksums, which XDP would send as they are", l.Name, driver)
}

// LRO and a device's own GRO merge packets, too. When generic XDP is attached
// the kernel turns both off, and nobody turns them on again; drivers do the same
// for native XDP.

var mergeFeatures = []string{netdev.LRO, netdev.HardwareGRO}

// noteMerging writes down which of them are on, so that they are on again when
// XDP is gone.
func (c *Controller) noteMerging(l bridge.Link) error {
	states, err := netdev.Features(l.Name)
	if err != nil {
		return nil // nothing can be restored
	}
	for _, f := range mergeFeatures {
		if !states[f].Active || states[f].Fixed {
			continue
		}
		if err := c.journal.record(journalEntry{Device: l.Name, Ifindex: l.Index, Change: f}); err != nil {
			return err
		}
	}
	return nil
}

// merging says which feature of a device merges frames before XDP, or "".
// Generic XDP has the kernel turn it off.
func merging(l bridge.Link) string {
	states, err := netdev.Features(l.Name)
	if err != nil {
		return ""
	}
	for _, f := range mergeFeatures {
		if states[f].Active {
			return fmt.Sprintf("%s merges packets itself (%s), which generic XDP would end", l.Name, f)
		}
	}
	return ""
}
