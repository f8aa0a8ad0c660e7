// SPDX-License-Identifier: Apache-2.0
// The settings: the form has every option that is declared, and refuses what
// the daemon refuses, in its words.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { load } from './load.mjs';

const read = name => JSON.parse(readFileSync(new URL(`testdata/${name}`, import.meta.url), 'utf8'));
const rules = load('xdpl2.rules'), { options } = load('xdpl2.options');

/** A stand-in for LuCI's form and uci that notes what a page makes. */
function noting(values) {
	const made = [];
	class Option {
		constructor(kind, section, name, title, help) {
			Object.assign(this, { kind, section, name, title, help, choices: [] });
		}
		value(key, label) { this.choices.push([ key, label ]) }
	}
	class Section {
		constructor(kind, type) { Object.assign(this, { kind, type, tabs: [] }) }
		tab(name) { this.tabs.push(name) }
		option(kind, name, title, help) {
			const o = new Option(kind, this.type, name, title, help);
			made.push(o);
			return o;
		}
		taboption(tab, kind, name, title, help) {
			assert.ok(this.tabs.includes(tab), `tab ${tab} of ${name}`);
			return this.option(kind, name, title, help);
		}
	}
	const form = { NamedSection: 'NamedSection', GridSection: 'GridSection', TableSection: 'TableSection',
		Value: 'Value', Flag: 'Flag', ListValue: 'ListValue', MultiValue: 'MultiValue' };
	const sections = [];
	form.Map = class {
		section(kind, a, b) {
			const s = new Section(kind, kind == 'NamedSection' ? b : a);
			sections.push(s);
			return s;
		}
		render() { return Promise.resolve({}) }
		lookupOption() { return null }
	};
	const uci = {
		sections: (c, type) => values.filter(s => !type || s['.type'] == type),
		get: (c, name, option) => {
			const s = values.find(v => v['.name'] == name);
			return s ? (option ? s[option] : s) : null;
		},
		add: (c, type, name) => { values.push({ '.type': type, '.name': name }) }
	};
	const globals = { L: { resource: s => s, toArray: v => [].concat(v ?? []) }, E: () => ({}), window: { location: { hostname: '192.0.2.1' } } };
	return { given: { form, uci, ui: {}, network: {}, rpc: { declare: () => () => {} }, globals }, made, sections };
}

const main = { '.type': 'xdpl2', '.name': 'main' };

test('every declared option is in the form, and no other', async () => {
	const n = noting([ { ...main } ]);
	await load('view.xdpl2.settings', n.given).render([ null, [], null ]);
	const of = o => `${o.section}.${o.name}`;
	assert.deepEqual(n.made.map(of).sort(), options.map(of).sort());
	const kinds = { boolean: 'Flag', number: 'Value', mac: 'Value', device: 'Value', address: 'Value' };
	for (const o of options) {
		const f = n.made.find(m => of(m) == of(o));
		assert.equal(f.kind, o.type == 'choice' ? (o.list ? 'MultiValue' : 'ListValue') : kinds[o.type], of(o));
		assert.notEqual(f.title, o.name, `${of(o)} has no title in settings.js`);
		assert.ok(f.help.startsWith(o.help), `${of(o)}: the help is the declaration's`);
		if (o.type == 'choice')
			assert.deepEqual(f.choices.map(c => c[0]).filter(c => c != ''), o.choices, of(o));
		if (o.type != 'choice' && o.type != 'boolean' && o.default)
			assert.equal(f.placeholder, o.default, of(o));
		if (o.type == 'boolean' || (o.type == 'choice' && !o.list))
			assert.equal(f.default, o.default || '', of(o));
	}
	assert.deepEqual(n.sections.map(s => [ s.kind, s.type ]), [
		[ 'NamedSection', 'xdpl2' ], [ 'GridSection', 'port' ], [ 'TableSection', 'station' ], [ 'NamedSection', 'tuning' ]
	]);
	assert.ok(n.sections[1].sortable && n.sections[1].addremove && n.sections[1].anonymous);
});

test('what is not built says so', async () => {
	const n = noting([ { ...main } ]);
	await load('view.xdpl2.settings', n.given).render([ null, [], null ]);
	for (const o of options) {
		const f = n.made.find(m => m.section == o.section && m.name == o.name);
		if (o.ignored)
			assert.ok(f.help.includes(o.ignored));
	}
});

test('an empty configuration has a page that says what to do', async () => {
	const n = noting([]);
	const nodes = [];
	n.given.globals.E = (tag, attrs, children) => {
		const node = { tag, attrs, children: [].concat(children ?? (Array.isArray(tag) ? tag : [])) };
		nodes.push(node);
		return node;
	};
	n.given.globals.L.url = s => s;
	load('view.xdpl2.settings', n.given).render([ null, [], null ]);
	assert.ok(nodes.some(x => x.children.includes('touch /etc/config/xdpl2')));
	assert.equal(n.made.length, 0);
});

test('the picker marks what cannot be used, and why', async () => {
	const device = (name, type, ports) => ({
		getName: () => name, getType: () => type, isUp: () => true, getSpeed: () => 1000, getCarrier: () => true,
		getPorts: () => ports.map(p => ({ getName: () => p })), getIPAddrs: () => [], getIP6Addrs: () => []
	});
	const n = noting([ { ...main } ]);
	const status = { ports: [ { device: 'eth2', state: 'not_accelerated', reason: 'eth2 is itself a bridge' } ] };
	await load('view.xdpl2.settings', n.given).render([ null, [ device('br-lan', 'bridge', [ 'eth1', 'eth2' ]), device('eth1', 'ethernet', []),
		device('eth2', 'ethernet', []), device('wlan0', 'wifi', []), device('<b>', 'ethernet', []) ], status ]);
	const picker = n.made.find(o => o.section == 'port' && o.name == 'device');
	assert.deepEqual(picker.choices.map(c => c[0]), [ 'eth1', '<b>', 'br-lan', 'eth2', 'wlan0' ]);
	const label = Object.fromEntries(picker.choices);
	assert.equal(label.eth1, 'eth1 (1 Gbit/s, port of br-lan)');
	assert.match(label['br-lan'], /cannot be used: is the bridge itself/);
	assert.match(label.eth2, /cannot be used: eth2 is itself a bridge/);
	assert.match(label.wlan0, /cannot be used: is wireless/);
	const bridge = n.made.find(o => o.name == 'bridge');
	assert.deepEqual(bridge.choices.map(c => c[0]), [ 'br-lan' ]);
});

/* As rules.read makes a configuration of UCI. */
function configuration(c) {
	const label = (type, list) => (list || []).map((s, i) => ({ ...s, label: `@${type}[${i}]` }));
	return { main: { ...c.main, label: 'xdpl2 \'main\'' }, tuning: { ...c.tuning, label: 'tuning \'tuning\'' }, ports: label('port', c.ports), stations: label('station', c.stations) };
}

test('the form refuses what the daemon refuses, in its words', () => {
	const words = read('words.json'), cases = read('refused.json');
	assert.ok(cases.length >= 30);
	for (const c of cases) {
		const found = rules.check(configuration(c));
		assert.deepEqual(found.map(p => `${p.section} ${p.option}`), c.problems, c.name);
		assert.deepEqual(found.map(p => rules.text(p)), words[c.name], c.name);
	}
});

test('a wire that takes the way of the browser', () => {
	const config = (more, ports) => configuration({ main: { enabled: '1', mode: 'port', ...more }, ports });
	const way = { 'br-lan': true, eth1: true, eth2: true };
	for (const [ c, names ] of [
		[ config({}, [ { device: 'eth1', target: 'eth3' } ]), [ 'eth1' ] ],
		[ config({}, [ { device: 'eth3', target: 'eth2' } ]), [ 'eth2' ] ],
		[ config({}, [ { device: 'eth3', target: 'eth4' } ]), [] ],
		[ config({ mode: 'mac' }, [ { device: 'eth1', target: 'eth3' } ]), [] ],
		[ config({ enabled: '0' }, [ { device: 'eth1', target: 'eth3' } ]), [] ],
		[ config({}, [ { device: 'eth1', target: 'eth3', enabled: '0' } ]), [] ]
	])
		assert.deepEqual(rules.wiredManagement(c, way), names);
	assert.equal(rules.reachesBox(config({}, [ { device: 'eth1' } ]), 'eth1'), true);
	assert.equal(rules.reachesBox(config({ topology: 'replace' }, [ { device: 'eth1' } ]), 'eth1'), false);
	assert.equal(rules.reachesBox(config({}, [ { device: 'eth1', pass: [ 'local' ] } ]), 'eth1'), false);
	assert.equal(rules.reachesBox(config({ topology: 'replace' }, [ { device: 'eth1', pass: [ 'group', 'local' ] } ]), 'eth1'), true);
});
