// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';
'require xdpl2.geometry as geometry';
'require xdpl2.words as words';

// The bar of verdicts: what became of the frames, as a bar with a letter for
// each part and a list that says what the letters mean.

var MOST = 6; /* parts; the rest is one */

return baseclass.extend({
	/**
	 * The parts of a bar: of frames a second where that is known and anything
	 * came, else of all frames since the daemon started.
	 */
	parts: function(verdicts, rates) {
		var live = Object.keys(rates).some(function(name) { return rates[name] > 0 });

		var all = verdicts.map(function(v) {
			return { name: v.verdict, text: words.verdict(v.verdict, v.words), value: live ? (rates[v.verdict] || 0) : v.packets };
		}).filter(function(p) { return p.value > 0 });

		all.sort(function(a, b) {
			return (words.carried(b.name) - words.carried(a.name)) || (b.value - a.value);
		});

		if (all.length > MOST) {
			var rest = all.splice(MOST - 1);

			all.push({
				name: 'rest',
				text: rest.map(function(p) { return p.text }).join('; '),
				value: rest.reduce(function(sum, p) { return sum + p.value }, 0)
			});
		}

		return { live: live, parts: all };
	},

	create: function() {
		var b = Object.create(this);

		b.about = E('span', { 'class': 'x-quiet' }, []);
		b.bar = E('div', { 'class': 'x-parts', 'role': 'img' });
		b.list = E('ul', { 'class': 'x-verdicts' });
		b.node = E('section', {}, [
			E('div', { 'class': 'x-bar' }, [ E('h3', {}, [ _('What becomes of the frames') ]), b.about ]),
			b.bar, b.list
		]);

		return b;
	},

	update: function(verdicts, rates) {
		var found = this.parts(verdicts, rates),
		    widths = geometry.parts(found.parts.map(function(p) { return p.value }), 2),
		    sum = found.parts.reduce(function(s, p) { return s + p.value }, 0);

		[ this.bar, this.list ].forEach(function(n) {
			while (n.firstChild)
				n.removeChild(n.firstChild);
		});

		found.parts.forEach(function(p, i) {
			var letter = String.fromCharCode(65 + i), colour = 'v' + (words.carried(p.name) ? 0 : Math.max(i, 1)),
			    number = found.live ? words.frames(p.value) : words.count(p.value), share = words.percent(p.value / sum);

			this.bar.appendChild(E('div', { 'class': 'x-part ' + colour, 'style': 'width:' + widths[i].toFixed(2) + '%', 'title': p.text + ': ' + share }, [ widths[i] > 4 ? letter : '' ]));
			this.list.appendChild(E('li', {}, [
				E('span', { 'class': 'x-key ' + colour }, [ letter ]),
				E('span', {}, [ p.text ]),
				E('span', { 'class': 'x-number' }, [ E('b', {}, [ share ]), ' ', E('span', { 'class': 'x-quiet' }, [ number ]) ])
			]));
		}, this);

		this.bar.setAttribute('aria-label', found.parts.map(function(p) { return p.text + ' ' + words.percent(p.value / sum) }).join(', '));
		this.about.textContent = found.live ? _('over the last two minutes') : _('since the daemon started');
		this.node.hidden = !found.parts.length;
	}
});
