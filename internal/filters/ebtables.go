// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Numbers of include/uapi/linux/netfilter_bridge/ebtables.h.
const (
	ebtGetInfo, ebtGetEntries = 128, 129
	ebtNameLen, ebtHooks      = 32, 6

	ebtAccept = -1

	// struct ebt_entries heads a chain, struct ebt_entry a rule; the first
	// word of a chain is 0, of a rule it is not.
	ebtChainSize  = 48
	ebtRuleSize   = 112
	ebtRuleNextAt = 108
)

// ebtReplace is struct ebt_replace.
type ebtReplace struct {
	name        [ebtNameLen]byte
	validHooks  uint32
	nentries    uint32
	entriesSize uint32
	hookEntry   [ebtHooks]unsafe.Pointer
	numCounters uint32
	counters    unsafe.Pointer
	entries     unsafe.Pointer
}

// ebtChains are those that forwarded frames pass.
var ebtChains = []string{"BROUTING", "PREROUTING", "FORWARD", "POSTROUTING"}

// ebtables looks at the tables of the old ebtables. (That of today keeps its
// rules in nftables.) A table that is there but was never used comes into
// being, empty, when it is asked for.
type ebtables struct {
	absent map[string]bool // tables that are known not to be there
}

func (e *ebtables) filters() []Filter {
	if !haveModule("ebtables") && e.absent["ebtables"] {
		return nil
	}
	var all []Filter
	for _, table := range []string{"broute", "nat", "filter"} {
		module := "ebtable_" + table
		// The kernel would look for a module that is not there each time.
		if !haveModule(module) && (haveModule("ebtables") || e.absent[module]) {
			continue
		}
		what, err := ebtTable(table)
		switch {
		case errors.Is(err, unix.ENOPROTOOPT):
			e.absent["ebtables"] = true // tried once: nothing is built in
			return nil
		case errors.Is(err, unix.ENOENT):
			e.absent[module] = true
		case err != nil:
			all = append(all, unreadable("ebtables", fmt.Errorf("table %s: %w", table, err)))
		case what != "":
			all = append(all, Filter{Kind: "ebtables", Place: Bridged, Text: what,
				Remedy: fmt.Sprintf("ebtables -t %s -L shows them", table)})
		}
	}
	return all
}

// ebtTable says in words what a table has that matters, or "".
func ebtTable(name string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if err != nil {
		return "", fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	info := ebtReplace{}
	copy(info.name[:ebtNameLen-1], name)
	if err := ebtAsk(fd, ebtGetInfo, &info, 0); err != nil {
		return "", err
	}
	blob := make([]byte, info.entriesSize)
	if len(blob) == 0 {
		return "", errors.New("it has no chains at all")
	}
	info.numCounters, info.counters, info.entries = 0, nil, unsafe.Pointer(&blob[0])
	err = ebtAsk(fd, ebtGetEntries, &info, len(blob))
	runtime.KeepAlive(blob)
	if err != nil {
		// EINVAL: it was changed just now, and the next look will tell.
		if errors.Is(err, unix.EINVAL) && info.nentries > 0 {
			return fmt.Sprintf("ebtables has rules in table %s", name), nil
		}
		return "", err
	}
	return ebtParse(name, blob)
}

// ebtAsk asks; the kernel wants the length of what the request points to added
// to its own.
func ebtAsk(fd, option int, r *ebtReplace, more int) error {
	size := uint32(unsafe.Sizeof(*r)) + uint32(more)
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, uintptr(option),
		uintptr(unsafe.Pointer(r)), uintptr(unsafe.Pointer(&size)), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ebtParse goes through a table's entries.
func ebtParse(table string, blob []byte) (string, error) {
	word := func(at int) uint32 { return binary.NativeEndian.Uint32(blob[at:]) }
	for at := 0; at < len(blob); {
		if len(blob)-at < ebtChainSize {
			return "", fmt.Errorf("%d bytes at the end of the table", len(blob)-at)
		}
		if word(at) != 0 {
			if len(blob)-at < ebtRuleSize {
				return "", fmt.Errorf("a rule of %d bytes", len(blob)-at)
			}
			next := word(at + ebtRuleNextAt)
			if next < ebtRuleSize || int64(next) > int64(len(blob)-at) {
				return "", fmt.Errorf("a rule of %d bytes with %d bytes left", next, len(blob)-at)
			}
			at += int(next)
			continue
		}
		chain := text(blob[at+4 : at+4+ebtNameLen])
		policy, rules := int32(word(at+40)), word(at+44)
		if slices.Contains(ebtChains, chain) {
			if rules > 0 {
				return fmt.Sprintf("ebtables has rules in chain %s of table %s", chain, table), nil
			}
			if policy != ebtAccept {
				return fmt.Sprintf("ebtables drops in chain %s of table %s by its policy", chain, table), nil
			}
		}
		at += ebtChainSize
	}
	return "", nil
}
