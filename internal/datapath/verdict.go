// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"fmt"

	"github.com/xdpl2/xdpl2/bpf"
)

// Verdict is what the data path did with a frame: one value per reason.
type Verdict uint32

// The verdicts, in the order in which tables show them.
const (
	Redirected             = Verdict(bpf.DatapathVerdictREDIRECTED)
	Reflected              = Verdict(bpf.DatapathVerdictREFLECTED)
	PassDisabled           = Verdict(bpf.DatapathVerdictPASS_DISABLED)
	PassLocal              = Verdict(bpf.DatapathVerdictPASS_LOCAL)
	PassGroup              = Verdict(bpf.DatapathVerdictPASS_GROUP)
	PassControl            = Verdict(bpf.DatapathVerdictPASS_CONTROL)
	PassUnknownSource      = Verdict(bpf.DatapathVerdictPASS_UNKNOWN_SOURCE)
	PassMovedSource        = Verdict(bpf.DatapathVerdictPASS_MOVED_SOURCE)
	PassUnknownDestination = Verdict(bpf.DatapathVerdictPASS_UNKNOWN_DESTINATION)
	PassSamePort           = Verdict(bpf.DatapathVerdictPASS_SAME_PORT)
	PassBlocked            = Verdict(bpf.DatapathVerdictPASS_BLOCKED)
	PassIsolated           = Verdict(bpf.DatapathVerdictPASS_ISOLATED)
	PassVLAN               = Verdict(bpf.DatapathVerdictPASS_VLAN)
	PassMTU                = Verdict(bpf.DatapathVerdictPASS_MTU)
	PassFiltered           = Verdict(bpf.DatapathVerdictPASS_FILTERED)
	PassMalformed          = Verdict(bpf.DatapathVerdictPASS_MALFORMED)
	RedirectFailed         = Verdict(bpf.DatapathVerdictREDIRECT_FAILED)

	// NumVerdicts is how many verdicts there are.
	NumVerdicts = int(bpf.DatapathVerdictVERDICTS)
)

var verdicts = [NumVerdicts]struct{ name, words string }{
	Redirected:             {"redirected", "sent out by the fast path"},
	Reflected:              {"reflected", "answered by the fast path"},
	PassDisabled:           {"pass_disabled", "the port is switched off"},
	PassLocal:              {"pass_local", "for the box itself"},
	PassGroup:              {"pass_group", "broadcast or multicast: the bridge floods it"},
	PassControl:            {"pass_control", "link control (STP, LLDP, LACP, EAPOL, pause)"},
	PassUnknownSource:      {"pass_unknown_source", "sender not known on this port yet: the bridge learns it"},
	PassMovedSource:        {"pass_moved_source", "sender was known on another port: the bridge moves it"},
	PassUnknownDestination: {"pass_unknown_destination", "receiver not known on an accelerated port"},
	PassSamePort:           {"pass_same_port", "receiver is behind the port that the frame came from"},
	PassBlocked:            {"pass_blocked", "a port is down or not forwarding (STP)"},
	PassIsolated:           {"pass_isolated", "both ports are isolated"},
	PassVLAN:               {"pass_vlan", "its VLAN is not carried here, or cannot be told: the bridge decides"},
	PassMTU:                {"pass_mtu", "longer than the leaving port's MTU allows"},
	PassFiltered:           {"pass_filtered", "a bridge filter wants to see it"},
	PassMalformed:          {"pass_malformed", "not a proper Ethernet frame"},
	RedirectFailed:         {"redirect_failed", "the leaving port was gone: the bridge takes it"},
}

// String returns the verdict's name as every interface of xdpl2 shows it.
func (v Verdict) String() string {
	if int(v) < NumVerdicts {
		return verdicts[v].name
	}
	return fmt.Sprintf("verdict(%d)", uint32(v))
}

// Words returns the verdict in plain words, for people.
func (v Verdict) Words() string {
	if int(v) < NumVerdicts {
		return verdicts[v].words
	}
	return v.String()
}

// Passed reports whether the frame went on to the stack, and so to the bridge.
func (v Verdict) Passed() bool { return v != Redirected && v != Reflected }

// Counter counts frames of one verdict.
type Counter struct {
	Packets uint64 // frames as on the wire
	Bytes   uint64 // from the destination address on, without FCS
}

// Counters has one Counter per verdict, indexed by Verdict.
type Counters [NumVerdicts]Counter

// Accelerated sums what the fast path carried.
func (c *Counters) Accelerated() Counter {
	return Counter{
		c[Redirected].Packets + c[Reflected].Packets,
		c[Redirected].Bytes + c[Reflected].Bytes,
	}
}

// Passed sums what went on to the stack.
func (c *Counters) Passed() (sum Counter) {
	for v := range c {
		if Verdict(v).Passed() {
			sum.Packets += c[v].Packets
			sum.Bytes += c[v].Bytes
		}
	}
	return sum
}
