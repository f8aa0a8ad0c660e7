// SPDX-License-Identifier: Apache-2.0
// Loads the pages' modules outside of a browser, as LuCI's loader does inside:
// the strings at the top say what a module needs and under which name.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const resources = fileURLToPath(new URL('../../luci-app/htdocs/luci-static/resources/', import.meta.url));

/** Format as LuCI's strings do it, as far as the modules use it. */
if (!String.prototype.format)
	Object.defineProperty(String.prototype, 'format', {
		value(...args) {
			let i = 0;
			return String(this).replace(/%(?:\.(\d+))?([sdhf%])/g, (m, digits, type) => {
				if (type == '%')
					return '%';
				const v = args[i++];
				switch (type) {
				case 'd':
					return Math.floor(+v || 0).toFixed(0);
				case 'f':
					return (+v || 0).toFixed(digits ?? 6);
				case 'h':
					return String(v).replace(/[&<>"']/g, c => `&#${c.charCodeAt(0)};`);
				}
				return String(v);
			});
		}
	});

/** What a module's source requires: [[class, name]]. */
export function requires(source) {
	const found = [];
	for (const line of source.split('\n')) {
		const m = line.match(/^'require ([\w.]+)(?: as (\w+))?';$/);
		if (m)
			found.push([ m[1], m[2] || m[1].replace(/\W/g, '_') ]);
		else if (line.trim() && !line.startsWith('//') && !line.startsWith("'use strict'"))
			break;
	}
	return found;
}

/**
 * Loads a class, xdpl2.words for example. given are classes of LuCI by name,
 * and globals under the key globals: _, E, L, window, document.
 */
export function load(name, given = {}) {
	const source = readFileSync(resources + name.replace(/\./g, '/') + '.js', 'utf8');
	const classes = { baseclass: { extend: o => o }, view: { extend: o => o }, ...given };
	const globals = { _: s => s, E: undefined, L: {}, window: {}, document: {}, ...given.globals };
	const needs = requires(source);
	const names = [ ...Object.keys(globals), ...needs.map(n => n[1]) ];
	const values = [ ...Object.values(globals), ...needs.map(([ cls ]) => {
		if (classes[cls])
			return classes[cls];
		if (!cls.startsWith('xdpl2.'))
			return {};
		return load(cls, given);
	}) ];
	return new Function(...names, source)(...values);
}
