// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"strings"
	"testing"
)

// TestAPKScripts: an upgrade by apk runs the same steps as an installation, says
// that it is one, and then what the package brings itself, such as a restart.
func TestAPKScripts(t *testing.T) {
	p := samplePackage()
	p.postinst = []byte("/etc/init.d/sample restart\n")
	scripts := p.apkScripts()
	for kind, want := range map[string][]string{
		"post-install":  {"export pkgname=\"sample\"\n", "default_postinst\n", "/etc/init.d/sample restart\n"},
		"post-upgrade":  {"export PKG_UPGRADE=1\n", "default_postinst\n", "/etc/init.d/sample restart\n"},
		"pre-deinstall": {"export pkgname=\"sample\"\n", "default_prerm\n"},
	} {
		rest := scripts[kind]
		if !strings.HasPrefix(rest, "#!/bin/sh\n") {
			t.Errorf("%s is no script: %q", kind, rest)
		}
		for _, line := range want {
			_, after, ok := strings.Cut(rest, line)
			if !ok {
				t.Errorf("%s lacks %q at its place:\n%s", kind, line, scripts[kind])
				break
			}
			rest = after
		}
	}
	if strings.Contains(scripts["post-install"], "PKG_UPGRADE") {
		t.Error("an installation says that it is an upgrade")
	}
}

// TestAPKFiles: what OpenWrt's scripts look up is beside the files.
func TestAPKFiles(t *testing.T) {
	got := map[string]string{}
	for _, f := range samplePackage().apkFiles() {
		got[f.Path] = string(f.Data)
	}
	for name, want := range map[string]string{
		"/lib/apk/packages/sample.list":             "/etc/config/sample\n/etc/config.d/a\n/usr/sbin/sample\n",
		"/lib/apk/packages/sample.conffiles":        "/etc/config/sample\n",
		"/lib/apk/packages/sample.conffiles_static": "/etc/config/sample f612b89bcdbc401379f644d7e48572e3470f77dcd4c39416405d80952ad7089e\n",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}
