// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';

// What a calibration says, made ready for a chart. Numbers and words only.

function works() {
	return {
		roomy: _('frames with room in front'),
		tight: _('frames without room in front'),
		tcp: _('one TCP stream')
	};
}

/* What the daemon says of a calibration, as patterns with %s for what varies,
   and the same in the user's language. What is not known is shown as it is. */
function known() {
	return [
		[ 'starting', _('Starting…') ],
		[ 'setting up', _('Setting up the test network') ],
		[ 'looking at what this kernel can do', _('Looking at what this kernel can do') ],
		[ 'one TCP stream', _('one TCP stream') ],
		[ '%s bytes, roomy', _('frames with room in front, %s bytes') ],
		[ '%s bytes, tight', _('frames without room in front, %s bytes') ],
		[ '%s: too little time in %s seconds on this box', _('%s: too little time in %s seconds on this box') ],
		[ 'everything: measuring needs pairs of virtual devices (veth): this kernel has none; install %s (%s)',
			_('everything: measuring needs pairs of virtual devices (veth), which this kernel does not have; install %s (%s)') ],
		[ 'all sizes of frames: they need a tap device to leave by: this kernel has none; install %s (%s)',
			_('all sizes of frames: they need a tap device to leave by, which this kernel does not have; install %s (%s)') ],
		[ 'forwarding on a core of its own (%s): measured together with what makes the frames, less what that costs alone',
			_('forwarding on a core of its own (%s): measured together with what makes the frames, less what that costs alone') ],
		[ 'only one CPU: forwarding and generator need one each',
			_('only one CPU: forwarding and generator need one each') ],
		[ 'kernel cannot thread the reception of a veth (Linux 5.13)',
			_('the kernel cannot give a virtual device a thread of its own to receive in, which came with Linux 5.13') ],
		[ 'frames with room in front (roomy): this kernel cannot make them (Linux 5.18)',
			_('frames with room in front: this kernel cannot make them, which came with Linux 5.18') ],
		[ 'one TCP stream: this kernel\'s virtual devices do not put segments together as network cards\' drivers do (GRO, Linux 5.13)',
			_('one TCP stream: this kernel\'s virtual devices do not put segments together as network cards\' drivers do (GRO), which came with Linux 5.13') ],
		[ 'engine tc: this kernel has none; install %s (%s)',
			_('engine tc, which this kernel does not have; install %s (%s)') ]
	];
}

function pattern(words) {
	return new RegExp('^' + words.split('%s').map(function(part) {
		return part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
	}).join('(.+?)') + '$');
}

function say(text) {
	var list = known();

	for (var i = 0; i < list.length; i++) {
		var m = String(text).match(pattern(list[i][0]));

		if (m)
			return ''.format.apply(list[i][1], m.slice(1).map(parts));
	}

	return String(text);
}

/* What varies may be a list of what is known, or known itself. */
function parts(text) {
	return text.split('; ').map(say).join('; ');
}

function number(v, otherwise) {
	return (typeof(v) == 'number' && isFinite(v)) ? v : otherwise;
}

return baseclass.extend({
	/**
	 * Groups of bars, one for each kind of work, in the order of the table; the
	 * bridge is what the others are measured by and has no bar.
	 */
	groups: function(calibration) {
		var groups = [], byName = {};

		(Array.isArray(calibration.rows) ? calibration.rows : []).forEach(function(row) {
			var key = row.work + ' ' + (row.size || 0), group = byName[key];

			if (!group) {
				group = byName[key] = {
					text: (works()[row.work] || String(row.work)) + (row.size ? ', ' + _('%d bytes').format(row.size) : ''),
					unit: row.work == 'tcp' ? 'bits' : 'frames', bridge: null, noise: { low: 1, high: 1 }, bars: []
				};
				groups.push(group);
			}

			if (row.engine == 'bridge') {
				group.bridge = number(row.rate, null);
				/* The bridge against itself. */
				group.noise = { low: number(row.low, 1), high: number(row.high, 1) };
			}
			else
				group.bars.push({
					engine: String(row.engine), ratio: number(row.ratio, 0), rate: number(row.rate, null),
					low: number(row.low, number(row.ratio, 0)), high: number(row.high, number(row.ratio, 0)),
					nanos: number(row.ns_per_frame, null)
				});
		});

		return groups;
	},

	/** What the daemon says of a calibration, in the user's language. */
	say: say,

	/**
	 * What a bar says against the bridge: faster, slower or neither, as is what the
	 * bridge shows against itself, too.
	 */
	verdict: function(bar, noise) {
		if (bar.low > 1 && bar.ratio > noise.high)
			return _('faster');

		if (bar.high < 1 && bar.ratio < noise.low)
			return _('slower');

		return _('no difference');
	},

	/** The largest value that the chart has to hold. */
	highest: function(groups) {
		return groups.reduce(function(max, g) {
			return g.bars.reduce(function(m, b) { return Math.max(m, b.ratio, b.high) }, max);
		}, 1.2);
	},

	/**
	 * How far a running calibration is, by what a status says of it: 0 to 1, or
	 * null while that is not known.
	 */
	progress: function(state) {
		return (state && state.of > 0) ? Math.min(Math.max(number(state.done, 0) / state.of, 0), 1) : null;
	}
});
