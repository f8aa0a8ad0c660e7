// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';
'require xdpl2.daemon as daemon';
'require xdpl2.page as page';
'require xdpl2.reasons as reasons';
'require xdpl2.words as words';

// The table of ports. Rows stay as long as their port does, so that what is
// open or has the focus keeps it; only texts change.

function cell(title, classes) {
	return E('td', { 'class': classes || '', 'data-title': title });
}

function set(node, children) {
	while (node.firstChild)
		node.removeChild(node.firstChild);

	children.forEach(function(c) {
		if (c !== '' && c != null)
			node.appendChild(typeof(c) == 'object' ? c : document.createTextNode(c));
	});
}

/* Sets a cell's text only if it changed. */
function text(node, s) {
	if (node.textContent !== s)
		node.textContent = s;
}

function Row(device) {
	var self = this;

	this.device = device;
	this.cells = {
		port: cell(null, 'x-port wide'),
		link: cell(_('Link'), 'x-short'),
		engine: cell(_('Engine'), 'x-short'),
		where: cell(_('Stations'), 'n x-short'),
		frames: cell(_('Frames'), 'n'),
		bits: cell(_('Bits'), 'n'),
		share: cell(_('Accelerated'), 'n'),
		more: E('td', { 'class': 'n' })
	};
	this.detail = E('div', { 'class': 'x-detail' });
	this.below = E('tr', { 'hidden': '' }, [ E('td', { 'class': 'wide', 'colspan': 8 }, [ this.detail ]) ]);
	this.button = E('button', {
		'class': 'x-more', 'type': 'button', 'aria-expanded': 'false', 'aria-label': _('Details of %s').format(device),
		'click': function() { self.toggle() }
	}, [ '▸' ]);
	this.cells.more.appendChild(this.button);
	this.tr = E('tr', { 'data-device': device }, [ 'port', 'link', 'engine', 'where', 'frames', 'bits', 'share', 'more' ].map(function(k) { return self.cells[k] }));
}

Row.prototype.update = function(port, rates) {
	var c = this.cells, state = words.state(port.state),
	    signature = port.state + ' ' + port.reason, total = null, share = null;

	this.port = port;

	if (signature !== this.signature) {
		var why = (port.state != 'accelerating' && port.reason) ? reasons.explain(port.reason) : null;

		set(c.port, [
			page.mark(state), ' ', E('span', {}, [ port.device ]),
			E('div', { 'class': 'x-quiet' }, [ why ? state.text + ': ' + why.text : state.text ])
		]);
		this.signature = signature;
	}

	if (rates) {
		total = { frames: rates.redirected.frames + rates.passed.frames, bits: rates.redirected.bits + rates.passed.bits };
		share = rates.share;
	}

	text(c.link, words.link(port));
	text(c.engine, words.engine(port));
	c.where.setAttribute('data-title', port.target ? _('Target') : _('Stations'));
	text(c.where, port.target ? '→ ' + port.target : (port.stations == null ? '–' : String(port.stations)));
	text(c.frames, total ? words.frames(total.frames) : '–');
	text(c.bits, total ? words.bits(total.bits) : '–');

	var percent = words.percent(share);

	if (c.share.textContent !== percent)
		set(c.share, [
			share == null ? '' : E('span', { 'class': 'x-share', 'aria-hidden': 'true' }, [ E('span', { 'style': 'width:' + (100 * share).toFixed(1) + '%' }) ]),
			percent
		]);
};

Row.prototype.toggle = function() {
	var open = this.below.hidden;

	this.below.hidden = !open;
	this.button.setAttribute('aria-expanded', open ? 'true' : 'false');
	this.button.textContent = open ? '▾' : '▸';

	if (open)
		return this.fill();
};

/** What the details say: each engine, and the port's own counters. */
Row.prototype.fill = function() {
	var port = this.port, detail = this.detail, why = port.reason ? reasons.explain(port.reason) : null,
	    engines = port.engines || {}, lines = [];

	if (why) {
		lines.push(E('dt', {}, [ _('Reason') ]), E('dd', {}, [ why.text ]));

		if (why.todo)
			lines.push(E('dt', {}, [ _('What to do') ]), E('dd', {}, [ why.todo ]));
	}

	Object.keys(engines).sort().forEach(function(name) {
		lines.push(E('dt', {}, [ _('Engine %s').format(name) ]), E('dd', {}, [ reasons.explain(engines[name]).text ]));
	});

	var counted = E('dd', {}, [ _('Asking…') ]);

	lines.push(E('dt', {}, [ _('Frames so far') ]), counted);
	set(detail, [ E('dl', {}, lines) ]);

	return daemon.counters(port.device).then(function(verdicts) {
		var list = verdicts.filter(function(v) { return v.packets > 0 });

		set(counted, list.length ? list.map(function(v) {
			return E('div', {}, [ E('b', {}, [ words.count(v.packets) ]), ' ' + words.verdict(v.verdict, v.words) ]);
		}) : [ _('none') ]);
	}, function(trouble) {
		set(counted, [ trouble.message ]);
	});
};

return baseclass.extend({
	create: function() {
		var t = Object.create(this);

		t.rows = {};
		t.body = E('tbody', {});
		t.node = E('table', { 'class': 'x-table', 'aria-label': _('Ports') }, [
			E('thead', {}, [ E('tr', {}, [
				E('th', { 'scope': 'col' }, [ _('Port') ]),
				E('th', { 'scope': 'col' }, [ _('Link') ]),
				E('th', { 'scope': 'col' }, [ _('Engine') ]),
				E('th', { 'scope': 'col', 'class': 'n' }, [ _('Stations or target') ]),
				E('th', { 'scope': 'col', 'class': 'n' }, [ _('Frames') ]),
				E('th', { 'scope': 'col', 'class': 'n' }, [ _('Bits') ]),
				E('th', { 'scope': 'col', 'class': 'n' }, [ _('Accelerated') ]),
				E('th', { 'scope': 'col' }, [])
			]) ]),
			t.body
		]);

		return t;
	},

	/** Shows ports; rates gives those of a device. */
	update: function(ports, rates) {
		var names = ports.map(function(p) { return p.device }), self = this;

		if (names.join('\n') !== this.names) {
			var old = this.rows;

			this.rows = {};
			this.names = names.join('\n');
			names.forEach(function(name) { self.rows[name] = old[name] || new Row(name) });

			while (this.body.firstChild)
				this.body.removeChild(this.body.firstChild);

			names.forEach(function(name) {
				self.body.appendChild(self.rows[name].tr);
				self.body.appendChild(self.rows[name].below);
			});
		}

		ports.forEach(function(p) { self.rows[p.device].update(p, rates(p.device)) });
		this.node.hidden = !ports.length;
	}
});
