// SPDX-License-Identifier: Apache-2.0
'use strict';
'require view';
'require poll';
'require uci';
'require ui';
'require rpc';
'require xdpl2.chart as chart';
'require xdpl2.daemon as daemon';
'require xdpl2.page as page';
'require xdpl2.ports as ports';
'require xdpl2.reasons as reasons';
'require xdpl2.series as series';
'require xdpl2.stations as stations';
'require xdpl2.verdicts as verdicts';
'require xdpl2.words as words';

// Is it on, how much does it carry, what is not accelerated and why.

var INTERVAL = 3; /* seconds between two questions */
var MOST = 3; /* ports that need attention, before the list is cut */

var callHostHints = rpc.declare({ object: 'luci-rpc', method: 'getHostHints', expect: { '': {} } });

function set(node, children) {
	while (node.firstChild)
		node.removeChild(node.firstChild);

	children.forEach(function(c) { node.appendChild(typeof(c) == 'object' ? c : document.createTextNode(c)) });
}

function tile(name) {
	var t = {
		value: E('div', { 'class': 'x-value' }, [ '–' ]),
		below: E('div', { 'class': 'x-below' }, [])
	};

	t.node = E('div', { 'class': 'x-tile' }, [ E('div', { 'class': 'x-name' }, [ name ]), t.value, t.below ]);

	return t;
}

return view.extend({
	handleSaveApply: null,
	handleSave: null,
	handleReset: null,

	load: function() {
		return Promise.all([
			daemon.status().catch(function(trouble) { return trouble }),
			L.resolveDefault(uci.load('xdpl2'), null),
			L.resolveDefault(callHostHints(), {})
		]);
	},

	render: function(data) {
		var hosts = {}, self = this;

		for (var mac in data[2])
			if (L.isObject(data[2][mac]) && data[2][mac].name)
				hosts[mac.toLowerCase()] = String(data[2][mac].name);

		this.series = series.create();
		this.unit = 'bits';
		this.device = null;
		this.chart = chart.create(series.span);
		this.ports = ports.create();
		this.verdicts = verdicts.create();
		this.stations = stations.create(hosts);

		this.tiles = {
			bits: tile(_('Traffic')),
			frames: tile(_('Frames')),
			share: tile(_('Past the bridge')),
			stations: tile(_('Stations'))
		};
		this.button = E('button', {
			'class': 'x-switch', 'type': 'button', 'role': 'switch', 'aria-label': _('Acceleration'),
			'disabled': page.readonly() ? '' : null,
			'click': ui.createHandlerFn(this, 'handleSwitch')
		}, [ E('span', { 'class': 'x-knob', 'aria-hidden': 'true' }), E('span', { 'class': 'x-word' }, []) ]);
		this.headline = E('div', { 'class': 'x-headline', 'role': 'status' }, []);
		this.subline = E('div', { 'class': 'x-quiet' }, []);
		this.notices = E('div', {});
		this.attention = E('div', {});
		this.chooser = E('select', {
			'class': 'cbi-input-select', 'change': function(ev) { self.device = ev.target.value || null; self.draw() }
		});

		var unit = E('select', {
			'class': 'cbi-input-select', 'change': function(ev) { self.unit = ev.target.value; self.draw() }
		}, page.choices([ [ 'bits', _('bits a second') ], [ 'frames', _('frames a second') ] ], this.unit));

		this.content = E('div', {}, [
			E('div', { 'class': 'x-tiles' }, [ this.tiles.bits.node, this.tiles.frames.node, this.tiles.share.node, this.tiles.stations.node ]),
			this.attention,
			E('section', { 'class': 'x-card' }, [
				E('div', { 'class': 'x-bar' }, [
					E('div', { 'class': 'x-legend' }, [
						E('span', {}, [ E('span', { 'class': 'x-swatch redirected' }), _('redirected by the fast path') ]),
						E('span', {}, [ E('span', { 'class': 'x-swatch passed' }), _('passed to the bridge') ])
					]),
					E('div', { 'class': 'x-tools' }, [
						E('label', {}, [ _('Port'), this.chooser ]),
						E('label', {}, [ _('Unit'), unit ])
					])
				]),
				this.chart.node
			]),
			E('h3', {}, [ _('Ports') ]),
			this.ports.node,
			E('h3', {}, []),
			this.verdicts.node,
			E('h3', {}, []),
			this.stations.node
		]);

		var frame = page.frame([
			E('h2', { 'name': 'content' }, [ _('XDP forwarding') ]),
			E('div', { 'class': 'x-card' }, [ E('div', { 'class': 'x-head' }, [ E('div', {}, [ this.headline, this.subline ]), this.button ]) ]),
			page.readonly() ? E('p', { 'class': 'x-quiet' }, [ _('This login may look, but not change anything.') ]) : '',
			this.notices,
			this.content
		]);

		this.root = this.headline.closest('.xdpl2');
		page.watch(this.root, function() { self.draw() });
		this.take(data[0]);
		this.follow();

		return frame;
	},

	/** Asks while the page can be seen, one question at a time. */
	follow: function() {
		var self = this;
		var ask = function() {
			if (document.hidden)
				return Promise.resolve();

			return daemon.status().catch(function(trouble) { return trouble }).then(function(answer) { self.take(answer) });
		};

		poll.add(ask, INTERVAL);

		document.addEventListener('visibilitychange', function() {
			if (document.hidden)
				poll.remove(ask);
			else
				poll.add(ask, INTERVAL);
		});
	},

	/** Shows an answer, or the trouble that came instead. */
	take: function(answer) {
		page.adapt(this.root);

		if (answer instanceof Error || !Array.isArray(answer.ports))
			return this.showTrouble(answer instanceof Error ? answer : { kind: 'strange', message: JSON.stringify(answer).substr(0, 200) });

		series.push(this.series, series.sample(answer, Date.now()));
		this.status = answer;
		this.show();

		if (!this.listed) {
			this.listed = true;
			this.stations.load();
		}
	},

	/** The switch as it is: on, off. */
	setSwitch: function(on) {
		this.on = on;
		this.button.setAttribute('aria-checked', on ? 'true' : 'false');
		this.button.querySelector('.x-word').textContent = on ? _('On') : _('Off');
	},

	showTrouble: function(trouble) {
		var main = uci.get('xdpl2', 'main'), on = page.isOn(main),
		    configured = uci.sections('xdpl2').length > 0;

		this.setSwitch(on);
		this.content.hidden = trouble.kind != 'unreachable' || !this.status;

		if (trouble.kind == 'absent' && !on) {
			/* A service that is switched off runs no daemon. */
			set(this.headline, [ page.mark({ level: 'idle', mark: '–' }), ' ', _('Switched off: the bridge carries everything') ]);
			this.subline.textContent = '';
			set(this.notices, [ this.firstSteps(uci.sections('xdpl2', 'port').length) ]);
			this.button.disabled = page.readonly() || !configured;

			if (!configured)
				set(this.notices, [ page.trouble({ kind: 'noconfig' }) ]);

			return;
		}

		set(this.headline, [ page.mark({ level: 'bad', mark: '✕' }), ' ', _('State not known') ]);
		this.subline.textContent = '';
		set(this.notices, [ page.trouble(trouble.kind == 'absent' ? { kind: 'stopped' } : trouble) ]);
	},

	/** What to do before it is switched on for the first time; n is how many ports are configured. */
	firstSteps: function(n) {

		return page.notice('idle', n ? _('Ready') : _('No port is configured yet'), [
			E('p', {}, [ n
				? _('%d ports are configured. Switch acceleration on with the switch above; frames between hosts that are known then take the short way, and everything else goes through the bridge as before.').format(n)
				: _('Choose the ports of the bridge that are to be accelerated, then switch it on.') ]),
			E('p', {}, [ E('a', { 'class': 'btn cbi-button cbi-button-action', 'href': page.settings() }, [ n ? _('Settings') : _('Choose ports') ]) ])
		]);
	},

	show: function() {
		var s = this.status, now = series.current(this.series, null), self = this,
		    share = now ? now.share : (s.accelerated_share >= 0 ? s.accelerated_share : null),
		    head = words.headline(s, share);

		this.content.hidden = false;
		this.setSwitch(!!s.enabled);
		this.button.disabled = page.readonly();

		if (this.headline.textContent !== head.mark + ' ' + head.text)
			set(this.headline, [ page.mark(head), ' ', head.text ]);

		this.subline.textContent = [
			s.bridge ? _('Bridge %s').format(s.bridge) : '',
			s.mode ? words.mode(s.mode) : '',
			s.topology ? words.topology(s.topology) : '',
			s.uptime_seconds >= 0 ? _('up %s').format(words.duration(s.uptime_seconds)) : '',
			'xdpl2 ' + (s.version || '?') + (s.kernel ? ', Linux ' + s.kernel : '')
		].filter(function(t) { return t != '' }).join(' · ');

		this.showTiles(now);
		this.showNotices();
		this.showAttention();
		this.ports.update(s.ports, function(device) { return series.current(self.series, device) });
		this.verdicts.update(Array.isArray(s.verdicts) ? s.verdicts : [], series.verdictRates(this.series));

		var names = s.ports.map(function(p) { return p.device }).join('\n');

		if (names !== this.names) {
			this.names = names;
			set(this.chooser, page.choices([ [ '', _('all') ] ].concat(s.ports.map(function(p) { return [ p.device, p.device ] })), this.device || ''));
		}

		this.draw();
	},

	draw: function() {
		var what = this.device || _('all ports');

		this.chart.update(series.points(this.series, this.device, this.unit), this.unit, _('Traffic of %s').format(what));
	},

	showTiles: function(now) {
		var s = this.status, t = this.tiles, since = s.accelerated_share >= 0 ? s.accelerated_share : null;

		t.bits.value.textContent = now ? words.bits(now.redirected.bits + now.passed.bits) : '–';
		t.bits.below.textContent = now ? _('%s past the bridge').format(words.bits(now.redirected.bits)) : _('Measuring…');
		t.frames.value.textContent = now ? words.frames(now.redirected.frames + now.passed.frames) : '–';
		t.frames.below.textContent = now ? _('%s past the bridge').format(words.frames(now.redirected.frames)) : _('Measuring…');
		t.share.value.textContent = words.percent(now && now.share != null ? now.share : since);
		t.share.below.textContent = since == null ? _('no frames yet') : this.rest() || _('%s since the start').format(words.percent(since));
		t.stations.value.textContent = s.stations == null ? '–' : words.count(s.stations);
		t.stations.below.textContent = s.stations_overflow > 0
			? _('%s did not fit').format(words.count(s.stations_overflow))
			: (s.max_stations ? _('room for %s').format(words.count(s.max_stations)) : '');
	},

	/** What most of the frames are that go through the bridge. */
	rest: function() {
		var rates = series.verdictRates(this.series), most = null;

		for (var name in rates)
			if (!words.carried(name) && rates[name] > (most ? rates[most] : 0))
				most = name;

		return most ? _('the rest: mostly %s').format(words.brief(most)) : '';
	},

	showNotices: function() {
		var s = this.status, nodes = page.problems(s);

		if (s.ports.length && series.shareOf(s.ports[0]) == null && s.ports[0].redirected == null)
			nodes.push(page.notice('warn', _('This daemon is older than the page'), [
				E('p', {}, [ _('Version %s does not tell how much each port carries. Bring both to the same version: install the packages xdpl2 and luci-app-xdpl2 again.').format(s.version || '?') ])
			]));

		if (s.stations_overflow > 0)
			nodes.push(page.notice('warn', _('%s stations did not fit').format(words.count(s.stations_overflow)), [
				E('p', {}, [ _('The bridge carries their frames. Make room with a higher number of stations under Settings, Advanced.') ])
			]));

		var key = nodes.map(function(n) { return n.textContent }).join('\n');

		/* An alert that stays is not read out again with every answer. */
		if (key !== this.noticed) {
			this.noticed = key;
			set(this.notices, nodes);
		}
	},

	/** What is not accelerated, why, and what to do about it. */
	showAttention: function() {
		var s = this.status, others = s.ports.filter(function(p) { return p.state != 'accelerating' }),
		    key = JSON.stringify([ s.enabled, others.map(function(p) { return [ p.device, p.state, p.reason ] }), s.ports.length ]);

		if (key === this.attended)
			return;

		this.attended = key;

		if (!s.enabled || !s.ports.length)
			return set(this.attention, [ this.firstSteps(s.ports.length) ]);

		if (!others.length)
			return set(this.attention, []);

		var items = others.slice(0, MOST).map(function(p) {
			var state = words.state(p.state), why = p.reason ? reasons.explain(p.reason) : { text: '', todo: '' };

			return E('li', {}, [
				page.mark(state),
				E('div', {}, [ E('b', {}, [ p.device ]), ' ' + state.text + (why.text ? ': ' + why.text : '') ]),
				why.todo ? E('div', { 'class': 'x-do x-quiet' }, [ why.todo ]) : ''
			]);
		});

		if (others.length > MOST)
			items.push(E('li', {}, [ E('span', {}, [ '…' ]), E('div', {}, [ _('and %d more, in the table below').format(others.length - MOST) ]) ]));

		set(this.attention, [ E('section', { 'class': 'x-card x-notice warn' }, [
			E('h4', {}, [ others.length == 1 ? _('One port is not accelerated') : _('%d ports are not accelerated').format(others.length) ]),
			E('ul', { 'class': 'x-attention' }, items)
		]) ]);
	},

	/** Switches on or off through UCI, with LuCI's rollback. */
	handleSwitch: function() {
		var to = this.on ? '0' : '1', self = this;

		return uci.changes().then(function(changes) {
			var others = Object.keys(changes || {});

			if (!others.length)
				return true;

			return self.confirm(_('There are unsaved changes'), [
				E('p', {}, [ _('Switching applies them as well: %s.').format(others.join(', ')) ])
			], _('Apply all'));
		}).then(function(go) {
			if (!go)
				return;

			uci.unload('xdpl2');

			return uci.load('xdpl2').then(function() {
				if (!uci.get('xdpl2', 'main'))
					uci.add('xdpl2', 'xdpl2', 'main');

				uci.set('xdpl2', 'main', 'enabled', to);

				return uci.save();
			}).then(function() { return ui.changes.apply(true) });
		});
	},

	confirm: function(title, children, yes) {
		return new Promise(function(resolve) {
			var answer = function(v) {
				return function() {
					ui.hideModal();
					resolve(v);
				};
			};

			ui.showModal(title, children.concat([
				E('div', { 'class': 'right' }, [
					E('button', { 'class': 'btn cbi-button', 'click': answer(false) }, [ _('Cancel') ]), ' ',
					E('button', { 'class': 'btn cbi-button cbi-button-positive important', 'click': answer(true) }, [ yes ])
				])
			]));
		});
	}
});
