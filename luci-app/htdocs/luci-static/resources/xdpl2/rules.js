// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';
'require xdpl2.options as declared';

// The daemon's checks of the configuration, in the daemon's words, so that the
// form refuses what the daemon would. A configuration here is
// { main: {...}, ports: [{...}], stations: [{...}] }, each with UCI's option
// names and a label for its section.

var booleans = {
	'1': true, 'yes': true, 'on': true, 'true': true, 'enabled': true,
	'0': false, 'no': false, 'off': false, 'false': false, 'disabled': false
};

function problem(section, option, value, message, expected) {
	return { section: section.label, option: option, value: value == null ? '' : value, message: message, expected: expected };
}

function bytes(s) {
	return unescape(encodeURIComponent(s)).length;
}

/** An IPv4 address, or an IPv6 address in brackets, a colon and a port. */
function addressAndPort(value) {
	var m = value.match(/^(?:(\d{1,3}(?:\.\d{1,3}){3})|\[([0-9a-f:.]+)(?:%[^\]%]+)?\]):(\d{1,5})$/i);

	if (!m || +m[3] < 1 || +m[3] > 65535)
		return false;

	if (m[1])
		return m[1].split('.').every(function(n) { return +n <= 255 && String(+n) === n });

	/* The browser knows what an IPv6 address is. */
	try {
		return new URL('http://[' + m[2] + ']/').hostname.length > 2;
	}
	catch (e) {
		return false;
	}
}

function parses(o, value) {
	switch (o.type) {
	case 'boolean':
		return Object.prototype.hasOwnProperty.call(booleans, value);
	case 'choice':
		return o.choices.indexOf(value) >= 0;
	case 'number':
		return (/^[0-9]{1,10}$/).test(value) && +value >= o.min && +value <= o.max;
	case 'device':
		return value != '' && value != '.' && value != '..' && bytes(value) <= 15 && !(/[\x2f:\s]/).test(value);
	case 'address':
		return addressAndPort(value);
	case 'mac':
		var hex = value.replace(/[:.-]/g, '');

		return ((/^([0-9a-f]{2}([:-]))([0-9a-f]{2}\2){4}[0-9a-f]{2}$/i).test(value) || (/^([0-9a-f]{4}\.){2}[0-9a-f]{4}$/i).test(value)) &&
			(parseInt(hex.substr(0, 2), 16) & 1) == 0 && !(/^0+$/).test(hex);
	}

	return true;
}

/** Whether a value of option enabled means yes; absent is the default. */
function enabled(section, otherwise) {
	return section.enabled == null || section.enabled === '' ? otherwise : booleans[section.enabled] === true;
}

return baseclass.extend({
	/** The declaration of an option. */
	option: function(section, name) {
		return declared.options.filter(function(o) { return o.section == section && o.name == name })[0];
	},

	options: function(section) {
		return declared.options.filter(function(o) { return o.section == section });
	},

	/** A problem in one line, as the daemon writes it after the option's name. */
	text: function(p) {
		return p.expected ? _('%s; expected %s').format(p.message, p.expected) : p.message;
	},

	/** What is wrong with a value by itself: {message, expected}, or null. */
	value: function(o, value) {
		if (value == null || value === '')
			return o.required ? { message: _('missing'), expected: _(o.expected) } : null;

		if (!parses(o, value))
			return { message: _('not valid'), expected: _(o.expected) };

		return null;
	},

	/** What is wrong with a port beside the others: a list of problems. */
	port: function(config, p) {
		var found = [], main = config.main, bridge = main.bridge || 'br-lan', self = this;

		for (var i = 0; i < config.ports.length && config.ports[i] !== p; i++) {
			if (config.ports[i].device === p.device && p.device)
				return [ problem(p, 'device', p.device,
					_('the same device is in section %s already').format(config.ports[i].label), _('each device once')) ];
		}

		if (p.device === bridge)
			found.push(problem(p, 'device', p.device, _('is the bridge itself'), _('one of the bridge\'s ports')));

		return found.concat(self.target(config, p));
	},

	target: function(config, p) {
		var main = config.main, bridge = main.bridge || 'br-lan';

		if (p.target && p.target === p.device)
			return [ problem(p, 'target', p.target, _('is the port itself: frames would leave where they came from'), _('another device')) ];

		if (p.target && p.target === bridge)
			return [ problem(p, 'target', p.target, _('is the bridge itself'), _('a port')) ];

		if (!p.target && enabled(p, true) && main.mode == 'port')
			return [ problem(p, 'target', '', _('missing, and mode is port'),
				_('the device that frames from %s leave by').format(p.device)) ];

		return [];
	},

	/** What is wrong with a static station beside the others and the ports. */
	station: function(config, s) {
		var key = function(x) { return String(x.mac || '').toLowerCase().replace(/[^0-9a-f]/g, '') + ' ' + (+x.vlan || 0) };

		for (var i = 0; i < config.stations.length && config.stations[i] !== s; i++) {
			if (key(config.stations[i]) === key(s) && s.mac)
				return [ problem(s, 'mac', s.mac,
					_('the same station is in section %s already').format(config.stations[i].label), _('each station once')) ];
		}

		if (s.port && !config.ports.some(function(p) { return p.device === s.port }))
			return [ problem(s, 'port', s.port, _('no section of type port has this device'), _('the device of a port section')) ];

		return [];
	},

	/** All that is wrong with a configuration. */
	check: function(config) {
		var found = [], self = this;

		var each = function(type, section) {
			self.options(type).forEach(function(o) {
				var values = [].concat(section[o.name] == null ? '' : section[o.name]);

				values.forEach(function(value) {
					var wrong = self.value(o, value);

					if (wrong)
						found.push(problem(section, o.name, value, wrong.message, wrong.expected));
				});
			});
		};

		each('xdpl2', config.main);
		config.ports.forEach(function(p) { each('port', p) });
		config.stations.forEach(function(s) { each('station', s) });

		if (config.tuning)
			each('tuning', config.tuning);

		config.ports.forEach(function(p) { found = found.concat(self.port(config, p)) });
		config.stations.forEach(function(s) { found = found.concat(self.station(config, s)) });

		return found;
	},

	/**
	 * A configuration as uci gives it. Sections are named as the daemon names
	 * them: by name, or by type and number.
	 */
	read: function(uci) {
		var of = function(type) {
			return uci.sections('xdpl2', type).map(function(s, i) {
				return Object.assign({}, s, { label: s['.anonymous'] ? '@%s[%d]'.format(type, i) : '%s \'%s\''.format(type, s['.name']) });
			});
		};
		var named = function(type, name) {
			return Object.assign({}, uci.get('xdpl2', name) || {}, { label: '%s \'%s\''.format(type, name) });
		};

		return { main: named('xdpl2', 'main'), tuning: named('tuning', 'tuning'), ports: of('port'), stations: of('station') };
	},

	/**
	 * The ports of a wire that carry the address that the browser talks to:
	 * enabled ports (and their targets) in mode port that are a management
	 * device or a port of one. management is {device: true}.
	 */
	wiredManagement: function(config, management) {
		var names = [];

		if (config.main.mode != 'port' || !enabled(config.main, false))
			return names;

		config.ports.forEach(function(p) {
			if (!enabled(p, true))
				return;

			[ p.device, p.target ].forEach(function(name) {
				if (name && management[name] && names.indexOf(name) < 0)
					names.push(name);
			});
		});

		return names;
	},

	/** Whether frames for the box still reach it through a wire's port. */
	reachesBox: function(config, device) {
		return config.ports.filter(function(p) { return p.device === device }).every(function(p) {
			if (p.pass == null || p.pass.length == 0)
				return config.main.topology != 'replace';

			var pass = Array.isArray(p.pass) ? p.pass : String(p.pass).split(/\s+/);

			return pass.indexOf('local') >= 0 && pass.indexOf('group') >= 0;
		});
	}
});
