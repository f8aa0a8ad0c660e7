// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';
'require xdpl2.daemon as daemon';
'require xdpl2.page as page';
'require xdpl2.words as words';

// The table of stations: a page at a time, searched by the daemon, asked for
// when the user wants it and not by polling, since there can be many.

var PAGE = 25;

return baseclass.extend({
	create: function(hosts) {
		var t = Object.create(this);

		t.hosts = hosts || {};
		t.offset = 0;
		t.search = E('input', {
			'type': 'search', 'class': 'cbi-input-text', 'placeholder': _('Address or port'), 'maxlength': 64,
			'aria-label': _('Search stations by address or port'), 'input': function() { t.later() }
		});
		t.body = E('tbody', {});
		t.total = E('span', { 'role': 'status' }, []);
		t.back = E('button', { 'class': 'btn cbi-button', 'type': 'button', 'click': function() { t.go(-PAGE) } }, [ _('Back') ]);
		t.next = E('button', { 'class': 'btn cbi-button', 'type': 'button', 'click': function() { t.go(PAGE) } }, [ _('Next') ]);
		t.table = E('table', { 'class': 'x-table', 'aria-label': _('Stations') }, [
			E('thead', {}, [ E('tr', {}, [ _('Station'), _('Host'), _('VLAN'), _('Port'), _('Known by'), _('Seen') ].map(function(title) {
				return E('th', { 'scope': 'col' }, [ title ]);
			})) ]),
			t.body
		]);
		t.node = E('section', {}, [
			E('div', { 'class': 'x-bar' }, [
				E('h3', {}, [ _('Stations') ]),
				E('div', { 'class': 'x-tools' }, [
					t.search,
					E('button', { 'class': 'btn cbi-button', 'type': 'button', 'click': function() { t.load() } }, [ _('Refresh') ])
				])
			]),
			t.table,
			E('div', { 'class': 'x-pager' }, [ t.total, E('span', {}, [ t.back, ' ', t.next ]) ])
		]);

		return t;
	},

	/** Asks a moment after the last key. */
	later: function() {
		var self = this;

		window.clearTimeout(this.timer);
		this.timer = window.setTimeout(function() {
			self.offset = 0;
			self.load();
		}, 300);
	},

	go: function(by) {
		this.offset = Math.max(0, this.offset + by);
		return this.load();
	},

	load: function() {
		var self = this, asked = this.asked = {};

		return daemon.stations({ search: this.search.value.trim(), limit: PAGE, offset: this.offset }).then(function(list) {
			if (self.asked !== asked)
				return; /* an answer to an earlier question */

			/* The last page may have gone meanwhile. */
			if (!list.stations.length && self.offset > 0 && list.total > 0) {
				self.offset = Math.floor((list.total - 1) / PAGE) * PAGE;
				return self.load();
			}

			self.show(list);
		}, function(trouble) {
			if (self.asked !== asked)
				return;

			self.show({ total: 0, stations: [] });
			self.total.textContent = trouble.message;
		});
	},

	show: function(list) {
		var from = this.offset, hosts = this.hosts;

		while (this.body.firstChild)
			this.body.removeChild(this.body.firstChild);

		list.stations.forEach(function(s) {
			this.body.appendChild(E('tr', {}, [
				E('td', { 'data-title': _('Station') }, [ E('code', {}, [ s.mac ]) ]),
				E('td', { 'data-title': _('Host') }, [ hosts[String(s.mac).toLowerCase()] || '' ]),
				E('td', { 'data-title': _('VLAN') }, [ s.vlan ? String(s.vlan) : '' ]),
				E('td', { 'data-title': _('Port') }, [ s.port ]),
				E('td', { 'data-title': _('Known by') }, [ words.source(s.source) ]),
				E('td', { 'data-title': _('Seen') }, [ words.seen(s) ])
			]));
		}, this);

		this.table.hidden = !list.stations.length;
		this.back.disabled = from == 0;
		this.next.disabled = from + list.stations.length >= list.total;
		this.total.textContent = list.total
			? _('%s to %s of %s').format(words.count(from + 1), words.count(from + list.stations.length), words.count(list.total))
			: (this.search.value.trim() ? _('No station is found by that') : _('No station is known yet: the table fills when hosts send'));
	}
});
