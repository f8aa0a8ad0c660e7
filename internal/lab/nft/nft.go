// SPDX-License-Identifier: Apache-2.0

// Package nft writes nftables rules into the lab's namespaces, on machines
// without the program of that name.
package nft

import (
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/xdpl2/xdpl2/internal/lab"
)

// Families of tables.
const (
	Bridge = nftables.TableFamilyBridge
	Netdev = nftables.TableFamilyNetdev
	Inet   = nftables.TableFamilyINet
	IP     = nftables.TableFamilyIPv4
)

// Hooks by number: what a number means depends on the family.
const (
	Prerouting, Input, Forward, Output, Postrouting, InetIngress = 0, 1, 2, 3, 4, 5 // bridge, inet, ip

	Ingress, Egress = 0, 1 // netdev
)

// Chain is a base chain in a table of its own.
type Chain struct {
	conn  *nftables.Conn
	table *nftables.Table
	chain *nftables.Chain
}

// ChainOptions describe a chain.
type ChainOptions struct {
	Family nftables.TableFamily
	Table  string
	Chain  string
	Hook   int
	Device string // family netdev
	Drop   bool   // its policy
}

// NewChain makes a table with a base chain without rules.
func NewChain(ns *lab.NS, o ChainOptions) (*Chain, error) {
	conn, err := nftables.New(nftables.WithNetNSFd(ns.FD()))
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	c := &Chain{conn: conn, table: conn.AddTable(&nftables.Table{Family: o.Family, Name: o.Table})}
	policy := nftables.ChainPolicyAccept
	if o.Drop {
		policy = nftables.ChainPolicyDrop
	}
	c.chain = conn.AddChain(&nftables.Chain{
		Name: o.Chain, Table: c.table, Type: nftables.ChainTypeFilter, Device: o.Device, Policy: &policy,
		Hooknum: nftables.ChainHookRef(nftables.ChainHook(o.Hook)), Priority: nftables.ChainPriorityFilter,
	})
	return c, c.flush("make the chain")
}

// Accept adds a rule that accepts everything. (It does not count: that takes a
// module of its own before 5.18.)
func (c *Chain) Accept() error { return c.add(&expr.Verdict{Kind: expr.VerdictAccept}) }

// DropTo adds a rule that drops frames to a MAC address.
func (c *Chain) DropTo(mac []byte) error {
	return c.add(
		&expr.Payload{OperationType: expr.PayloadLoad, DestRegister: 1, Base: expr.PayloadBaseLLHeader, Offset: 0, Len: 6},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: mac},
		&expr.Verdict{Kind: expr.VerdictDrop})
}

// AddSetElement puts an element into a set of the table, as dnsmasq does: it is
// no change to what is filtered.
func (c *Chain) AddSetElement(name string, element []byte) error {
	set := &nftables.Set{Table: c.table, Name: name, KeyType: nftables.TypeIPAddr}
	if err := c.conn.AddSet(set, []nftables.SetElement{{Key: element}}); err != nil {
		return fmt.Errorf("add a set: %w", err)
	}
	return c.flush("add a set")
}

func (c *Chain) add(exprs ...expr.Any) error {
	c.conn.AddRule(&nftables.Rule{Table: c.table, Chain: c.chain, Exprs: exprs})
	return c.flush("add a rule")
}

// Flush removes the chain's rules.
func (c *Chain) Flush() error {
	c.conn.FlushChain(c.chain)
	return c.flush("remove the rules")
}

// Delete removes the table.
func (c *Chain) Delete() error {
	c.conn.DelTable(c.table)
	return c.flush("remove the table")
}

func (c *Chain) flush(what string) error {
	if err := c.conn.Flush(); err != nil {
		return fmt.Errorf("nftables: %s: %w", what, err)
	}
	return nil
}

// NewFlowtable makes a table of family inet as the firewall's flow_offloading
// does: a flowtable at the ingress of devices, and a forward chain that puts
// routed flows there. ruled is false where the kernel has the flowtable and not
// the rule.
func NewFlowtable(ns *lab.NS, table string, devices ...string) (ruled bool, err error) {
	conn, err := nftables.New(nftables.WithNetNSFd(ns.FD()))
	if err != nil {
		return false, fmt.Errorf("open nftables: %w", err)
	}
	t := conn.AddTable(&nftables.Table{Family: Inet, Name: table})
	conn.AddFlowtable(&nftables.Flowtable{Table: t, Name: "ft", Devices: devices,
		Hooknum: nftables.FlowtableHookIngress, Priority: nftables.FlowtablePriorityFilter})
	if err := conn.Flush(); err != nil {
		return false, fmt.Errorf("nftables: add a flowtable: %w", err)
	}
	policy := nftables.ChainPolicyAccept
	chain := conn.AddChain(&nftables.Chain{Name: "forward", Table: t, Type: nftables.ChainTypeFilter, Policy: &policy,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter})
	conn.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: []expr.Any{&expr.FlowOffload{Name: "ft"}}})
	return conn.Flush() == nil, nil
}
