// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Snapshot is how a device was before xdpl2 took it: enough to bring it back
// from wherever it is then.
type Snapshot struct {
	Ifindex int  `json:"ifindex"`
	Up      bool `json:"up"`
	Promisc bool `json:"promisc"`
	// Bridge is the one that it was a port of, by name, since that outlives a
	// bridge which is made anew; empty: none. The rest is the port's there.
	Bridge    string            `json:"bridge,omitempty"`
	Number    uint16            `json:"number,omitempty"`
	Settings  map[string]uint32 `json:"settings,omitempty"`
	VLANs     []VLANs           `json:"vlans,omitempty"`
	Addresses []Address         `json:"addresses,omitempty"`
	Groups    []Group           `json:"groups,omitempty"`

	fresh  bool // not moved since it was taken
	master int
}

// ErrMoved is returned when somebody else has moved a device since its
// snapshot was taken, which therefore says the wrong thing.
var ErrMoved = errors.New("moved by somebody else at the same time")

// Take reads how a device is. It changes nothing.
func Take(ifindex int) (*Snapshot, error) {
	d, err := read(ifindex, "")
	if err != nil {
		return nil, err
	}
	s := &Snapshot{Ifindex: ifindex, Up: d.up, Promisc: d.promisc, fresh: true, master: d.master}
	if d.port == nil {
		if d.master != 0 {
			return nil, fmt.Errorf("%s belongs to a device that is no bridge", d.name)
		}
		return s, nil
	}
	br, err := read(d.master, "")
	if err != nil {
		return nil, err
	}
	s.Bridge, s.Number, s.Settings = br.name, d.number, readSettings(d.port)
	// The state is worth keeping only where somebody has set it by hand:
	// otherwise the bridge or a protocol decides it.
	if state := s.Settings["state"]; state == forwarding || !d.up || !d.carrier || br.number32(bridgeSTP) != stpOff {
		delete(s.Settings, "state")
	}
	tables, err := readVLANs()
	if err != nil {
		return nil, err
	}
	s.VLANs = tables[ifindex]
	if s.Addresses, err = readAddresses(d); err != nil {
		return nil, err
	}
	s.Groups, err = readGroups(d)
	return s, err
}

const forwarding = 3

// Place is where xdpl2 has a device meanwhile.
type Place struct {
	Bridge  int  // ifindex of xdpl2's own bridge; 0: in none
	Promisc bool // hears every frame, as a bridge's port does
}

// Move brings the device to a place. It may be called again, for another
// place. An error that wraps ErrPartly means that it is there, but not all that
// belongs to the port could be taken along.
func (s *Snapshot) Move(p Place) error {
	d, err := read(s.Ifindex, "")
	if err != nil {
		return err
	}
	if s.fresh && d.master != s.master {
		return fmt.Errorf("%s: %w", d.name, ErrMoved)
	}
	s.fresh = false
	// Before the bridge's own is gone, and after it is there again: the card
	// need not change its filter.
	if p.Promisc && !d.promisc {
		if err := setFlag(d.index, unix.IFF_PROMISC, true); err != nil {
			return err
		}
	}
	if d.master != p.Bridge {
		if err := setMaster(d.index, p.Bridge); err != nil {
			return err
		}
	}
	if !p.Promisc && d.promisc && !s.Promisc {
		if err := setFlag(d.index, unix.IFF_PROMISC, false); err != nil {
			return err
		}
	}
	// A device that was nobody's is down, as a rule, and nobody else will ever
	// bring it up. That of a bridge is down because somebody wants it so.
	if s.Bridge == "" && !d.up {
		if err := setFlag(d.index, unix.IFF_UP, true); err != nil {
			return err
		}
	}
	if p.Bridge == 0 || s.Bridge == "" {
		return nil
	}
	return s.settle()
}

// ErrPartly is wrapped when a port is where it should be, but not with all of
// its settings.
var ErrPartly = errors.New("not all of the port's settings could be restored")

// settle gives a port, in whichever bridge, the settings that it had.
func (s *Snapshot) settle() error {
	d, err := read(s.Ifindex, "")
	if err != nil {
		return err
	}
	refused := applySettings(d, s.Settings)
	if errors.Is(refused, ErrGone) {
		return refused
	}
	refused = errors.Join(refused, applyVLANs(d.index, s.VLANs))
	refused = errors.Join(refused, applyAddresses(d.index, s.Addresses))
	for _, g := range s.Groups {
		refused = errors.Join(refused, applyGroup(d.master, d.index, g))
	}
	if refused != nil {
		return fmt.Errorf("%w: %w", ErrPartly, refused)
	}
	return nil
}

// Return brings the device back to its bridge, if it is still where xdpl2 put
// it: own is the ifindex of xdpl2's own bridge, 0 if there is none. A device
// that somebody else has given another master stays there. Several devices of
// one bridge are returned in the order of their Number, which they then get
// again; afterwards each is given its settings by Settle.
func (s *Snapshot) Return(own int) error {
	d, err := read(s.Ifindex, "")
	if err != nil {
		return err
	}
	if d.master == 0 || d.master == own && own != 0 {
		home := device{}
		if s.Bridge != "" {
			home, err = read(0, s.Bridge)
			if err == nil && home.kind != "bridge" {
				err = fmt.Errorf("%s is no bridge any more: %w", s.Bridge, ErrGone)
			}
			if err != nil && !errors.Is(err, ErrGone) {
				return err
			}
		}
		// Without its bridge the device is left without one, too: somebody has
		// taken the bridge down.
		if d.master != home.index {
			if err := setMaster(d.index, home.index); err != nil {
				return err
			}
		}
	}
	if err := s.Unwatch(); err != nil {
		return err
	}
	if s.Bridge == "" && d.up && !s.Up {
		return setFlag(d.index, unix.IFF_UP, false)
	}
	return nil
}

// Unwatch has the device hear no more than before, wherever it is now.
func (s *Snapshot) Unwatch() error {
	d, err := read(s.Ifindex, "")
	if err != nil {
		return err
	}
	if d.promisc && !s.Promisc {
		if err := setFlag(d.index, unix.IFF_PROMISC, false); err != nil {
			return err
		}
	}
	return nil
}

// Settle gives a device that has been returned the settings of its port.
func (s *Snapshot) Settle() error {
	if s.Bridge == "" {
		return nil
	}
	d, err := read(s.Ifindex, "")
	if err != nil {
		return err
	}
	if d.master == 0 {
		return nil
	}
	br, err := read(d.master, "")
	if err != nil {
		return err
	}
	if br.name != s.Bridge {
		return nil
	}
	return s.settle()
}
