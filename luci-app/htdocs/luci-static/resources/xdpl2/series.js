// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';

// What the daemon counts, over the last two minutes, and the rates that follow
// from it. Nothing here touches the page.

/* Counts of a port or of all: frames and bytes redirected, frames and bytes
   passed, in this order. */
var RF = 0, RB = 1, PF = 2, PB = 3;

function number(v) {
	return (typeof(v) == 'number' && isFinite(v) && v >= 0) ? v : null;
}

function countsOf(port) {
	var r = port.redirected, p = port.passed;

	if (r == null || p == null)
		return null; /* the reply of an older daemon */

	var counts = [ number(r.packets), number(r.bytes), number(p.packets), number(p.bytes) ];

	return counts.indexOf(null) < 0 ? counts : null;
}

function sum(a, b) {
	return a.map(function(v, i) { return v + b[i] });
}

return baseclass.extend({
	/* Seconds that the chart shows. */
	span: 120,

	/* A gap of more than this many seconds between two replies is shown as one. */
	gap: 10,

	create: function() {
		return { samples: [] };
	},

	/**
	 * What a reply to status says at a moment (ms). Rates are taken by the
	 * daemon's own clock, so that a reply that was late does not show as a dip.
	 */
	sample: function(status, now) {
		var s = { t: now / 1000, up: number(status.uptime_seconds), ports: {}, total: null, verdicts: {} };

		(Array.isArray(status.ports) ? status.ports : []).forEach(function(port) {
			var counts = countsOf(port);

			if (counts == null)
				return;

			s.ports[port.device] = counts;
			s.total = s.total ? sum(s.total, counts) : counts;
		});

		(Array.isArray(status.verdicts) ? status.verdicts : []).forEach(function(v) {
			if (number(v.packets) != null)
				s.verdicts[v.verdict] = v.packets;
		});

		return s;
	},

	/**
	 * Adds a sample and forgets what is too old. A daemon that has started
	 * again counts from zero: what was before does not belong to it.
	 */
	push: function(series, s) {
		var last = series.samples[series.samples.length - 1];

		if (last && ((s.up != null && last.up != null && s.up < last.up) || s.t < last.t))
			series.samples = [];

		series.samples.push(s);

		/* One more than fits, so that the line begins at the edge. */
		while (series.samples.length > 2 && series.samples[1].t < s.t - this.span)
			series.samples.shift();
	},

	/**
	 * Rates between two samples, of a port or (null) of all ports: frames and
	 * bits a second redirected and passed, and the share redirected (null if
	 * nothing arrived). Null if that is not known.
	 */
	rates: function(a, b, device) {
		if (!a || !b)
			return null;

		var dt = (a.up != null && b.up != null) ? b.up - a.up : b.t - a.t,
		    x, y;

		if (!(dt > 0))
			return null;

		if (device != null) {
			x = a.ports[device];
			y = b.ports[device];
		}
		else {
			/* Only ports that are in both: one that was added has counted before. */
			for (var name in b.ports) {
				if (!a.ports[name])
					continue;

				x = x ? sum(x, a.ports[name]) : a.ports[name];
				y = y ? sum(y, b.ports[name]) : b.ports[name];
			}
		}

		if (!x || !y)
			return null;

		var d = y.map(function(v, i) { return (v - x[i]) / dt });

		if (d.some(function(v) { return v < 0 }))
			return null;

		return {
			redirected: { frames: d[RF], bits: 8 * d[RB] },
			passed: { frames: d[PF], bits: 8 * d[PB] },
			share: (d[RF] + d[PF] > 0) ? d[RF] / (d[RF] + d[PF]) : null
		};
	},

	/** The rates of the last seconds: over the last but one reply, if it is not old. */
	current: function(series, device) {
		var n = series.samples.length;

		return n < 2 ? null : this.rates(series.samples[n - 2], series.samples[n - 1], device);
	},

	/** Frames a second for each verdict, over the whole series; {} if not known. */
	verdictRates: function(series) {
		var a = series.samples[0], b = series.samples[series.samples.length - 1], out = {};

		if (!a || a === b)
			return out;

		var dt = (a.up != null && b.up != null) ? b.up - a.up : b.t - a.t;

		for (var name in b.verdicts) {
			var d = b.verdicts[name] - (a.verdicts[name] || 0);

			if (dt > 0 && d >= 0)
				out[name] = d / dt;
		}

		return out;
	},

	/**
	 * What a chart draws of a port or of all: points with the age in seconds
	 * (0 is now), redirected and passed in a unit ("frames" or "bits"), and
	 * whether the line is broken before the point.
	 */
	points: function(series, device, unit) {
		var samples = series.samples,
		    now = samples.length ? samples[samples.length - 1].t : 0,
		    points = [], broken = false;

		for (var i = 1; i < samples.length; i++) {
			var r = this.rates(samples[i - 1], samples[i], device);

			if (r == null) {
				broken = true;
				continue;
			}

			points.push({
				age: now - samples[i].t,
				redirected: r.redirected[unit],
				passed: r.passed[unit],
				broken: broken || (samples[i].t - samples[i - 1].t > this.gap)
			});
			broken = false;
		}

		return points;
	},

	/** Share of all frames since the counters began; null if there were none. */
	shareOf: function(port) {
		var c = countsOf(port);

		return (c && c[RF] + c[PF] > 0) ? c[RF] / (c[RF] + c[PF]) : null;
	}
});
