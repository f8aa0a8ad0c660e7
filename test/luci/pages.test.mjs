// SPDX-License-Identifier: Apache-2.0
// The pages in a browser, against the real daemon in a lab router, and against
// doubles for what a healthy daemon does not do. They run in the test's own
// LuCI runtime; with XDPL2_LUCI, the luci-static folder of a real LuCI, and
// XDPL2_LUCI_THEME, that of a theme, they run in that one as well.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { close, missing, open, shots, startBrowser, startSite } from './site.mjs';

const here = missing();
const luci = process.env.XDPL2_LUCI, theme = process.env.XDPL2_LUCI_THEME;
const noLuci = !luci ? 'XDPL2_LUCI does not name the luci-static folder of a real LuCI'
	: existsSync(join(luci, 'resources/luci.js')) ? '' : `${luci}/resources/luci.js is missing`;

/* Doubles: made-up answers in place of the daemon's. */
const port = (device, more = {}) => ({
	device, state: 'accelerating', engine: 'tc', hook: 'tcx', engines: { tc: 'in use', generic: 'option engine asks for tc' }, up: true, carrier: true,
	speed_mbit: 2500, stations: 3, redirected: { packets: 1000, bytes: 1e6 }, passed: { packets: 10, bytes: 1000 }, ...more
});

function daemonDouble(ports, more = {}) {
	let up = 100;
	return () => {
		up += 3;
		const counted = ports.map(p => p.redirected ? { ...p,
			redirected: { packets: up * 1000, bytes: up * 1e6 }, passed: { packets: up * 10, bytes: up * 1000 } } : p);
		return [ 0, {
			version: '0.9', kernel: '6.6.1', uptime_seconds: up, enabled: true, mode: 'mac', topology: 'coexist', bridge: 'br-lan', ports: counted,
			stations: 3, max_stations: 4096, stations_overflow: 0, accelerated_share: 0.99, resyncs: 1, config_errors: [], config_warnings: [],
			verdicts: [ { verdict: 'redirected', words: 'r', packets: up * 1000, bytes: 0 }, { verdict: 'pass_group', words: 'g', packets: up * 10, bytes: 0 } ], ...more
		} ];
	};
}

const bodyText = page => page.locator('#view').innerText();
const gone = { error: { code: -32000, message: 'Object not found' } };

function suite(name, args, skip, real) {
	describe(name, { skip: skip || false, concurrency: false }, () => {
		let site, browser;
		const tag = real ? 'luci-' : '';

		before(async () => {
			site = await startSite(args);
			browser = await startBrowser();
			await site.command('traffic-on');
		});
		after(async () => {
			await browser?.close();
			await site?.stop();
		});

		/** Opens a page, runs a test on it, and sees that nothing went wrong in it. */
		const on = async (tab, options, f) => {
			const page = await open(browser, site, tab, options);
			try {
				await f(page);
				assert.deepEqual(page.wrong, [], 'errors in the page');
				const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
				assert.ok(over <= 0, `the page is ${over} px wider than the window`);
			}
			catch (e) {
				await page.screenshot({ path: join(shots, 'failed.png') });
				throw e;
			}
			finally {
				await close(page);
			}
		};
		const shot = (page, what) => page.screenshot({ path: join(shots, `${tag}${what}.png`) });
		const measured = page => page.waitForFunction(() => /[1-9]/.test(document.querySelector('.x-tile .x-value')?.textContent || ''));

		for (const [ width, height, dark ] of [ [ 1280, 800, false ], [ 1280, 800, true ], [ 360, 740, false ], [ 360, 740, true ] ])
			test(`overview at ${width} px, ${dark ? 'dark' : 'light'}: three questions answered without scrolling`, async () => {
				await on('overview', { width, height, dark }, async page => {
					await measured(page);
					await page.waitForFunction(() => document.querySelectorAll('.x-line.redirected').length > 0);
					assert.match(await page.locator('.x-headline').innerText(), /Accelerating 3 of 5 ports, [1-9]\d?(\.\d)?%|Accelerating 3 of 5 ports, 100%/);
					const tiles = await page.locator('.x-tiles').innerText();
					assert.match(tiles, /bit\/s/);
					const attention = page.locator('.x-attention');
					const text = await attention.innerText();
					assert.match(text, /eth4[^]*not a port of br-lan[^]*Add it to the bridge/);
					assert.match(text, /usb0[^]*there is no device usb0/);
					for (const what of [ '.x-headline', '.x-switch', '.x-tiles', '.x-attention' ]) {
						const box = await page.locator(what).boundingBox();
						assert.ok(box.y + box.height <= height, `${what} ends at ${box.y + box.height} of ${height} px`);
					}
					assert.equal(await page.locator('.xdpl2').evaluate(n => n.classList.contains('dark')), dark);
					await shot(page, `overview-${width}${dark ? '-dark' : ''}`);
				});
			});

		test('it polls with one call every 3 s, and not while it is hidden', async () => {
			await on('overview', {}, async page => {
				for (let i = 0; i < 150 && page.calls.filter(c => c.method == 'status').length < 4; i++)
					await page.waitForTimeout(200);
				const status = page.calls.filter(c => c.method == 'status');
				assert.ok(status.length >= 4);
				// On average: a busy machine delays one call and not the next.
				const seconds = (status.at(-1).at - status[1].at) / 1000;
				assert.ok(status.length - 2 <= seconds / 3 + 1, `${status.length - 2} calls in ${seconds} s`);
				assert.deepEqual(page.calls.filter(c => c.method != 'status').map(c => c.method), [ 'stations' ], 'the list of stations is asked for once');
				await page.evaluate(() => {
					Object.defineProperty(document, 'hidden', { value: true, configurable: true });
					document.dispatchEvent(new Event('visibilitychange'));
				});
				await page.waitForTimeout(200); // an answer on its way
				const before = page.calls.length;
				await page.waitForTimeout(5000);
				assert.equal(page.calls.length, before, 'calls while the page was hidden');
				await page.evaluate(() => {
					Object.defineProperty(document, 'hidden', { value: false, configurable: true });
					document.dispatchEvent(new Event('visibilitychange'));
				});
				await page.waitForFunction(() => document.querySelectorAll('.x-line.redirected').length > 0);
				for (let i = 0; i < 50 && page.calls.length == before; i++)
					await page.waitForTimeout(200);
				assert.ok(page.calls.length > before, 'no calls after it came back');
			});
		});

		test('chart: values under the pointer and under the keys', async () => {
			await on('overview', { answers: { 'xdpl2.status': daemonDouble([ port('eth1') ]) } }, async page => {
				await page.waitForFunction(() => document.querySelectorAll('.x-line.redirected').length > 0);
				const chart = page.locator('.x-chart'), box = await chart.boundingBox();
				await page.mouse.move(box.x + box.width - 15, box.y + 60);
				assert.match(await page.locator('.x-tip').innerText(), /redirected 8\.00 Mbit\/s[^]*passed to the bridge 8\.00 kbit\/s[^]*share of bits 99\.9%/);
				await page.mouse.move(5, 5);
				assert.equal(await page.locator('.x-tip').isVisible(), false);
				await chart.focus();
				await page.keyboard.press('ArrowLeft');
				assert.match(await page.locator('.x-tip').innerText(), /now[^]*redirected/);
				await page.keyboard.press('Escape');
				assert.equal(await page.locator('.x-tip').isVisible(), false);
				assert.match(await chart.getAttribute('aria-label'), /Traffic of all ports: now 8\.00 Mbit\/s redirected/);
				await page.locator('.x-tools select').nth(1).selectOption('frames');
				assert.match(await chart.getAttribute('aria-label'), /now 1\s000\/s redirected, 10\/s passed/);
			});
		});

		test('the whole page can be used by keyboard, and everything has a name', async () => {
			await on('overview', {}, async page => {
				await measured(page);
				const nameless = await page.evaluate(() => [ ...document.querySelectorAll('.xdpl2 button, .xdpl2 input, .xdpl2 select, .xdpl2 svg[tabindex]') ]
					.filter(n => !(n.getAttribute('aria-label') || n.textContent.trim() || n.closest('label'))).map(n => n.outerHTML.slice(0, 80)));
				assert.deepEqual(nameless, []);
				const reached = new Set();
				for (let i = 0; i < 40; i++) {
					await page.keyboard.press('Tab');
					reached.add(await page.evaluate(() => (document.activeElement.closest('.xdpl2') && document.activeElement.getAttribute('class')) || ''));
				}
				for (const cls of [ 'x-switch', 'x-chart', 'x-more' ])
					assert.ok(reached.has(cls), `Tab reaches ${cls}: ${[ ...reached ].join(', ')}`);
			});
		});

		test('details of a port: each engine, and its own counters', async () => {
			await on('overview', {}, async page => {
				await measured(page);
				const button = page.getByRole('button', { name: 'Details of eth1' });
				await button.press('Enter');
				await page.waitForFunction(() => /sent out by the fast path/.test(document.querySelector('.x-detail')?.textContent || ''));
				const text = await page.locator('.x-detail').first().innerText();
				assert.match(text, /Engine tc\s+in use/);
				assert.match(text, /Engine native\s+eth1 is virtual \(veth\)/);
				assert.equal(await button.getAttribute('aria-expanded'), 'true');
				// It stays open when the next answer comes.
				const asked = page.calls.length;
				for (let i = 0; i < 50 && page.calls.length == asked; i++)
					await page.waitForTimeout(200);
				assert.equal(await page.locator('.x-detail').first().isVisible(), true);
			});
		});

		test('stations: searched by the daemon, and names are not markup', async () => {
			await on('overview', {}, async page => {
				const table = page.getByRole('table', { name: 'Stations' });
				await page.waitForFunction(() => /02:00:5e:00:53:07/.test(document.body.innerText));
				assert.match(await table.innerText(), /nas <b>one<\/b>/);
				await page.getByRole('searchbox').fill('53:07');
				await page.waitForFunction(() => /^1 to 1 of 1$/m.test(document.body.innerText));
				assert.deepEqual(page.calls.at(-1).method == 'stations' ? page.calls.at(-1).args : page.calls.filter(c => c.method == 'stations').at(-1).args,
					{ search: '53:07', limit: 25, offset: 0 });
				await page.getByRole('searchbox').fill('nobody');
				await page.waitForFunction(() => /No station is found by that/.test(document.body.innerText));
			});
		});

		test('the switch: off and on, through UCI, with the daemon following', async () => {
			await on('overview', {}, async page => {
				await measured(page);
				const toggle = page.getByRole('switch');
				assert.equal(await toggle.getAttribute('aria-checked'), 'true');
				await toggle.click();
				await page.waitForFunction(() => /Switched off: the bridge carries everything/.test(document.querySelector('.x-headline')?.textContent || ''));
				assert.match(await site.config(), /option enabled '0'/);
				await page.waitForFunction(() => document.querySelector('.x-switch')?.getAttribute('aria-checked') == 'false' && !document.querySelector('.x-switch').disabled);
				await page.waitForFunction(() => !document.querySelector('#modal_overlay')?.offsetParent || !document.body.classList.contains('modal-overlay-active'));
				await page.getByRole('switch').click();
				await page.waitForFunction(() => /Accelerating 3 of 5/.test(document.querySelector('.x-headline')?.textContent || ''));
				assert.match(await site.config(), /option enabled '1'/);
			});
		});

		test('a daemon that has gone: what is wrong and what to do; and it is noticed when it is back', async () => {
			await on('overview', {}, async page => {
				await measured(page);
				await site.command('kill');
				await page.getByText('The daemon is not running').waitFor();
				assert.match(await bodyText(page), /\/etc\/init\.d\/xdpl2 start[^]*logread -e xdpl2/);
				assert.equal(await page.locator('.x-tiles').isVisible(), false);
				await site.command('start');
				await page.locator('.x-tiles').waitFor();
				assert.match(await page.locator('.x-headline').innerText(), /Accelerating 3 of 5/);
			});
		});

		test('explain: the sentence of the daemon, mistakes beside their field', async () => {
			await on('explain', {}, async page => {
				await page.getByLabel('To (destination address)').fill('02:00:5e:00:53');
				await page.getByRole('button', { name: 'Explain' }).click();
				await page.getByText('not valid; expected the address of one host').waitFor();
				assert.deepEqual(page.calls.filter(c => c.method == 'explain'), []);
				await page.getByLabel('To (destination address)').fill('ff:ff:ff:ff:ff:ff');
				await page.getByLabel('VLAN tag').fill('4095');
				await page.getByRole('button', { name: 'Explain' }).click();
				await page.getByText('expected a number from 1 to 4094').waitFor();
				// The daemon itself, in the end.
				await page.getByLabel('VLAN tag').fill('');
				await page.getByRole('button', { name: 'Explain' }).click();
				await page.getByText('It goes through the bridge').waitFor();
				assert.match(await bodyText(page), /pass_group broadcast or multicast/);
			});
			for (const [ enabled, title ] of [ [ '1', 'The daemon is not running' ], [ '0', 'xdpl2 is switched off' ] ]) {
				const values = { main: { '.type': 'xdpl2', '.name': 'main', '.anonymous': false, '.index': 0, enabled } };
				await on('explain', { answers: { 'xdpl2.status': () => gone, 'uci.get': () => [ 0, { values } ] } }, async page => {
					await page.getByText(title).waitFor();
				});
			}
			const text = 'eth1 would send it out of eth2 <b>at once</b>.';
			await on('explain', { width: 360, answers: { 'xdpl2.explain': () => [ 0, { verdict: 'redirected', text, egress: 'eth2', engine: 'tc', source: '02:00:5e:00:53:01' } ] } }, async page => {
				await page.getByLabel('To (destination address)').fill('02:00:5e:00:53:02');
				await page.getByRole('button', { name: 'Explain' }).click();
				await page.getByText(text).waitFor();
				assert.match(await bodyText(page), /It goes past the bridge[^]*Leaves by\s+eth2/);
				assert.deepEqual(page.calls.find(c => c.method == 'explain').args, { device: 'eth1', destination: '02:00:5e:00:53:02' });
				await shot(page, 'explain-360');
			});
			const wrong = { error: 'explain: source \'02:00\': expected a MAC address', kind: 'usage', argument: 'source' };
			await on('explain', { answers: { 'xdpl2.explain': () => [ 2, wrong ] } }, async page => {
				await page.getByLabel('To (destination address)').fill('02:00:5e:00:53:02');
				await page.getByRole('button', { name: 'Explain' }).click();
				await page.locator('#x-wrong-source').getByText(wrong.error).waitFor();
			});
		});

		test('benchmark: started, followed, shown as a chart', async () => {
			const row = (work, size, engine, ratio, spread) => ({ work, size, engine, rate: 1e6 * ratio, ratio, low: ratio - spread, high: ratio + spread, ns_per_frame: 1000 / ratio });
			const table = { time: '2026-01-02T03:04:05Z', kernel: '6.6.1', machine: 'Lab <i>', rows: [
				row('roomy', 64, 'bridge', 1, 0), row('roomy', 64, 'tc', 1.3, 0.05), row('roomy', 64, 'generic', 1.8, 0.1),
				row('tcp', 0, 'bridge', 1, 0), row('tcp', 0, 'tc', 1, 0.05), row('tcp', 0, 'generic', 0.46, 0.02) ], missing: [ 'native: no such driver here' ] };
			let running = false, done = 0, finished = false;
			const status = daemonDouble([ port('eth1') ]);
			const answers = {
				'xdpl2.status': () => {
					if (running && ++done > 2)
						[ running, finished ] = [ false, true ];
					const [ code, s ] = status();
					return [ code, running ? { ...s, calibrating: { done, of: 3, text: 'tc, 64 bytes' } } : s ];
				},
				'xdpl2.calibrate': args => {
					if (args.seconds > 0) {
						running = true;
						return { error: { code: -32003, message: 'Request timed out' } }; // as uhttpd after 30 s
					}
					return finished ? [ 0, table ] : [ 5 ];
				}
			};
			await on('benchmark', { answers }, async page => {
				await page.getByRole('button', { name: 'Measure' }).click();
				await page.getByText('tc, 64 bytes (step 1 of 3)').waitFor();
				await page.getByText('1.80× faster').waitFor();
				const text = await bodyText(page);
				assert.match(text, /0\.46× slower/);
				assert.match(text, /1\.00× no difference/);
				assert.match(text, /Lab <i>/);
				assert.match(text, /native: no such driver here/);
				await shot(page, 'benchmark-1280');
			});
		});

		test('benchmark: the real daemon measures (XDPL2_LONG=1: longer than the web interface waits)', async () => {
			// It waits 30 s; a minute of measuring is long for each run of the tests.
			const long = !!process.env.XDPL2_LONG;
			await on('benchmark', { height: 1400 }, async page => {
				await page.getByLabel('For about').selectOption(long ? '60' : '10');
				await page.getByRole('button', { name: 'Measure' }).click();
				await page.getByText(/\d+ bytes \(step \d+ of \d+\)|one TCP stream \(step/).waitFor({ timeout: 30_000 });
				assert.equal(await page.getByRole('button', { name: 'Measure' }).isEnabled(), false);
				await shot(page, 'benchmark-running');
				// Who comes back finds it going on, and nobody can start a second one.
				if (long)
					await on('benchmark', { query: 'lang=zh_Hans' }, async other => {
						await other.getByText(/（第 \d+ 步，共 \d+ 步）/).waitFor({ timeout: 30_000 });
					});
				await page.getByText('Times the bridge').first().waitFor({ timeout: 100_000 });
				const calls = page.calls.filter(c => c.method == 'calibrate');
				if (long)
					assert.ok(calls.length >= 3, 'the first call was answered after all: the test does not test what it says');
				const text = await bodyText(page);
				assert.match(text, /frames without room in front, 64 bytes/);
				assert.match(text, /(faster|slower|no difference)/);
				await shot(page, 'benchmark-real');
			});
			await on('benchmark', { query: 'lang=zh_Hans', width: 360, height: 1400 }, async page => {
				await page.waitForFunction(() => document.querySelectorAll('.x-ratio').length > 0);
				await shot(page, 'benchmark-real-zh-360');
			});
		});

		test('benchmark: one that is cancelled, and one that fails', async () => {
			const status = daemonDouble([ port('eth1') ]);
			let polls = 0;
			const answers = {
				'xdpl2.status': () => {
					const [ code, s ] = status();
					return [ code, ++polls < 3 ? { ...s, calibrating: { done: 1, of: 9, text: '64 bytes, tight' } } : s ];
				},
				'xdpl2.calibrate': args => args.seconds > 0 ? [ 9, { error: 'load the BPF programs: not permitted', kind: 'failed' } ] : [ 5, { error: 'nothing has been measured yet', kind: 'no_data' } ]
			};
			await on('benchmark', { answers }, async page => {
				await page.getByText('frames without room in front, 64 bytes (step 1 of 9)').waitFor();
				await page.getByText('The measurement ended before it was done').waitFor();
				await page.getByRole('button', { name: 'Measure' }).click();
				await page.getByText('It was not measured').waitFor();
				assert.match(await bodyText(page), /load the BPF programs: not permitted/);
			});
		});

		test('benchmark: a daemon that cannot measure says so', async () => {
			await on('benchmark', { answers: { 'xdpl2.calibrate': () => [ 3 ] } }, async page => {
				await page.getByText('This daemon cannot measure').waitFor();
				assert.match(await bodyText(page), /has no method calibrate/);
			});
		});

		describe('what can be wrong has a page that says what to do', () => {
			for (const [ what, answer, title, todo ] of [
				[ 'no rights', { error: { code: -32002, message: 'Access denied' } }, 'This login may not ask the daemon', /rpcd reload/ ],
				[ 'no object, switched on', gone, 'The daemon is not running', /xdpl2 start/ ],
				[ 'no answer in time', { error: { code: -32003, message: 'Request timed out' } }, 'The daemon does not answer', /xdpl2 restart/ ],
				[ 'no such method', [ 3 ], 'This daemon is older than the page', /same version/ ],
				[ 'an answer that is none', [ 0 ], 'The daemon reports an error', /logread/ ],
				[ 'a strange answer', [ 0, { what: 'else' } ], 'answer is not understood', /same version/ ],
				[ 'no connection', 'abort', 'The box does not answer', /connection/ ]
			])
				test(what, async () => {
					await on('overview', { width: 360, height: 740, answers: { 'xdpl2.status': () => answer } }, async page => {
						await page.getByText(title).waitFor();
						assert.match(await bodyText(page), todo);
						assert.equal(await page.locator('.x-tiles').isVisible(), false);
					});
				});

			test('no object, switched off: how to switch on', async () => {
				const values = { main: { '.type': 'xdpl2', '.name': 'main', '.anonymous': false, '.index': 0, enabled: '0' } };
				await on('overview', { answers: { 'xdpl2.status': () => gone, 'uci.get': () => [ 0, { values } ] } }, async page => {
					await page.getByText('Switched off: the bridge carries everything').waitFor();
					assert.match(await bodyText(page), /No port is configured yet[^]*Choose ports/);
					assert.equal(await page.getByRole('switch').isEnabled(), true);
				});
			});

			test('no configuration at all', async () => {
				await on('overview', { answers: { 'xdpl2.status': () => gone, 'uci.get': () => [ 0, { values: {} } ] } }, async page => {
					await page.getByText('There is no configuration').waitFor();
					assert.match(await bodyText(page), /touch \/etc\/config\/xdpl2/);
				});
			});

			test('on, but no ports', async () => {
				await on('overview', { answers: { 'xdpl2.status': daemonDouble([]) } }, async page => {
					await page.getByText('On, but no port is configured').waitFor();
					assert.match(await bodyText(page), /Choose ports/);
				});
			});

			test('a mistake in the configuration, where it is', async () => {
				const problem = { severity: 'error', file: '/etc/config/xdpl2', line: 7, section: '@port[1]', option: 'device', value: '<u>eth1',
					message: 'the same device is in section @port[0] already', expected: 'each device once', text: '...' };
				await on('overview', { width: 360, height: 740, answers: { 'xdpl2.status': daemonDouble([ port('eth1') ], { config_errors: [ problem ] }) } }, async page => {
					await page.getByText('The configuration has a mistake').waitFor();
					assert.match(await bodyText(page), /\/etc\/config\/xdpl2:7, section @port\[1\], option device '<u>eth1': the same device is in section @port\[0\] already; expected each device once/);
				});
			});

			test('an older daemon, which does not count by port', async () => {
				const old = () => [ 0, { version: '0.0.9', enabled: true, mode: 'mac', ports: [ { device: 'eth1', state: 'accelerating', engine: 'tc' }, { device: 'eth2', state: 'failed', reason: 'why ever' } ] } ];
				await on('overview', { answers: { 'xdpl2.status': old } }, async page => {
					await page.getByText('This daemon is older than the page').waitFor();
					assert.match(await bodyText(page), /Accelerating 1 of 2 ports[^]*eth2[^]*failed: why ever/);
				});
			});

			test('a login that may only look', async () => {
				await on('overview', { query: 'user=viewer' }, async page => {
					await measured(page);
					assert.equal(await page.getByRole('switch').isEnabled(), false);
					assert.match(await bodyText(page), /may look, but not change anything/);
				});
				await on('benchmark', { query: 'user=viewer', answers: { 'xdpl2.calibrate': () => [ 6 ] } }, async page => {
					await page.getByText('may look, but not start a measurement').waitFor();
					assert.equal(await page.getByRole('button', { name: 'Measure' }).isEnabled(), false);
				});
			});

			test('a login without the access group', async () => {
				await on('overview', { query: 'user=other' }, async page => {
					await page.getByText('This login may not ask the daemon').waitFor();
				});
			});
		});

		test('64 ports and 16,384 stations', async () => {
			const ports = Array.from({ length: 64 }, (_, i) => port(`eth${i}`, i % 3 ? {} : { state: 'not_accelerated', reason: `eth${i} is itself a bridge`, engine: '', hook: '' }));
			const mac = n => '02:00:' + [ 24, 16, 8, 0 ].map(s => ((n >>> s) & 255).toString(16).padStart(2, '0')).join(':');
			const answers = {
				'xdpl2.status': daemonDouble(ports, { stations: 16384, max_stations: 16384, stations_overflow: 9 }),
				'xdpl2.stations': a => [ 0, { total: 16384, stations: Array.from({ length: Math.min(a.limit, 16384 - a.offset) }, (_, i) => (
					{ mac: mac(a.offset + i), vlan: 1, port: 'eth1', source: 'bridge', seen_seconds: i })) } ]
			};
			for (const [ width, height ] of [ [ 1280, 800 ], [ 360, 740 ] ])
				await on('overview', { width, height, answers }, async page => {
					await page.getByText('1 to 25 of 16\u202f384').waitFor();
					const text = await bodyText(page);
					assert.match(text, /Accelerating 42 of 64 ports/);
					assert.match(text, /22 ports are not accelerated[^]*and 19 more, in the table below/);
					assert.match(text, /9 stations did not fit/);
					await page.getByRole('button', { name: 'Next' }).click();
					await page.getByText('26 to 50 of 16\u202f384').waitFor();
					assert.equal(await page.locator('table[aria-label="Stations"] tbody tr').count(), 25);
					assert.equal(await page.locator('tr[data-device]').count(), 64);
				});
		});

		test('names with markup in them are shown as they are', async () => {
			const name = '<img src=x>', evil = '<img src=x onerror="document.title=\'taken\'">';
			const answers = {
				'xdpl2.status': daemonDouble([ port(name, { state: 'failed', reason: evil, engine: evil, engines: { [evil]: evil }, target: evil }) ], {
					version: evil, bridge: evil, mode: evil, kernel: evil, verdicts: [ { verdict: evil, words: evil, packets: 5, bytes: 5 } ],
					config_warnings: [ { file: evil, section: evil, option: evil, value: evil, message: evil, expected: evil, text: evil } ] }),
				'xdpl2.stations': () => [ 0, { total: 1, stations: [ { mac: evil, vlan: 1, port: evil, source: evil, seen_seconds: -1 } ] } ],
				'xdpl2.counters': () => [ 0, { counters: [ { device: name, verdicts: [ { verdict: evil, words: evil, packets: 1, bytes: 1 } ] } ] } ]
			};
			await on('overview', { answers }, async page => {
				await page.getByText('Details of').or(page.locator('.x-more')).first().click();
				await page.waitForFunction(() => document.querySelectorAll('.x-line.redirected').length > 0);
				assert.equal(await page.locator('.xdpl2 img').count(), 0);
				assert.notEqual(await page.title(), 'taken');
				assert.match(await bodyText(page), /<img src=x> failed: <img src=x onerror/);
			});
		});

		test('Chinese: no English sentence is left', async () => {
			for (const tab of [ 'overview', 'explain', 'benchmark' ])
				await on(tab, { query: 'lang=zh_Hans', width: tab == 'overview' ? 1280 : 360, answers: tab == 'benchmark' ? { 'xdpl2.calibrate': () => [ 5 ] } : {} }, async page => {
					await page.waitForFunction(() => /[\u4e00-\u9fff]{2}/.test(document.querySelector('.xdpl2')?.innerText || ''));
					if (tab == 'overview')
						await measured(page);
					const text = await page.locator('.xdpl2').innerText();
					const english = (text.match(/[A-Za-z]{3,}(?: [a-z]{2,}){2,}/g) || []);
					assert.deepEqual(english, [], tab);
					await shot(page, `${tab}-zh`);
				});
		});
	});
}

suite('in the test\'s own runtime', [], here, false);
suite('in a real LuCI', [ '--luci', luci, ...(theme ? [ '--theme', theme ] : []) ], here || noLuci, true);
