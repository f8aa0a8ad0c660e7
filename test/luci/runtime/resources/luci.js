// SPDX-License-Identifier: Apache-2.0
'use strict';

/* A small stand-in for LuCI's runtime, for tests: the loader and the functions
   that the pages use, with the behaviour that they rely on. A string that is
   given to E as its only child is markup, as in LuCI, so that a page that
   forgets to wrap a name in an array is found out here, too. */
(function() {
	function append(node, child) {
		if (Array.isArray(child))
			child.forEach(function(c) { append(node, c) });
		else if (child instanceof Node)
			node.appendChild(child);
		else if (child !== null && child !== undefined)
			node.appendChild(document.createTextNode(String(child)));
	}

	window.E = function(tag, attrs, children) {
		if (Array.isArray(tag)) {
			var fragment = document.createDocumentFragment();

			append(fragment, tag);

			return fragment;
		}

		var node = document.createElement(tag);

		for (var k in (attrs || {})) {
			if (attrs[k] === null || attrs[k] === undefined)
				continue;

			if (typeof(attrs[k]) == 'function')
				node.addEventListener(k, attrs[k]);
			else
				node.setAttribute(k, attrs[k]);
		}

		if (typeof(children) == 'string')
			node.innerHTML = children;
		else
			append(node, children);

		return node;
	};

	/* Classes. */
	function extend(parent, properties) {
		var proto = Object.create(parent);

		for (var k in properties)
			proto[k] = properties[k];

		proto.extend = undefined;

		return { proto: proto, extend: function(more) { return extend(proto, more) } };
	}

	var baseclass = { extend: function(properties) { return extend({}, properties) } };

	window.LuCI = function(env) {
		var L = this, loaded = {}, polls = [], ticking = null, tick = 0, nextID = 1;

		L.env = env;
		L.isObject = function(v) { return v !== null && typeof(v) == 'object' };
		L.toArray = function(v) { return v == null ? [] : Array.isArray(v) ? v : String(v).trim().split(/\s+/) };
		L.resolveDefault = function(value, otherwise) { return Promise.resolve(value).catch(function() { return otherwise }) };
		L.hasViewPermission = function() { return !env.nodespec.readonly };
		L.url = function(path) { return env.scriptname + '/' + path };
		L.resource = function(path) { return env.resource + '/' + path };
		L.bind = function(f, self) { return f.bind(self) };

		/* Calls. */
		function RPCError(text) {
			var e = new Error(text);

			e.name = 'RPCError';

			return e;
		}

		var texts = [ 'Command OK', 'Invalid command', 'Invalid argument', 'Method not found', 'Resource not found', 'No data received',
			'Permission denied', 'Request timeout', 'Not supported', 'Unspecified error', 'Connection lost' ];

		var rpc = {
			getStatusText: function(code) { return texts[code] || 'Unknown error code' },

			declare: function(o) {
				return function() {
					var args = {}, given = arguments;

					(o.params || []).forEach(function(name, i) { args[name] = given[i] });

					var where = o.object + '/' + o.method;

					return fetch(env.ubuspath + where.replace('/', '.'), {
						method: 'POST', headers: { 'Content-Type': 'application/json' },
						body: JSON.stringify({ jsonrpc: '2.0', id: nextID++, method: 'call', params: [ env.sessionid, o.object, o.method, args ] })
					}).then(function(res) {
						if (!res.ok)
							throw RPCError('RPC call to ' + where + ' failed with HTTP error ' + res.status);

						return res.json();
					}).then(function(msg) {
						if (msg.error)
							throw RPCError('RPC call to ' + where + ' failed with error ' + msg.error.code + ': ' + msg.error.message);

						if (o.reject && msg.result[0] !== 0)
							throw RPCError('RPC call to ' + where + ' failed with ubus code ' + msg.result[0]);

						var ret = msg.result.length > 1 ? msg.result[1] : msg.result[0];

						for (var key in (o.expect || {})) {
							if (ret != null && key != '')
								ret = ret[key];

							if (ret == null || Object.prototype.toString.call(ret) != Object.prototype.toString.call(o.expect[key]))
								ret = o.expect[key];
						}

						return ret;
					});
				};
			}
		};

		/* Polling: every function at its interval, never twice at a time. */
		var poll = {
			add: function(fn, interval) {
				polls.push({ fn: fn, interval: interval, ready: true });

				if (ticking == null)
					ticking = window.setInterval(step, 1000);
			},

			remove: function(fn) {
				polls = polls.filter(function(p) { return p.fn !== fn });
			}
		};

		function step() {
			polls.forEach(function(p) {
				if (tick % p.interval || !p.ready)
					return;

				p.ready = false;
				Promise.resolve(p.fn()).finally(function() { p.ready = true });
			});
			tick++;
		}

		/* UCI: what is set is staged with save. */
		var call = {
			get: rpc.declare({ object: 'uci', method: 'get', params: [ 'config' ], expect: { values: {} } }),
			set: rpc.declare({ object: 'uci', method: 'set', params: [ 'config', 'section', 'values' ] }),
			add: rpc.declare({ object: 'uci', method: 'add', params: [ 'config', 'type', 'name', 'values' ] }),
			changes: rpc.declare({ object: 'uci', method: 'changes', expect: { changes: {} } }),
			apply: rpc.declare({ object: 'uci', method: 'apply', params: [ 'timeout', 'rollback' ], reject: true }),
			confirm: rpc.declare({ object: 'uci', method: 'confirm', reject: true })
		};
		var configs = {}, edits = [];

		var uci = {
			load: function(name) {
				if (configs[name])
					return Promise.resolve(name);

				return call.get(name).then(function(values) {
					configs[name] = values;

					return name;
				});
			},

			unload: function(name) { delete configs[name] },

			sections: function(name, type) {
				var all = configs[name] || {};

				return Object.keys(all).map(function(k) { return all[k] }).sort(function(a, b) { return a['.index'] - b['.index'] })
					.filter(function(s) { return !type || s['.type'] == type });
			},

			get: function(name, section, option) {
				var s = (configs[name] || {})[section];

				return s == null ? null : (option ? (s[option] == null ? null : s[option]) : s);
			},

			add: function(name, type, section) {
				configs[name][section] = { '.type': type, '.name': section, '.anonymous': false, '.index': 99 };
				edits.push(function() { return call.add(name, type, section) });

				return section;
			},

			set: function(name, section, option, value) {
				var values = {};

				values[option] = value;
				configs[name][section][option] = value;
				edits.push(function() { return call.set(name, section, values) });
			},

			save: function() {
				var todo = edits;

				edits = [];

				return todo.reduce(function(p, f) { return p.then(f) }, Promise.resolve());
			},

			changes: function() { return call.changes() }
		};

		var ui = {
			createHandlerFn: function(self, fn) {
				var args = Array.prototype.slice.call(arguments, 2);

				return function(ev) {
					var t = ev.currentTarget;

					t.disabled = true;
					t.blur();

					return Promise.resolve(self[fn].apply(self, args.concat([ ev ]))).finally(function() { t.disabled = false });
				};
			},

			showModal: function(title, children) {
				ui.hideModal();

				var node = E('div', { 'id': 'modal_overlay', 'role': 'dialog', 'aria-modal': 'true' }, [ E('div', { 'class': 'modal' }, [ E('h4', {}, [ title ]), children ]) ]);

				document.body.appendChild(node);

				return node.firstChild;
			},

			hideModal: function() {
				var node = document.getElementById('modal_overlay');

				if (node)
					node.remove();
			},

			changes: {
				apply: function(checked) {
					return call.apply(env.apply_rollback, checked).then(function() { return checked ? call.confirm() : null }).then(function() {
						document.dispatchEvent(new CustomEvent('uci-applied'));
					});
				}
			},

			instantiateView: function(name) {
				return L.require('view.' + name.replace(/\//g, '.'));
			}
		};

		/* Views: load, then render into the page. */
		var view = {
			extend: function(properties) {
				var cls = extend({}, properties);

				cls.start = function(instance) {
					var node = document.getElementById('view');

					return Promise.resolve(instance.load ? instance.load() : null).then(function(data) {
						return instance.render(data);
					}).then(function(content) {
						node.innerHTML = '';
						node.appendChild(content);
					});
				};

				return cls;
			}
		};

		var own = { baseclass: baseclass, rpc: rpc, poll: poll, uci: uci, ui: ui, view: view };

		/* The loader: strings at the top of a file say what it needs. */
		L.require = function(name) {
			if (own[name])
				return Promise.resolve(own[name]);

			if (!loaded[name])
				loaded[name] = fetch(env.base_url + '/' + name.replace(/\./g, '/') + '.js').then(function(res) {
					if (!res.ok)
						throw new Error(name + ': HTTP error ' + res.status);

					return res.text();
				}).then(function(source) {
					var needs = [], m;

					source.split('\n').every(function(line) {
						m = line.match(/^'require ([\w.]+)(?: as (\w+))?';$/);

						if (m)
							needs.push([ m[1], m[2] || m[1].replace(/\W/g, '_') ]);

						return m || line == '' || (/^(\/\/|'use strict';)/).test(line);
					});

					return Promise.all(needs.map(function(n) { return L.require(n[0]) })).then(function(values) {
						var names = [ 'L' ].concat(needs.map(function(n) { return n[1] })),
						    cls = Function.apply(null, names.concat([ source + '\n//# sourceURL=' + name ])).apply(window, [ L ].concat(values)),
						    instance = Object.create(cls.proto);

						return cls.start ? cls.start(instance) : instance;
					});
				});

			return loaded[name];
		};
	};
})();
