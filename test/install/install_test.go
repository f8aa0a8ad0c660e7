// SPDX-License-Identifier: Apache-2.0

// Package install tests what becomes of a router when the packages are
// installed, upgraded, downgraded and removed there.
package install

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/pack"
)

// configured is what a user makes of the configuration.
const configured = `
config xdpl2 'main'
	option enabled '1'
	option bridge 'br-lan'

config port
	option device 'eth1'

config port
	option device 'eth2'

config port
	option device 'eth3'
`

const ports = 3

// guest is the emulated machine's kernel, if the test runs in one.
var guest = os.Getenv("XDPL2_GUEST")

// TestLife installs the package, uses it, upgrades, downgrades and removes it.
func TestLife(t *testing.T) {
	if guest != "" && guest != "5.10" && guest != "6.12" {
		t.Skip("not for this guest: the oldest and the newest of OpenWrt's kernels do, and it takes a minute")
	}
	content, next := packageFiles(t)
	if next == nil {
		next = otherVersion(t, content, "99.0.0-r1")
	}
	r := newRouter(t)
	files, devices := r.files(), r.devices()

	must(t, r.opkg.install(content))
	if pid := r.daemon(); pid != 0 {
		t.Fatalf("process %d runs after installing; it must be off", pid)
	}
	for _, link := range []string{"S96xdpl2", "K10xdpl2"} {
		if to, err := os.Readlink(filepath.Join(r.root, "etc", "rc.d", link)); err != nil || to != "../init.d/xdpl2" {
			t.Errorf("%s: %q, %v", link, to, err)
		}
	}
	if now := r.devices(); now != devices {
		t.Errorf("installing changed the devices:\n%swere:\n%s", now, devices)
	}
	config := filepath.Join(r.root, "etc", "config", "xdpl2")
	if info, err := os.Stat(config); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v", config, info, err)
	}

	must(t, os.WriteFile(config, []byte(configured), 0o600))
	r.do("/usr/sbin/xdpl2", "check")
	r.do("/etc/init.d/xdpl2", "start")
	r.carries(ports)
	first := r.daemon()
	if first == 0 {
		t.Fatal("the init script runs nothing")
	}

	lost, sent := r.whilePinging(func() error { _, err := r.exec(nil, "/etc/init.d/xdpl2", "reload"); return err })
	t.Logf("reload: %d of %d lost", lost, sent)
	if lost > 0 || r.daemon() != first {
		t.Errorf("reload: %d of %d lost, process %d, before %d", lost, sent, r.daemon(), first)
	}

	for _, other := range [][]byte{next, content} { // an upgrade, a downgrade
		before := r.daemon()
		version := r.change(other)
		r.carries(ports)
		if now := r.daemon(); now == before {
			t.Errorf("to %s: process %d goes on, with the old program", version, now)
		}
		if text, err := os.ReadFile(config); err != nil || string(text) != configured {
			t.Errorf("to %s: the configuration was changed: %v\n%s", version, err, text)
		}
	}
	if text, err := os.ReadFile(config + "-opkg"); err != nil || strings.Contains(string(text), "option device") {
		t.Errorf("the new default is not beside the configuration: %v\n%s", err, text)
	}

	must(t, r.opkg.remove("xdpl2"))
	if pid := r.daemon(); pid != 0 {
		t.Errorf("process %d still runs", pid)
	}
	r.ping(5)
	if now := r.devices(); now != devices {
		t.Errorf("after removing, the devices are\n%swere:\n%s", now, devices)
	}
	// Nothing is left but the configuration, and the default beside it.
	left := r.files()
	for _, name := range []string{"/etc/config/xdpl2", "/etc/config/xdpl2-opkg"} {
		if _, there := left[name]; !there {
			t.Errorf("%s is gone", name)
		}
		delete(left, name)
	}
	for _, name := range []string{"/etc/rc.d", "/etc/config", "/etc/init.d", "/usr/sbin"} { // folders of the system's
		delete(left, name)
		delete(files, name)
	}
	if !maps.Equal(left, files) {
		t.Errorf("left behind: %v", difference(left, files))
	}
}

// change replaces the package while traffic goes on, none of which may be lost,
// and returns the version that is there afterwards.
func (r *router) change(content []byte) (version string) {
	r.t.Helper()
	lost, sent := r.whilePinging(func() error { return r.opkg.install(content) })
	p, err := readIPK(content)
	must(r.t, err)
	_, version, _ = strings.Cut(string(p.control["/control"]), "\nVersion: ")
	version, _, _ = strings.Cut(version, "\n")
	r.t.Logf("to %s: %d of %d lost", version, lost, sent)
	// Without tcx a stop takes the ports' qdiscs away and a start adds them, and
	// the kernel drops what a device is sending just then (qdisc_graft): at most
	// one frame for each of the two on each of the two ports that a ping crosses.
	most := 0
	if !lab.HasTCX() {
		most = 4
	}
	if lost > most {
		r.t.Errorf("to %s: traffic was interrupted, %d of %d lost", version, lost, sent)
	}
	if control, err := os.ReadFile(r.opkg.info(p.name, "control")); err != nil || !strings.Contains(string(control), "\nVersion: "+version+"\n") {
		r.t.Errorf("installed: %v\n%s", err, control)
	}
	return version
}

// otherVersion makes another version of a package, with another default
// configuration.
func otherVersion(t *testing.T, content []byte, version string) []byte {
	t.Helper()
	old, err := readIPK(content)
	must(t, err)
	p := &pack.Package{
		Manifest: &pack.Manifest{Path: "openwrt/xdpl2/xdpl2.manifest", Name: old.name, Section: "net", Description: "another version"},
		Version:  version, Arch: "any", Epoch: 1700000000,
	}
	for _, h := range old.files {
		data := old.data[h.Name]
		if h.FileInfo().IsDir() {
			continue
		}
		f := pack.File{Path: h.Name, Mode: h.FileInfo().Mode().Perm(), Data: data}
		for _, name := range old.conffiles() {
			if name == h.Name {
				f.Conffile = true
				f.Data = fmt.Appendf(nil, "# the default of %s\n%s", version, data)
			}
		}
		p.Files = append(p.Files, f)
	}
	ipk, err := p.IPK()
	must(t, err)
	return ipk
}

func difference(a, b map[string]string) []string {
	var names []string
	for name := range a {
		if b[name] != a[name] {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, there := a[name]; !there {
			names = append(names, "missing: "+name)
		}
	}
	return names
}

// TestUntouchedConfiguration: a configuration that nobody changed is replaced by
// the new default, and goes with the package.
func TestUntouchedConfiguration(t *testing.T) {
	if guest != "" {
		t.Skip("not for guests: it depends on nothing of theirs")
	}
	content, _ := packageFiles(t)
	r := newRouter(t)
	files := r.files()
	must(t, r.opkg.install(content))
	must(t, r.opkg.install(otherVersion(t, content, "99.0.0-r1")))
	config := filepath.Join(r.root, "etc", "config", "xdpl2")
	if text, err := os.ReadFile(config); err != nil || !strings.Contains(string(text), "# the default of 99.0.0-r1") {
		t.Errorf("%v: %s", err, text)
	}
	must(t, r.opkg.remove("xdpl2"))
	left := r.files()
	for _, name := range []string{"/etc/rc.d", "/etc/config", "/etc/init.d", "/usr/sbin"} {
		delete(left, name)
		delete(files, name)
	}
	if !maps.Equal(left, files) {
		t.Errorf("left behind: %v", difference(left, files))
	}
}
