// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/test/luci/rpcd"
)

// wireless is the configuration of the made-up wireless device.
const wireless = `config wifi-device 'radio0'
	option type 'mac80211'

config wifi-iface 'wifi0'
	option device 'radio0'
	option mode 'ap'
	option ssid 'lab'
`

// doubles are made-up objects of the rest of OpenWrt that LuCI asks: which
// devices there are, and what the system can do. The browser of a test talks to
// 127.0.0.1, which here is an address of br-lan.
func doubles() map[string]map[string]rpcd.Method {
	answer := func(v any) rpcd.Method {
		return func(*rpcd.Session, rpcd.Table) (any, ubus.Status) { return v, ubus.StatusOK }
	}
	address := func(a string) []rpcd.Table { return []rpcd.Table{{"address": a, "netmask": "255.255.255.0"}} }
	device := func(mac string, more rpcd.Table) rpcd.Table {
		d := rpcd.Table{
			"type": 1, "mac": mac, "mtu": 1500, "qlen": 1000, "up": true, "flags": rpcd.Table{"up": true, "loopback": false},
			"link": rpcd.Table{"speed": 2500, "duplex": "full", "carrier": true}, "devtype": "ethernet", "wireless": false, "bridge": false,
			"ipaddrs": []any{}, "ip6addrs": []any{}, "stats": rpcd.Table{},
		}
		for k, v := range more {
			d[k] = v
		}
		return d
	}
	down := rpcd.Table{"link": rpcd.Table{"carrier": false, "speed": -1}}
	devices := rpcd.Table{
		"lo": device("00:00:00:00:00:00", rpcd.Table{"type": 772, "ipaddrs": address("127.0.0.2")}),
		"br-lan": device("02:00:5e:00:53:01", rpcd.Table{"bridge": true, "id": "7fff.02005e005301", "stp": false, "devtype": "bridge",
			"ports": []string{"eth1", "eth2", "eth3"}, "ipaddrs": address("127.0.0.1")}),
		"eth0": device("02:00:5e:00:53:00", rpcd.Table{"ipaddrs": address("192.0.2.2")}),
		"eth1": device("02:00:5e:00:53:01", nil), "eth2": device("02:00:5e:00:53:02", nil),
		"eth3": device("02:00:5e:00:53:03", down), "eth4": device("02:00:5e:00:53:04", nil),
		"wlan0": device("02:00:5e:00:53:05", rpcd.Table{"wireless": true, "devtype": "wlan"}),
		// A name that the kernel allows and that is markup.
		"<s>eth9": device("02:00:5e:00:53:09", nil),
	}
	return map[string]map[string]rpcd.Method{
		"luci": {"getFeatures": answer(rpcd.Table{"firewall": true, "opkg": true, "sysntpd": true, "wifi": true})},
		"file": {"list": answer(rpcd.Table{"entries": []any{}})},
		"luci-rpc": {
			"getNetworkDevices": answer(devices),
			"getBoardJSON":      answer(rpcd.Table{"model": rpcd.Table{"id": "lab", "name": "Lab"}}),
			"getHostHints": answer(rpcd.Table{
				"02:00:5E:00:53:07": rpcd.Table{"name": "nas <b>one</b>", "ipaddrs": []string{"192.0.2.7"}, "ip6addrs": []string{}},
			}),
			"getWirelessDevices": answer(rpcd.Table{"radio0": rpcd.Table{"up": true, "interfaces": []rpcd.Table{
				{"section": "wifi0", "ifname": "wlan0", "config": rpcd.Table{"mode": "ap", "ssid": "lab"}},
			}}}),
		},
		"network":           {"get_proto_handlers": answer(rpcd.Table{"static": rpcd.Table{}, "dhcp": rpcd.Table{}})},
		"network.interface": {"dump": answer(rpcd.Table{"interface": []any{}})},
	}
}
