// SPDX-License-Identifier: Apache-2.0

package netdev

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Names of single features, as the kernel calls them.
const (
	// RxVLAN takes the outer 802.1Q tag out of received frames. Generic XDP
	// does not see a tag that was taken out.
	RxVLAN = "rx-vlan-hw-parse"
	// RxSTagVLAN is the same for 802.1ad tags.
	RxSTagVLAN = "rx-vlan-stag-hw-parse"
	// TxVLAN lets the device insert an 802.1Q tag when it sends.
	TxVLAN = "tx-vlan-hw-insert"
	// TxSTagVLAN is the same for 802.1ad tags.
	TxSTagVLAN = "tx-vlan-stag-hw-insert"
	// GSO segments large packets in software just before the device.
	GSO = "tx-generic-segmentation"
	// GRO merges received segments before the stack sees them.
	GRO = "rx-gro"
	// LRO is the device's own, lossy form of GRO.
	LRO = "rx-lro"
	// HardwareGRO is the device's own GRO, which loses nothing.
	HardwareGRO = "rx-gro-hw"
	// RxChecksum has the device check what arrives; a paravirtual one then
	// also hands over what its host has not completed.
	RxChecksum = "rx-checksum"
)

// Names of groups: each stands for several of the kernel's features, of which
// a device usually has only some.
const (
	// TxChecksum is every checksum that the device fills in when it sends.
	TxChecksum = "tx-checksum"
	// TSO is every kind of TCP segmentation by the device.
	TSO = "tso"
)

// stringSetFeatures is ETH_SS_FEATURES, the set of the features' names.
const stringSetFeatures = 4

// groups maps a group to the prefix of its members' names.
var groups = map[string]string{
	TxChecksum: "tx-checksum-",
	TSO:        "tx-tcp",
}

// State is what the kernel says about one feature of one device.
type State struct {
	Active bool // on now
	Fixed  bool // cannot be changed
}

// A RefusedError says that a feature did not end up as it was asked for.
type RefusedError struct {
	Device  string
	Feature string
	Want    bool
	Fixed   bool // the device cannot change it at all
}

func (e *RefusedError) Error() string {
	why := "the driver kept it"
	if e.Fixed {
		why = "it is fixed"
	}
	return fmt.Sprintf("device %q: feature %s cannot be turned %s: %s", e.Device, e.Feature, onOff(e.Want), why)
}

// Unwrap makes errors.Is(err, ErrUnsupported) true for features that the
// device cannot change at all.
func (e *RefusedError) Unwrap() error {
	if e.Fixed {
		return ErrUnsupported
	}
	return nil
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// Features returns the state of every feature that the kernel knows, by its
// name.
func Features(ifname string) (map[string]State, error) {
	names, err := featureNames(ifname)
	if err != nil {
		return nil, fmt.Errorf("read features: %w", err)
	}
	blocks := (len(names) + 31) / 32
	// struct ethtool_gfeatures: cmd, size, then for 32 features each:
	// available, requested, active, never_changed.
	req := request(unix.ETHTOOL_GFEATURES, 8+16*blocks)
	binary.NativeEndian.PutUint32(req[4:], uint32(blocks))
	if err := ethtool(ifname, req); err != nil {
		return nil, fmt.Errorf("read features: %w", err)
	}
	states := make(map[string]State, len(names))
	for i, name := range names {
		if name == "" {
			continue
		}
		block := req[8+16*(i/32):]
		bit := uint32(1) << (i % 32)
		states[name] = State{
			Active: binary.NativeEndian.Uint32(block[8:])&bit != 0,
			// Some features may change and yet never do; the kernel lists
			// them apart from the available ones.
			Fixed: binary.NativeEndian.Uint32(block)&bit == 0 || binary.NativeEndian.Uint32(block[12:])&bit != 0,
		}
	}
	return states, nil
}

// Feature tells whether a feature is on. A group is on when one of its
// features is; a feature that the kernel does not know is off.
func Feature(ifname, feature string) (bool, error) {
	states, err := Features(ifname)
	if err != nil {
		return false, err
	}
	for _, name := range members(states, feature) {
		if states[name].Active {
			return true, nil
		}
	}
	return false, nil
}

// SetFeature turns a feature or a group on or off and reads it back. Turning
// a group on means those of its features that the device has. The error is a
// *RefusedError when the device did not follow.
func SetFeature(ifname, feature string, on bool) error {
	states, err := Features(ifname)
	if err != nil {
		return err
	}
	var change []string
	changeable := false
	for _, name := range members(states, feature) {
		st := states[name]
		changeable = changeable || !st.Fixed || st.Active
		if st.Active == on {
			continue
		}
		if !st.Fixed {
			change = append(change, name)
		} else if !on {
			return &RefusedError{Device: ifname, Feature: name, Want: on, Fixed: true}
		}
	}
	if on && !changeable {
		return &RefusedError{Device: ifname, Feature: feature, Want: on, Fixed: true}
	}
	if len(change) == 0 {
		return nil
	}
	if err := requestFeatures(ifname, change, on); err != nil {
		return fmt.Errorf("set feature %s %s: %w", feature, onOff(on), err)
	}
	// The kernel takes a request that it cannot follow without an error, for
	// example segmentation without checksums.
	if states, err = Features(ifname); err != nil {
		return err
	}
	for _, name := range change {
		if states[name].Active != on {
			return &RefusedError{Device: ifname, Feature: name, Want: on}
		}
	}
	return nil
}

// members returns the names that a feature or group stands for on this
// kernel, sorted.
func members(states map[string]State, feature string) []string {
	prefix, ok := groups[feature]
	if !ok {
		if _, known := states[feature]; known {
			return []string{feature}
		}
		return nil
	}
	var names []string
	for name := range maps.Keys(states) {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// requestFeatures asks for all of names at once, since some depend on others.
func requestFeatures(ifname string, names []string, on bool) error {
	all, err := featureNames(ifname)
	if err != nil {
		return err
	}
	blocks := (len(all) + 31) / 32
	// struct ethtool_sfeatures: cmd, size, then for 32 features each: valid,
	// requested.
	req := request(unix.ETHTOOL_SFEATURES, 8+8*blocks)
	binary.NativeEndian.PutUint32(req[4:], uint32(blocks))
	for _, name := range names {
		i := slices.Index(all, name)
		if i < 0 {
			return fmt.Errorf("feature %s: %w", name, ErrUnsupported)
		}
		block := req[8+8*(i/32):]
		bit := uint32(1) << (i % 32)
		binary.NativeEndian.PutUint32(block, binary.NativeEndian.Uint32(block)|bit)
		if on {
			binary.NativeEndian.PutUint32(block[4:], binary.NativeEndian.Uint32(block[4:])|bit)
		}
	}
	return ethtool(ifname, req)
}

// featureNames returns the kernel's feature names; the index is the bit.
func featureNames(ifname string) ([]string, error) {
	// struct ethtool_sset_info: cmd, reserved, mask (64 bits), one length for
	// each bit of the mask.
	info := request(unix.ETHTOOL_GSSET_INFO, 20)
	binary.NativeEndian.PutUint64(info[8:], 1<<stringSetFeatures)
	if err := ethtool(ifname, info); err != nil {
		return nil, err
	}
	n := int(binary.NativeEndian.Uint32(info[16:]))
	if n == 0 || n > 1024 {
		return nil, fmt.Errorf("device %q: %d features: %w", ifname, n, ErrUnsupported)
	}
	// struct ethtool_gstrings: cmd, string_set, len, len strings of 32 bytes.
	req := request(unix.ETHTOOL_GSTRINGS, 12+32*n)
	binary.NativeEndian.PutUint32(req[4:], stringSetFeatures)
	binary.NativeEndian.PutUint32(req[8:], uint32(n))
	if err := ethtool(ifname, req); err != nil {
		return nil, err
	}
	names := make([]string, n)
	for i := range names {
		names[i] = cString(req[12+32*i : 12+32*(i+1)])
	}
	return names, nil
}
