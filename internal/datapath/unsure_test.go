// SPDX-License-Identifier: Apache-2.0

package datapath

import "testing"

// unsureAt puts a station that is not confirmed yet.
func unsureAt(mac [6]byte, slot uint32) func(testing.TB, *Datapath) {
	return func(t testing.TB, d *Datapath) {
		must(t, d.PutStation(StationKey{MAC: mac}, Station{Slot: slot, Unsure: true}))
	}
}

// TestUnsureStations: nothing is sent to them, and they count as unknown as a
// source, but a frame from elsewhere removes them as it does others.
func TestUnsureStations(t *testing.T) {
	runDecisions(t, []decisionCase{
		{name: "to an unsure station", program: macMode, change: unsureAt(b, out1), frame: frame(b, a, ip4, 64), want: PassUnknownDestination},
		{name: "from an unsure station", program: macMode, change: unsureAt(a, in), frame: frame(b, a, ip4, 64), want: PassUnknownSource, after: known(a, true)},
		{name: "an unsure station that moved", program: macMode, change: unsureAt(c, out2), frame: frame(b, c, ip4, 64), want: PassMovedSource, after: known(c, false)},
	})
}

func TestConfirmStation(t *testing.T) {
	d := world(t)
	key := StationKey{MAC: c}
	unsureAt(c, out2)(t, d)
	d.ConfirmStation(key, Station{Slot: out2, Unsure: true})
	if s, ok := d.Station(key); !ok || s != (Station{Slot: out2}) {
		t.Errorf("confirmed: %+v, %v", s, ok)
	}
	// The data path has removed it: it stays away.
	d.DeleteStation(key)
	d.ConfirmStation(key, Station{Slot: out2})
	known(c, false)(t, d)
}

// TestLockedPort: a frame from a station of another port is dropped there before
// the bridge learns, unless it is for the bridge itself.
func TestLockedPort(t *testing.T) {
	locked := setPort(in, usual|PortLocked, mtu1500)
	control := [6]byte{0x01, 0x80, 0xc2, 0, 0, 0x03}
	runDecisions(t, []decisionCase{
		{name: "known here", program: macMode, change: locked, frame: frame(b, a, ip4, 64), want: Redirected, slot: out1},
		{name: "known elsewhere", program: macMode, change: locked, frame: frame(b, c, ip4, 64), want: PassMovedSource, after: known(c, true)},
		{name: "known elsewhere, broadcast", program: macMode, change: locked, frame: frame(bcast, c, arp, 60), want: PassMovedSource, after: known(c, true)},
		{name: "known elsewhere, to the bridge", program: macMode, change: locked, frame: frame(control, c, 0x888e, 60), want: PassMovedSource, after: known(c, false)},
	})
}
