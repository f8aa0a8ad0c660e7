// SPDX-License-Identifier: Apache-2.0
import js from '@eslint/js';
import globals from 'globals';

/** What LuCI's runtime gives to every module; the rest it requires by strings. */
const luci = { _: 'readonly', N_: 'readonly', E: 'readonly', L: 'readonly' };

/** The names under which a module requires others are arguments of its function. */
const requires = {
	rules: {
		names: {
			create: context => ({
				Program(node) {
					for (const statement of node.body) {
						const m = typeof statement.directive == 'string' && statement.directive.match(/^require ([\w.]+)(?: as (\w+))?$/);
						if (m)
							context.sourceCode.scopeManager.globalScope.through = context.sourceCode.scopeManager.globalScope.through
								.filter(r => r.identifier.name != (m[2] || m[1].replace(/\W/g, '_')));
					}
				}
			})
		},
		/* E() takes a string as markup; an array of strings it takes as text. */
		text: {
			create: context => ({
				CallExpression(node) {
					if (node.callee.name == 'E' && node.arguments.length == 3 && ![ 'ArrayExpression', 'CallExpression', 'Identifier', 'LogicalExpression' ].includes(node.arguments[2].type))
						context.report({ node, message: 'The children of E() have to be an array: a string is taken as markup.' });
				}
			})
		}
	}
};

const rules = {
	...js.configs.recommended.rules,
	'no-var': 'off', 'eqeqeq': 'off', 'no-unused-vars': [ 'error', { caughtErrors: 'none' } ],
	'no-shadow': 'error', 'no-use-before-define': [ 'error', { functions: false, classes: false } ], 'no-eval': 'error', 'no-implied-eval': 'error',
	'no-restricted-properties': [ 'error', { property: 'innerHTML' }, { property: 'outerHTML' }, { property: 'insertAdjacentHTML' } ]
};

export default [
	{ ignores: [ '**/node_modules/**' ] },
	{
		files: [ 'luci-app/htdocs/**/*.js' ],
		plugins: { luci: requires },
		languageOptions: {
			ecmaVersion: 5, sourceType: 'script', parserOptions: { ecmaFeatures: { globalReturn: true } },
			globals: { ...globals.browser, ...luci, Promise: 'readonly', unescape: 'readonly' }
		},
		rules: { ...rules, 'luci/names': 'error', 'luci/text': 'error' }
	},
	{
		files: [ 'test/luci/runtime/**/*.js' ],
		languageOptions: { ecmaVersion: 2015, sourceType: 'script', globals: { ...globals.browser, E: 'readonly' } },
		rules: { ...rules, 'no-restricted-properties': 'off', 'no-shadow': 'off', 'no-extend-native': 'off' }
	},
	{
		files: [ 'test/luci/**/*.mjs' ],
		languageOptions: { ecmaVersion: 2022, sourceType: 'module', globals: { ...globals.node, document: 'readonly', window: 'readonly' } },
		rules: { ...js.configs.recommended.rules, 'no-unused-vars': [ 'error', { caughtErrors: 'none' } ] }
	}
];
