// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/pack/usign"
)

// makeFeed makes a feed of two packages.
func makeFeed(t *testing.T) (dir string, key *usign.SecretKey) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range []string{"sample", "another"} {
		p := samplePackage()
		p.Name = name
		ipk, err := p.IPK()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, p.FileName()), ipk, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, err := usign.Generate()
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteIndex(dir, key); err != nil {
		t.Fatal(err)
	}
	return dir, key
}

func TestIndex(t *testing.T) {
	dir, key := makeFeed(t)
	if err := CheckFeed(dir, key.Public()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, IndexName))
	if err != nil {
		t.Fatal(err)
	}
	packages, err := ParseIndex(string(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 2 || packages[0]["Package"] != "another" || packages[1]["Package"] != "sample" {
		t.Fatalf("listed: %v", packages)
	}
	p := packages[1]
	for name, want := range map[string]string{
		"Version": "0.1.0-r1", "Depends": "libubus, kmod-veth", "Architecture": "x86_64",
		"Filename": "sample_0.1.0-r1_x86_64.ipk", "Installed-Size": "51200", "Description": "First line\nand second.",
	} {
		if p[name] != want {
			t.Errorf("%s: %q, want %q", name, p[name], want)
		}
	}
	full, err := os.ReadFile(filepath.Join(dir, ManifestName))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range manifestOnly {
		if _, there := p[name]; there {
			t.Errorf("the index has %s, which routers do not need", name)
		}
	}
	if !strings.Contains(string(full), "\nMaintainer: ") || !strings.Contains(string(full), "\nSHA256sum: ") {
		t.Errorf("the full index lacks fields:\n%s", full)
	}
	if i, j := strings.Index(string(text), "\nSHA256sum:"), strings.Index(string(text), "\nDescription:"); i < 0 || j < i {
		t.Errorf("the description does not come last:\n%s", text)
	}
}

// TestChangedFeed: whatever is changed is found.
func TestChangedFeed(t *testing.T) {
	const ipk = "sample_0.1.0-r1_x86_64.ipk"
	for name, change := range map[string]func(t *testing.T, dir string){
		"a byte of the index":      flip(IndexName, 20),
		"a byte of the signature":  flip(SignatureName, 60),
		"a byte of the compressed": flip(IndexName+".gz", 30),
		"a byte of a package":      flip(ipk, 500),
		"a package is missing":     func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, ipk))) },
		"the signature is missing": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, SignatureName))) },
		"a package too many": func(t *testing.T, dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "other_1_all.ipk"), nil, 0o600))
		},
		"another compressed index": func(t *testing.T, dir string) {
			z, err := compress([]byte("Package: x\n"))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, IndexName+".gz"), z, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, key := makeFeed(t)
			change(t, dir)
			if err := CheckFeed(dir, key.Public()); err == nil {
				t.Error("not found")
			} else {
				t.Log(err)
			}
		})
	}
	dir, _ := makeFeed(t)
	other, err := usign.Generate()
	must(t, err)
	if err := CheckFeed(dir, other.Public()); !errors.Is(err, usign.ErrSignature) {
		t.Errorf("another key: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// flip changes a byte of a file.
func flip(name string, at int) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		file := filepath.Join(dir, name)
		data, err := os.ReadFile(file)
		must(t, err)
		data[at] ^= 1
		must(t, os.WriteFile(file, data, 0o600))
	}
}

// TestPadding: no index has one of the lengths that old routers cannot verify.
func TestPadding(t *testing.T) {
	padded := 0
	for n := range 512 {
		text := padIndex(bytes.Repeat([]byte("x"), n))
		if rest := (len(text) + 64) % 128; rest == 110 || rest == 111 {
			t.Errorf("%d bytes stay at %d", n, len(text))
		}
		if len(text) > n {
			padded++
		}
	}
	if padded != 8 {
		t.Errorf("%d of 512 lengths were padded, want 8", padded)
	}
}

func TestIndexRefused(t *testing.T) {
	dir := t.TempDir()
	key, err := usign.Generate()
	must(t, err)
	if err := WriteIndex(dir, key); err == nil || !strings.Contains(err.Error(), "no packages") {
		t.Errorf("empty folder: %v", err)
	}
	must(t, os.WriteFile(filepath.Join(dir, "x_1_all.ipk"), []byte("not a package"), 0o600))
	if err := WriteIndex(dir, key); err == nil || !strings.Contains(err.Error(), "not a compressed archive") {
		t.Errorf("not a package: %v", err)
	}
	for _, text := range []string{"Package x\n", "Package: x\nPackage: y\n"} {
		if _, err := ParseIndex(text); err == nil {
			t.Errorf("%q is taken for an index", text)
		}
	}
}

func TestKeys(t *testing.T) {
	tree := t.TempDir()
	outside := filepath.Join(t.TempDir(), "new", "keys")
	first, err := LoadKeys(outside, tree)
	must(t, err)
	if len(first.Made) != 2 {
		t.Errorf("made %v", first.Made)
	}
	for _, name := range first.Made {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", name, info, err)
		}
	}
	second, err := LoadKeys(outside, tree)
	must(t, err)
	if len(second.Made) != 0 || second.Opkg.Fingerprint != first.Opkg.Fingerprint || !second.APK.Equal(first.APK) {
		t.Error("keys were made a second time")
	}
	// A folder inside the tree is refused, also by another name.
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(tree, link))
	for _, dir := range []string{tree, filepath.Join(tree, "a", "b"), filepath.Join(link, "keys")} {
		if _, err := LoadKeys(dir, tree); err == nil || !strings.Contains(err.Error(), "inside the source tree") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	must(t, os.WriteFile(filepath.Join(outside, apkSecret), []byte("nonsense"), 0o600))
	if _, err := LoadKeys(outside, tree); err == nil || !strings.Contains(err.Error(), "PEM") {
		t.Errorf("damaged key: %v", err)
	}
}
