// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/xdpl2/xdpl2/internal/config"
)

// TestUCIConfig has the daemon's own reader read what is written for it.
func TestUCIConfig(t *testing.T) {
	for _, engine := range []string{"", "auto", "tc", "generic"} {
		dir := t.TempDir()
		d := &daemon{dir: dir}
		if err := os.Mkdir(filepath.Join(dir, "config"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := d.configure(uciConfig("br0", engine, "eth1", "eth2")); err != nil {
			t.Fatal(err)
		}
		cfg, problems := config.Load(filepath.Join(dir, "config"), filepath.Join(dir, "save"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if cfg.Main.Enabled != (engine != "") || cfg.Main.Bridge != "br0" || cfg.Main.Mode != config.ModeMAC {
			t.Errorf("%q: %+v", engine, cfg.Main)
		}
		if engine != "" && cfg.Main.Engine != engine {
			t.Errorf("engine %s, want %s", cfg.Main.Engine, engine)
		}
		if len(cfg.Ports) != 2 || cfg.Ports[0].Device != "eth1" || cfg.Ports[1].Device != "eth2" {
			t.Errorf("ports %+v", cfg.Ports)
		}
	}
}

func TestFindDaemon(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "xdpl2")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := findDaemon(program); err != nil || got != program {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{filepath.Join(dir, "none"), dir, plain} {
		if got, err := findDaemon(bad); err == nil {
			t.Errorf("%s: found %s", bad, got)
		}
	}
	t.Setenv("PATH", dir)
	if got, err := findDaemon(""); err != nil || got != program {
		t.Errorf("in PATH: %q, %v", got, err)
	}
	t.Setenv("PATH", "/nonexistent")
	if got, err := findDaemon(""); err == nil {
		t.Errorf("found %s", got)
	}
}

// TestWrapper has a shell read the wrapper.
func TestWrapper(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("needs sh")
	}
	path := filepath.Join(t.TempDir(), "w")
	if err := os.WriteFile(path, []byte(wrapper([]string{"printf", "%s|", "it's", "a b"})), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(sh, path, "$HOME", "c d").Output()
	if want := "it's|a b|$HOME|c d|"; err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}
