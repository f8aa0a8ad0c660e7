// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// xtables is one of the old tools, and its socket options
// (include/uapi/linux/netfilter*/*_tables.h).
type xtables struct {
	kind    string
	names   string // file below /proc/net with the tables that there are
	family  int
	level   int
	getInfo int // the option; that for the entries is the next one
	chains  []string
	hooks   []int // those that forwarded frames pass
	// targetOffset is where an entry says where its target is.
	targetOffset int
	setting      string
}

var inetChains = []string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

var (
	iptables = xtables{
		kind: "iptables", names: "ip_tables_names", family: unix.AF_INET, level: unix.IPPROTO_IP, getInfo: 64,
		chains: inetChains, hooks: []int{0, 2, 4}, targetOffset: 88, setting: "iptables",
	}
	ip6tables = xtables{
		kind: "ip6tables", names: "ip6_tables_names", family: unix.AF_INET6, level: unix.IPPROTO_IPV6, getInfo: 64,
		chains: inetChains, hooks: []int{0, 2, 4}, targetOffset: 140, setting: "ip6tables",
	}
	arptables = xtables{
		kind: "arptables", names: "arp_tables_names", family: unix.AF_INET, level: unix.IPPROTO_IP, getInfo: 96,
		chains: []string{"INPUT", "OUTPUT", "FORWARD"}, hooks: []int{2}, targetOffset: 164, setting: "arptables",
	}
)

const (
	xtNameLen = 32
	xtAccept  = -2 // -NF_ACCEPT - 1, as the tables keep a verdict
)

// xtablesFilters tells which of the old tools' tables have something to do
// with bridged frames.
func xtablesFilters(c calls) []Filter {
	var all []Filter
	for _, x := range []struct {
		xtables
		bridges []string
	}{{iptables, c.ip}, {ip6tables, c.ip6}, {arptables, c.arp}} {
		if len(x.bridges) == 0 {
			continue
		}
		found, err := x.rules(c.tracked)
		if err != nil {
			all = append(all, unreadable(x.kind, err))
			continue
		}
		for _, what := range found {
			for _, f := range c.of(x.bridges, x.setting) {
				f.Kind, f.Text = x.kind, what+", and "+f.Text
				all = append(all, f)
			}
		}
	}
	return all
}

// rules says of each table in words what it has, if it has anything.
func (x xtables) rules(tracked bool) ([]string, error) {
	// Asking for a table that is not there would make it.
	names, err := readFile("/proc/thread-self/net/" + x.names)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	tables := strings.Fields(string(names))
	if len(tables) == 0 {
		return nil, nil
	}
	fd, err := unix.Socket(x.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
	if errors.Is(err, unix.EAFNOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open a socket: %w", err)
	}
	defer unix.Close(fd)
	slices.Sort(tables)
	var found []string
	for _, table := range tables {
		what, err := x.table(fd, table, tracked)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", table, err)
		}
		if what != "" {
			found = append(found, what)
		}
	}
	return found, nil
}

// table says in words what a table has that matters, or "".
func (x xtables) table(fd int, name string, tracked bool) (string, error) {
	n := len(x.chains)
	// struct ipt_getinfo: name, valid_hooks, hook_entry[], underflow[],
	// num_entries, size.
	info := make([]byte, xtNameLen+4+2*4*n+8)
	copy(info[:xtNameLen-1], name)
	if _, err := getsockopt(fd, x.level, x.getInfo, info); err != nil {
		return "", err
	}
	word := func(i int) uint32 { return binary.NativeEndian.Uint32(info[xtNameLen+4*i:]) }
	valid, size := word(0), word(1+2*n+1)
	var policies map[int]uint32
	for hook, chain := range x.chains {
		if valid&(1<<hook) == 0 {
			continue
		}
		passed := slices.Contains(x.hooks, hook)
		entry, underflow := word(1+hook), word(1+n+hook)
		switch {
		case entry != underflow && passed:
			return fmt.Sprintf("%s has rules in chain %s of table %s", x.kind, chain, name), nil
		case entry != underflow && tracked:
			return fmt.Sprintf("%s has rules in table %s", x.kind, name), nil
		case passed:
			if policies == nil {
				policies = map[int]uint32{}
			}
			policies[hook] = underflow
		}
	}
	if len(policies) == 0 {
		return "", nil
	}
	return x.dropping(fd, name, size, policies)
}

// dropping looks at the policies of chains without rules.
func (x xtables) dropping(fd int, name string, size uint32, policies map[int]uint32) (string, error) {
	// struct ipt_get_entries: name, size, and the entries, aligned to 8 bytes.
	const header = xtNameLen + 8
	blob := make([]byte, header+int(size))
	copy(blob[:xtNameLen-1], name)
	binary.NativeEndian.PutUint32(blob[xtNameLen:], size)
	_, err := getsockopt(fd, x.level, x.getInfo+1, blob)
	if errors.Is(err, unix.EAGAIN) { // changed just now: the next look will tell
		return fmt.Sprintf("%s table %s is being changed", x.kind, name), nil
	}
	if err != nil {
		return "", err
	}
	for hook := range x.chains {
		at, ok := policies[hook]
		if !ok {
			continue
		}
		verdict, err := x.verdict(blob[header:], int(at))
		if err != nil {
			return "", err
		}
		if verdict != xtAccept {
			return fmt.Sprintf("%s drops in chain %s of table %s by its policy", x.kind, x.chains[hook], name), nil
		}
	}
	return "", nil
}

// verdict reads the verdict of the entry at an offset, a policy.
func (x xtables) verdict(entries []byte, at int) (int32, error) {
	const targetHeader = 32 // struct xt_entry_target, before the verdict
	if at < 0 || at+x.targetOffset+2 > len(entries) {
		return 0, fmt.Errorf("an entry at %d of %d bytes", at, len(entries))
	}
	target := at + int(binary.NativeEndian.Uint16(entries[at+x.targetOffset:])) + targetHeader
	if target+4 > len(entries) {
		return 0, fmt.Errorf("a target at %d of %d bytes", target, len(entries))
	}
	return int32(binary.NativeEndian.Uint32(entries[target:])), nil
}

// getsockopt asks with what is in data, and has the answer there.
func getsockopt(fd, level, option int, data []byte) (int, error) {
	size := uint32(len(data))
	_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(option),
		uintptr(unsafe.Pointer(&data[0])), uintptr(unsafe.Pointer(&size)), 0)
	runtime.KeepAlive(data)
	if errno != 0 {
		return 0, errno
	}
	return int(size), nil
}
