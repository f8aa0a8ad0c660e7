# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=dash disable=SC1090,SC2013 # files of the router's; words, not lines
# A stand-in for OpenWrt's functions.sh with what the packages' scripts and the
# init script call, and the same effects: default_postinst and default_prerm
# enable, start, stop and disable what a package brings.

# Options of named sections of a UCI file without quotes inside of values.
config_load() { CONFIG_FILE=/etc/config/$1; }

config_get() { # VARIABLE SECTION OPTION DEFAULT
	local value
	value=$(awk -v section="$2" -v option="$3" '
		{ gsub(/\047/, "") }
		$1 == "config" { here = ($3 == section) }
		here && $1 == "option" && $2 == option { print $3 }
	' "$CONFIG_FILE" | tail -n 1)
	[ -n "$value" ] || value=$4
	eval "$1=\$value"
}

config_get_bool() {
	config_get "$@"
	eval "case \$$1 in 1|on|true|yes|enabled) $1=1 ;; *) $1=0 ;; esac"
}

# The init scripts of a package.
package_scripts() { grep '^/etc/init.d/' "/usr/lib/opkg/info/$1.list"; }

package_name() { basename "${1%.*}"; }

default_postinst() {
	local name script
	name=$(package_name "$1")
	for script in $(grep '^/etc/uci-defaults/' "/usr/lib/opkg/info/$name.list"); do
		(. "$script") && rm -f "$script"
	done
	if [ -f "/usr/lib/opkg/info/$name.postinst-pkg" ]; then
		(. "/usr/lib/opkg/info/$name.postinst-pkg") || return
	fi
	for script in $(package_scripts "$name"); do
		[ "$PKG_UPGRADE" = 1 ] || "$script" enable
		"$script" start
	done
}

default_prerm() {
	local script
	for script in $(package_scripts "$(package_name "$1")"); do
		[ "$PKG_UPGRADE" = 1 ] || "$script" disable
		"$script" stop
	done
}
