// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// OwnName is what xdpl2's own bridge is called, if nothing else is; otherwise
// it has a number behind.
const OwnName = "br-xdpl2"

// Own is a bridge of xdpl2's own. Its address tells it from any other of the
// same name.
type Own struct {
	Name string `json:"name"`
	MAC  string `json:"mac"`
}

// PlanOwn chooses a name that nothing has and an address that nobody has. It
// changes nothing.
func PlanOwn() (*Own, error) {
	name := OwnName
	for n := 1; ; n++ {
		_, err := read(0, name)
		if errors.Is(err, ErrGone) {
			break
		}
		if err != nil {
			return nil, err
		}
		if n > 99 {
			return nil, fmt.Errorf("there are devices %s to %s already", OwnName, name)
		}
		name = fmt.Sprintf("%s-%d", OwnName, n)
	}
	mac := make(net.HardwareAddr, 6)
	if _, err := rand.Read(mac); err != nil {
		return nil, err
	}
	mac[0] = mac[0]&^1 | 2 // of one host, locally administered
	return &Own{Name: name, MAC: mac.String()}, nil
}

// Attribute numbers of a bridge's settings (IFLA_BR_*).
const bridgeSTP = 5

const addrGenNone = 1 // IN6_ADDR_GEN_MODE_NONE

// Numbers of IPv4 settings (IPV4_DEVCONF_*), in IFLA_INET_CONF.
const (
	inetConf    = 1
	forwarding4 = 1
	rpFilter    = 8
	arpIgnore   = 19
)

// bridgeSettings are those that make frames go as they went in the bridge that
// the ports come from: the writable ones of br_policy in the kernel's
// net/bridge/br_netlink.c, in an order in which none is refused for another.
var bridgeSettings = []uint16{
	8,          // vlan_protocol
	39,         // vlan_default_pvid
	7,          // vlan_filtering
	1, 2, 3, 6, // forward_delay, hello_time, max_age, priority
	4,     // ageing_time
	9, 20, // group_fwd_mask, group_addr
	22, 23, 24, 25, 27, // mcast_router, _snooping, _query_use_ifaddr, _querier, _hash_max
	28, 29, 30, 31, 32, 33, 34, 35, // the counts and intervals of IGMP and MLD
	43, 44, // their versions
	36, 37, 38, // nf_call_iptables, _ip6tables, _arptables
	41, 42, 45, // statistics
	46,        // boolean options
	49,        // fdb_max_learned
	bridgeSTP, // last: it begins at once
}

// number32 reads a bridge's attribute of 4 bytes.
func (d device) number32(attr uint16) uint32 {
	if v := d.bridge[attr]; len(v) == 4 {
		return nl.NativeEndian().Uint32(v)
	}
	return 0
}

// Create makes the bridge, with the settings of the one named like, and brings
// it up. It has no address and the box does not answer there. One that is
// there already is left as it is. An error that wraps ErrPartly means that it
// works, but that some setting was refused.
func (o *Own) Create(like string) (ifindex int, err error) {
	if index, err := o.Find(); err == nil || !errors.Is(err, ErrGone) {
		return index, err
	}
	mac, err := net.ParseMAC(o.MAC)
	if err != nil {
		return 0, err
	}
	info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
	info.AddRtAttr(infoKind, nl.NonZeroTerminated("bridge"))
	req := nl.NewNetlinkRequest(unix.RTM_NEWLINK, unix.NLM_F_ACK|unix.NLM_F_CREATE|unix.NLM_F_EXCL)
	req.AddData(nl.NewIfInfomsg(unix.AF_UNSPEC))
	req.AddData(nl.NewRtAttr(unix.IFLA_IFNAME, nl.ZeroTerminated(o.Name)))
	req.AddData(nl.NewRtAttr(unix.IFLA_ADDRESS, mac))
	req.AddData(info)
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return 0, fmt.Errorf("make bridge %s: %w", o.Name, err)
	}
	Step()
	d, err := read(0, o.Name)
	if err != nil {
		return 0, err
	}
	refused := o.copySettings(d, like)
	refused = errors.Join(refused, withoutBox(d))
	if err := setFlag(d.index, unix.IFF_UP, true); err != nil {
		return 0, err
	}
	if refused != nil {
		return d.index, fmt.Errorf("%w: %w", ErrPartly, refused)
	}
	return d.index, nil
}

// withoutBox keeps the box's IP out of a bridge: a host there must neither get
// an answer for an address that the box has elsewhere, nor be routed.
func withoutBox(d device) error {
	conf := nl.NewRtAttr(inetConf, nil)
	conf.AddRtAttr(arpIgnore, nl.Uint32Attr(8))
	conf.AddRtAttr(rpFilter, nl.Uint32Attr(1))
	conf.AddRtAttr(forwarding4, nl.Uint32Attr(0))
	inet := nl.NewRtAttr(unix.AF_INET, nil)
	inet.AddChild(conf)
	inet6 := nl.NewRtAttr(unix.AF_INET6, nil)
	inet6.AddRtAttr(unix.IFLA_INET6_ADDR_GEN_MODE, []byte{addrGenNone}) // no link-local address
	var refused error
	// One after the other: a kernel without IPv6 refuses the second.
	for _, family := range []*nl.RtAttr{inet, inet6} {
		spec := nl.NewRtAttr(unix.IFLA_AF_SPEC, nil)
		spec.AddChild(family)
		err := change(unix.RTM_SETLINK, unix.AF_UNSPEC, d.index, 0, 0, spec)
		if err != nil && !errors.Is(err, unix.EAFNOSUPPORT) {
			refused = errors.Join(refused, fmt.Errorf("keep the box out of %s: %w", d.name, err))
		}
	}
	return refused
}

func (o *Own) copySettings(d device, like string) error {
	model, err := read(0, like)
	if errors.Is(err, ErrGone) {
		return nil // the kernel's defaults, then
	}
	if err != nil {
		return err
	}
	var refused error
	for _, attr := range bridgeSettings {
		want, ok := model.bridge[attr]
		if !ok || bytes.Equal(want, d.bridge[attr]) {
			continue
		}
		data := nl.NewRtAttr(infoData, nil)
		data.AddRtAttr(int(attr), slices.Clone(want))
		info := nl.NewRtAttr(unix.IFLA_LINKINFO, nil)
		info.AddRtAttr(infoKind, nl.NonZeroTerminated("bridge"))
		info.AddChild(data)
		if err := change(unix.RTM_NEWLINK, unix.AF_UNSPEC, d.index, 0, 0, info); err != nil {
			refused = errors.Join(refused, fmt.Errorf("set attribute %d of %s as %s has it: %w", attr, o.Name, like, err))
		}
	}
	// MTU: a bridge takes that of its ports by itself.
	return refused
}

// Find returns the bridge's ifindex; an error that wraps ErrGone if there is
// none, or another device of that name.
func (o *Own) Find() (ifindex int, err error) {
	d, err := read(0, o.Name)
	if err != nil {
		return 0, err
	}
	if d.kind != "bridge" || net.HardwareAddr(d.mac[:]).String() != o.MAC {
		return 0, fmt.Errorf("%s is another device now: %w", o.Name, ErrGone)
	}
	return d.index, nil
}

// Remove takes the bridge away. That it is gone is no error.
func (o *Own) Remove() error {
	index, err := o.Find()
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := change(unix.RTM_DELLINK, unix.AF_UNSPEC, index, 0, 0); err != nil && !errors.Is(err, ErrGone) {
		return fmt.Errorf("remove bridge %s: %w", o.Name, err)
	}
	return nil
}
