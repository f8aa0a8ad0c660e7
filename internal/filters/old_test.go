// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
)

// The old tables are written as their programs do it, with the layouts of
// include/uapi/linux: a test of the reader against the kernel itself, without
// a program that guests lack.

const setEntries = 128 // EBT_SO_SET_ENTRIES

// ebtBlob is a table with chains INPUT, FORWARD and OUTPUT, one of them with a
// rule that accepts.
func ebtBlob(ruleIn string, policy int32) (blob []byte, chains map[string]int) {
	chains = map[string]int{}
	counters := uint32(0)
	for _, name := range []string{"INPUT", "FORWARD", "OUTPUT"} {
		head := make([]byte, ebtChainSize)
		copy(head[4:], name)
		binary.NativeEndian.PutUint32(head[36:], counters)
		accept := int32(ebtAccept)
		if name == "FORWARD" {
			accept = policy
		}
		binary.NativeEndian.PutUint32(head[40:], uint32(accept))
		chains[name] = len(blob)
		if name != ruleIn {
			blob = append(blob, head...)
			continue
		}
		counters++
		binary.NativeEndian.PutUint32(head[44:], 1)
		blob = append(blob, head...)
		// The target: name and revision, size of what follows, the verdict.
		const target = 40
		rule := make([]byte, ebtRuleSize+target+8)
		rule[0] = 3 // EBT_ENTRY_OR_ENTRIES, EBT_NOPROTO
		for _, at := range []int{100, 104} {
			binary.NativeEndian.PutUint32(rule[at:], ebtRuleSize)
		}
		binary.NativeEndian.PutUint32(rule[ebtRuleNextAt:], uint32(len(rule)))
		copy(rule[ebtRuleSize:], "standard")
		binary.NativeEndian.PutUint32(rule[ebtRuleSize+32:], 8)
		binary.NativeEndian.PutUint32(rule[ebtRuleSize+target:], uint32(accept))
		blob = append(blob, rule...)
	}
	return blob, chains
}

func setEBTables(ns *lab.NS, ruleIn string, policy int32) error {
	return ns.Do(func() error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		info := ebtReplace{}
		copy(info.name[:], "filter")
		if err := ebtAsk(fd, ebtGetInfo, &info, 0); err != nil {
			return err
		}
		blob, chains := ebtBlob(ruleIn, policy)
		counters := make([]uint64, 2*(info.nentries+1))
		r := ebtReplace{name: info.name, validHooks: info.validHooks, entriesSize: uint32(len(blob)),
			numCounters: info.nentries, counters: unsafe.Pointer(&counters[0]), entries: unsafe.Pointer(&blob[0])}
		if ruleIn != "" {
			r.nentries = 1
		}
		for i, name := range []string{"", "INPUT", "FORWARD", "OUTPUT"} {
			if name != "" {
				r.hookEntry[i] = unsafe.Pointer(&blob[chains[name]])
			}
		}
		_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.IPPROTO_IP, setEntries,
			uintptr(unsafe.Pointer(&r)), unsafe.Sizeof(r)+uintptr(len(blob)), 0)
		runtime.KeepAlive(counters)
		runtime.KeepAlive(blob)
		if errno != 0 {
			return errno
		}
		return nil
	})
}

func TestEBTables(t *testing.T) {
	f := follow(t)
	err := setEBTables(f.ns, "", ebtAccept)
	if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.ENOENT) {
		t.Skip("needs the old ebtables (kernel without CONFIG_BRIDGE_NF_EBTABLES_LEGACY)")
	}
	must(t, err)
	f.still("eth1")
	must(t, setEBTables(f.ns, "FORWARD", ebtAccept))
	f.filtered("eth1", "ebtables has rules in chain FORWARD of table filter")
	must(t, setEBTables(f.ns, "OUTPUT", ebtAccept))
	f.filtered("eth1", "")
	must(t, setEBTables(f.ns, "", -2))
	f.filtered("eth1", "ebtables drops in chain FORWARD of table filter by its policy")
	must(t, setEBTables(f.ns, "", ebtAccept))
	f.filtered("eth1", "")
}

// TestEBTablesFormat is for kernels that no longer have the old ebtables.
func TestEBTablesFormat(t *testing.T) {
	for _, c := range []struct {
		name   string
		ruleIn string
		policy int32
		want   string
	}{
		{"empty", "", ebtAccept, ""},
		{"forward", "FORWARD", ebtAccept, "ebtables has rules in chain FORWARD of table filter"},
		{"input", "INPUT", ebtAccept, ""},
		{"output", "OUTPUT", ebtAccept, ""},
		{"policy", "INPUT", -2, "ebtables drops in chain FORWARD of table filter by its policy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			blob, _ := ebtBlob(c.ruleIn, c.policy)
			got, err := ebtParse("filter", blob)
			must(t, err)
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			// Cut anywhere, it is an error or says nothing wrong, and no crash.
			for n := range blob {
				if got, err := ebtParse("filter", blob[:n]); err == nil && got != "" && got != c.want {
					t.Errorf("%d of %d bytes: %q", n, len(blob), got)
				}
			}
		})
	}
	// A rule whose length leads nowhere.
	for _, next := range []uint32{0, 1, ebtRuleSize - 1, 1 << 31, 1<<32 - 1} {
		blob, chains := ebtBlob("INPUT", ebtAccept)
		binary.NativeEndian.PutUint32(blob[chains["INPUT"]+ebtChainSize+ebtRuleNextAt:], next)
		if _, err := ebtParse("filter", blob); err == nil {
			t.Errorf("a rule of %d bytes is no error", next)
		}
	}
}

// xtBlob is a table filter of iptables, with a rule that accepts in one of its
// chains. It returns the offsets of the chains' first entries and of their
// policies.
func xtBlob(x xtables, entrySize int, hooks []int, ruleIn int, policy int32) (blob []byte, entries, underflows []uint32, n uint32) {
	const standard, failure = 40, 64 // struct xt_standard_target, xt_error_target
	entries, underflows = make([]uint32, len(x.chains)), make([]uint32, len(x.chains))
	add := func(name string, size int, verdict int32) {
		e := make([]byte, entrySize+size)
		binary.NativeEndian.PutUint16(e[x.targetOffset:], uint16(entrySize))
		binary.NativeEndian.PutUint16(e[x.targetOffset+2:], uint16(len(e)))
		binary.NativeEndian.PutUint16(e[entrySize:], uint16(size))
		copy(e[entrySize+2:], name)
		if name == "" {
			binary.NativeEndian.PutUint32(e[entrySize+32:], uint32(verdict))
		} else {
			copy(e[entrySize+32:], name)
		}
		blob = append(blob, e...)
		n++
	}
	for _, hook := range hooks {
		entries[hook] = uint32(len(blob))
		if hook == ruleIn {
			add("", standard, xtAccept)
		}
		underflows[hook] = uint32(len(blob))
		verdict := int32(xtAccept)
		if x.chains[hook] == "FORWARD" {
			verdict = policy
		}
		add("", standard, verdict)
	}
	add("ERROR", failure, 0)
	return blob, entries, underflows, n
}

func setXTables(ns *lab.NS, x xtables, entrySize int, hooks []int, ruleIn int, policy int32) error {
	blob, entries, underflows, n := xtBlob(x, entrySize, hooks, ruleIn, policy)
	return ns.Do(func() error {
		fd, err := unix.Socket(x.family, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_RAW)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		chains := len(x.chains)
		info := make([]byte, xtNameLen+4+2*4*chains+8)
		copy(info, "filter")
		if _, err := getsockopt(fd, x.level, x.getInfo, info); err != nil {
			return err
		}
		old := binary.NativeEndian.Uint32(info[len(info)-8:])
		counters := make([]uint64, 2*old)
		// struct ipt_replace: name, valid_hooks, num_entries, size,
		// hook_entry[], underflow[], num_counters, counters, entries.
		r := append(make([]byte, 0, 256), info[:xtNameLen+4]...)
		r = binary.NativeEndian.AppendUint32(r, n)
		r = binary.NativeEndian.AppendUint32(r, uint32(len(blob)))
		for _, list := range [][]uint32{entries, underflows} {
			for _, at := range list {
				r = binary.NativeEndian.AppendUint32(r, at)
			}
		}
		r = binary.NativeEndian.AppendUint32(r, old)
		for len(r)%int(unsafe.Sizeof(uintptr(0))) != 0 {
			r = append(r, 0)
		}
		if unsafe.Sizeof(uintptr(0)) == 8 {
			r = binary.NativeEndian.AppendUint64(r, uint64(uintptr(unsafe.Pointer(&counters[0]))))
		} else {
			r = binary.NativeEndian.AppendUint32(r, uint32(uintptr(unsafe.Pointer(&counters[0]))))
		}
		for len(r)%8 != 0 {
			r = append(r, 0)
		}
		r = append(r, blob...)
		_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(x.level), uintptr(x.getInfo),
			uintptr(unsafe.Pointer(&r[0])), uintptr(len(r)), 0)
		runtime.KeepAlive(counters)
		if errno != 0 {
			return errno
		}
		return nil
	})
}

var xtTests = []struct {
	xtables
	entrySize int
	hooks     []int // that table filter has
	forward   int
	input     int
}{
	{iptables, 112, []int{1, 2, 3}, 2, 1},
	{ip6tables, 168, []int{1, 2, 3}, 2, 1},
	{arptables, 192, []int{0, 1, 2}, 2, 0},
}

func TestXTables(t *testing.T) {
	for _, x := range xtTests {
		t.Run(x.kind, func(t *testing.T) {
			f := follow(t)
			err := setXTables(f.ns, x.xtables, x.entrySize, x.hooks, -1, xtAccept)
			if errors.Is(err, unix.ENOPROTOOPT) || errors.Is(err, unix.ENOENT) {
				if os.Getenv("XDPL2_GUEST") != "" {
					t.Skip("not for guests: their kernels come without the module " + x.names[:strings.Index(x.names, "_names")])
				}
				t.Skipf("needs the old %s (%v)", x.kind, err)
			}
			must(t, err)
			f.callIPTables(x.setting, "1")
			must(t, setXTables(f.ns, x.xtables, x.entrySize, x.hooks, x.forward, xtAccept))
			f.filtered("eth1", x.kind+" has rules in chain FORWARD of table filter, and br_netfilter hands it the frames of all bridges")
			must(t, setXTables(f.ns, x.xtables, x.entrySize, x.hooks, -1, xtAccept))
			f.filtered("eth1", "")
			must(t, setXTables(f.ns, x.xtables, x.entrySize, x.hooks, -1, -1)) // NF_DROP
			f.filtered("eth1", x.kind+" drops in chain FORWARD of table filter by its policy")
			f.callIPTables(x.setting, "0")
			f.filtered("eth1", "")
			// A rule elsewhere may have connections tracked, if the kernel can.
			must(t, setXTables(f.ns, x.xtables, x.entrySize, x.hooks, x.input, xtAccept))
			f.callIPTables(x.setting, "1")
			if x.kind != "arptables" && haveModule("nf_conntrack") {
				f.filtered("eth1", x.kind+" has rules in table filter")
			}
		})
	}
}

// TestXTablesPolicy reads policies without a kernel, and tables that are cut.
func TestXTablesPolicy(t *testing.T) {
	for _, x := range xtTests {
		blob, _, underflows, _ := xtBlob(x.xtables, x.entrySize, x.hooks, x.input, -1)
		for _, hook := range x.hooks {
			want := int32(xtAccept)
			if hook == x.forward {
				want = -1
			}
			got, err := x.verdict(blob, int(underflows[hook]))
			if err != nil || got != want {
				t.Errorf("%s, chain %s: %d, %v, want %d", x.kind, x.chains[hook], got, err, want)
			}
		}
		for _, at := range []int{-1, len(blob) - 1, len(blob), 1 << 30} {
			if _, err := x.verdict(blob, at); err == nil {
				t.Errorf("%s: a policy at %d of %d bytes is no error", x.kind, at, len(blob))
			}
		}
	}
}
