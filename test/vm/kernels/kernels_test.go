// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"archive/tar"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bundleFiles are a whole bundle, its files saying where it lies.
func bundleFiles(name, origin string) map[string]string {
	prefix := name + suffix + "/"
	return map[string]string{
		prefix + "vmlinuz":           origin,
		prefix + "config":            "",
		prefix + "busybox":           "",
		prefix + "modules/order":     "llc\nbridge\n",
		prefix + "modules/llc.ko":    "",
		prefix + "modules/bridge.ko": "",
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		if err := writeFile(filepath.Join(dir, name), 0o644, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
	}
}

// writeArchive writes a .tar.xz as the shared folder has them.
func writeArchive(t *testing.T, path string, files map[string]string) {
	t.Helper()
	var packed bytes.Buffer
	w := tar.NewWriter(&packed)
	for name, content := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	xz := exec.Command("xz", "-0", "-c")
	xz.Stdin = &packed
	out, err := xz.Output()
	if err != nil {
		t.Fatalf("xz, which the runner needs too: %v", err)
	}
	if err := os.WriteFile(path, out, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSourceOrder(t *testing.T) {
	incomplete := func(name, origin string) map[string]string {
		files := bundleFiles(name, origin)
		delete(files, name+suffix+"/modules/llc.ko")
		return files
	}
	type place = func(t *testing.T, dir string)
	folder := func(files map[string]string) place {
		return func(t *testing.T, dir string) { writeFiles(t, dir, files) }
	}
	archive := func(files map[string]string) place {
		return func(t *testing.T, dir string) { writeArchive(t, filepath.Join(dir, "5.10"+suffix+".tar.xz"), files) }
	}
	none := func(*testing.T, string) {}
	tests := []struct {
		name          string
		shared, cache place
		want          string // content of vmlinuz
		wantErr       []string
	}{
		{"shared folder first", folder(bundleFiles("5.10", "shared")), folder(bundleFiles("5.10", "cache")), "shared", nil},
		{"shared archive", archive(bundleFiles("5.10", "archive")), none, "archive", nil},
		{"cache", none, folder(bundleFiles("5.10", "cache")), "cache", nil},
		{"another kernel", folder(bundleFiles("5.1", "shared")), folder(bundleFiles("5.10", "cache")), "cache", nil},
		{"incomplete shared folder", folder(incomplete("5.10", "shared")), folder(bundleFiles("5.10", "cache")), "cache", nil},
		{"incomplete archive", archive(incomplete("5.10", "shared")), folder(bundleFiles("5.10", "cache")), "cache", nil},
		{"broken archive", func(t *testing.T, dir string) {
			writeFiles(t, dir, map[string]string{"5.10" + suffix + ".tar.xz": "not xz"})
		}, folder(bundleFiles("5.10", "cache")), "cache", nil},
		{"nowhere", none, none, "", []string{"kernel 5.10", "shared folder: not there", "cache: not there", "Debian: not asked"}},
		{"incomplete everywhere", folder(incomplete("5.10", "")), folder(incomplete("5.10", "")), "",
			[]string{"shared folder: kernel 5.10: incomplete", "cache: kernel 5.10: incomplete", "llc.ko"}},
		{"outside of its folder", archive(map[string]string{"../evil": "x"}), none, "", []string{`"../evil" is outside`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := &Source{Shared: t.TempDir(), Cache: t.TempDir(), Work: t.TempDir()}
			tt.shared(t, s.Shared)
			tt.cache(t, s.Cache)
			b, err := s.Get(t.Context(), "5.10")
			if tt.wantErr != nil {
				if err == nil {
					t.Fatalf("got %+v, want an error", b)
				}
				for _, want := range tt.wantErr {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("error %q says nothing of %q", err, want)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(b.Kernel())
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != tt.want || b.Name != "5.10" {
				t.Errorf("got %s from %s, want %s", b.Name, got, tt.want)
			}
			modules, err := b.Modules()
			if err != nil || strings.Join(modules, " ") != "llc bridge" {
				t.Errorf("modules are %q, %v", modules, err)
			}
		})
	}
}

// A kernel that no suite is known to have leaves the cache as it is.
func TestSourceUnknownKernel(t *testing.T) {
	s := &Source{Cache: t.TempDir(), Debian: &Debian{Log: t.Logf}}
	if _, err := s.Get(t.Context(), "2.4"); err == nil || !strings.Contains(err.Error(), "no suite") {
		t.Errorf("error is %v", err)
	}
	left, err := os.ReadDir(s.Cache)
	if err != nil || len(left) != 0 {
		t.Errorf("the cache holds %v, %v", left, err)
	}
}

func TestSourceCancelled(t *testing.T) {
	s := &Source{Shared: t.TempDir(), Work: t.TempDir()}
	writeArchive(t, filepath.Join(s.Shared, "5.10"+suffix+".tar.xz"), bundleFiles("5.10", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Get(ctx, "5.10"); err != context.Canceled {
		t.Errorf("error is %v", err)
	}
}

func TestReleases(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Releases {
		if r.Name == "" || r.Suite == "" || seen[r.Name] || seen[r.Suite] {
			t.Errorf("release %+v", r)
		}
		seen[r.Name], seen[r.Suite] = true, true
	}
}
