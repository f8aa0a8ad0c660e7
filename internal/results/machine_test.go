// SPDX-License-Identifier: Apache-2.0

package results

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCPUName(t *testing.T) {
	for want, text := range map[string]string{
		"AMD EPYC":                        "processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: other\n",
		"Some Board":                      "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\nHardware\t: Some Board\n",
		"ARM implementer 0x41 part 0xd03": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd03\n",
		"":                                "nothing\n",
	} {
		if got := cpuName(strings.NewReader(text)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSystemName(t *testing.T) {
	for want, text := range map[string]string{
		"OpenWrt 22.03.7": "NAME=\"OpenWrt\"\nPRETTY_NAME=\"OpenWrt 22.03.7\"\n",
		"Plain":           "PRETTY_NAME=Plain\n",
		"":                "NAME=x\n",
	} {
		if got := systemName(strings.NewReader(text)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestGovernors(t *testing.T) {
	dir := t.TempDir()
	if got := governors(dir); got != "" {
		t.Errorf("without any: %q", got)
	}
	for cpu, governor := range map[string]string{"cpu0": "schedutil\n", "cpu1": "schedutil\n", "cpu4": "performance\n"} {
		path := filepath.Join(dir, cpu, "cpufreq")
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "scaling_governor"), []byte(governor), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := governors(dir); got != "performance, schedutil" {
		t.Errorf("got %q", got)
	}
}
