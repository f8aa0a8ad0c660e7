// SPDX-License-Identifier: Apache-2.0
'use strict';
'require view';
'require poll';
'require uci';
'require ui';
'require xdpl2.calibration as calibration';
'require xdpl2.daemon as daemon';
'require xdpl2.geometry as geometry';
'require xdpl2.page as page';
'require xdpl2.words as words';

// What forwarding costs on this box, measured by the daemon beside its traffic.
// The measurement takes longer than the web interface waits for an answer, so
// it is started, followed in the status, and its table asked for at the end.

var INTERVAL = 3; /* seconds between two questions */
var LEFT = 70, RIGHT = 150, BAR = 22;

function clear(node) {
	while (node.firstChild)
		node.removeChild(node.firstChild);
}

return view.extend({
	handleSaveApply: null,
	handleSave: null,
	handleReset: null,

	load: function() {
		return Promise.all([
			daemon.status().catch(function(trouble) { return trouble }),
			/* 0 seconds: the table of the last time, without measuring. */
			daemon.calibrate(0).catch(function(trouble) { return trouble }),
			L.resolveDefault(uci.load('xdpl2'), null)
		]);
	},

	render: function(data) {
		var status = data[0], last = data[1], self = this,
		    children = [
			E('h2', { 'name': 'content' }, [ _('Benchmark') ]),
			E('p', {}, [ _('Measures on this very box what a frame costs through the bridge and through each engine, between virtual devices of its own. Your network is not touched, but one or two processor cores are busy meanwhile, and on a busy box the ranges are wide.') ])
		];

		if (status instanceof Error)
			return this.framed(children.concat([ page.trouble(page.absence(status, uci.get('xdpl2', 'main'))) ]));

		if (last instanceof Error && last.kind == 'method')
			return this.framed(children.concat([ page.notice('warn', _('This daemon cannot measure'), [
				E('p', {}, [ _('Version %s has no method calibrate. Everything else works without it: engine auto takes what is never slower than the bridge.').format(status.version || '?') ]),
				E('p', {}, [ _('To measure all the same, use the program xdpl2-bench, which is not on the router by default.') ])
			]) ]));

		this.seconds = E('select', { 'class': 'cbi-input-select' }, page.choices([
			[ '10', _('%d seconds').format(10) ], [ '30', _('%d seconds').format(30) ], [ '60', _('%d seconds').format(60) ]
		], '30'));
		this.button = E('button', {
			'class': 'btn cbi-button cbi-button-action important', 'type': 'button',
			'disabled': page.readonly() ? '' : null, 'click': ui.createHandlerFn(this, 'handleStart')
		}, [ _('Measure') ]);
		this.bar = E('progress', { 'max': '1', 'aria-label': _('Progress') });
		this.step = E('p', { 'role': 'status' }, []);
		this.running = E('div', { 'class': 'x-card', 'hidden': '' }, [ this.bar, this.step ]);
		this.result = E('div', {});

		var frame = this.framed(children.concat([
			E('div', { 'class': 'x-bar' }, [ E('div', { 'class': 'x-tools' }, [ E('label', {}, [ _('For about'), this.seconds ]), this.button ]) ]),
			page.readonly() ? E('p', { 'class': 'x-quiet' }, [ _('This login may look, but not start a measurement.') ]) : '',
			this.running,
			this.result
		]));

		if (!(last instanceof Error)) {
			this.table = last;
			this.note = status.calibration;
		}

		window.setTimeout(function() {
			self.show();

			/* Somebody else may be measuring. */
			if (status.calibrating)
				self.follow(status.calibrating);
		}, 0);

		return frame;
	},

	framed: function(children) {
		var frame = page.frame(children), self = this;

		page.watch(frame.querySelector('.xdpl2'), function() { self.show() });

		return frame;
	},

	handleStart: function() {
		var self = this;

		clear(this.result);
		this.follow({});

		/* The answer may come after the web interface has given up on it. If
		   somebody else is measuring, theirs is followed. */
		daemon.calibrate(+this.seconds.value).then(function(table) {
			self.finish(table);
		}, function(trouble) {
			if ([ 'timeout', 'unreachable', 'busy' ].indexOf(trouble.kind) < 0)
				self.end(trouble);
			else
				self.late = true;
		});

		/* LuCI makes the button usable again when this is over. */
		return new Promise(function(resolve) { self.over = resolve });
	},

	/** Shows how far it is, until it is over. */
	follow: function(state) {
		var self = this;

		this.seen = false;
		this.late = false;
		this.before = this.table ? this.table.time : null;
		this.running.hidden = false;
		this.button.disabled = true;
		this.advance(state);

		if (this.asking)
			return;

		this.asking = function() {
			if (document.hidden)
				return Promise.resolve();

			return daemon.status().then(function(s) {
				if (s.calibrating) {
					self.seen = true;
					self.advance(s.calibrating);
				}
				else if (self.seen || self.late) {
					return daemon.calibrate(0).then(function(table) {
						/* The table of the time before: there is no new one. */
						if (table.time === self.before)
							return self.end({ kind: 'ended' });

						self.finish(table);
					}, function(trouble) { self.end(trouble.kind == 'nodata' ? { kind: 'ended' } : trouble) });
				}
			}, function() { /* asked again */ });
		};

		poll.add(this.asking, INTERVAL);
	},

	finish: function(table) {
		this.table = table;
		this.note = null;
		this.end();
	},

	advance: function(state) {
		var p = calibration.progress(state);

		if (p == null)
			this.bar.removeAttribute('value');
		else
			this.bar.value = p;

		this.step.textContent = calibration.say(state.text || 'starting') + (state.of ? ' ' + _('(step %d of %d)').format(state.done, state.of) : '');
	},

	end: function(trouble) {
		if (!this.asking)
			return;

		poll.remove(this.asking);
		this.asking = null;
		this.running.hidden = true;

		if (this.over)
			this.over();

		this.button.disabled = page.readonly();

		if (trouble) {
			/* The table of the time before stays below. */
			this.show();
			this.result.insertBefore(
				trouble.kind == 'ended' ? page.notice('warn', _('The measurement ended before it was done'), [
					E('p', {}, [ _('Whoever started it has cancelled it, or it failed: the system log says which (logread -e xdpl2). The table of the time before stays.') ])
				]) : trouble.kind == 'refused' || trouble.kind == 'failed'
					? page.notice('bad', _('It was not measured'), [ E('p', {}, [ trouble.message ]) ]) : page.trouble(trouble),
				this.result.firstChild);
		}
		else {
			this.show();
		}
	},

	/** The table as a chart, and as a table. */
	show: function() {
		if (!this.result)
			return;

		clear(this.result);

		if (!this.table)
			return;

		var groups = calibration.groups(this.table), missing = this.table.missing || [], self = this;

		this.result.appendChild(E('h3', {}, [ _('Times the bridge') ]));
		this.result.appendChild(E('p', { 'class': 'x-quiet' }, [
			_('How much more the same core forwards, with the range that is 95% certain. Measured %s, Linux %s, %s.').format(
				new Date(this.table.time).toLocaleString(), this.table.kernel || '?', this.table.machine || '?')
		]));

		if (this.note && this.note.stale)
			this.result.appendChild(page.notice('warn', _('This table does not speak for this box any more'), [
				E('p', {}, [ _('The kernel or the machine has changed since. Measure again.') ])
			]));

		if (!groups.length)
			this.result.appendChild(page.notice('warn', _('Nothing could be measured')));

		var max = calibration.highest(groups);

		groups.forEach(function(g) {
			self.result.appendChild(E('h4', {}, [ g.text, ' ', E('span', { 'class': 'x-quiet' }, [ _('bridge: %s, against itself %s to %s').format(words.rate(g.bridge, g.unit), g.noise.low.toFixed(2), g.noise.high.toFixed(2)) ]) ]));
			self.result.appendChild(self.bars(g, max));
		});

		if (groups.length)
			this.result.appendChild(this.numbers(groups));

		if (missing.length)
			this.result.appendChild(page.notice('idle', _('Not measured'), [
				E('ul', {}, missing.map(function(m) { return E('li', {}, [ calibration.say(m) ]) }))
			]));
	},

	bars: function(group, max) {
		var svg = page.svg, width = Math.max(this.result.clientWidth, 280), height = group.bars.length * (BAR + 8) + 8,
		    right = width < 480 ? 62 : RIGHT,
		    x = geometry.scale(0, max, LEFT, width - right), parts = [];

		group.bars.forEach(function(b, i) {
			var y = 6 + i * (BAR + 8);

			parts.push(svg('text', { 'class': 'x-label', 'x': LEFT - 8, 'y': y + 15, 'text-anchor': 'end' }, [ b.engine ]));
			parts.push(svg('rect', { 'class': 'x-ratio ' + b.engine.replace(/[^a-z]/g, ''), 'x': LEFT, 'y': y, 'width': Math.max(x(b.ratio) - LEFT, 0), 'height': BAR, 'rx': 3 }));
			parts.push(svg('path', { 'class': 'x-whisker', 'd': 'M%d %dH%dM%d %dv8M%d %dv8'.format(
				x(b.low), y + BAR / 2, x(b.high), x(b.low), y + BAR / 2 - 4, x(b.high), y + BAR / 2 - 4) }));
			parts.push(svg('text', { 'class': 'x-label', 'x': x(Math.max(b.ratio, b.high)) + 8, 'y': y + 15 }, [
				b.ratio.toFixed(2) + '×' + (width < 480 ? '' : ' ' + calibration.verdict(b, group.noise))
			]));
		});

		parts.push(svg('line', { 'class': 'x-one', 'x1': x(1), 'x2': x(1), 'y1': 0, 'y2': height }));

		return svg('svg', {
			'width': width, 'height': height, 'role': 'img',
			'aria-label': group.text + ': ' + group.bars.map(function(b) {
				return _('%s %s times the bridge, %s').format(b.engine, b.ratio.toFixed(2), calibration.verdict(b, group.noise));
			}).join('; ')
		}, parts);
	},

	numbers: function(groups) {
		var rows = [];

		groups.forEach(function(g) {
			g.bars.forEach(function(b) {
				rows.push(E('tr', {}, [
					E('td', { 'data-title': _('Work'), 'class': 'wide' }, [ g.text ]),
					E('td', { 'data-title': _('Engine') }, [ b.engine ]),
					E('td', { 'data-title': _('Rate'), 'class': 'n' }, [ words.rate(b.rate, g.unit) ]),
					E('td', { 'data-title': _('Time a frame'), 'class': 'n' }, [ b.nanos != null ? _('%d ns').format(b.nanos) : '–' ]),
					E('td', { 'data-title': _('Times the bridge'), 'class': 'n' }, [ b.ratio.toFixed(2) ]),
					E('td', { 'data-title': _('95% certain'), 'class': 'n' }, [ _('%s to %s').format(b.low.toFixed(2), b.high.toFixed(2)) ])
				]));
			});
		});

		return E('table', { 'class': 'x-table', 'aria-label': _('What was measured') }, [
			E('thead', {}, [ E('tr', {}, [
				E('th', { 'scope': 'col' }, [ _('Work') ]), E('th', { 'scope': 'col' }, [ _('Engine') ]),
				E('th', { 'scope': 'col', 'class': 'n' }, [ _('Rate') ]), E('th', { 'scope': 'col', 'class': 'n' }, [ _('Time a frame') ]),
				E('th', { 'scope': 'col', 'class': 'n' }, [ _('Times the bridge') ]), E('th', { 'scope': 'col', 'class': 'n' }, [ _('95% certain') ])
			]) ]),
			E('tbody', {}, rows)
		]);
	}
});
