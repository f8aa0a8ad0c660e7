// SPDX-License-Identifier: Apache-2.0
// Messages of the LuCI pages: what their sources say in _(), the titles of the
// menu, the descriptions of the access groups, and what the generated list of
// options says. Writes po/templates/xdpl2.pot and brings each .po in line with
// it, keeping its translations; with --check it changes nothing and fails if
// that would change something, or if a translation is missing or wrong.
import { readFileSync, readdirSync, writeFileSync, existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'espree';
import { load } from './load.mjs';

const root = fileURLToPath(new URL('../../', import.meta.url));
const app = join(root, 'luci-app');

/** All files below a folder with an ending, in order. */
export function files(dir, ending) {
	return readdirSync(dir, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1)).flatMap(e =>
		e.isDirectory() ? files(join(dir, e.name), ending) : e.name.endsWith(ending) ? [ join(dir, e.name) ] : []);
}

function literal(node) {
	if (node.type == 'Literal' && typeof node.value == 'string')
		return node.value;
	if (node.type == 'BinaryExpression' && node.operator == '+') {
		const a = literal(node.left), b = literal(node.right);
		return a == null || b == null ? null : a + b;
	}
	return null;
}

function walk(node, visit) {
	if (!node || typeof node != 'object')
		return;
	if (Array.isArray(node))
		return node.forEach(n => walk(n, visit));
	if (typeof node.type == 'string')
		visit(node);
	for (const k in node)
		if (k != 'loc' && k != 'range')
			walk(node[k], visit);
}

/** The messages of a script: [message, line]. */
export function messagesOf(source) {
	const found = [];
	const ast = parse(source, { ecmaVersion: 2015, sourceType: 'script', loc: true, ecmaFeatures: { globalReturn: true } });
	walk(ast, n => {
		if (n.type != 'CallExpression' || n.callee.type != 'Identifier' || n.callee.name != '_' || !n.arguments.length)
			return;
		const text = literal(n.arguments[0]);
		if (text != null)
			found.push([ text, n.loc.start.line ]);
	});
	return found;
}

/** All messages with the places where they are: Map of message to places. */
export function messages() {
	const all = new Map();
	const add = (text, place) => {
		if (text)
			all.set(text, [ ...(all.get(text) || []), place ]);
	};
	for (const file of files(join(app, 'htdocs'), '.js'))
		for (const [ text, line ] of messagesOf(readFileSync(file, 'utf8')))
			add(text, `${relative(root, file)}:${line}`);
	for (const o of load('xdpl2.options').options)
		for (const text of [ o.help, o.expected, o.ignored, o.list ? o.default : '' ])
			add(text, `internal/config: ${o.section}.${o.name}`);
	for (const file of files(join(app, 'root'), '.json'))
		for (const [ , entry ] of Object.entries(JSON.parse(readFileSync(file, 'utf8'))))
			add(entry.title || entry.description, relative(root, file));
	return all;
}

const quote = s => JSON.stringify(s);

export function template(all) {
	let out = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8"\n';
	for (const [ text, places ] of [ ...all ].sort((a, b) => (a[1][0] < b[1][0] ? -1 : a[1][0] > b[1][0] ? 1 : a[0] < b[0] ? -1 : 1)))
		out += '\n' + [ ...new Set(places.map(p => p.replace(/:\d+$/, ''))) ].map(p => `#: ${p}\n`).join('') + `msgid ${quote(text)}\nmsgstr ""\n`;
	return out;
}

/** The translations of a .po file, and its head. */
export function readPO(text) {
	const all = new Map();
	for (const m of text.matchAll(/^msgid (".*")\nmsgstr ((?:".*"\n?)+)/gm))
		all.set(JSON.parse(m[1]), m[2].trim().split('\n').map(s => JSON.parse(s)).join(''));
	return all;
}

/** A .po file with the template's messages and what is translated of them. */
export function merge(pot, po) {
	const head = po.get('') || '';
	return pot.replace(/^msgid (".*")\nmsgstr ".*"/gm, (whole, id) => {
		const text = JSON.parse(id);
		if (text == '')
			return 'msgid ""\nmsgstr ""\n' + head.split('\n').filter(Boolean).map(l => quote(l + '\n')).join('\n');
		return `msgid ${id}\nmsgstr ${quote(po.get(text) || '')}`;
	});
}

const holders = s => (s.match(/%[-+0-9.]*[a-z%]/gi) || []).join(' ');

/** What is wrong with translations. */
export function faults(all, po) {
	const found = [];
	for (const [ text ] of all) {
		const t = po.get(text);
		if (!t)
			found.push(`not translated: ${text}`);
		else if (holders(t) != holders(text))
			found.push(`other placeholders: ${text} -> ${t}`);
	}
	return found;
}

if (process.argv[1] == fileURLToPath(import.meta.url)) {
	const check = process.argv.includes('--check'), all = messages(), pot = template(all);
	let failed = false;
	const put = (file, text) => {
		if ((existsSync(file) ? readFileSync(file, 'utf8') : '') == text)
			return;
		if (check) {
			console.error(`${relative(root, file)} is not current: run make luci-po`);
			failed = true;
		}
		else {
			writeFileSync(file, text);
		}
	};
	put(join(app, 'po/templates/xdpl2.pot'), pot);
	for (const file of files(join(app, 'po'), '.po')) {
		const po = readPO(readFileSync(file, 'utf8'));
		put(file, merge(pot, po));
		for (const fault of faults(all, po)) {
			console.error(`${relative(root, file)}: ${fault}`);
			failed = true;
		}
	}
	process.exit(failed && check ? 1 : 0);
}
