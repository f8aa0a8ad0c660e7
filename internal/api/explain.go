// SPDX-License-Identifier: Apache-2.0

package api

// ExplainQuery describes a frame. Only Device and Destination are needed.
type ExplainQuery struct {
	Device      string `json:"device"`      // where it arrives
	Source      string `json:"source"`      // empty: some station that is known behind Device
	Destination string `json:"destination"` // MAC address
	VLAN        int    `json:"vlan"`        // of its 802.1Q tag; 0: untagged
}

// Explanation is what such a frame would get now, and why.
type Explanation struct {
	Verdict string `json:"verdict"`
	// Text is the answer in a sentence or two for people, with what can be
	// done where something can.
	Text string `json:"text"`
	// Egress is the device that it would leave by, if the fast path sends it;
	// empty if it is passed.
	Egress string `json:"egress,omitempty"`
	// Engine is what carries the frames of Device now; empty: none.
	Engine string `json:"engine,omitempty"`
	// Source is the address that was assumed if the query had none.
	Source string `json:"source,omitempty"`
}

// ExplainError is the answer to a query that makes no sense: a device that
// there is not, an address that is none.
type ExplainError struct{ Field, Value, Expected string }

// Error names field, value and what was expected.
func (e *ExplainError) Error() string {
	return e.Field + " " + quoted(e.Value) + ": expected " + e.Expected
}

func quoted(s string) string {
	if s == "" {
		return "is missing"
	}
	return "'" + s + "'"
}
