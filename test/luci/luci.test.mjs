// SPDX-License-Identifier: Apache-2.0
// The settings page in a real LuCI, against the real daemon. XDPL2_LUCI names
// LuCI's luci-static folder and XDPL2_LUCI_THEME that of a theme; without the
// first these tests are skipped.
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { close, missing, open, shots, startBrowser, startSite } from './site.mjs';
import { load } from './load.mjs';

const luci = process.env.XDPL2_LUCI, theme = process.env.XDPL2_LUCI_THEME;
const skip = missing() || (!luci ? 'XDPL2_LUCI does not name the luci-static folder of a real LuCI'
	: existsSync(join(luci, 'resources/luci.js')) ? false : `${luci}/resources/luci.js is missing`);
const { options } = load('xdpl2.options');

describe('settings in a real LuCI', { skip, concurrency: false }, () => {
	let site, browser;

	before(async () => {
		site = await startSite([ '--luci', luci, ...(theme ? [ '--theme', theme ] : []) ]);
		browser = await startBrowser();
	});
	after(async () => {
		await browser?.close();
		await site?.stop();
	});

	const on = async (settings, f) => {
		const page = await open(browser, site, 'settings', settings);
		try {
			await page.locator('.cbi-map').waitFor();
			await f(page);
			// LuCI leaves the rejection of a save that was refused to the console.
			assert.deepEqual(page.wrong.filter(w => !/Cancelled|Nothing was saved|invalid input value|already|must not be empty|missing, and mode/.test(w)), []);
		}
		catch (e) {
			await page.screenshot({ path: join(shots, 'failed.png') });
			throw e;
		}
		finally {
			await close(page);
		}
	};
	const widget = (page, name) => page.locator(`[data-field="cbid.xdpl2.${name}"] select`);
	const row = (page, device) => page.locator('#cbi-xdpl2-port tr.cbi-section-table-row')
		.filter({ has: page.locator('[data-name="device"]', { hasText: new RegExp(`^\\s*${device}\\s*$`) }) });
	const applied = page => page.waitForResponse(r => r.url().includes('/admin/uci/confirm') && r.ok());
	const pick = async (page, field, value) => {
		const box = page.locator(`.modal [data-name="${field}"] .cbi-dropdown`);
		await box.click();
		await box.locator(`li[data-value="${value}"]`).first().click();
	};

	test('every option is there', async () => {
		await on({}, async page => {
			for (const o of options.filter(x => x.section == 'xdpl2'))
				assert.equal(await page.locator(`#cbi-xdpl2-main [data-name="${o.name}"]`).count(), 1, o.name);
			for (const o of options.filter(x => x.section == 'tuning'))
				assert.equal(await page.locator(`#cbi-xdpl2-tuning [data-name="${o.name}"]`).count(), 1, o.name);
			for (const o of options.filter(x => x.section == 'station'))
				assert.ok(await page.locator(`#cbi-xdpl2-station [data-name="${o.name}"]`).count() > 0, o.name);
			await page.screenshot({ path: join(shots, 'luci-settings-1280.png'), fullPage: true });
			await row(page, 'eth1').getByRole('button', { name: 'Edit' }).click();
			await page.locator('.modal [data-name="device"]').waitFor();
			for (const o of options.filter(x => x.section == 'port'))
				assert.equal(await page.locator(`.modal [data-name="${o.name}"]`).count(), 1, o.name);
			await page.screenshot({ path: join(shots, 'luci-port-1280.png') });
		});
	});

	test('the picker says what cannot be used and why, names as they are', async () => {
		await on({}, async page => {
			await page.getByRole('button', { name: 'Add port' }).click();
			const box = page.locator('.modal [data-name="device"] .cbi-dropdown');
			await box.click();
			const text = await box.innerText();
			assert.match(text, /br-lan[^\n]*cannot be used: is the bridge itself/);
			assert.match(text, /wlan0[^\n]*cannot be used: is wireless/);
			assert.match(text, /eth0[^\n]*cannot be used: is not a port of br-lan/);
			assert.match(text, /<s>eth9/);
			assert.equal(await page.locator('.modal s').count(), 0);
		});
	});

	test('a port that is there already is refused in the daemon\'s words', async () => {
		await on({}, async page => {
			const before = await site.config();
			await page.getByRole('button', { name: 'Add port' }).click();
			await pick(page, 'device', 'eth1');
			await page.locator('.modal').getByRole('button', { name: 'Save' }).click();
			await page.waitForFunction(() => /the same device is in section @port\[0\] already; expected each device once/.test(
				document.querySelector('.modal [data-name="device"] [data-tooltip]')?.getAttribute('data-tooltip') || document.body.innerText));
			assert.equal(await site.config(), before);
		});
	});

	test('Save & Apply, and the daemon has it', async () => {
		await on({}, async page => {
			await page.locator('.cbi-tabmenu').getByText('Advanced', { exact: true }).click();
			await widget(page, 'main.log_level').selectOption('debug');
			const done = applied(page);
			await page.getByText('Save & Apply', { exact: true }).first().click();
			await done;
			assert.match(await site.config(), /option log_level 'debug'/);
			// Defaults are not written down.
			assert.doesNotMatch(await site.config(), /max_stations|bypass_filters|wireless/);
		});
	});

	test('a port is added, and the daemon takes it', async () => {
		await on({}, async page => {
			await row(page, 'usb0').getByRole('button', { name: 'Delete' }).click();
			await page.getByRole('button', { name: 'Add port' }).click();
			await pick(page, 'device', 'eth0');
			await page.locator('.modal').getByRole('button', { name: 'Save' }).click();
			await row(page, 'eth0').waitFor();
			const done = applied(page);
			await page.getByText('Save & Apply', { exact: true }).first().click();
			await done;
			const config = await site.config();
			assert.match(config, /option device 'eth0'/);
			assert.doesNotMatch(config, /usb0/);
		});
	});

	test('mode port without targets is refused, and says which port', async () => {
		await on({}, async page => {
			const before = await site.config();
			await widget(page, 'main.mode').selectOption('port');
			await page.getByText('Save', { exact: true }).last().click();
			await page.getByText('@port[0]: missing, and mode is port; expected the device that frames from eth1 leave by').first().waitFor();
			assert.equal(await site.config(), before);
		});
	});

	test('the way to the page is asked for before it goes into a wire', async () => {
		await on({}, async page => {
			await row(page, 'eth1').getByRole('button', { name: 'Edit' }).click();
			await pick(page, 'target', 'eth4');
			await page.locator('.modal').getByRole('button', { name: 'Save' }).click();
			await page.locator('.modal').waitFor({ state: 'hidden' });
			// After the dialog: closing it makes LuCI draw the form anew.
			for (const [ , device ] of (await site.config()).matchAll(/option device '((?!eth1)\w+)'/g))
				await row(page, device).locator('[data-name="enabled"] input[type="checkbox"]').uncheck();
			await widget(page, 'main.mode').selectOption('port');
			const before = await site.config();
			await page.getByText('Save & Apply', { exact: true }).first().click();
			await page.getByText('The way to this page goes through a wire').waitFor();
			assert.match(await page.locator('.modal').innerText(), /through eth1\.[^]*Frames to the box itself still reach it/);
			await page.screenshot({ path: join(shots, 'luci-wire-1280.png') });
			await page.getByRole('button', { name: 'Cancel' }).click();
			assert.equal(await site.config(), before);
			await page.getByText('Save & Apply', { exact: true }).first().click();
			const done = applied(page);
			await page.getByRole('button', { name: 'Make the wire' }).click();
			await done;
			assert.match(await site.config(), /option mode 'port'/);
			assert.match(await site.config(), /option target 'eth4'/);
		});
	});

	test('a login that may only look cannot save', async () => {
		await on({ query: 'user=viewer', width: 360, height: 740 }, async page => {
			assert.equal(await page.getByRole('button', { name: 'Save', exact: true }).isEnabled(), false);
		});
	});
});
