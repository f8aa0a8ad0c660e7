// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';

// Where things are in a chart: scales, ticks and paths. Numbers in, numbers
// and path strings out.

function round(v) {
	return Math.round(v * 10) / 10;
}

return baseclass.extend({
	/** A linear scale from [a, b] to [x, y]. */
	scale: function(a, b, x, y) {
		return function(v) {
			return (b == a) ? x : x + (v - a) * (y - x) / (b - a);
		};
	},

	/**
	 * Round values from 0 up to at least max, at most n steps: 1, 2 or 5 times a
	 * power of ten apart.
	 */
	ticks: function(max, n) {
		if (!(max > 0))
			return [ 0, 1 ];

		var raw = max / n,
		    power = Math.pow(10, Math.floor(Math.log(raw) / Math.LN10)),
		    step = power * 10;

		[ 1, 2, 5 ].some(function(f) {
			if (f * power >= raw * (1 - 1e-9)) {
				step = f * power;
				return true;
			}
		});

		var ticks = [];

		for (var i = 0; i <= Math.ceil(max / step - 1e-9); i++)
			ticks.push(i * step);

		return ticks;
	},

	/** The largest sum of the two parts of any point. */
	highest: function(points) {
		return points.reduce(function(max, p) { return Math.max(max, p.redirected + p.passed) }, 0);
	},

	/** Splits points where the line is broken. */
	runs: function(points) {
		var runs = [];

		points.forEach(function(p) {
			if (p.broken || !runs.length)
				runs.push([]);

			runs[runs.length - 1].push(p);
		});

		return runs;
	},

	/** The path of a line through points; x and y give their place. */
	line: function(points, x, y) {
		return points.map(function(p, i) {
			return (i ? 'L' : 'M') + round(x(p)) + ' ' + round(y(p));
		}).join('');
	},

	/** The path of the area between two lines. */
	area: function(points, x, low, high) {
		if (!points.length)
			return '';

		return this.line(points, x, high) +
			points.slice().reverse().map(function(p) { return 'L' + round(x(p)) + ' ' + round(low(p)) }).join('') + 'Z';
	},

	/** The index of the point whose x is nearest; -1 if there is none. */
	nearest: function(points, x, at) {
		var best = -1, distance = Infinity;

		points.forEach(function(p, i) {
			var d = Math.abs(x(p) - at);

			if (d < distance) {
				best = i;
				distance = d;
			}
		});

		return best;
	},

	/**
	 * Widths of the parts of a bar in percent. A part that is there is at least
	 * min wide, so that it can be seen and pointed at; the widest gives for it.
	 */
	parts: function(values, min) {
		var sum = values.reduce(function(a, b) { return a + b }, 0);

		if (!(sum > 0))
			return values.map(function() { return 0 });

		var widths = values.map(function(v) { return v > 0 ? Math.max(100 * v / sum, min) : 0 }),
		    over = widths.reduce(function(a, b) { return a + b }, 0) - 100,
		    widest = widths.indexOf(Math.max.apply(null, widths));

		widths[widest] = Math.max(widths[widest] - over, min);

		return widths;
	}
});
