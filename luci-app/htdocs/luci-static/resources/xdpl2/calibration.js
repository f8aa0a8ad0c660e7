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
					unit: row.work == 'tcp' ? 'bits' : 'frames', bridge: null, bars: []
				};
				groups.push(group);
			}

			if (row.engine == 'bridge')
				group.bridge = number(row.rate, null);
			else
				group.bars.push({
					engine: String(row.engine), ratio: number(row.ratio, 0), rate: number(row.rate, null),
					low: number(row.low, number(row.ratio, 0)), high: number(row.high, number(row.ratio, 0)),
					nanos: number(row.ns_per_frame, null)
				});
		});

		return groups;
	},

	/** What a bar says against the bridge: faster, slower or neither. */
	verdict: function(bar) {
		if (bar.low > 1)
			return _('faster');

		if (bar.high < 1)
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
