// SPDX-License-Identifier: Apache-2.0
// Starts the router with its web interface, and a browser in front of it.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

export const root = fileURLToPath(new URL('../../', import.meta.url));
/** Where screenshots are kept. */
export const shots = join(root, 'build/luci');

const chrome = process.env.CHROMIUM || '/usr/bin/chromium';

/** Why there can be no browser tests here; '' if there can. */
export function missing() {
	if (!existsSync(chrome))
		return `no ${chrome} (Debian's package chromium; CHROMIUM names another)`;
	if (!existsSync(join(root, 'build/luci-site')) || !existsSync(join(root, 'build/xdpl2')))
		return 'build/luci-site or build/xdpl2 is missing (make test-luci builds them)';
	return '';
}

/** Starts build/luci-site; its address comes when all of it is ready. */
export async function startSite(args) {
	const child = spawn(join(root, 'build/luci-site'), [ '--root', root, '--daemon', join(root, 'build/xdpl2'), ...args ], { stdio: [ 'pipe', 'pipe', 'inherit' ] });
	const url = await new Promise((resolve, reject) => {
		let text = '';
		child.stdout.on('data', data => {
			text += data;
			if (text.includes('\n'))
				resolve(JSON.parse(text.split('\n')[0]).url);
		});
		child.on('exit', code => reject(new Error(`luci-site ended with ${code}`)));
	});
	return {
		url,
		command: async name => {
			const res = await fetch(`${url}/test/${name}`, { method: 'POST' });
			if (!res.ok)
				throw new Error(`${name}: ${await res.text()}`);
		},
		config: async () => (await fetch(`${url}/test/config`)).text(),
		stop: () => new Promise(resolve => {
			child.removeAllListeners('exit');
			child.on('exit', resolve);
			child.stdin.end();
		})
	};
}

export async function startBrowser() {
	mkdirSync(shots, { recursive: true });
	return chromium.launch({
		executablePath: chrome,
		args: [ '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync' ]
	});
}

const closing = new WeakSet();

/** Closes a page that was opened with open. */
export async function close(page) {
	closing.add(page.context());
	await page.unrouteAll({ behavior: 'ignoreErrors' });
	await page.context().close();
}

/**
 * Opens a page. Anything that goes wrong in it is kept in page.wrong, every call
 * of the daemon in page.calls. answers take the place of the daemon's: doubles,
 * by method, each a function of the arguments that returns the JSON-RPC result,
 * or {error}.
 */
export async function open(browser, site, tab, options = {}) {
	const { width = 1280, height = 800, dark = false, query = '', answers = {} } = options;
	const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? 'dark' : 'light' });
	context.setDefaultTimeout(90000); // never waited out on a machine that is not busy
	const page = await context.newPage();
	page.wrong = [];
	page.calls = [];
	page.on('pageerror', e => page.wrong.push(e.stack || e.message));
	page.on('console', m => {
		if (m.type() == 'error' && !/status of (404|5\d\d)|ERR_/.test(m.text()))
			page.wrong.push(m.text());
	});
	const answer = async route => {
		const body = route.request().postDataJSON(), all = [].concat(body), out = [];
		for (const msg of all)
			if (msg.method == 'call' && msg.params[1] == 'xdpl2')
				page.calls.push({ at: Date.now(), method: msg.params[2], args: msg.params[3] });
		if (!all.some(m => m.method == 'call' && answers[`${m.params[1]}.${m.params[2]}`]))
			return route.continue();
		for (const msg of all) {
			const double = answers[`${msg.params[1]}.${msg.params[2]}`];
			if (double) {
				const given = double(msg.params[3]);
				if (given == 'abort')
					return route.abort();
				out.push(Array.isArray(given) ? { jsonrpc: '2.0', id: msg.id, result: given } : { jsonrpc: '2.0', id: msg.id, ...given });
			}
			else {
				const res = await page.request.post(route.request().url(), { data: msg });
				out.push(await res.json());
			}
		}
		return route.fulfill({ json: Array.isArray(body) ? out : out[0] });
	};
	/* A page that is closed while it asks needs no answer any more. */
	await page.route('**/ubus/**', route => answer(route).catch(e => {
		if (!closing.has(context))
			throw e;
	}));
	await page.goto(`${site.url}/cgi-bin/luci/admin/network/xdpl2/${tab}?dark=${dark}&${query}`);
	return page;
}
