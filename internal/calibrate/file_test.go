// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
)

func example() *api.Calibration {
	return &api.Calibration{Time: time.Unix(1700000000, 0).UTC(), Kernel: "6.12.1", Machine: "a box, 4 arm64 cores",
		Rows:    []api.CalibrationRow{{Work: workTight, Size: 64, Engine: "tc", Nanos: 800, Rate: 1.25e6, Ratio: 1.2, Low: 1.1, High: 1.3}},
		Missing: []string{}}
}

func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "for it")
	path := filepath.Join(dir, "calibration.json")
	if _, err := Load(path); !errors.Is(err, api.ErrNoData) {
		t.Errorf("without a file: %v", err)
	}
	want := example()
	for range 2 {
		if err := Store(path, want); err != nil {
			t.Fatal(err)
		}
		got, err := Load(path)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v", got, err)
		}
		want.Kernel = "6.18"
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("%v, %v", info, err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("%v, %v", list, err)
	}
	// What cannot be replaced stays as it is, and nothing is left beside it.
	blocked := filepath.Join(dir, "blocked")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Store(blocked, want); err == nil {
		t.Error("a folder was replaced")
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 2 {
		t.Errorf("%v, %v", list, err)
	}
}

func TestBrokenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calibration.json")
	for text, want := range map[string]string{
		"":   "unexpected end",
		"{}": "does not say when",
		`{"time":"2026-01-02T03:04:05Z","kernel":"6.12","rows":[{"work":"tight","engine":"tc","rate":0,"ratio":1,"low":1,"high":1}]}`:   "row 1",
		`{"time":"2026-01-02T03:04:05Z","kernel":"6.12","rows":[{"work":"tight","engine":"tc","rate":5,"ratio":1,"low":1.1,"high":2}]}`: "row 1",
		`{"time":"2026-01-02T03:04:05Z","kernel":"6.12","rows":[{"engine":"tc","rate":5,"ratio":1,"low":1,"high":2}]}`:                  "row 1",
		strings.Repeat(" ", fileLimit+1): "at most",
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || !strings.Contains(err.Error(), want) || errors.Is(err, api.ErrNoData) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	if _, err := Load(t.TempDir()); err == nil {
		t.Error("a folder was read")
	}
}

func TestMachine(t *testing.T) {
	root := t.TempDir()
	if got := machine(root, 1, "arm64"); got != "1 arm64 core" {
		t.Errorf("%q", got)
	}
	for _, c := range []struct{ file, text, want string }{
		{"sys/class/dmi/id/product_name", "Thin  Client\n", "Thin Client, 4 arm64 cores"},
		{"proc/device-tree/model", "NanoPi R5S\x00", "NanoPi R5S, 4 arm64 cores"},
		{"tmp/sysinfo/model", "FriendlyElec NanoPi R5S\n", "FriendlyElec NanoPi R5S, 4 arm64 cores"},
	} {
		path := filepath.Join(root, c.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := machine(root, 4, "arm64"); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestStale(t *testing.T) {
	c := example()
	for _, x := range []struct{ kernel, machine, want string }{
		{c.Kernel, c.Machine, ""},
		{"6.18", c.Machine, "measured on Linux 6.12.1, this is 6.18"},
		{c.Kernel, "another", "measured on another machine (a box, 4 arm64 cores, this is another)"},
	} {
		if got := stale(c, x.kernel, x.machine); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}
