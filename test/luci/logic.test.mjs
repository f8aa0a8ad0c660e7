// SPDX-License-Identifier: Apache-2.0
// Rates, geometry, words and reasons: what needs no page.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { load } from './load.mjs';
import { files } from './pot.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const series = load('xdpl2.series'), geometry = load('xdpl2.geometry'), words = load('xdpl2.words');
const reasons = load('xdpl2.reasons'), calibration = load('xdpl2.calibration'), devices = load('xdpl2.devices');
const verdicts = load('xdpl2.verdicts');

const status = (up, ports) => ({
	uptime_seconds: up,
	ports: Object.entries(ports).map(([ device, [ rp, rb, pp, pb ] ]) => ({
		device, redirected: { packets: rp, bytes: rb }, passed: { packets: pp, bytes: pb }
	})),
	verdicts: []
});

function fed(...steps) {
	const s = series.create();
	for (const [ at, up, ports ] of steps)
		series.push(s, series.sample(status(up, ports), at * 1000));
	return s;
}

test('rates are taken by the clock of the daemon', () => {
	// The second answer was 2 s late, but the daemon counted for 4 s.
	const s = fed([ 0, 10, { eth1: [ 0, 0, 0, 0 ] } ], [ 6, 14, { eth1: [ 400, 4000, 100, 800 ] } ]);
	assert.deepEqual(series.current(s, 'eth1'), {
		redirected: { frames: 100, bits: 8000 }, passed: { frames: 25, bits: 1600 }, share: 0.8
	});
});

test('all ports are summed, one that was added just now left out', () => {
	const s = fed([ 0, 0, { eth1: [ 0, 0, 0, 0 ], eth2: [ 10, 0, 0, 0 ] } ],
		[ 1, 1, { eth1: [ 5, 0, 0, 0 ], eth2: [ 15, 0, 10, 0 ], eth3: [ 1e6, 0, 0, 0 ] } ]);
	assert.equal(series.current(s, null).redirected.frames, 10);
	assert.equal(series.current(s, null).share, 0.5);
	assert.equal(series.current(s, 'eth3'), null);
});

test('a daemon that has started again begins anew', () => {
	const s = fed([ 0, 100, { eth1: [ 1000, 0, 0, 0 ] } ], [ 3, 1, { eth1: [ 5, 0, 0, 0 ] } ]);
	assert.equal(s.samples.length, 1);
	assert.equal(series.current(s, 'eth1'), null);
});

test('a counter that went back gives no rate', () => {
	const s = fed([ 0, 1, { eth1: [ 1000, 0, 0, 0 ] } ], [ 3, 4, { eth1: [ 5, 0, 0, 0 ] } ]);
	assert.equal(series.current(s, 'eth1'), null);
	assert.deepEqual(series.points(s, 'eth1', 'frames'), []);
});

test('nothing arrived is no share, and not a hundred percent', () => {
	const s = fed([ 0, 1, { eth1: [ 5, 0, 5, 0 ] } ], [ 3, 4, { eth1: [ 5, 0, 5, 0 ] } ]);
	assert.equal(series.current(s, 'eth1').share, null);
	assert.equal(words.percent(null), '–');
});

test('two minutes are kept, and a gap breaks the line', () => {
	const s = series.create();
	for (let i = 0; i <= 100; i++)
		series.push(s, series.sample(status(i * 3, { eth1: [ i * 30, 0, 0, 0 ] }), i * 3000));
	assert.equal(s.samples.length, 42);
	assert.equal(series.points(s, null, 'frames').length, 41);
	series.push(s, series.sample(status(400, { eth1: [ 4000, 0, 0, 0 ] }), 400000));
	const points = series.points(s, null, 'frames');
	assert.equal(points.at(-1).broken, true);
	assert.equal(points.at(-1).age, 0);
	assert.equal(geometry.runs(points).length, 2);
});

test('the answer of an older daemon has no counts', () => {
	const sample = series.sample({ ports: [ { device: 'eth1', state: 'accelerating' } ] }, 0);
	assert.deepEqual(sample.ports, {});
	assert.equal(sample.total, null);
	assert.equal(series.shareOf({ device: 'eth1' }), null);
});

test('rates of verdicts', () => {
	const s = series.create();
	for (const [ up, n ] of [ [ 0, 0 ], [ 10, 500 ] ])
		series.push(s, series.sample({ uptime_seconds: up, ports: [], verdicts: [ { verdict: 'pass_group', packets: n } ] }, up * 1000));
	assert.deepEqual(series.verdictRates(s), { pass_group: 50 });
});

test('ticks are round and reach the top', () => {
	for (const [ max, want ] of [ [ 0, [ 0, 1 ] ], [ 1, [ 0, 0.5, 1 ] ], [ 47, [ 0, 20, 40, 60 ] ], [ 1e9, [ 0, 5e8, 1e9 ] ], [ 2.6e9, [ 0, 1e9, 2e9, 3e9 ] ] ])
		assert.deepEqual(geometry.ticks(max, 4), want, String(max));
	for (let max = 0.003; max < 1e12; max *= 1.37) {
		const t = geometry.ticks(max, 4);
		assert.ok(t.at(-1) >= max * (1 - 1e-9) && t.length <= 5 + 1, `${max}: ${t}`);
	}
});

test('areas, lines and the nearest point', () => {
	const points = [ { age: 2, v: 1 }, { age: 0, v: 3 } ], x = geometry.scale(2, 0, 0, 100), y = geometry.scale(0, 4, 40, 0);
	const at = p => x(p.age);
	assert.equal(geometry.line(points, at, p => y(p.v)), 'M0 30L100 10');
	assert.equal(geometry.area(points, at, () => 40, p => y(p.v)), 'M0 30L100 10L100 40L0 40Z');
	assert.equal(geometry.area([], at, () => 0, () => 0), '');
	assert.equal(geometry.nearest(points, at, 60), 1);
	assert.equal(geometry.nearest([], at, 60), -1);
	assert.equal(geometry.scale(1, 1, 5, 9)(1), 5);
});

test('parts of a bar can all be seen and fill it', () => {
	const parts = geometry.parts([ 1e9, 1, 0, 5 ], 2);
	assert.equal(parts[2], 0);
	assert.ok(parts[1] >= 2 && parts[3] >= 2);
	assert.ok(Math.abs(parts.reduce((a, b) => a + b) - 100) < 1e-9);
	assert.deepEqual(geometry.parts([ 0, 0 ], 2), [ 0, 0 ]);
});

test('numbers', () => {
	for (const [ f, v, want ] of [
		[ 'frames', 0, '0/s' ], [ 'frames', 4.25, '4.3/s' ], [ 'frames', 4500, '4\u202f500/s' ], [ 'frames', 251980, '252 k/s' ], [ 'frames', 1.234e6, '1.23 M/s' ],
		[ 'bits', 0, '0 bit/s' ], [ 'bits', 49.6e6, '49.6 Mbit/s' ], [ 'bits', 999.9e6, '1.00 Gbit/s' ], [ 'bits', 2.488e9, '2.49 Gbit/s' ], [ 'bits', null, '–' ],
		[ 'percent', 0, '0%' ], [ 'percent', 1, '100%' ], [ 'percent', 0.99999, '99.9%' ], [ 'percent', 0.000001, '0.1%' ], [ 'percent', 0.964, '96%' ],
		[ 'count', 1234567, '1\u202f234\u202f567' ], [ 'duration', 59.6, '60 s' ], [ 'duration', 7200, '2 h' ], [ 'duration', 1e6, '12 days' ],
		[ 'speed', 2500, '2.5 Gbit/s' ], [ 'speed', 100, '100 Mbit/s' ]
	])
		assert.equal(words[f](v), want, `${f}(${v})`);
	for (const [ v, unit, want ] of [ [ 6e7, 'bits', '60 Mbit/s' ], [ 0, 'bits', '0 bit/s' ], [ 2.5e9, 'bits', '2.5 Gbit/s' ], [ 1e3, 'frames', '1\u202f000/s' ] ])
		assert.equal(words.tick(v, unit), want);
});

test('the headline says whether it is on, and how much of it', () => {
	const p = state => ({ device: 'x', state });
	for (const [ s, share, want, level ] of [
		[ { enabled: false, ports: [ p('off') ] }, null, 'Switched off: the bridge carries everything', 'idle' ],
		[ { enabled: true, ports: [] }, null, 'On, but no port is configured', 'warn' ],
		[ { enabled: true, ports: [ p('failed'), p('waiting') ] }, 0.5, 'On, but none of 2 ports is accelerated', 'bad' ],
		[ { enabled: true, ports: [ p('accelerating'), p('accelerating'), p('accelerating'), p('waiting') ] }, 0.96, 'Accelerating 3 of 4 ports, 96% of frames', 'warn' ],
		[ { enabled: true, ports: [ p('accelerating') ] }, null, 'Accelerating 1 of 1 ports', 'good' ]
	]) {
		const head = words.headline(s, share);
		assert.equal(head.text, want);
		assert.equal(head.level, level);
	}
});

test('the link of a port in words', () => {
	for (const [ port, want ] of [
		[ { state: 'waiting' }, 'absent' ], [ { up: false }, 'down' ], [ { up: true, carrier: false }, 'no carrier' ],
		[ { up: true, carrier: true, speed_mbit: 2500 }, '2.5 Gbit/s' ], [ { up: true, carrier: true, speed_mbit: 0 }, 'up' ], [ { state: 'accelerating' }, '–' ]
	])
		assert.equal(words.link(port), want);
});

test('every verdict has words here, the daemon\'s own', () => {
	const go = readFileSync(root + 'internal/datapath/verdict.go', 'utf8');
	const told = [ ...go.matchAll(/^\t\w+:\s+\{"(\w+)", "(.*)"\},$/gm) ].map(m => [ m[1], m[2] ]);
	assert.ok(told.length >= 17, 'no verdicts found in verdict.go');
	assert.deepEqual(words.verdictNames().sort(), told.map(t => t[0]).sort());
	for (const [ name, text ] of told)
		assert.equal(words.verdict(name, ''), text);
	assert.equal(words.verdict('pass_of_tomorrow', 'what it says'), 'what it says');
});

/* The sentences that the daemon may give as a reason, with %s for names. */
function toldReasons() {
	const found = [];
	for (const file of [ ...files(root + 'internal/control', '.go'), root + 'internal/adapt/words.go' ]) {
		if (file.endsWith('_test.go') || /\/(events|explain\w*)\.go$/.test(file))
			continue;
		readFileSync(file, 'utf8').split('\n').forEach((line, i) => {
			const m = line.match(/(?:return |reason :?= |\.why\[[^\]]+\] = |\.left\[[^\]]+\] = |engines\[e\] = |p\.reason = (?:api\.\w+, )?|api\.\w+, )(?:fmt\.(?:Sprintf|Errorf)\()?"((?:[^"\\]|\\.)*)"/);
			/* One word is a name, and what wraps an error is no reason by itself. */
			if (m && / /.test(m[1]) && !m[1].includes('%w') && !/Errorf/.test(line))
				found.push({ text: JSON.parse(`"${m[1]}"`), place: `${file.slice(root.length)}:${i + 1}` });
		});
	}
	return found;
}

test('every reason of the daemon is known here, so that it can be translated', () => {
	const told = toldReasons();
	assert.ok(told.length >= 20, `only ${told.length} reasons found in internal/control`);
	for (const { text, place } of told) {
		const e = reasons.explain(text.replace(/%(?:[sdv]|\.\df)/g, 'name').replaceAll('%%', '%'));
		assert.ok(!e.unknown, `${place}: add to luci-app/htdocs/luci-static/resources/xdpl2/reasons.js: ${text}`);
	}
});

test('reasons: names stay as they are, and one may hold another', () => {
	assert.equal(reasons.explain('eth4 is not a port of br-lan').text, 'eth4 is not a port of br-lan');
	assert.match(reasons.explain('eth4 is not a port of br-lan').todo, /Add it to the bridge/);
	assert.equal(reasons.explain('target eth2 cannot be used: eth2 is itself a bridge').text, 'its target eth2 cannot be used: eth2 is itself a bridge');
	assert.equal(reasons.explain('%s<b> is itself a bridge').text, '%s<b> is itself a bridge');
	assert.equal(reasons.explain('table bridge x (and 2 more): frames go through the bridge, so that it sees them; nft delete table bridge x; option bypass_filters of section main accelerates regardless').text,
		'table bridge x (and 2 more): frames go through the bridge, so that it sees them; nft delete table bridge x');
	const strange = reasons.explain('attach to eth1: operation not permitted');
	assert.equal(strange.text, 'attach to eth1: operation not permitted');
	assert.ok(strange.unknown && strange.todo);
});

test('the bar of verdicts', () => {
	const of = n => Array.from({ length: n }, (_, i) => ({ verdict: `pass_${i}`, words: `w${i}`, packets: 100 - i }));
	const bar = verdicts.parts([ ...of(9), { verdict: 'redirected', words: 'r', packets: 3 } ], {});
	assert.equal(bar.live, false);
	assert.equal(bar.parts.length, 6);
	assert.equal(bar.parts[0].name, 'redirected');
	assert.equal(bar.parts.at(-1).name, 'rest');
	assert.equal(bar.parts.reduce((s, p) => s + p.value, 0), 3 + of(9).reduce((s, v) => s + v.packets, 0));
	assert.deepEqual(verdicts.parts(of(2), { pass_1: 7 }).parts.map(p => [ p.name, p.value ]), [ [ 'pass_1', 7 ] ]);
});

test('what a calibration says', () => {
	const row = (work, size, engine, ratio, low, high) => ({ work, size, engine, rate: 1e6, ratio, low, high, ns_per_frame: 1000 });
	const groups = calibration.groups({ rows: [ row('roomy', 64, 'bridge', 1, 1, 1), row('roomy', 64, 'tc', 1.2, 1.1, 1.3),
		row('tcp', 0, 'bridge', 1, 1, 1), row('tcp', 0, 'generic', 0.4, 0.3, 0.5), row('tcp', 0, 'tc', 1, 0.9, 1.1) ] });
	assert.deepEqual(groups.map(g => [ g.text, g.unit, g.bridge, g.bars.map(b => `${b.engine} ${calibration.verdict(b, g.noise)}`) ]), [
		[ 'frames with room in front, 64 bytes', 'frames', 1e6, [ 'tc faster' ] ],
		[ 'one TCP stream', 'bits', 1e6, [ 'generic slower', 'tc no difference' ] ]
	]);
	assert.equal(calibration.highest(groups), 1.3);
	// Where the bridge differs from itself as much, a difference says nothing.
	const [ noisy ] = calibration.groups({ rows: [ row('tight', 64, 'bridge', 1, 0.7, 1.3), row('tight', 64, 'tc', 1.2, 1.1, 1.3), row('tight', 64, 'generic', 0.8, 0.7, 0.9) ] });
	assert.deepEqual(noisy.bars.map(b => calibration.verdict(b, noisy.noise)), [ 'no difference', 'no difference' ]);
	assert.deepEqual(calibration.groups({}), []);
	assert.equal(calibration.progress({ done: 3, of: 12 }), 0.25);
	assert.equal(calibration.progress({}), null);
	for (const [ text, want ] of [
		[ '64 bytes, tight', 'frames without room in front, 64 bytes' ],
		[ 'one TCP stream; 64 bytes, roomy: too little time in 5 seconds on this box', 'one TCP stream; frames with room in front, 64 bytes: too little time in 5 seconds on this box' ],
		[ 'everything: measuring needs pairs of virtual devices (veth): this kernel has none; install kmod-veth (operation not supported)',
			'everything: measuring needs pairs of virtual devices (veth), which this kernel does not have; install kmod-veth (operation not supported)' ],
		[ 'forwarding on a core of its own (only one CPU: forwarding and generator need one each): measured together with what makes the frames, less what that costs alone',
			'forwarding on a core of its own (only one CPU: forwarding and generator need one each): measured together with what makes the frames, less what that costs alone' ],
		[ 'something <new>', 'something <new>' ]
	])
		assert.equal(calibration.say(text), want);
});

test('devices: which cannot be a port, and why', () => {
	const d = (name, more) => ({ name, type: 'ethernet', up: true, ports: [], addresses: [], master: 'br-lan', ...more });
	for (const [ device, main, want ] of [
		[ d('eth1'), {}, '' ], [ d('br-lan', { type: 'bridge', master: null }), {}, 'is the bridge itself' ], [ d('br-guest', { type: 'bridge' }), {}, 'is itself a bridge' ],
		[ d('eth0', { master: null }), {}, 'is not a port of br-lan' ], [ d('eth0', { master: null }), { topology: 'replace' }, '' ],
		[ d('eth5', { master: 'br-guest' }), {}, 'is a port of br-guest, not of br-lan' ], [ d('eth5', { master: 'br-guest' }), { bridge: 'br-guest' }, '' ],
		[ d('wlan0', { type: 'wifi' }), {}, 'is wireless, which the settings do not allow' ], [ d('wlan0', { type: 'wifi' }), { wireless: '1' }, '' ],
		[ d('wg0', { type: 'tunnel', master: null }), {}, 'is not an Ethernet port' ]
	])
		assert.equal(devices.whyNot(device, main), want, device.name);
	assert.equal(devices.whyNot(d('eth1'), {}, { eth1: 'carries a foreign program' }), 'carries a foreign program');
});

test('devices: the way of the browser', () => {
	const all = [
		{ name: 'lo', ports: [], addresses: [ '127.0.0.1/8' ] },
		{ name: 'br-lan', ports: [ 'eth1', 'eth2' ], addresses: [ '192.168.1.1/24', 'fd00::1/64' ] },
		{ name: 'eth0', ports: [], addresses: [ '203.0.113.7/24' ] }
	];
	assert.deepEqual(Object.keys(devices.management(all, '192.168.1.1')), [ 'br-lan', 'eth1', 'eth2' ]);
	assert.deepEqual(Object.keys(devices.management(all, '[FD00::1]')), [ 'br-lan', 'eth1', 'eth2' ]);
	assert.deepEqual(Object.keys(devices.management(all, '203.0.113.7')), [ 'eth0' ]);
	assert.deepEqual(Object.keys(devices.management(all, '198.51.100.1')), []);
	// A name may be any of the addresses.
	assert.deepEqual(Object.keys(devices.management(all, 'istoreos.lan')), [ 'br-lan', 'eth1', 'eth2', 'eth0' ]);
});

test('colours have a contrast of 4.5 and more, on light pages and on dark ones', () => {
	const css = readFileSync(root + 'luci-app/htdocs/luci-static/resources/xdpl2/xdpl2.css', 'utf8');
	const rgb = hex => (hex.length == 4 ? [ ...hex.slice(1) ].map(c => c + c) : hex.slice(1).match(/../g)).map(c => parseInt(c, 16) / 255);
	const luminance = hex => rgb(hex).map(c => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((s, c, i) => s + c * [ 0.2126, 0.7152, 0.0722 ][i], 0);
	const contrast = (a, b) => {
		const [ x, y ] = [ luminance(a), luminance(b) ].sort((p, q) => q - p);
		return (x + 0.05) / (y + 0.05);
	};
	for (const [ selector, page, prefix ] of [ [ '.xdpl2', '#ffffff', '.xdpl2 .v' ], [ '.xdpl2.dark', '#2c2d30', '.xdpl2.dark .v' ] ]) {
		const block = css.match(new RegExp(`^${selector.replace(/\./g, '\\.')} \\{([^}]*)\\}`, 'm'))[1];
		const value = Object.fromEntries([ ...block.matchAll(/--(x-\w+(?:-\w+)?):\s*(#[0-9a-f]+);/g) ].map(m => [ m[1], m[2] ]));
		const parts = [ ...css.matchAll(new RegExp(`^${prefix.replace(/\./g, '\\.')}\\d \\{ background: (#[0-9a-f]+);`, 'gm')) ].map(m => m[1]);
		assert.equal(parts.length, 5, selector);
		for (const name of [ 'x-go', 'x-pass', 'x-good', 'x-warn', 'x-bad', 'x-idle' ]) {
			assert.ok(contrast(value[name], page) >= 4.5, `${selector} --${name} on the page: ${contrast(value[name], page).toFixed(2)}`);
			assert.ok(contrast(value[name], value['x-on']) >= 4.5, `${selector} --x-on on --${name}: ${contrast(value[name], value['x-on']).toFixed(2)}`);
		}
		for (const colour of parts)
			assert.ok(contrast(colour, value['x-on']) >= 4.5, `${selector} --x-on on ${colour}: ${contrast(colour, value['x-on']).toFixed(2)}`);
		assert.ok(contrast(value['x-tip'], value['x-tip-text']) >= 4.5);
	}
});
