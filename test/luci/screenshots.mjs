// SPDX-License-Identifier: Apache-2.0
// Takes the screenshots of docs/luci.md: the lab router with traffic for two
// minutes, in a real LuCI (XDPL2_LUCI, XDPL2_LUCI_THEME).
import { join } from 'node:path';
import { open, root, startBrowser, startSite } from './site.mjs';

const { XDPL2_LUCI: luci, XDPL2_LUCI_THEME: theme, LOAD: load = '4', SECONDS: seconds = '110' } = process.env;
const site = await startSite([ '--load', load, ...(luci ? [ '--luci', luci ] : []), ...(theme ? [ '--theme', theme ] : []) ]);
const browser = await startBrowser();
await site.command('traffic-on');
const wide = await open(browser, site, 'overview', { width: 1100, height: 1000 });
const narrow = await open(browser, site, 'overview', { width: 360, height: 740, dark: true, query: 'lang=zh_Hans' });
await new Promise(resolve => setTimeout(resolve, 1000 * seconds));
await wide.screenshot({ path: join(root, 'docs/luci-overview.png') });
await narrow.screenshot({ path: join(root, 'docs/luci-phone.png') });
await browser.close();
await site.stop();
