// SPDX-License-Identifier: Apache-2.0
'use strict';
'require baseclass';
'require rpc';

// The daemon's ubus object. An answer that is none becomes a Trouble, which
// says what kind of trouble it is, so that a page can say what to do.

function declare(method, params) {
	return rpc.declare({ object: 'xdpl2', method: method, params: params });
}

var methods = {
	status: declare('status'),
	counters: declare('counters', [ 'port' ]),
	stations: declare('stations', [ 'port', 'search', 'vlan', 'limit', 'offset' ]),
	explain: declare('explain', [ 'device', 'source', 'destination', 'vlan' ]),
	calibrate: declare('calibrate', [ 'seconds' ])
};

/* What ubus and JSON-RPC codes mean for a page. */
var kinds = {
	'1': 'method', '2': 'refused', '3': 'method', '4': 'absent', '5': 'nodata', '6': 'denied', '7': 'timeout',
	'-32000': 'absent', '-32001': 'denied', '-32002': 'denied', '-32003': 'timeout'
};

function Trouble(kind, text) {
	this.name = 'Trouble';
	this.kind = kind;
	this.message = text;
}

Trouble.prototype = Object.create(Error.prototype);
Trouble.prototype.constructor = Trouble;

/**
 * Makes a Trouble of what rpc rejects with. It tells codes only in the text of
 * its errors: "... failed with error -32000: ..." and "... ubus code 4: ...".
 */
function troubleOf(err) {
	if (err instanceof Trouble)
		return err;

	var text = (err && err.message) || String(err),
	    m = text.match(/failed with (?:error|ubus code) (-?\d+)/);

	return new Trouble(m ? (kinds[m[1]] || 'failed') : 'unreachable', text);
}

/**
 * An answer as rpc resolves it: a table, or the number of a ubus status, or the
 * daemon's description of an error.
 */
function answerOf(reply) {
	if (typeof(reply) == 'number')
		throw new Trouble(kinds[String(reply)] || 'failed', rpc.getStatusText(reply));

	if (reply == null || typeof(reply) != 'object' || Array.isArray(reply))
		throw new Trouble('strange', String(reply));

	if (typeof(reply.error) == 'string' && typeof(reply.kind) == 'string') {
		/* Kinds of their own; the others are about what was asked. */
		var own = { failed: 'failed', busy: 'busy', no_data: 'nodata' },
		    t = new Trouble(own[reply.kind] || 'refused', reply.error);

		t.argument = reply.argument || (reply.port ? 'port' : '');
		t.problems = Array.isArray(reply.problems) ? reply.problems : [];
		throw t;
	}

	return reply;
}

function ask(method, args) {
	return methods[method].apply(null, args || []).then(answerOf, function(err) { throw troubleOf(err) });
}

function some(v) {
	return (v === '' || v === null) ? undefined : v;
}

return baseclass.extend({
	troubleOf: troubleOf,
	answerOf: answerOf,

	status: function() {
		return ask('status');
	},

	/** The counters of one port: [{verdict, words, packets, bytes}]. */
	counters: function(port) {
		return ask('counters', [ port ]).then(function(reply) {
			return (Array.isArray(reply.counters) && reply.counters[0] && reply.counters[0].verdicts) || [];
		});
	},

	stations: function(query) {
		return ask('stations', [ some(query.port), some(query.search), some(query.vlan), query.limit, query.offset ]).then(function(reply) {
			return { total: +reply.total || 0, stations: Array.isArray(reply.stations) ? reply.stations : [] };
		});
	},

	explain: function(query) {
		return ask('explain', [ query.device, some(query.source), query.destination, some(query.vlan) ]);
	},

	calibrate: function(seconds) {
		return ask('calibrate', [ seconds ]);
	}
});
