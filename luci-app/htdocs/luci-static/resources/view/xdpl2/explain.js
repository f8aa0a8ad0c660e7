// SPDX-License-Identifier: Apache-2.0
'use strict';
'require view';
'require uci';
'require ui';
'require xdpl2.daemon as daemon';
'require xdpl2.page as page';
'require xdpl2.rules as rules';
'require xdpl2.words as words';

// Which way would such a frame take now, and why.

var FIELDS = [ 'device', 'source', 'destination', 'vlan' ];

return view.extend({
	handleSaveApply: null,
	handleSave: null,
	handleReset: null,

	load: function() {
		return Promise.all([
			daemon.status().catch(function(trouble) { return trouble }),
			L.resolveDefault(uci.load('xdpl2'), null)
		]);
	},

	render: function(data) {
		var status = data[0];

		if (status instanceof Error)
			return this.framed([ page.trouble(page.absence(status, uci.get('xdpl2', 'main'))) ]);

		var ports = (status.ports || []).map(function(p) { return [ p.device, p.device ] }), self = this;

		this.fields = {
			device: E('select', { 'id': 'x-device', 'class': 'cbi-input-select' }, page.choices(ports)),
			source: E('input', { 'id': 'x-source', 'class': 'cbi-input-text', 'type': 'text', 'placeholder': _('any station that is known there'), 'autocomplete': 'off', 'spellcheck': 'false' }),
			destination: E('input', { 'id': 'x-destination', 'class': 'cbi-input-text', 'type': 'text', 'placeholder': '02:00:00:00:00:02', 'autocomplete': 'off', 'spellcheck': 'false', 'list': 'x-stations' }),
			vlan: E('input', { 'id': 'x-vlan', 'class': 'cbi-input-text', 'type': 'text', 'inputmode': 'numeric', 'placeholder': _('untagged') })
		};
		this.wrong = {};

		var titles = {
			device: _('Arrives at'), source: _('From (source address)'),
			destination: _('To (destination address)'), vlan: _('VLAN tag')
		};

		var rows = [];

		FIELDS.forEach(function(name) {
			var field = self.fields[name];

			self.wrong[name] = E('div', { 'class': 'x-wrong', 'id': 'x-wrong-' + name, 'hidden': '' });
			field.setAttribute('aria-describedby', 'x-wrong-' + name);
			rows.push(E('label', { 'for': field.id }, [ titles[name] ]), E('div', {}, [ field, self.wrong[name] ]));
		});

		this.answer = E('div', { 'role': 'status' });
		this.known = E('datalist', { 'id': 'x-stations' });
		this.suggest();

		return this.framed([
			ports.length ? '' : page.notice('warn', _('No port is configured'), [
				E('p', {}, [ E('a', { 'href': page.settings() }, [ _('Go to the settings') ]) ])
			]),
			E('form', { 'submit': ui.createHandlerFn(this, 'handleAsk') }, [
				E('div', { 'class': 'x-form' }, rows),
				this.known,
				E('button', { 'class': 'btn cbi-button cbi-button-action important', 'type': 'submit', 'disabled': ports.length ? null : '' }, [ _('Explain') ])
			]),
			E('h3', {}, []),
			this.answer
		]);
	},

	framed: function(children) {
		var frame = page.frame([
			E('h2', { 'name': 'content' }, [ _('Explain') ]),
			E('p', {}, [ _('Describe a frame, and the daemon says which way it would take now, and why.') ])
		].concat(children));

		page.watch(frame.querySelector('.xdpl2'));

		return frame;
	},

	/** Offers some of the stations as destinations. */
	suggest: function() {
		var known = this.known;

		return daemon.stations({ limit: 100, offset: 0 }).then(function(list) {
			list.stations.forEach(function(s) {
				known.appendChild(E('option', { 'value': s.mac }, [ s.port ]));
			});
		}, function() { /* then there are none to offer */ });
	},

	/** What is wrong with the form, by field, before the daemon is asked. */
	mistakes: function(q) {
		var mac = rules.option('station', 'mac'), vlan = rules.option('station', 'vlan'), found = {};

		/* A frame may go to a group, and a tag may be 0. */
		var address = function(v, group) {
			var wrong = rules.value(mac, group ? v.replace(/^(.)[13579bdf]/i, '$10') : v);

			return wrong && !(group && (/^01(:00)+$/).test(v)) ? wrong : null;
		};

		if (q.source)
			found.source = address(q.source, false);

		found.destination = address(q.destination, true);

		if (q.vlan !== '' && q.vlan !== '0' && !(/^[0-9]+$/).test(q.vlan))
			found.vlan = rules.value(vlan, q.vlan);
		else if (q.vlan !== '' && q.vlan !== '0')
			found.vlan = rules.value(vlan, q.vlan);

		return found;
	},

	mark: function(name, text) {
		this.wrong[name].textContent = text;
		this.wrong[name].hidden = !text;
		this.fields[name].setAttribute('aria-invalid', text ? 'true' : 'false');
	},

	handleAsk: function(ev) {
		var q = {}, self = this, first = null;

		ev.preventDefault();
		FIELDS.forEach(function(name) { q[name] = self.fields[name].value.trim() });

		var found = this.mistakes(q);

		FIELDS.forEach(function(name) {
			self.mark(name, found[name] ? rules.text(found[name]) : '');
			first = first || (found[name] ? name : null);
		});

		if (first)
			return this.fields[first].focus();

		q.vlan = q.vlan === '' ? '' : +q.vlan;

		return daemon.explain(q).then(function(e) { self.show(e) }, function(trouble) {
			if (trouble.kind == 'refused' && self.fields[trouble.argument])
				return self.mark(trouble.argument, trouble.message);

			self.put([ trouble.kind == 'refused' ? page.notice('bad', trouble.message) : page.trouble(trouble) ]);
		});
	},

	put: function(children) {
		while (this.answer.firstChild)
			this.answer.removeChild(this.answer.firstChild);

		children.forEach(function(c) { this.answer.appendChild(c) }, this);
	},

	show: function(e) {
		var fast = words.carried(e.verdict), about = [
			[ _('Verdict'), E('span', {}, [ E('code', {}, [ e.verdict ]), ' ' + words.verdict(e.verdict, '') ]) ],
			[ _('Leaves by'), e.egress ],
			[ _('Engine'), e.engine || _('none') ],
			[ _('Source that was assumed'), e.source ]
		].filter(function(a) { return a[1] }), lines = [];

		about.forEach(function(a) { lines.push(E('dt', {}, [ a[0] ]), E('dd', {}, [ a[1] ])) });

		this.put([ page.notice(fast ? 'good' : 'idle', fast ? _('It goes past the bridge') : _('It goes through the bridge'), [
			E('p', { 'class': 'x-answer', 'lang': 'en' }, [ e.text ]),
			E('div', { 'class': 'x-detail' }, [ E('dl', {}, lines) ])
		]) ]);
	}
});
