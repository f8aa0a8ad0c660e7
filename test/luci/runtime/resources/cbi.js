// SPDX-License-Identifier: Apache-2.0
'use strict';

/* What LuCI's cbi.js gives to all pages, as far as these pages use it: format
   for strings, and translations. The page has put them into TRANSLATIONS. */

String.prototype.format = function() {
	var args = arguments, i = 0;

	return String(this).replace(/%(?:\.(\d+))?([sdhf%])/g, function(m, digits, type) {
		if (type == '%')
			return '%';

		var v = args[i++];

		switch (type) {
		case 'd':
			return Math.floor(+v || 0).toFixed(0);
		case 'f':
			return (+v || 0).toFixed(digits == null ? 6 : +digits);
		case 'h':
			return String(v).replace(/[&<>"']/g, function(c) { return '&#' + c.charCodeAt(0) + ';' });
		}

		return String(v);
	});
};

window._ = function(s) {
	return Object.prototype.hasOwnProperty.call(window.TRANSLATIONS, s) ? window.TRANSLATIONS[s] : s;
};
