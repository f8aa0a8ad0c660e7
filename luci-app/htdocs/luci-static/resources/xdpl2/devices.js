// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';

// Which of the box's devices can be a port, and why others cannot. A device
// here is {name, type, up, carrier, speed, master, ports, addresses}.

var TYPES = { bridge: true, wifi: true, tunnel: true, alias: true, vlan: true, macvlan: true };

return baseclass.extend({
	/** Describes the devices of LuCI's network.getDevices(). */
	describe: function(list) {
		var devices = list.map(function(d) {
			return {
				name: d.getName(),
				type: d.getType(),
				up: d.isUp(),
				speed: d.getSpeed(),
				carrier: d.getCarrier(),
				ports: (d.getPorts() || []).map(function(p) { return p.getName() }),
				addresses: [].concat(d.getIPAddrs() || [], d.getIP6Addrs() || []),
				master: null
			};
		});

		devices.forEach(function(bridge) {
			bridge.ports.forEach(function(name) {
				devices.forEach(function(d) {
					if (d.name === name)
						d.master = bridge.name;
				});
			});
		});

		return devices;
	},

	/**
	 * Why a device cannot be a port, in words, or ''. reasons are the daemon's
	 * own, by device, which know more than can be seen from here.
	 */
	whyNot: function(d, main, reasons) {
		var bridge = main.bridge || 'br-lan';

		if (d.name === bridge)
			return _('is the bridge itself');

		if (d.name == 'lo')
			return _('is the loopback device');

		if (d.type == 'bridge')
			return _('is itself a bridge');

		if (d.type == 'wifi' && main.wireless != '1')
			return _('is wireless, which the settings do not allow');

		if (d.type == 'tunnel' || d.type == 'alias')
			return _('is not an Ethernet port');

		if (reasons && reasons[d.name])
			return reasons[d.name];

		if (main.topology != 'replace' && d.master == null)
			return _('is not a port of %s').format(bridge);

		if (main.topology != 'replace' && d.master !== bridge)
			return _('is a port of %s, not of %s').format(d.master, bridge);

		return '';
	},

	/** What a picker shows beside a device's name. */
	about: function(d) {
		var words = [];

		if (!d.up)
			words.push(_('down'));
		else if (d.carrier === false)
			words.push(_('no carrier'));
		else if (d.speed > 0)
			words.push(d.speed >= 1000 ? (d.speed / 1000) + ' Gbit/s' : d.speed + ' Mbit/s');

		if (d.master)
			words.push(_('port of %s').format(d.master));
		else if (TYPES[d.type])
			words.push(d.type);

		return words.join(', ');
	},

	/**
	 * The devices that carry the address that the browser talks to, and the
	 * ports of bridges among them: {name: true}. If the browser uses a name,
	 * which address that is cannot be known from here, and every device with
	 * an address counts.
	 */
	management: function(devices, host) {
		var found = {}, bare = String(host).replace(/^\[|\]$/g, '').replace(/%.*$/, '').toLowerCase(),
		    isAddress = (/^[0-9.]+$/).test(bare) || bare.indexOf(':') >= 0;

		var carries = function(d) {
			var own = d.addresses.map(function(a) { return String(a).split('/')[0].toLowerCase() });

			return isAddress ? own.indexOf(bare) >= 0 : d.name != 'lo' && own.length > 0;
		};

		devices.filter(carries).forEach(function(d) {
			found[d.name] = true;
			d.ports.forEach(function(name) { found[name] = true });
		});

		return found;
	}
});
