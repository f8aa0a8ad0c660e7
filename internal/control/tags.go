// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// A NIC can take the VLAN tag out of a frame that it receives and keep it
// beside the data. Generic XDP does not see such a tag, on any kernel up to
// 7.2, and a frame that XDP sends to a device which does not insert tags leaves
// without it: from one VLAN into another. So the NIC is told to leave tags
// alone while an XDP engine is used on it, and where that cannot be relied on,
// XDP redirects only to devices that insert tags themselves.

var rxTagFeatures = []string{netdev.RxVLAN, netdev.RxSTagVLAN}

// tagFlags says how a device treats tags.
func (c *Controller) tagFlags(l bridge.Link) (datapath.PortFlags, error) {
	states, err := netdev.Features(l.Name)
	if errors.Is(err, netdev.ErrNoDevice) {
		return 0, err // it has gone; the mirror will tell
	}
	if err != nil { // no ethtool at all: assume the worst
		return datapath.PortHidesTags | datapath.PortLosesTags, nil
	}
	var flags datapath.PortFlags
	// A virtual device hands on what its other end gave it, whatever its
	// features say.
	hides := l.Kind != ""
	for _, f := range rxTagFeatures {
		hides = hides || states[f].Active
	}
	if hides && !(l.Kind != "" && c.opts.TrustTags) {
		flags |= datapath.PortHidesTags
	}
	if !states[netdev.TxVLAN].Active || !states[netdev.TxSTagVLAN].Active {
		flags |= datapath.PortLosesTags
	}
	return flags, nil
}

// nameHiddenTags says so where the data path passes every frame of a port,
// because it cannot tell their VLANs.
func (c *Controller) nameHiddenTags(p *port) {
	if c.blind(p) {
		p.state, p.reason = api.NotAccelerated, c.hiddenTags(p.device)
	}
}

func (c *Controller) hiddenTags(device string) string {
	return fmt.Sprintf("%s may keep VLAN tags beside the frame, where XDP does not see them: in the VLAN-aware %s engine tc is needed", device, c.bridgeName())
}

// whyBlind says why a device will hide tags whatever it is told, where that
// matters, or "".
func (c *Controller) whyBlind(l bridge.Link) string {
	if !c.vlanAware() {
		return ""
	}
	blind := l.Kind != "" && !c.opts.TrustTags
	states, err := netdev.Features(l.Name)
	for _, f := range rxTagFeatures {
		blind = blind || l.Kind == "" && states[f].Active && states[f].Fixed
	}
	if !blind && err == nil {
		return ""
	}
	return c.hiddenTags(l.Name)
}

// blind reports whether the program of a port cannot tell in which VLAN a frame
// is.
func (c *Controller) blind(p *port) bool {
	return c.vlanAware() && p.attachment.Engine() != datapath.EngineTC && p.live.Flags&datapath.PortHidesTags != 0
}

// keepTagsIn has a device leave tags in the data, as far as its driver obeys.
// What is changed is written down first.
func (c *Controller) keepTagsIn(l bridge.Link) error {
	states, err := netdev.Features(l.Name)
	if err != nil {
		return nil // nothing can be changed; tagFlags assumes the worst
	}
	for _, f := range rxTagFeatures {
		if !states[f].Active || l.Kind != "" {
			continue
		}
		if err := c.journal.record(journalEntry{Device: l.Name, Ifindex: l.Index, Change: f}); err != nil {
			return err
		}
		err := netdev.SetFeature(l.Name, f, false)
		var refused *netdev.RefusedError
		if err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("have %s leave VLAN tags in the frames: %w", l.Name, err)
		}
		c.log.Info("VLAN tags stay in the frames", "device", l.Name, "feature", f, "refused", refused != nil)
	}
	return nil
}
