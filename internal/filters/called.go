// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// br_netfilter hands bridged frames to the hooks of IP, if a setting of the
// namespace or of the bridge says so. Container software turns it on.

// calls is which bridges hand their frames on, and to whom. The name "" is
// every bridge.
type calls struct {
	ip, ip6, arp []string
	// tracked: there is connection tracking. Any rule may have switched it on,
	// also for frames that the rule itself never sees.
	tracked bool
}

// modulesDir tells which modules are there. One that is built in appears only
// if it has parameters.
const modulesDir = "/sys/module"

func haveModule(name string) bool {
	_, err := os.Stat(filepath.Join(modulesDir, name))
	return err == nil
}

// readCalls reads the settings; bridges are those of the namespace with their
// own settings.
func readCalls(bridges []bridgeCalls) (calls, error) {
	c := calls{tracked: haveModule("nf_conntrack")}
	for _, s := range []struct {
		list *[]string
		key  string
		own  func(bridgeCalls) bool
	}{
		{&c.ip, "iptables", func(b bridgeCalls) bool { return b.ip }},
		{&c.ip6, "ip6tables", func(b bridgeCalls) bool { return b.ip6 }},
		{&c.arp, "arptables", func(b bridgeCalls) bool { return b.arp }},
	} {
		// /proc/sys/net shows the namespace of the thread that opens it.
		value, err := readFile("/proc/sys/net/bridge/bridge-nf-call-" + s.key)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return c, nil // no br_netfilter: the bridges' own settings do nothing
		case err != nil:
			return c, err
		case strings.TrimSpace(string(value)) != "0":
			*s.list = []string{""}
			continue
		}
		for _, b := range bridges {
			if s.own(b) {
				*s.list = append(*s.list, b.name)
			}
		}
	}
	return c, nil
}

// of returns what a filter of a tool that gets the frames of these bridges
// looks like, but for its kind: one for each bridge.
func (c calls) of(bridges []string, setting string) []Filter {
	var all []Filter
	for _, br := range bridges {
		f := Filter{Place: Bridged, Device: br}
		if br == "" {
			f.Text = "br_netfilter hands it the frames of all bridges"
			f.Remedy = fmt.Sprintf("sysctl -w net.bridge.bridge-nf-call-%s=0 ends that (Docker sets it to 1)", setting)
		} else {
			f.Text = "br_netfilter hands it the frames of " + br
			f.Remedy = fmt.Sprintf("ip link set dev %s type bridge nf_call_%s 0 ends that", br, setting)
		}
		all = append(all, f)
	}
	return all
}

// inet returns what a chain of nftables looks like that has bridged frames
// handed to it.
func (c calls) inet(family uint8, hook uint32) []Filter {
	switch hook {
	case unix.NF_INET_PRE_ROUTING, unix.NF_INET_FORWARD, unix.NF_INET_POST_ROUTING:
	default:
		if !c.tracked {
			return nil
		}
	}
	var all []Filter
	if family == unix.NFPROTO_IPV4 || family == unix.NFPROTO_INET {
		all = append(all, c.of(c.ip, "iptables")...)
	}
	if family == unix.NFPROTO_IPV6 || family == unix.NFPROTO_INET {
		all = append(all, c.of(c.ip6, "ip6tables")...)
	}
	return all
}

// conntrack tells whether connections are tracked without any rule.
func (c calls) conntrack() []Filter {
	if len(c.ip)+len(c.ip6) == 0 {
		return nil
	}
	value, err := readFile(filepath.Join(modulesDir, "nf_conntrack/parameters/enable_hooks"))
	if err != nil || strings.TrimSpace(string(value)) != "Y" { // the parameter came with 5.16
		return nil
	}
	all := append(c.of(c.ip, "iptables"), c.of(c.ip6, "ip6tables")...)
	for i := range all {
		all[i].Kind = "conntrack"
		all[i].Text = "all connections are tracked (enable_hooks of nf_conntrack), and " + strings.Replace(all[i].Text, "hands it", "hands over", 1)
	}
	return all
}
