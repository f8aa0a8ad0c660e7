// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netdev"
)

// Numbers of include/uapi/linux/netfilter/nfnetlink.h, nf_tables.h and
// netfilter_bridge.h that the library lacks.
const (
	nftSubsys   = 10 << 8 // NFNL_SUBSYS_NFTABLES, as the upper byte of a message's type
	nftGroup    = 7       // NFNLGRP_NFTABLES
	hookDevices = 4       // NFTA_HOOK_DEVS

	nftaDeviceName, nftaDevicePrefix = 1, 2 // the prefix since 6.18

	hookIngress, hookEgress                      = 0, 1 // NF_NETDEV_*
	hookInetIngress                              = 5    // NF_INET_INGRESS
	hookBridgePre, hookBridgeFwd, hookBridgePost = 0, 2, 4
	hookInetPre, hookInetForward, hookInetPost   = 0, 2, 4
	policyDrop                                   = 0 // NF_DROP
)

// chain is a base chain of nftables: one that the kernel calls for frames.
type chain struct {
	family      uint8
	table, name string
	base        bool
	hook        uint32
	devices     []string // family netdev, and ingress of family inet
	drops       bool     // its policy
	// uses counts what refers to the chain. Nothing but its own rules can: the
	// kernel lets nobody jump to a base chain.
	uses uint32
}

// matters reports whether the chain does anything to frames.
func (c chain) matters() bool { return c.uses > 0 || c.drops }

func (c chain) what() string {
	if c.uses > 0 {
		return "has rules in chain " + c.name
	}
	return "drops in chain " + c.name + " by its policy"
}

func (c chain) in(hooks ...uint32) bool { return slices.Contains(hooks, c.hook) }

var familyNames = map[uint8]string{
	unix.NFPROTO_INET: "inet", unix.NFPROTO_IPV4: "ip", unix.NFPROTO_ARP: "arp",
	unix.NFPROTO_NETDEV: "netdev", unix.NFPROTO_BRIDGE: "bridge", unix.NFPROTO_IPV6: "ip6",
}

func (c chain) tableName() string { return familyNames[c.family] + " " + c.table }

// nftChains lists the base chains that the kernel calls: those of dormant
// tables are not among them. No chains and no error where there is no nftables.
func nftChains() ([]chain, error) {
	asleep := map[string]bool{}
	tables, err := nftDump(unix.NFT_MSG_GETTABLE, unix.NFT_MSG_NEWTABLE)
	if err != nil || tables == nil {
		return nil, err
	}
	for _, msg := range tables {
		c, dormant, err := parseTable(msg)
		if err != nil {
			return nil, err
		}
		asleep[c.tableName()] = dormant
	}
	msgs, err := nftDump(unix.NFT_MSG_GETCHAIN, unix.NFT_MSG_NEWCHAIN)
	if err != nil {
		return nil, err
	}
	var chains []chain
	for _, msg := range msgs {
		c, err := parseChain(msg)
		if err != nil {
			return nil, err
		}
		if c.base && !asleep[c.tableName()] {
			chains = append(chains, c)
		}
	}
	return chains, nil
}

func nftDump(ask, answer int) ([][]byte, error) {
	msgs, err := netdev.Dump(func() ([][]byte, error) {
		req := nl.NewNetlinkRequest(nftSubsys|ask, unix.NLM_F_DUMP)
		req.AddRawData([]byte{unix.AF_UNSPEC, unix.NFNETLINK_V0, 0, 0})
		return req.Execute(unix.NETLINK_NETFILTER, uint16(nftSubsys|answer))
	})
	// A kernel without nfnetlink, and one that has it without nf_tables.
	if errors.Is(err, unix.EPROTONOSUPPORT) || errors.Is(err, unix.EAFNOSUPPORT) || errors.Is(err, unix.EINVAL) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list nftables: %w", err)
	}
	return msgs, nil
}

func nftAttributes(msg []byte, what string) (uint8, map[uint16][]byte, error) {
	const header = 4 // struct nfgenmsg
	if len(msg) < header {
		return 0, nil, fmt.Errorf("%s message of %d bytes", what, len(msg))
	}
	attrs, err := attributes(msg[header:])
	if err != nil {
		return 0, nil, fmt.Errorf("parse a %s message: %w", what, err)
	}
	return msg[0], attrs, nil
}

func parseTable(msg []byte) (c chain, dormant bool, err error) {
	family, attrs, err := nftAttributes(msg, "table")
	if err != nil {
		return c, false, err
	}
	c.family, c.table = family, text(attrs[unix.NFTA_TABLE_NAME])
	flags, err := bigEndian(attrs[unix.NFTA_TABLE_FLAGS], 0)
	return c, flags&unix.NFT_TABLE_F_DORMANT != 0, err
}

func parseChain(msg []byte) (chain, error) {
	c := chain{}
	family, attrs, err := nftAttributes(msg, "chain")
	if err != nil {
		return c, err
	}
	c.family, c.table, c.name = family, text(attrs[unix.NFTA_CHAIN_TABLE]), text(attrs[unix.NFTA_CHAIN_NAME])
	uses, err := bigEndian(attrs[unix.NFTA_CHAIN_USE], 0)
	if err != nil {
		return c, fmt.Errorf("chain %s: %w", c.name, err)
	}
	policy, err := bigEndian(attrs[unix.NFTA_CHAIN_POLICY], 1)
	if err != nil {
		return c, fmt.Errorf("chain %s: %w", c.name, err)
	}
	c.uses, c.drops = uses, policy == policyDrop
	hook, ok := attrs[unix.NFTA_CHAIN_HOOK]
	if !ok {
		return c, nil
	}
	c.base = true
	if err := c.parseHook(hook); err != nil {
		return c, fmt.Errorf("hook of chain %s: %w", c.name, err)
	}
	return c, nil
}

func (c *chain) parseHook(data []byte) error {
	attrs, err := attributes(data)
	if err != nil {
		return err
	}
	if c.hook, err = bigEndian(attrs[unix.NFTA_HOOK_HOOKNUM], 0); err != nil {
		return err
	}
	if dev, ok := attrs[unix.NFTA_HOOK_DEV]; ok {
		c.devices = append(c.devices, text(dev))
	}
	list, err := nl.ParseRouteAttr(attrs[hookDevices])
	if err != nil {
		return err
	}
	for _, dev := range list {
		switch dev.Attr.Type & typeMask {
		case nftaDeviceName:
			c.devices = append(c.devices, text(dev.Value))
		case nftaDevicePrefix:
			c.devices = append(c.devices, text(dev.Value)+"*")
		default:
			return fmt.Errorf("attribute %d among its devices", dev.Attr.Type&typeMask)
		}
	}
	return nil
}

// nftFilters tells which of the chains see frames that the fast path would
// take. called are the bridges whose frames br_netfilter hands on.
func nftFilters(chains []chain, called calls, conntrackBridge bool) []Filter {
	found := map[string]Filter{} // one per table, place and device
	add := func(c chain, f Filter) {
		key := fmt.Sprint(c.tableName(), f.Place, f.Device)
		if _, ok := found[key]; !ok {
			f.Kind = "nftables"
			found[key] = f
		}
	}
	// By name, so that of several chains the same one is always named.
	chains = slices.SortedFunc(slices.Values(chains), func(a, b chain) int { return strings.Compare(a.name, b.name) })
	for _, c := range chains {
		if !c.matters() {
			continue
		}
		remedy := "nft list table " + c.tableName() + " shows them"
		switch {
		case c.family == unix.NFPROTO_NETDEV && c.in(hookIngress, hookEgress),
			c.family == unix.NFPROTO_INET && c.in(hookInetIngress):
			place, way := Arriving, "ingress"
			if c.family == unix.NFPROTO_NETDEV && c.hook == hookEgress {
				place, way = Leaving, "egress"
			}
			for _, dev := range c.devices {
				add(c, Filter{Place: place, Device: dev, Remedy: remedy,
					Text: fmt.Sprintf("nftables table %s %s at the %s of %s", c.tableName(), c.what(), way, dev)})
			}
		case c.family == unix.NFPROTO_BRIDGE:
			if c.in(hookBridgePre, hookBridgeFwd, hookBridgePost) || conntrackBridge {
				add(c, Filter{Place: Bridged, Remedy: remedy, Text: fmt.Sprintf("nftables table %s %s", c.tableName(), c.what())})
			}
		default:
			for _, f := range called.inet(c.family, c.hook) {
				f.Text = fmt.Sprintf("nftables table %s %s, and %s", c.tableName(), c.what(), f.Text)
				add(c, f)
			}
		}
	}
	return slices.Collect(maps.Values(found))
}

// bigEndian reads a number of 4 bytes in network byte order, as nfnetlink has
// them; missing is what a missing attribute means.
func bigEndian(v []byte, missing uint32) (uint32, error) {
	switch len(v) {
	case 0:
		return missing, nil
	case 4:
		return binary.BigEndian.Uint32(v), nil
	}
	return 0, fmt.Errorf("number of %d bytes", len(v))
}
