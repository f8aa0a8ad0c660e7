// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';
'require ui';
'require xdpl2.words as words';

// What the pages have in common: the frame with its style sheet, dark or
// light, and the pages that say what is wrong and what to do.

var SVG = 'http://www.w3.org/2000/svg';

/**
 * Whether the theme is dark, seen from the colours that it really has: themes
 * have no common way to say so.
 */
function isDark(node) {
	for (var n = node; n && n.nodeType == 1; n = n.parentNode) {
		var m = window.getComputedStyle(n).backgroundColor.match(/^rgba?\(([0-9.]+), ?([0-9.]+), ?([0-9.]+)(?:, ?([0-9.]+))?\)$/);

		if (m && (m[4] == null || +m[4] > 0.5))
			return 0.299 * m[1] + 0.587 * m[2] + 0.114 * m[3] < 128;
	}

	return window.matchMedia('(prefers-color-scheme: dark)').matches;
}

function code(text) {
	return E('pre', { 'class': 'x-code' }, [ text ]);
}

function settings() {
	return L.url('admin/network/xdpl2/settings');
}

/* What is wrong and what to do, by the kind of Trouble. */
function pages() {
	return {
		stopped: {
			title: _('The daemon is not running'),
			text: _('The settings say that xdpl2 is on, but nobody answers on ubus. The bridge carries everything meanwhile.'),
			todo: [
				[ _('Start it, and have it started at boot:'), '/etc/init.d/xdpl2 enable\n/etc/init.d/xdpl2 start' ],
				[ _('If it ends again, the system log says why:'), 'logread -e xdpl2' ],
				[ _('Mistakes in the configuration are listed by:'), 'xdpl2 check' ]
			]
		},
		off: {
			title: _('xdpl2 is switched off'),
			text: _('There is nobody to be asked while it is off. The bridge carries everything.'),
			todo: [
				[ _('Switch it on under Overview.'), null ]
			]
		},
		noconfig: {
			title: _('There is no configuration'),
			text: _('The file /etc/config/xdpl2 is missing or cannot be read.'),
			todo: [
				[ _('Install the package xdpl2 again, or make an empty file and load this page again:'), 'touch /etc/config/xdpl2' ],
				[ _('If the file is there, it has a mistake in it, which is named by:'), 'xdpl2 check' ]
			]
		},
		denied: {
			title: _('This login may not ask the daemon'),
			text: _('The web interface refused the question. A login keeps the rights that it got when it began, so one from before the installation has none for xdpl2.'),
			todo: [
				[ _('Log out and in again. If that does not help, have the access files read again, then log in:'), '/etc/init.d/rpcd reload' ],
				[ _('An account of its own needs the access group luci-app-xdpl2 in /etc/config/rpcd.'), null ]
			]
		},
		timeout: {
			title: _('The daemon does not answer'),
			text: _('It is there, but has not answered in time. The frames are not concerned: they are forwarded without its help.'),
			todo: [
				[ _('Wait a moment; this page asks again by itself. If it stays so, look at the log and restart it:'), 'logread -e xdpl2\n/etc/init.d/xdpl2 restart' ]
			]
		},
		unreachable: {
			title: _('The box does not answer'),
			text: _('The web interface cannot be reached. The last values are shown as they were.'),
			todo: [
				[ _('Check the connection to the box; this page asks again by itself.'), null ]
			]
		},
		method: {
			title: _('This daemon is older than the page'),
			text: _('It does not know the question.'),
			todo: [
				[ _('Bring both to the same version: install the packages xdpl2 and luci-app-xdpl2 again.'), null ]
			]
		},
		strange: {
			title: _('The daemon\'s answer is not understood'),
			text: _('Daemon and page are of different versions.'),
			todo: [
				[ _('Bring both to the same version: install the packages xdpl2 and luci-app-xdpl2 again.'), null ]
			]
		},
		failed: {
			title: _('The daemon reports an error'),
			text: _('It could not answer.'),
			todo: [
				[ _('The system log says more:'), 'logread -e xdpl2' ]
			]
		}
	};
}

return baseclass.extend({
	/** An SVG element. */
	svg: function(tag, attrs, children) {
		var node = document.createElementNS(SVG, tag);

		for (var k in (attrs || {}))
			if (attrs[k] != null)
				node.setAttribute(k, attrs[k]);

		(children || []).forEach(function(c) {
			node.appendChild(typeof(c) == 'object' ? c : document.createTextNode(String(c)));
		});

		return node;
	},

	/** The frame of a page; children as for E. */
	frame: function(children) {
		var root = E('div', { 'class': 'xdpl2' }, children);

		return E([
			E('link', { 'rel': 'stylesheet', 'href': L.resource('xdpl2/xdpl2.css') }),
			root
		]);
	},

	/** Adapts a frame that is in the page to its theme and width. */
	adapt: function(root) {
		if (!root || !root.isConnected)
			return;

		root.classList.toggle('dark', isDark(root));
		root.classList.toggle('narrow', root.clientWidth > 0 && root.clientWidth < 620);
	},

	/** Keeps a frame adapted once it is in the page, and calls then() each time. */
	watch: function(root, then) {
		var self = this;
		var adapt = function() {
			self.adapt(root);

			if (then)
				then();
		};

		window.setTimeout(adapt, 0);
		window.addEventListener('resize', adapt);

		var dark = window.matchMedia('(prefers-color-scheme: dark)');

		if (dark.addEventListener)
			dark.addEventListener('change', function() { window.setTimeout(adapt, 0) });
	},

	/** A mark for a level: a sign in a colour, and words for who cannot see it. */
	mark: function(state) {
		return E('span', { 'class': 'x-mark ' + state.level, 'aria-hidden': 'true' }, [ state.mark ]);
	},

	/** Text in which the code stands out from the words. */
	code: code,

	settings: settings,

	readonly: function() {
		return L.hasViewPermission() === false;
	},

	/** A notice: level is good, warn, bad or idle. */
	notice: function(level, title, children) {
		var marks = { good: '✓', warn: '!', bad: '✕', idle: '–' };

		return E('div', { 'class': 'x-card x-notice ' + level, 'role': (level == 'bad') ? 'alert' : 'status' }, [
			E('h4', {}, [ this.mark({ level: level, mark: marks[level] }), ' ', title ]),
			E('div', {}, children || [])
		]);
	},

	/** The page that says what is wrong and what to do about it. */
	trouble: function(trouble) {
		var all = pages(), page = all[trouble.kind] || all.failed,
		    plain = [ 'stopped', 'off', 'noconfig' ].indexOf(trouble.kind) < 0 && trouble.message;

		return this.notice({ timeout: 'warn', off: 'idle' }[trouble.kind] || 'bad', page.title, [
			E('p', {}, [ page.text ]),
			E('ul', {}, page.todo.map(function(t) {
				return E('li', {}, [ t[0], t[1] ? code(t[1]) : '' ]);
			})),
			plain ? E('p', { 'class': 'x-quiet' }, [ _('What was reported: %s').format(trouble.message) ]) : ''
		]);
	},

	/**
	 * A missing object means that the daemon does not run: because it is switched
	 * off, or although it is on. main is the section of that name.
	 */
	absence: function(trouble, main) {
		if (trouble.kind != 'absent')
			return trouble;

		return { kind: this.isOn(main) ? 'stopped' : 'off' };
	},

	/** Whether section main says that xdpl2 is on. */
	isOn: function(main) {
		return !!main && [ '1', 'on', 'true', 'yes', 'enabled' ].indexOf(main.enabled) >= 0;
	},

	/** Errors and warnings of the configuration, each where it is. */
	problems: function(status) {
		var nodes = [], errors = status.config_errors || [], warnings = status.config_warnings || [];

		var line = function(p) {
			var where = [
				p.file ? p.file + (p.line ? ':' + p.line : '') : '',
				p.section ? _('section %s').format(p.section) : '',
				p.option ? _('option %s').format(p.option) + (p.value ? ' \'' + p.value + '\'' : '') : ''
			].filter(function(s) { return s != '' }).join(', ');

			return E('li', {}, [
				E('code', {}, [ where ]), ': ',
				_(p.message || p.text), p.expected ? '; ' + _('expected %s').format(_(p.expected)) : ''
			]);
		};

		if (errors.length)
			nodes.push(this.notice('bad', _('The configuration has a mistake; the last good one stays in force'), [
				E('ul', {}, errors.map(line)),
				E('a', { 'href': settings() }, [ _('Go to the settings') ])
			]));

		if (warnings.length)
			nodes.push(this.notice('warn', _('Without effect in the configuration'), [
				E('ul', {}, warnings.map(line))
			]));

		return nodes;
	},

	/** An option list for a select, names as they are. */
	choices: function(list, chosen) {
		return list.map(function(item) {
			return E('option', { 'value': item[0], 'selected': item[0] === chosen ? '' : null }, [ item[1] ]);
		});
	}
});
