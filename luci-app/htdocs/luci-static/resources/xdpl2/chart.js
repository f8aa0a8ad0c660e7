// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';
'require xdpl2.geometry as geometry';
'require xdpl2.page as page';
'require xdpl2.words as words';

// The live chart: what was redirected and, on top of it, what was passed, over
// the last two minutes. Values show under the pointer, and under the arrow
// keys.

var HEIGHT = 180, LEFT = 74, RIGHT = 10, TOP = 10, BOTTOM = 22;

return baseclass.extend({
	/** A chart over so many seconds. */
	create: function(span) {
		var c = Object.create(this);

		c.span = span;
		c.points = [];
		c.unit = 'frames';
		c.at = -1; /* the point that is pointed at */
		c.canvas = page.svg('svg', { 'class': 'x-chart', 'role': 'img', 'tabindex': '0', 'height': HEIGHT });
		c.tip = E('div', { 'class': 'x-tip', 'role': 'status', 'hidden': '' });
		c.node = E('div', { 'class': 'x-chart-box' }, [ c.canvas, c.tip ]);

		c.canvas.addEventListener('pointermove', function(ev) { c.point(ev) });
		c.canvas.addEventListener('pointerdown', function(ev) { c.point(ev) });
		c.canvas.addEventListener('pointerleave', function() { c.select(-1) });
		c.canvas.addEventListener('blur', function() { c.select(-1) });
		c.canvas.addEventListener('keydown', function(ev) { c.key(ev) });

		return c;
	},

	update: function(points, unit, title) {
		var age = this.at >= 0 && this.points[this.at] ? this.points[this.at].age : null;

		this.points = points;
		this.unit = unit;
		this.title = title;

		if (age != null)
			this.at = geometry.nearest(points, function(p) { return -p.age }, -age);

		this.draw();
	},

	draw: function() {
		var width = this.node.clientWidth, svg = page.svg, self = this;

		if (!width)
			return;

		var max = geometry.highest(this.points),
		    ticks = geometry.ticks(max, 4),
		    top = ticks[ticks.length - 1],
		    x = geometry.scale(this.span, 0, LEFT, width - RIGHT),
		    y = geometry.scale(0, top, HEIGHT - BOTTOM, TOP);

		this.x = function(p) { return Math.max(x(p.age), LEFT) };
		this.y = y;

		var low = function() { return y(0) },
		    mid = function(p) { return y(p.redirected) },
		    high = function(p) { return y(p.redirected + p.passed) },
		    parts = [
			svg('defs', {}, [
				svg('pattern', { 'id': 'x-hatch', 'width': 6, 'height': 6, 'patternUnits': 'userSpaceOnUse', 'patternTransform': 'rotate(45)' }, [
					svg('rect', { 'class': 'x-hatch-back', 'width': 6, 'height': 6 }),
					svg('rect', { 'class': 'x-hatch-line', 'width': 2.5, 'height': 6 })
				])
			])
		];

		ticks.forEach(function(v) {
			parts.push(svg('line', { 'class': 'x-grid', 'x1': LEFT, 'x2': width - RIGHT, 'y1': y(v), 'y2': y(v) }));
			parts.push(svg('text', { 'class': 'x-axis', 'x': LEFT - 8, 'y': y(v) + 4, 'text-anchor': 'end' }, [ words.tick(v, self.unit) ]));
		});

		[ 120, 90, 60, 30, 0 ].forEach(function(age) {
			if (age > self.span || (width < 380 && age % 60))
				return;

			parts.push(svg('text', {
				'class': 'x-axis', 'x': x(age), 'y': HEIGHT - 6,
				'text-anchor': age == 0 ? 'end' : (age == self.span ? 'start' : 'middle')
			}, [ age ? _('−%d s').format(age) : _('now') ]));
		});

		geometry.runs(this.points).forEach(function(run) {
			parts.push(svg('path', { 'class': 'x-passed', 'd': geometry.area(run, self.x, mid, high), 'fill': 'url(#x-hatch)' }));
			parts.push(svg('path', { 'class': 'x-redirected', 'd': geometry.area(run, self.x, low, mid) }));
			parts.push(svg('path', { 'class': 'x-line passed', 'd': geometry.line(run, self.x, high) }));
			parts.push(svg('path', { 'class': 'x-line redirected', 'd': geometry.line(run, self.x, mid) }));
		});

		if (!this.points.length)
			parts.push(svg('text', { 'class': 'x-axis', 'x': (LEFT + width - RIGHT) / 2, 'y': HEIGHT / 2, 'text-anchor': 'middle' }, [ _('Measuring…') ]));

		this.cursor = svg('g', {});
		parts.push(this.cursor);

		this.canvas.setAttribute('width', width);
		this.canvas.setAttribute('viewBox', '0 0 ' + width + ' ' + HEIGHT);
		this.canvas.setAttribute('aria-label', this.summary());

		while (this.canvas.firstChild)
			this.canvas.removeChild(this.canvas.firstChild);

		parts.forEach(function(p) { self.canvas.appendChild(p) });
		this.select(this.at);
	},

	/** The chart in a sentence. */
	summary: function() {
		var last = this.points[this.points.length - 1];

		if (!last)
			return this.title + ': ' + _('Measuring…');

		return this.title + ': ' + _('now %s redirected, %s passed; at most %s within %s. Arrow keys show values.').format(
			words.rate(last.redirected, this.unit), words.rate(last.passed, this.unit),
			words.rate(geometry.highest(this.points), this.unit), words.duration(this.span));
	},

	point: function(ev) {
		var box = this.canvas.getBoundingClientRect();

		if (this.x && this.points.length)
			this.select(geometry.nearest(this.points, this.x, ev.clientX - box.left));
	},

	key: function(ev) {
		var last = this.points.length - 1;

		if (ev.key == 'ArrowLeft')
			this.select(this.at < 0 ? last : Math.max(this.at - 1, 0));
		else if (ev.key == 'ArrowRight')
			this.select(this.at < 0 ? last : Math.min(this.at + 1, last));
		else if (ev.key == 'Escape')
			this.select(-1);
		else
			return;

		ev.preventDefault();
	},

	/** Shows the values of a point. */
	select: function(i) {
		var p = this.points[i], svg = page.svg;

		this.at = p ? i : -1;

		if (this.cursor)
			while (this.cursor.firstChild)
				this.cursor.removeChild(this.cursor.firstChild);

		if (!p) {
			this.tip.hidden = true;
			return;
		}

		var sum = p.redirected + p.passed, at = this.x(p), width = this.node.clientWidth;

		this.cursor.appendChild(svg('line', { 'class': 'x-cursor', 'x1': at, 'x2': at, 'y1': TOP, 'y2': HEIGHT - BOTTOM }));
		this.cursor.appendChild(svg('circle', { 'class': 'x-dot passed', 'cx': at, 'cy': this.y(sum), 'r': 3.5 }));
		this.cursor.appendChild(svg('circle', { 'class': 'x-dot redirected', 'cx': at, 'cy': this.y(p.redirected), 'r': 3.5 }));

		while (this.tip.firstChild)
			this.tip.removeChild(this.tip.firstChild);

		var line = function(kind, name, value) {
			return E('div', {}, [ kind ? E('span', { 'class': 'x-swatch ' + kind }) : '', name + ' ', E('b', {}, [ value ]) ]);
		};

		[
			line('', p.age < 1 ? _('now') : _('%s ago').format(words.duration(p.age)), ''),
			line('redirected', _('redirected'), words.rate(p.redirected, this.unit)),
			line('passed', _('passed to the bridge'), words.rate(p.passed, this.unit)),
			line('', this.unit == 'bits' ? _('share of bits') : _('share of frames'), words.percent(sum > 0 ? p.redirected / sum : null))
		].forEach(function(n) { this.tip.appendChild(n) }, this);

		this.tip.hidden = false;

		var wide = this.tip.offsetWidth;

		this.tip.style.left = Math.max(0, at + 12 + wide > width ? at - 12 - wide : at + 12) + 'px';
	}
});
