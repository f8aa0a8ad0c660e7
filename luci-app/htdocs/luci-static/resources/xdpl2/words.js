// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';

// Numbers, states and verdicts in words. Nothing here touches the page.

/* Verdicts under which a frame did not go to the bridge. */
var CARRIED = [ 'redirected', 'reflected' ];

function verdicts() {
	return {
		redirected: _('sent out by the fast path'),
		reflected: _('answered by the fast path'),
		pass_disabled: _('the port is switched off'),
		pass_local: _('for the box itself'),
		pass_group: _('broadcast or multicast: the bridge floods it'),
		pass_control: _('link control (STP, LLDP, LACP, EAPOL, pause)'),
		pass_unknown_source: _('sender not known on this port yet: the bridge learns it'),
		pass_moved_source: _('sender was known on another port: the bridge moves it'),
		pass_unknown_destination: _('receiver not known on an accelerated port'),
		pass_same_port: _('receiver is behind the port that the frame came from'),
		pass_blocked: _('a port is down or not forwarding (STP)'),
		pass_isolated: _('both ports are isolated'),
		pass_vlan: _('its VLAN is not carried here, or cannot be told: the bridge decides'),
		pass_mtu: _('longer than the leaving port\'s MTU allows'),
		pass_filtered: _('a bridge filter wants to see it'),
		pass_malformed: _('not a proper Ethernet frame'),
		redirect_failed: _('the leaving port was gone: the bridge takes it')
	};
}

function prefixed(v, units) {
	var i = 0;

	while (v >= 999.5 && i < units.length - 1) {
		v /= 1000;
		i++;
	}

	var digits = (v >= 99.95 || v == 0 || (i == 0 && v >= 9.95)) ? 0 : (v >= 9.995 ? 1 : 2);

	if (i == 0 && v == Math.round(v))
		digits = 0;

	return v.toFixed(digits) + ' ' + units[i];
}

return baseclass.extend({
	/** Frames a second: "4 500/s", "251 k/s". */
	frames: function(v) {
		if (v == null)
			return '–';

		if (v > 0 && v < 9.95)
			return v.toFixed(1) + '/s';

		return v < 99999.5 ? this.count(v) + '/s' : prefixed(v, [ '/s', 'k/s', 'M/s', 'G/s' ]);
	},

	bits: function(v) {
		return v == null ? '–' : prefixed(v, [ 'bit/s', 'kbit/s', 'Mbit/s', 'Gbit/s', 'Tbit/s' ]);
	},

	/** A round value at an axis, without the zeros that say nothing. */
	tick: function(v, unit) {
		return this.rate(v, unit).replace(/(\.\d*?)0+(?=\D)/, '$1').replace(/\.(?=\D)/, '');
	},

	/** A rate in the unit of a chart. */
	rate: function(v, unit) {
		return unit == 'bits' ? this.bits(v) : this.frames(v);
	},

	/**
	 * A share in percent. What is not all never reads 100%, and what is not
	 * nothing never 0%.
	 */
	percent: function(v) {
		if (v == null)
			return '–';

		if (v == 0 || v == 1)
			return (100 * v) + '%';

		var p = Math.min(Math.max(100 * v, 0.1), 99.9);

		return (p < 10 || p > 99 ? p.toFixed(1) : p.toFixed(0)) + '%';
	},

	/** A whole number with narrow spaces between thousands. */
	count: function(n) {
		return n == null ? '–' : String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, '\u202f');
	},

	duration: function(s) {
		if (s < 90)
			return _('%d s').format(Math.round(s));

		if (s < 90 * 60)
			return _('%d min').format(Math.round(s / 60));

		if (s < 36 * 3600)
			return _('%d h').format(Math.round(s / 3600));

		return _('%d days').format(Math.round(s / 86400));
	},

	speed: function(mbit) {
		return mbit >= 1000 ? (mbit / 1000) + ' Gbit/s' : mbit + ' Mbit/s';
	},

	/** A port's link: present, up, carrier, speed. */
	link: function(port) {
		if (port.state == 'waiting')
			return _('absent');

		if (port.up == null)
			return '–'; /* an older daemon does not say */

		if (!port.up)
			return _('down');

		if (!port.carrier)
			return _('no carrier');

		return port.speed_mbit > 0 ? this.speed(port.speed_mbit) : _('up');
	},

	/** A port's state as a word, a mark that goes with it, and how good it is. */
	state: function(name) {
		switch (name) {
		case 'accelerating':
			return { text: _('accelerated'), mark: '✓', level: 'good' };
		case 'waiting':
			return { text: _('waiting for the device'), mark: '…', level: 'idle' };
		case 'off':
			return { text: _('switched off'), mark: '–', level: 'idle' };
		case 'not_accelerated':
			return { text: _('not accelerated'), mark: '!', level: 'warn' };
		case 'failed':
			return { text: _('failed'), mark: '✕', level: 'bad' };
		}

		return { text: String(name), mark: '?', level: 'idle' };
	},

	/** An engine and the hook that it uses. */
	engine: function(port) {
		if (!port.engine)
			return '–';

		return port.hook && port.hook != port.engine ? '%s (%s)'.format(port.engine, port.hook) : port.engine;
	},

	verdict: function(name, words) {
		return verdicts()[name] || words || name;
	},

	/** A verdict in as few words as fit into a tile. */
	brief: function(name) {
		switch (name) {
		case 'pass_disabled':
			return _('ports switched off');
		case 'pass_local':
			return _('for the box itself');
		case 'pass_group':
			return _('broadcast and multicast');
		case 'pass_control':
			return _('link control');
		case 'pass_unknown_source':
			return _('new senders');
		case 'pass_moved_source':
			return _('senders that moved');
		case 'pass_unknown_destination':
			return _('unknown receivers');
		case 'pass_same_port':
			return _('receivers on the same port');
		case 'pass_blocked':
			return _('blocked ports');
		case 'pass_isolated':
			return _('isolated ports');
		case 'pass_vlan':
			return _('VLANs');
		case 'pass_mtu':
			return _('too long for the MTU');
		case 'pass_filtered':
			return _('bridge filters');
		case 'pass_malformed':
			return _('malformed frames');
		case 'redirect_failed':
			return _('leaving port gone');
		}

		return name;
	},

	verdictNames: function() {
		return Object.keys(verdicts());
	},

	carried: function(verdict) {
		return CARRIED.indexOf(verdict) >= 0;
	},

	/**
	 * The headline: is it on, how many ports, what share. share is that of the
	 * last seconds, or null if nothing came or it is not known yet.
	 */
	headline: function(status, share) {
		var ports = Array.isArray(status.ports) ? status.ports : [],
		    on = ports.filter(function(p) { return p.state == 'accelerating' }).length;

		if (!status.enabled)
			return { text: _('Switched off: the bridge carries everything'), level: 'idle', mark: '–' };

		if (!ports.length)
			return { text: _('On, but no port is configured'), level: 'warn', mark: '!' };

		if (!on)
			return { text: _('On, but none of %d ports is accelerated').format(ports.length), level: 'bad', mark: '✕' };

		var text = (share != null)
			? _('Accelerating %d of %d ports, %s of frames').format(on, ports.length, this.percent(share))
			: _('Accelerating %d of %d ports').format(on, ports.length);

		return { text: text, level: on < ports.length ? 'warn' : 'good', mark: on < ports.length ? '!' : '✓' };
	},

	mode: function(name) {
		return name == 'port' ? _('wires between ports') : _('by destination address, as a bridge does');
	},

	topology: function(name) {
		return name == 'replace' ? _('the ports have left the bridge') : _('the ports stay in the bridge');
	},

	/** How long ago a station was seen sending. */
	seen: function(station) {
		if (station.source == 'local')
			return '';

		if (!(station.seen_seconds >= 0))
			return _('not yet');

		return _('%s ago').format(this.duration(station.seen_seconds));
	},

	source: function(name) {
		switch (name) {
		case 'bridge':
			return _('learned by the bridge');
		case 'static':
			return _('static');
		case 'local':
			return _('the box itself');
		}

		return String(name);
	}
});
