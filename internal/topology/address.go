// SPDX-License-Identifier: Apache-2.0

package topology

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// BoxAddresses lists the IP addresses by which the box can be reached, by the
// ifindex of the device that has them. Link-local ones are not among them: each
// device gives itself one.
func BoxAddresses() (map[int][]netip.Addr, error) {
	var all map[int][]netip.Addr
	err := dump(func() error {
		all = map[int][]netip.Addr{}
		req := nl.NewNetlinkRequest(unix.RTM_GETADDR, unix.NLM_F_DUMP)
		req.AddData(nl.NewIfAddrmsg(unix.AF_UNSPEC))
		answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWADDR)
		if err != nil {
			return err
		}
		for _, data := range answers {
			if len(data) < unix.SizeofIfAddrmsg {
				return fmt.Errorf("address message of %d bytes", len(data))
			}
			attrs, err := attributes(data[unix.SizeofIfAddrmsg:])
			if err != nil {
				return err
			}
			// With a peer IFA_ADDRESS is the peer's; IFA_LOCAL is IPv4's alone.
			raw, ok := attrs[unix.IFA_LOCAL]
			if !ok {
				raw = attrs[unix.IFA_ADDRESS]
			}
			addr, ok := netip.AddrFromSlice(raw)
			if ok && !addr.IsLinkLocalUnicast() {
				index := int(nl.DeserializeIfAddrmsg(data).Index)
				all[index] = append(all[index], addr)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the box's addresses: %w", err)
	}
	return all, nil
}
