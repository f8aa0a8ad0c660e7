// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/rig"
)

// LiveFrames prepares a generator on the host's present device. It turns GRO
// on at the router's port, without which a veth takes no frames from XDP.
func (h *Host) LiveFrames(o rig.LiveOptions) (*rig.LiveFrames, error) {
	p := h.Port()
	if p == nil {
		return nil, fmt.Errorf("live frames: host %s is not plugged in", h.Name)
	}
	err := h.lab.Router.Do(func() error { return netdev.SetFeature(p.Name, netdev.GRO, true) })
	if err != nil {
		return nil, fmt.Errorf("live frames: %w", err)
	}
	return rig.NewLiveFrames(h.NS.NS, h.Dev(), o)
}
