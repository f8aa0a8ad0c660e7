// SPDX-License-Identifier: Apache-2.0
// Generated from internal/config/declare.go by make generate; do not edit.
'use strict';
'require baseclass';

return baseclass.extend({
	options: [
		{
			"section": "xdpl2",
			"name": "enabled",
			"type": "boolean",
			"default": "0",
			"help": "Switches acceleration on. Off after installing.",
			"expected": "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)"
		},
		{
			"section": "xdpl2",
			"name": "mode",
			"type": "choice",
			"default": "mac",
			"choices": [
				"mac",
				"port"
			],
			"help": "mac: the destination address decides, as in a bridge. port: what comes in by one port leaves by its target, a wire.",
			"expected": "one of mac, port"
		},
		{
			"section": "xdpl2",
			"name": "topology",
			"type": "choice",
			"default": "coexist",
			"choices": [
				"coexist",
				"replace"
			],
			"help": "coexist: the ports stay in the bridge. replace: they leave it, and are a network of their own, without the box.",
			"expected": "one of coexist, replace"
		},
		{
			"section": "xdpl2",
			"name": "engine",
			"type": "choice",
			"default": "auto",
			"choices": [
				"auto",
				"native",
				"generic",
				"tc"
			],
			"help": "Where the program runs: native (driver XDP), generic (XDP on the sk_buff), tc, or auto: whichever is best there.",
			"expected": "one of auto, native, generic, tc"
		},
		{
			"section": "xdpl2",
			"name": "adapt",
			"type": "boolean",
			"default": "1",
			"help": "Whether auto may try generic against tc under load.",
			"expected": "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)"
		},
		{
			"section": "xdpl2",
			"name": "bridge",
			"type": "device",
			"default": "br-lan",
			"help": "The bridge whose ports are accelerated, or (replace) taken.",
			"expected": "the name of a network device (at most 15 characters, no blank or slash)"
		},
		{
			"section": "xdpl2",
			"name": "force",
			"type": "boolean",
			"default": "0",
			"help": "Topology replace: take ports even if the box cannot be reached any more.",
			"expected": "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)"
		},
		{
			"section": "xdpl2",
			"name": "max_stations",
			"type": "number",
			"default": "4096",
			"min": 16,
			"max": 1048576,
			"help": "How many stations the fast path can know.",
			"expected": "a number from 16 to 1048576"
		},
		{
			"section": "xdpl2",
			"name": "bypass_filters",
			"type": "boolean",
			"default": "0",
			"help": "Accelerate although the bridge has filters, which then see less.",
			"expected": "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)"
		},
		{
			"section": "xdpl2",
			"name": "wireless",
			"type": "boolean",
			"default": "0",
			"help": "Whether a wireless port may be accelerated.",
			"expected": "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)"
		},
		{
			"section": "xdpl2",
			"name": "dbus",
			"type": "boolean",
			"default": "0",
			"help": "Whether to offer org.xdpl2 on the system's D-Bus.",
			"expected": "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)"
		},
		{
			"section": "xdpl2",
			"name": "metrics",
			"type": "address",
			"help": "Where Prometheus can fetch metrics, without a password: 127.0.0.1:9420, say. Unset: at the control socket alone.",
			"expected": "an IP address and a port, like 127.0.0.1:9420 or [::1]:9420"
		},
		{
			"section": "xdpl2",
			"name": "log_level",
			"type": "choice",
			"default": "info",
			"choices": [
				"error",
				"warn",
				"info",
				"debug"
			],
			"help": "How much is logged.",
			"expected": "one of error, warn, info, debug"
		},
		{
			"section": "port",
			"name": "device",
			"type": "device",
			"required": true,
			"help": "The port, by name; it may come and go.",
			"expected": "the name of a network device (at most 15 characters, no blank or slash)"
		},
		{
			"section": "port",
			"name": "enabled",
			"type": "boolean",
			"default": "1",
			"help": "Whether this port is accelerated.",
			"expected": "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)"
		},
		{
			"section": "port",
			"name": "target",
			"type": "device",
			"help": "Mode port: the device that frames from here leave by.",
			"expected": "the name of a network device (at most 15 characters, no blank or slash)"
		},
		{
			"section": "port",
			"name": "pass",
			"type": "choice",
			"list": true,
			"default": "local and group in coexist, none in replace",
			"choices": [
				"local",
				"group"
			],
			"help": "Mode port: what still goes to the box. local: frames to its own addresses. group: broadcast and multicast, so that ARP finds it.",
			"expected": "one of local, group"
		},
		{
			"section": "port",
			"name": "engine",
			"type": "choice",
			"choices": [
				"auto",
				"native",
				"generic",
				"tc"
			],
			"help": "As main's, for this port alone.",
			"expected": "one of auto, native, generic, tc"
		},
		{
			"section": "port",
			"name": "echo",
			"type": "choice",
			"list": true,
			"default": "none",
			"choices": [
				"icmp",
				"udp"
			],
			"help": "Answer echo requests to the box in the data path.",
			"expected": "one of icmp, udp",
			"ignored": "not built in this version, ignored"
		},
		{
			"section": "station",
			"name": "mac",
			"type": "mac",
			"required": true,
			"help": "The station's address.",
			"expected": "the address of one host, like 02:00:00:00:00:02"
		},
		{
			"section": "station",
			"name": "port",
			"type": "device",
			"required": true,
			"help": "The port that it is behind.",
			"expected": "the name of a network device (at most 15 characters, no blank or slash)"
		},
		{
			"section": "station",
			"name": "vlan",
			"type": "number",
			"min": 1,
			"max": 4094,
			"help": "Its VLAN, in a VLAN-aware bridge (unset: that of the port's untagged frames). In other bridges a station with a VLAN is not used.",
			"expected": "a number from 1 to 4094"
		},
		{
			"section": "tuning",
			"name": "enabled",
			"type": "boolean",
			"default": "0",
			"help": "Whether interrupts and steering of the ports are set.",
			"expected": "0 or 1 (or off/on, no/yes, false/true, disabled/enabled)",
			"ignored": "not built in this version, ignored"
		},
		{
			"section": "tuning",
			"name": "cpu",
			"type": "choice",
			"default": "auto",
			"choices": [
				"auto",
				"0",
				"1",
				"2",
				"3",
				"4",
				"5",
				"6",
				"7",
				"8",
				"9"
			],
			"help": "The core for the ports' interrupts.",
			"expected": "one of auto, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9"
		},
		{
			"section": "tuning",
			"name": "steering",
			"type": "choice",
			"default": "off",
			"choices": [
				"off",
				"on"
			],
			"help": "Receive packet steering for the ports.",
			"expected": "one of off, on"
		}
	]
});
