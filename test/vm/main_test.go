// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/test/vm/cpio"
	"github.com/xdpl2/xdpl2/test/vm/guest"
	"github.com/xdpl2/xdpl2/test/vm/kernels"
)

func TestParseFlags(t *testing.T) {
	tests := []struct {
		args string
		want config
		err  string
	}{
		{"", config{timeout: 16 * time.Minute}, ""},
		{"--kernel 5.10 --run ^TestA$ --timeout 10s --verbose", config{kernels: []string{"5.10"}, filter: "^TestA$", timeout: 10 * time.Second, verbose: true}, ""},
		{"--kernel 5.10,6.1 --packages ./bpf/...,./internal/lab", config{kernels: []string{"5.10", "6.1"}, packages: []string{"./bpf/...", "./internal/lab"}, timeout: 16 * time.Minute}, ""},
		{"--shell --kernel 7.2", config{kernels: []string{"7.2"}, shell: true, timeout: 16 * time.Minute}, ""},
		{"--no-shared --no-download --json", config{noShared: true, noDownload: true, json: true, timeout: 16 * time.Minute}, ""},
		{"--shell", config{}, "--kernel"},
		{"--shell --kernel 5.10,6.1", config{}, "one kernel"},
		{"--run (", config{}, "--run"},
		{"--timeout 0s", config{}, "--timeout"},
		{"5.10", config{}, `unexpected argument "5.10"`},
		{"--nonsense", config{}, "nonsense"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			got, err := parseFlags(strings.Fields(tt.args), io.Discard)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error is %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			tt.want.bootLimit = got.bootLimit
			if got, want := fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", tt.want); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// The matrix covers what the project promises, within its memory.
func TestMatrixSettings(t *testing.T) {
	hidden, smp := 0, 0
	for _, r := range kernels.Releases {
		s := settingOf(r.Name)
		if s.hideBTF {
			hidden++
		}
		if s.cpus == 2 {
			smp++
		}
	}
	if hidden == 0 || smp == 0 || smp == len(kernels.Releases) {
		t.Errorf("%d guests hide BTF, %d have two processors", hidden, smp)
	}
	const perQEMU = 150 // MiB, beside the guest's memory and the translation buffer
	if total := guestsAtOnce * (guestMemory + translationBuffer + perQEMU); total > 1024 {
		t.Errorf("guests may take %d MiB at once", total)
	}
}

func TestFindQEMUMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := findQEMU(); err == nil || !strings.Contains(err.Error(), "qemu-system-arm") {
		t.Errorf("error is %v", err)
	}
	if err := run(t.Context(), nil, nil, io.Discard, io.Discard); err == nil || !strings.Contains(err.Error(), "qemu-system-arm") {
		t.Errorf("error of the command is %v", err)
	}
}

func TestExisting(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"bpf", "internal/lab"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	got := existing(root, []string{"./bpf/...", "./internal/lab", "./internal/none", "./none/..."})
	if want := []string{"./bpf/...", "./internal/lab"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestFindPackages(t *testing.T) {
	m, err := findModule(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name     string
		patterns []string
		want     []string
		err      string
	}{
		{"named", []string{"./test/vm/testdata/selftest/red", "./test/vm/cpio"},
			[]string{"test/vm/testdata/selftest/red", "test/vm/cpio"}, ""},
		{"without tests", []string{"unsafe"}, nil, "has no tests"},
		{"no such folder", []string{"./nonexistent"}, nil, "has no tests"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := &runner{config: &config{packages: tt.patterns}, module: m}
			found, err := r.findPackages(t.Context())
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("error is %v, want one with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, p := range found {
				names = append(names, p.name)
			}
			if !slices.Equal(names, tt.want) {
				t.Errorf("got %q, want %q", names, tt.want)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	r := &runner{config: &config{filter: "^TestA$", timeout: time.Minute}}
	p := r.plan("6.12", []*testPackage{{name: "internal/lab"}, {name: "bpf"}})
	if !p.HideBTF || p.Kernel != "6.12" {
		t.Errorf("plan is %+v", p)
	}
	want := []guest.Package{
		{Path: "internal/lab", Dir: "/tests/internal/lab", Binary: "/tests/internal/lab/lab.test"},
		{Path: "bpf", Dir: "/tests/bpf", Binary: "/tests/bpf/bpf.test"},
	}
	if !slices.Equal(p.Packages, want) {
		t.Errorf("packages are %+v", p.Packages)
	}
	for _, arg := range []string{"-test.run=^TestA$", "-test.timeout=54s"} {
		if !slices.Contains(p.Args, arg) {
			t.Errorf("arguments %q lack %s", p.Args, arg)
		}
	}
	if !slices.Contains(p.Env, "XDPL2_GUEST=6.12") {
		t.Errorf("environment is %q", p.Env)
	}
}

func TestAddTree(t *testing.T) {
	source := t.TempDir()
	if err := os.MkdirAll(filepath.Join(source, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "sub", "file"), []byte("content"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("sub/file", filepath.Join(source, "link")); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w := cpio.NewWriter(&out)
	if err := addTree(w, source, "tests/p/testdata"); err != nil {
		t.Fatal(err)
	}
	if err := addTree(w, filepath.Join(source, "none"), "tests/none"); err != nil {
		t.Errorf("missing folder: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"tests/p/testdata/sub/file\x00", "content", "tests/p/testdata/link\x00", "sub/file"} {
		if !bytes.Contains(out.Bytes(), []byte(want)) {
			t.Errorf("archive lacks %q", want)
		}
	}
	if bytes.Contains(out.Bytes(), []byte("tests/none")) {
		t.Error("archive has the missing folder")
	}
}

func TestTail(t *testing.T) {
	for _, n := range []int{0, 1, tailLength - 1, tailLength, tailLength + 1, 3*tailLength + 7} {
		var last tail
		var want []string
		for i := range n {
			last.add(strings.Repeat("x", i))
			want = append(want, strings.Repeat("x", i))
		}
		want = want[max(0, n-tailLength):]
		if got := last.all(); !slices.Equal(got, want) {
			t.Errorf("%d lines: kept %d, want %d", n, len(got), len(want))
		}
	}
}

func TestGate(t *testing.T) {
	var out bytes.Buffer
	g := &gate{w: &out, open: make(chan struct{})}
	text := "boot\r\n" + guest.Prompt + "more " + guest.Prompt
	for i := range len(text) {
		select {
		case <-g.open:
			if i < len("boot\r\n"+guest.Prompt) {
				t.Fatalf("open after %q", text[:i])
			}
		default:
		}
		if _, err := g.Write([]byte{text[i]}); err != nil {
			t.Fatal(err)
		}
	}
	input, err := io.ReadAll(io.MultiReader(g, strings.NewReader("typed")))
	if err != nil || string(input) != "typed" || out.String() != text {
		t.Errorf("passed %q in and %q out, %v", input, out.String(), err)
	}
}

func TestWelcome(t *testing.T) {
	text := welcome("6.12", settingOf("6.12"), []string{"xdpl2", "xdpl2-bench"})
	for _, want := range []string{"Linux 6.12 (no BTF)", "xdpl2-bench demo --shell", "poweroff -f"} {
		if !strings.Contains(text, want) {
			t.Errorf("welcome lacks %q:\n%s", want, text)
		}
	}
	if text := welcome("5.10", settingOf("5.10"), nil); strings.Contains(text, "xdpl2") {
		t.Errorf("welcome names programs that are not there:\n%s", text)
	}
}
