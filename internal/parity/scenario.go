// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// Layout is what xdpl2 is configured to do; changing it takes a reload.
type Layout struct {
	PortMode bool
	Managed  []Managed
}

// Managed is a port that xdpl2 manages. All but Port is for mode port.
type Managed struct {
	Port                 int
	Engine               string // empty: that of the bench
	Target               int
	PassLocal, PassGroup bool
}

func (l Layout) managed(port int) (Managed, bool) {
	for _, m := range l.Managed {
		if m.Port == port {
			return m, true
		}
	}
	return Managed{}, false
}

// config is the UCI file of a layout.
func (l Layout) config(engine string) string {
	mode := "mac"
	if l.PortMode {
		mode = "port"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "config xdpl2 'main'\n\toption enabled '1'\n\toption log_level 'warn'\n\toption mode '%s'\n\toption engine '%s'\n", mode, engine)
	for _, m := range l.Managed {
		fmt.Fprintf(&out, "\nconfig port\n\toption device '%s'\n", portName(m.Port))
		if m.Engine != "" {
			fmt.Fprintf(&out, "\toption engine '%s'\n", m.Engine)
		}
		if !l.PortMode {
			continue
		}
		fmt.Fprintf(&out, "\toption target '%s'\n", portName(m.Target))
		if m.PassLocal {
			out.WriteString("\tlist pass 'local'\n")
		}
		if m.PassGroup {
			out.WriteString("\tlist pass 'group'\n")
		}
	}
	return out.String()
}

// String says it in a line.
func (l Layout) String() string {
	var words []string
	for _, m := range l.Managed {
		text := portName(m.Port)
		if m.Engine != "" {
			text += "(" + m.Engine + ")"
		}
		if l.PortMode {
			text += "->" + portName(m.Target)
			if !m.PassLocal {
				text += " with its own local frames"
			}
			if !m.PassGroup {
				text += " with group frames"
			}
		}
		words = append(words, text)
	}
	if l.PortMode {
		return "mode port: " + strings.Join(words, ", ")
	}
	return "mode mac: " + strings.Join(words, ", ")
}

// Scenario is a configuration and what happens then.
type Scenario struct {
	Seed   uint64
	Racing bool // nothing is waited for after the beginning
	Layout Layout
	Box    Box
	FDB    []Entry // added before the first step
	Steps  []Step
}

// Step is one thing that happens: exactly one of its fields is set.
type Step struct {
	Frame  *Frame
	Change *Change
	// Settle waits until xdpl2 has heard of everything so far.
	Settle bool
}

// Frame is a frame that a host sends.
type Frame struct {
	ID   int // the same in bytes somewhere in Data
	Port int // where it enters the box
	What string
	Data []byte
	// Hidden is a tag that travels beside the data, as from a NIC that takes
	// tags out: TPID and TCI; 0: none.
	Hidden uint32
}

// Change is a change of the bridge. Either Mutate or Event is set.
type Change struct {
	What   string
	Mutate func(*Box)
	Event  func(*side) error
}

// Entry is an entry of the forwarding database that the scenario adds.
type Entry struct {
	MAC                   [6]byte
	VLAN                  uint16
	Port                  int
	Local, Static, Sticky bool
}

func (e Entry) String() string {
	return lab.FDBEntry{MAC: e.MAC, VLAN: e.VLAN, Local: e.Local, Static: e.Static, Sticky: e.Sticky}.String() + " on " + portName(e.Port)
}

// String tells the whole scenario, for a person who has to find out why it
// failed.
func (s *Scenario) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "seed %d, %s\n%s", s.Seed, s.Layout, s.Box)
	for _, e := range s.FDB {
		fmt.Fprintf(&out, "  entry %s\n", e)
	}
	for i, step := range s.Steps {
		fmt.Fprintf(&out, "  %2d. %s\n", i, step)
	}
	return out.String()
}

// String tells one step.
func (s Step) String() string {
	switch {
	case s.Frame != nil:
		return s.Frame.String()
	case s.Change != nil:
		return "change: " + s.Change.What
	}
	return "wait until xdpl2 has heard of it"
}

// String tells one frame.
func (f *Frame) String() string {
	text := fmt.Sprintf("frame %d into %s: %s", f.ID, portName(f.Port), describe(f.Data))
	if f.Hidden != 0 {
		text += fmt.Sprintf(", tag %04x %s beside the data", f.Hidden>>16, tciText(uint16(f.Hidden)))
	}
	return text + " (" + f.What + ")"
}

// describe tells a frame in words.
func describe(data []byte) string {
	if len(data) < 14 {
		return fmt.Sprintf("% x", data)
	}
	text := fmt.Sprintf("%s > %s", net.HardwareAddr(data[6:12]), net.HardwareAddr(data[:6]))
	rest := data[12:]
	for len(rest) >= 4 && isTag(rest) {
		text += fmt.Sprintf(" %04x %s", binary.BigEndian.Uint16(rest), tciText(binary.BigEndian.Uint16(rest[2:])))
		rest = rest[4:]
	}
	if len(rest) >= 2 {
		text += fmt.Sprintf(" type %04x", binary.BigEndian.Uint16(rest))
	}
	return fmt.Sprintf("%s, %d bytes", text, len(data))
}

func tciText(tci uint16) string {
	text := fmt.Sprintf("vid %d", tci&0xfff)
	if tci>>13 != 0 {
		text += fmt.Sprintf(" pcp %d", tci>>13)
	}
	if tci&0x1000 != 0 {
		text += " dei"
	}
	return text
}

func isTag(rest []byte) bool {
	t := binary.BigEndian.Uint16(rest)
	return t == ether.TypeVLAN || t == ether.TypeSVLAN
}
