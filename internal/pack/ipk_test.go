// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// samplePackage is a package with everything that can be in one.
func samplePackage() *Package {
	return &Package{
		Manifest: &Manifest{
			Path: "openwrt/sample/sample.manifest", Name: "sample", Title: "A sample", Section: "net",
			Description: "First line\nand second.", Depends: []string{"libubus", "kmod-veth"},
		},
		Version: "0.1.0-r1", Arch: "x86_64", Epoch: 1700000000,
		Files: []File{
			{Path: "/etc/config/sample", Mode: 0o600, Data: []byte("config\n"), Conffile: true},
			{Path: "/etc/config.d/a", Mode: 0o644},
			{Path: "/usr/sbin/sample", Mode: 0o755, Data: bytes.Repeat([]byte("program"), 5000)},
		},
		postinst: []byte("true\n"),
	}
}

// unpack unpacks an .ipk with tar, which refuses what it does not understand, and
// returns the folder with its members.
func unpack(t *testing.T, ipk []byte) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "x.ipk")
	if err := os.WriteFile(file, ipk, 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "gzip", "-t", "-S", ".ipk", file)
	command(t, "tar", "-xzf", file, "-C", dir)
	return dir
}

// command runs a program and returns what it prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// list is `tar -tv` without the times, which the caller checks by asking for one.
func list(t *testing.T, archive string, when string) string {
	t.Helper()
	var out strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(command(t, "tar", "-tvzf", archive, "--numeric-owner", "--utc", "--full-time")), "\n") {
		words := strings.Fields(line) // mode owner size date time name
		if got := strings.Join(words[3:5], " "); got != when {
			t.Errorf("%s: time %s, want %s", archive, got, when)
		}
		out.WriteString(strings.Join([]string{words[0], words[1], words[2], words[5]}, " ") + "\n")
	}
	return out.String()
}

func TestIPK(t *testing.T) {
	p := samplePackage()
	ipk, err := p.IPK()
	if err != nil {
		t.Fatal(err)
	}
	if p.FileName() != "sample_0.1.0-r1_x86_64.ipk" {
		t.Errorf("called %s", p.FileName())
	}
	if bytes.HasPrefix(ipk, []byte("!<arch>")) {
		t.Error("an ar archive, as Debian's packages are; opkg wants a compressed tar archive")
	}
	dir := unpack(t, ipk)
	const when = "2023-11-14 22:13:20"
	if got, want := list(t, filepath.Join(dir, "data.tar.gz"), when), `drwxr-xr-x 0/0 0 ./
drwxr-xr-x 0/0 0 ./etc/
drwxr-xr-x 0/0 0 ./etc/config/
-rw------- 0/0 7 ./etc/config/sample
drwxr-xr-x 0/0 0 ./etc/config.d/
-rw-r--r-- 0/0 0 ./etc/config.d/a
drwxr-xr-x 0/0 0 ./usr/
drwxr-xr-x 0/0 0 ./usr/sbin/
-rwxr-xr-x 0/0 35000 ./usr/sbin/sample
`; got != want {
		t.Errorf("data:\n%s\nwant:\n%s", got, want)
	}
	control := list(t, filepath.Join(dir, "control.tar.gz"), when)
	for _, want := range []string{
		"-rw-r--r-- 0/0 19 ./conffiles", "-rwxr-xr-x 0/0 160 ./postinst", "-rwxr-xr-x 0/0 5 ./postinst-pkg", "-rwxr-xr-x 0/0 117 ./prerm",
	} {
		if !strings.Contains(control, want+"\n") {
			t.Errorf("control lacks %q:\n%s", want, control)
		}
	}
	command(t, "tar", "-xzf", filepath.Join(dir, "control.tar.gz"), "-C", dir)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	if got, want := read("control"), `Package: sample
Version: 0.1.0-r1
Depends: libubus, kmod-veth
Source: feeds/xdpl2/openwrt/sample
SourceName: sample
License: Apache-2.0
LicenseFiles: LICENSES/Apache-2.0.txt
Section: net
SourceDateEpoch: 1700000000
URL: https://github.com/xdpl2/xdpl2
Maintainer: The xdpl2 developers
Architecture: x86_64
Installed-Size: 51200
Description:  First line
 and second.
`; got != want {
		t.Errorf("control:\n%s\nwant:\n%s", got, want)
	}
	if got := read("debian-binary"); got != "2.0\n" {
		t.Errorf("debian-binary: %q", got)
	}
	if got := read("conffiles"); got != "/etc/config/sample\n" {
		t.Errorf("conffiles: %q", got)
	}
	if !strings.Contains(read("postinst"), "\ndefault_postinst $0 $@\n") || !strings.Contains(read("prerm"), "\ndefault_prerm $0 $@\n") {
		t.Error("the scripts do not call OpenWrt's usual steps")
	}
	if _, err := exec.LookPath("sh"); err == nil {
		command(t, "sh", "-n", filepath.Join(dir, "postinst"), filepath.Join(dir, "prerm"))
	}
}

// TestMemberOrder: opkg reads the outermost archive once, from its beginning.
func TestMemberOrder(t *testing.T) {
	ipk, err := samplePackage().IPK()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "x.ipk")
	if err := os.WriteFile(file, ipk, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := command(t, "tar", "-tzf", file), "./debian-binary\n./data.tar.gz\n./control.tar.gz\n"; got != want {
		t.Errorf("members:\n%swant:\n%s", got, want)
	}
}

// TestSameTwice: nothing of the machine or the moment is in a package.
func TestSameTwice(t *testing.T) {
	first, err := samplePackage().IPK()
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := samplePackage().IPK()
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, again) {
			t.Fatal("made twice, the package differs")
		}
	}
}

// TestAgainstTar compares with the archive that GNU tar makes of the same files.
func TestAgainstTar(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: tar takes the owner from the files")
	}
	p := samplePackage()
	got, err := tarball(p.Files, p.Epoch)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "root")
	if err := layOut(root, p.Files, p.Epoch); err != nil {
		t.Fatal(err)
	}
	want := command(t, "tar", "--format=gnu", "--numeric-owner", "--sort=name", "--mtime=@1700000000", "-C", root, "-cf", "-", ".")
	// archive/tar writes zeros as the numbers of devices that these files are
	// not; tar leaves them empty.
	if !bytes.Equal(withoutDevices(t, got), withoutDevices(t, []byte(want))) {
		t.Errorf("%d bytes that differ from the %d of tar", len(got), len(want))
	}
}

// withoutDevices blanks the device numbers in the headers of an archive, and the
// checksums that count them.
func withoutDevices(t *testing.T, archive []byte) []byte {
	t.Helper()
	const block = 512
	out := bytes.Clone(archive)
	for at := 0; at < len(out) && out[at] != 0; {
		header := out[at : at+block]
		size, err := strconv.ParseInt(strings.Trim(string(header[124:136]), "\x00 "), 8, 64)
		if err != nil {
			t.Fatal(err)
		}
		clear(header[148:156])
		clear(header[329:345])
		at += block + (int(size)+block-1)/block*block
	}
	return out
}
