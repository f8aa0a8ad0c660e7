// SPDX-License-Identifier: Apache-2.0
'use strict';
'require view';
'require form';
'require network';
'require uci';
'require ui';
'require xdpl2.daemon as daemon';
'require xdpl2.devices as devices';
'require xdpl2.page as page';
'require xdpl2.reasons as reasons';
'require xdpl2.rules as rules';
'require xdpl2.settings as settings';

// Every option of /etc/config/xdpl2. What an option takes is declared once, in
// the daemon; the form refuses what the daemon would, in its words.

/** What save is rejected with when the user does not want to go on. */
function Cancelled() {
	this.message = _('Nothing was saved.');
}

return view.extend({
	load: function() {
		return Promise.all([
			L.resolveDefault(uci.load('xdpl2'), null),
			L.resolveDefault(network.getDevices(), []),
			daemon.status().catch(function() { return null })
		]);
	},

	render: function(data) {
		var self = this, s;

		if (!uci.sections('xdpl2').length)
			return page.frame([ E('h2', {}, [ _('XDP forwarding') ]), page.trouble({ kind: 'noconfig' }) ]);

		if (!uci.get('xdpl2', 'main'))
			uci.add('xdpl2', 'xdpl2', 'main');

		if (!uci.get('xdpl2', 'tuning'))
			uci.add('xdpl2', 'tuning', 'tuning');

		this.devices = devices.describe(data[1]);
		this.reasons = {};

		(data[2] && data[2].ports || []).forEach(function(p) {
			if (p.reason && (p.state == 'not_accelerated' || p.state == 'failed'))
				self.reasons[p.device] = reasons.explain(p.reason).text;
		});

		this.wired = rules.wiredManagement(rules.read(uci), devices.management(this.devices, window.location.hostname));

		var m = this.map = new form.Map('xdpl2', _('XDP forwarding'),
			_('Layer-2 forwarding past the bridge, for the ports that are listed here. Everything else goes through the bridge as before.'));

		s = m.section(form.NamedSection, 'main', 'xdpl2', _('General settings'));

		var tabs = settings.tabs();

		for (var name in tabs)
			s.tab(name, tabs[name]);

		rules.options('xdpl2').forEach(function(o) { self.option(s, o, settings.tab[o.name]) });

		s = m.section(form.GridSection, 'port', _('Ports'),
			_('Drag rows into the order in which they are to be listed.'));
		s.anonymous = true;
		s.addremove = true;
		s.sortable = true;
		s.nodescriptions = true;
		s.addbtntitle = _('Add port');
		s.modaltitle = function(section_id) {
			return uci.get('xdpl2', section_id, 'device') || _('New port');
		};
		rules.options('port').forEach(function(o) { self.option(s, o) });

		s = m.section(form.TableSection, 'station', _('Static stations'),
			_('Addresses that are known without having been heard. Most boxes need none.'));
		s.anonymous = true;
		s.addremove = true;
		s.sortable = true;
		s.nodescriptions = true;
		s.addbtntitle = _('Add station');
		rules.options('station').forEach(function(o) { self.option(s, o) });

		s = m.section(form.NamedSection, 'tuning', 'tuning', _('Tuning'));
		rules.options('tuning').forEach(function(o) { self.option(s, o) });

		return m.render().then(function(node) {
			return E([ E('link', { 'rel': 'stylesheet', 'href': L.resource('xdpl2/xdpl2.css') }), node ]);
		});
	},

	/** Adds one option to a section of the form, from its declaration. */
	option: function(s, o, tab) {
		var self = this, title = settings.titles()[o.section][o.name] || o.name,
		    kind = this.kind(o), help = settings.help(o),
		    f = tab ? s.taboption(tab, kind, o.name, title, help) : s.option(kind, o.name, title, help);

		f.rmempty = !o.required;

		if (o.type == 'boolean') {
			f.enabled = '1';
			f.disabled = '0';
			f['default'] = o['default'] || '0';
			/* Whether it is on is always written down. */
			f.rmempty = !(o.section == 'xdpl2' && o.name == 'enabled');
			/* yes, on and true mean 1, too. */
			f.cfgvalue = function(section_id) {
				var v = uci.get('xdpl2', section_id, o.name);

				return v == null ? null : ([ '1', 'yes', 'on', 'true', 'enabled' ].indexOf(v) >= 0 ? '1' : '0');
			};
			f.editable = o.section == 'port';

			/* Whether the mode is possible depends on which ports are on. */
			if (o.section == 'port')
				f.onchange = function() {
					var mode = self.map.lookupOption('mode', 'main', 'xdpl2');

					if (mode)
						mode[0].triggerValidation('main');
				};
		}
		else if (o.type == 'choice') {
			if (!o.list && !o['default'])
				f.value('', _('as in the general settings'));

			o.choices.forEach(function(c) { f.value(c, settings.choice(o, c)) });

			if (!o.list) {
				f['default'] = o['default'] || '';
				f.optional = !o['default'];
				f.textvalue = function(section_id) {
					var v = uci.get('xdpl2', section_id, o.name);

					return v ? '%h'.format(v) : E('em', {}, [ o['default'] || _('general settings') ]);
				};
			}
			else {
				f.modalonly = true;
				f.placeholder = _(o['default']);
			}
		}
		else if (o.type == 'number') {
			f.placeholder = o['default'] || _('none');
		}
		else if (o.type == 'device') {
			f.placeholder = o.required ? _('Choose a device') : (o['default'] || _('none'));
			this.pick(f, o);
		}

		f.validate = function(section_id, value) { return self.validate(o, section_id, value) };

		return f;
	},

	kind: function(o) {
		switch (o.type) {
		case 'boolean':
			return form.Flag;
		case 'choice':
			return o.list ? form.MultiValue : form.ListValue;
		}

		return form.Value;
	},

	/** Fills a device picker: what the box has, and what of it cannot be used. */
	pick: function(f, o) {
		var self = this, main = uci.get('xdpl2', 'main') || {};

		if (o.section == 'station') {
			uci.sections('xdpl2', 'port').forEach(function(p) {
				if (p.device)
					f.value(p.device, p.device);
			});

			return;
		}

		this.devices.slice().sort(function(a, b) {
			return !!self.barred(a, o, main) - !!self.barred(b, o, main) || (a.name < b.name ? -1 : 1);
		}).forEach(function(d) {
			var why = self.barred(d, o, main), about = devices.about(d);

			if (o.name == 'bridge' && d.type != 'bridge')
				return;

			f.value(d.name, d.name +
				(about ? ' (' + about + ')' : '') +
				(why ? ' – ' + _('cannot be used: %s').format(why) : ''));
		});

		/* The name alone in the table. */
		f.textvalue = function(section_id) {
			var v = uci.get('xdpl2', section_id, o.name);

			return v ? '%h'.format(v) : E('em', {}, [ _('none') ]);
		};
	},

	barred: function(d, o, main) {
		return o.name == 'bridge' ? '' : devices.whyNot(d, main, this.reasons);
	},

	/** The configuration as it would be with one value in place. */
	configuration: function(o, section_id, value) {
		var config = rules.read(uci), self = this;

		/* What the form says of main counts, saved or not. */
		[ 'mode', 'bridge', 'topology', 'enabled' ].forEach(function(name) {
			var f = self.map.lookupOption(name, 'main', 'xdpl2'),
			    v = f && f[0].isActive('main') ? f[0].formvalue('main') : null;

			if (v != null)
				config.main[name] = v;
		});

		/* So does what it says of the ports in the table. */
		config.ports.forEach(function(p) {
			var f = self.map.lookupOption('enabled', p['.name'], 'xdpl2'),
			    v = f && f[0].isActive(p['.name']) ? f[0].formvalue(p['.name']) : null;

			if (v != null)
				p.enabled = v;
		});

		[ [ config.main ], config.ports, config.stations ].forEach(function(list) {
			list.forEach(function(s) {
				if (s['.name'] == section_id && (s !== config.main || o.section == 'xdpl2')) {
					s[o.name] = value;
					config.changed = s;
				}
			});
		});

		return config;
	},

	validate: function(o, section_id, value) {
		var wrong = null;

		if (o.list)
			L.toArray(value).forEach(function(v) { wrong = wrong || rules.value(o, v) });
		else
			wrong = rules.value(o, value);

		if (wrong)
			return rules.text(wrong);

		if (o.section == 'tuning' || (o.section == 'xdpl2' && o.name != 'mode'))
			return true;

		var config = this.configuration(o, section_id, value), found = [];

		if (o.section == 'port' && config.changed) {
			var dialog = document.querySelector('.modal .cbi-map');

			/* In the dialog the other fields of the port count as they stand there. */
			this.dialogValues(dialog, section_id, config.changed, o.name);
			found = rules.port(config, config.changed);

			if (o.name == 'device' && !found.length)
				return this.validDevice(value, config);
		}
		else if (o.section == 'station' && config.changed) {
			found = rules.station(config, config.changed);
		}
		else if (o.name == 'mode') {
			config.ports.forEach(function(p) { found = found.concat(rules.target(config, p)) });

			if (found.length)
				return '%s: %s'.format(found[0].section, rules.text(found[0]));
		}

		found = found.filter(function(p) { return p.option == o.name });

		return found.length ? rules.text(found[0]) : true;
	},

	dialogValues: function(dialog, section_id, port, except) {
		if (!dialog)
			return;

		[ 'device', 'target', 'enabled' ].forEach(function(name) {
			var field = dialog.querySelector('[data-field="cbid.xdpl2.%s.%s"]'.format(section_id, name)),
			    f = field && L.dom.findClassInstance(field);

			if (name != except && f && typeof(f.formvalue) == 'function')
				port[name] = f.formvalue(section_id);
		});
	},

	/** A device that is there and cannot be a port is refused; one that may come is not. */
	validDevice: function(value, config) {
		var d = this.devices.filter(function(x) { return x.name === value })[0];

		if (!d)
			return true;

		var why = devices.whyNot(d, config.main, null);

		return (why && [ 'bridge', 'tunnel', 'alias' ].indexOf(d.type) >= 0) ? _('cannot be used: %s').format(why) : true;
	},

	/** Everything at once, before it goes to UCI: what no single field shows. */
	check: function() {
		var config = rules.read(uci), found = rules.check(config), self = this;

		if (found.length)
			return Promise.reject(new Error(found.map(function(p) {
				return '%s, %s: %s'.format(p.section, p.option, rules.text(p));
			}).join('\n')));

		var wired = rules.wiredManagement(config, devices.management(this.devices, window.location.hostname))
			.filter(function(name) { return self.wired.indexOf(name) < 0 });

		return wired.length ? this.confirmWire(config, wired) : null;
	},

	/** Asks before the port through which this page came goes into a wire. */
	confirmWire: function(config, names) {
		var cut = names.filter(function(name) { return !rules.reachesBox(config, name) });

		return new Promise(function(resolve, reject) {
			var answer = function(go) {
				return function() {
					ui.hideModal();
					go ? resolve() : reject(new Cancelled());
				};
			};

			ui.showModal(_('The way to this page goes through a wire'), [
				E('p', {}, [ _('You reach this box through %s. As an end of a wire, what arrives there leaves by the other end.').format(names.join(', ')) ]),
				E('p', {}, [ cut.length
					? _('Of %s nothing is passed to the box any more: this page, SSH and routing will not be reachable that way.').format(cut.join(', '))
					: _('Frames to the box itself still reach it, as its settings pass local and group frames.') ]),
				E('p', {}, [ _('With Save & Apply, LuCI restores the old settings if this page cannot reach the box within 90 seconds.') ]),
				E('div', { 'class': 'right' }, [
					E('button', { 'class': 'btn cbi-button', 'click': answer(false) }, [ _('Cancel') ]), ' ',
					E('button', { 'class': 'btn cbi-button cbi-button-negative important', 'click': answer(true) }, [ _('Make the wire') ])
				])
			]);
		});
	},

	handleSave: function() {
		var self = this;

		if (!this.map)
			return Promise.reject(new Cancelled());

		return this.map.save(function() { return self.check() }, true).catch(function(e) {
			if (!(e instanceof Cancelled))
				ui.showModal(_('This cannot be saved'), [
					E('p', { 'style': 'white-space:pre-wrap' }, [ e.message ]),
					E('div', { 'class': 'right' }, [
						E('button', { 'class': 'btn cbi-button', 'click': ui.hideModal }, [ _('Back to the form') ])
					])
				]);

			return Promise.reject(e);
		});
	},

	handleReset: function() {
		return this.map ? this.map.reset() : null;
	}
});
