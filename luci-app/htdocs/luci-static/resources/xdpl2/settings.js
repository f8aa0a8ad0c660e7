// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';

// What the settings page calls each option, and in which order and tab it
// stands. What an option takes, its default and its help come from its
// declaration (options.js); a test sees that none is missing here.

return baseclass.extend({
	tabs: function() {
		return {
			general: _('General'),
			advanced: _('Advanced')
		};
	},

	/** The tab of an option of main. */
	tab: {
		enabled: 'general', mode: 'general', topology: 'general', bridge: 'general', engine: 'general',
		adapt: 'advanced', max_stations: 'advanced', force: 'advanced', bypass_filters: 'advanced', wireless: 'advanced', dbus: 'advanced', metrics: 'advanced', log_level: 'advanced'
	},

	/** Titles, by section and option. */
	titles: function() {
		return {
			xdpl2: {
				enabled: _('Acceleration'),
				mode: _('Mode'),
				topology: _('Topology'),
				engine: _('Engine'),
				adapt: _('Adapt under load'),
				bridge: _('Bridge'),
				max_stations: _('Number of stations'),
				force: _('Take the last way to the box'),
				bypass_filters: _('Bypass bridge filters'),
				wireless: _('Wireless ports'),
				dbus: _('D-Bus'),
				metrics: _('Metrics'),
				log_level: _('Log level')
			},
			port: {
				device: _('Device'),
				enabled: _('Enabled'),
				target: _('Target'),
				pass: _('Pass to the box'),
				engine: _('Engine'),
				echo: _('Answer echo')
			},
			station: {
				mac: _('MAC address'),
				port: _('Port'),
				vlan: _('VLAN')
			},
			tuning: {
				enabled: _('Tuning'),
				cpu: _('Processor core'),
				steering: _('Packet steering')
			}
		};
	},

	/** What a choice is called; what is not named here is shown as it is. */
	choices: function() {
		return {
			'xdpl2.mode': { mac: _('mac – by address'), port: _('port – wires') },
			'xdpl2.topology': { coexist: _('coexist – stay in bridge'), replace: _('replace – leave bridge') },
			'engine': {
				auto: _('auto – best available'), 'native': _('native – in the driver'),
				generic: _('generic – on the sk_buff'), tc: _('tc – traffic control')
			},
			'port.pass': { local: _('local – frames to its own addresses'), group: _('group – broadcast and multicast') },
			'tuning.cpu': { auto: _('auto – the dominant core') },
			'tuning.steering': { off: _('off'), on: _('on') },
			'xdpl2.log_level': { error: _('errors'), warn: _('warnings'), info: _('information'), debug: _('debugging') }
		};
	},

	/** The name of one choice of an option. */
	choice: function(o, value) {
		var all = this.choices(), named = all[o.section + '.' + o.name] || all[o.name] || {};

		return named[value] || value;
	},

	/** The help of an option, with its default and what is not built. */
	help: function(o) {
		var text = _(o.help);

		if (o['default'] && o.type != 'boolean')
			text += ' ' + _('Default: %s.').format(o.list ? _(o['default']) : o['default']);
		else if (o.type == 'boolean')
			text += ' ' + (o['default'] == '1' ? _('Default: on.') : _('Default: off.'));

		if (o.ignored)
			text += ' ' + _('Note: %s.').format(_(o.ignored));

		return text;
	}
});
