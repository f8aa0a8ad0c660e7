// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
)

// inquiry is a question of what a frame would get, with what is needed to
// answer it outside the controller's goroutine: loading a program takes time.
type inquiry struct {
	device   string
	src, dst [6]byte
	assumed  bool // nobody asked for src in particular
	vlan     uint16

	port    port // a copy; attachment nil: nothing is attached
	program datapath.Program
	engine  datapath.Engine
	aware   bool // the bridge is VLAN-aware
	ad      bool // its tags are 802.1ad
	pvid    uint16
	bridge  string // empty: there is none

	links links
	ports map[uint32]string // devices by slot
	// Of the frame's two addresses, in its VLAN: what the bridge knows of them,
	// and whether there was no room for them in the fast path.
	fdb  map[[6]byte]bridge.Entry
	full map[[6]byte]bool
}

// Explain implements api.Service: it has the port's own program decide over
// such a frame, with the live maps, and puts the answer into words.
func (c *Controller) Explain(ctx context.Context, q api.ExplainQuery) (*api.Explanation, error) {
	ask, err := parseQuery(q)
	if err != nil {
		return nil, err
	}
	var done *api.Explanation
	if callErr := c.call(ctx, func() { done, err = c.gather(ask) }); callErr != nil {
		return nil, callErr
	}
	if err != nil || done != nil {
		return done, err
	}
	decision, err := c.dp.Explain(ask.engine, ask.program, ask.frame())
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	answer := &api.Explanation{Verdict: decision.Verdict.String(), Engine: string(ask.engine), Text: ask.words(decision)}
	if decision.Verdict == datapath.Redirected {
		answer.Egress = ask.ports[decision.Slot]
	}
	if ask.assumed {
		answer.Source = macText(ask.src)
	}
	return answer, nil
}

func parseQuery(q api.ExplainQuery) (*inquiry, error) {
	ask := &inquiry{device: q.Device, assumed: q.Source == ""}
	if q.Device == "" {
		return nil, &api.ExplainError{Field: "device", Expected: "the device where the frame arrives, such as eth1"}
	}
	for _, f := range []struct {
		field, value string
		to           *[6]byte
		optional     bool
	}{{"source", q.Source, &ask.src, true}, {"destination", q.Destination, &ask.dst, false}} {
		if f.value == "" && f.optional {
			continue
		}
		hw, err := net.ParseMAC(f.value)
		if err != nil || len(hw) != 6 {
			return nil, &api.ExplainError{Field: f.field, Value: f.value, Expected: "an address such as 02:00:00:00:00:01"}
		}
		*f.to = [6]byte(hw)
	}
	if q.VLAN < 0 || q.VLAN > 4094 {
		return nil, &api.ExplainError{Field: "vlan", Value: strconv.Itoa(q.VLAN), Expected: "a number from 1 to 4094, or 0 for an untagged frame"}
	}
	ask.vlan = uint16(q.VLAN)
	return ask, nil
}

// gather completes a question on the controller's goroutine, or answers it at
// once if no program has a say in it.
func (c *Controller) gather(ask *inquiry) (*api.Explanation, error) {
	l, present := c.links.byName(ask.device)
	p := c.ports[ask.device]
	disabled := func(format string, args ...any) *api.Explanation {
		return &api.Explanation{Verdict: datapath.PassDisabled.String(), Text: fmt.Sprintf(format, args...)}
	}
	switch {
	case p == nil && !present:
		return nil, &api.ExplainError{Field: "device", Value: ask.device, Expected: "one of " + c.deviceNames()}
	case p == nil || p.section == nil:
		return disabled("%s is no port of xdpl2 (no section of type port has it): the kernel handles all its frames.", ask.device), nil
	case p.attachment == nil:
		return disabled("%s is not accelerated, the kernel handles all its frames: %s.", ask.device, p.reason), nil
	}
	program, err := c.programOf(p)
	if err != nil {
		return nil, err
	}
	ask.port, ask.program, ask.engine = *p, program, p.attachment.Engine()
	ask.aware, ask.ad, ask.pvid = program.VLANs, program.VLANAD, p.live.PVID
	ask.bridge, ask.links = c.bridgeName(), c.links
	ask.ports = map[uint32]string{}
	for _, other := range c.ports {
		ask.ports[other.slot] = other.device
	}
	if ask.assumed {
		ask.src = c.someSource(p, l, ask)
	}
	br, _ := c.links.byName(ask.bridge)
	ask.fdb, ask.full = map[[6]byte]bridge.Entry{}, map[[6]byte]bool{}
	for _, mac := range [][6]byte{ask.src, ask.dst} {
		if e, ok := c.fdb[bridge.Key{Bridge: br.Index, MAC: mac, VLAN: ask.key()}]; ok {
			ask.fdb[mac] = e
		}
		_, ask.full[mac] = c.overflow[datapath.StationKey{MAC: mac, VLAN: ask.key()}]
	}
	return nil, nil
}

// key is the VLAN under which the frame's stations are kept.
func (ask *inquiry) key() uint16 {
	switch {
	case !ask.aware:
		return 0
	case ask.vlan == 0:
		return ask.pvid
	}
	return ask.vlan
}

// someSource is a station behind the port that could have sent the frame, the
// least address of them, or an address that nobody has.
func (c *Controller) someSource(p *port, l bridge.Link, ask *inquiry) [6]byte {
	best := [6]byte{0x02, 0, 0, 0, 0, 0xfe}
	found := false
	for key, s := range c.stations {
		if s.Local || s.Slot != p.slot || int(s.ifindex) != l.Index || key.VLAN != ask.key() || key.MAC == ask.dst {
			continue
		}
		if !found || slices.Compare(key.MAC[:], best[:]) < 0 {
			best, found = key.MAC, true
		}
	}
	return best
}

func (c *Controller) deviceNames() string {
	var names []string
	for _, l := range c.links {
		names = append(names, l.Name)
	}
	slices.Sort(names)
	const most = 20
	if len(names) > most {
		names = append(names[:most], "...")
	}
	return strings.Join(names, ", ")
}

// frame is what the program is asked about: an empty IPv4 packet, since a
// frame's type decides only for link control.
func (ask *inquiry) frame() []byte {
	f := append(ask.dst[:], ask.src[:]...)
	if ask.vlan != 0 {
		tpid := uint16(unix.ETH_P_8021Q)
		if ask.aware && ask.ad {
			tpid = unix.ETH_P_8021AD
		}
		f = binary.BigEndian.AppendUint16(f, tpid)
		f = binary.BigEndian.AppendUint16(f, ask.vlan)
	}
	f = binary.BigEndian.AppendUint16(f, unix.ETH_P_IP)
	f = append(f, 0x45)
	return append(f, make([]byte, 64-len(f))...)
}

func macText(mac [6]byte) string { return net.HardwareAddr(mac[:]).String() }

// isWire reports whether the port decides, and no address.
func (ask *inquiry) isWire() bool { return ask.program.Mode == datapath.ModePort }
