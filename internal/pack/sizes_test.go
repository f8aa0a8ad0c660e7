// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	before := []Size{{"package xdpl2", "aarch64_generic", 3_000_000}, {"package gone", All, 5}}
	file := filepath.Join(t.TempDir(), "sizes")
	must(t, os.WriteFile(file, []byte(FormatSizes("0.1.0", before)), 0o600))
	read, err := ReadSizes(file)
	must(t, err)
	if !reflect.DeepEqual(read, before) {
		t.Errorf("written and read: %v, want %v", read, before)
	}
	now := []Size{{"package xdpl2", "aarch64_generic", 2_999_000}, {"program xdpl2", "aarch64_generic", 9 << 20}}
	table, err := CompareSizes(now, read)
	must(t, err)
	for _, want := range []string{"2999000     -1000  3670016", "9437184       new  9437184", "gone        -5"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	now[1].Bytes++
	if _, err := CompareSizes(now, nil); err == nil || !strings.Contains(err.Error(), "program xdpl2 for aarch64_generic: 9437185 bytes (at most 9437184)") {
		t.Errorf("too large: %v", err)
	}
	if sizes, err := ReadSizes(filepath.Join(t.TempDir(), "none")); err != nil || sizes != nil {
		t.Errorf("no earlier release: %v, %v", sizes, err)
	}
	for text, want := range map[string]string{"a b\n": ":1:", "# x\na b c\n": ":2:"} {
		must(t, os.WriteFile(file, []byte(text), 0o600))
		if _, err := ReadSizes(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want the line", text, err)
		}
	}
}

// TestSBOM compares with what `go version -m` says of a program: this test.
func TestSBOM(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	program, err := os.ReadFile(self)
	must(t, err)
	text, err := SBOM("0.1.0", map[string][]byte{"b": program, "a": program}, 1700000000)
	must(t, err)
	again, err := SBOM("0.1.0", map[string][]byte{"a": program, "b": program}, 1700000000)
	must(t, err)
	if string(text) != string(again) {
		t.Error("made twice, it differs")
	}
	var got bom
	must(t, json.Unmarshal(text, &got))
	if got.Metadata.Timestamp != "2023-11-14T22:13:20Z" || got.Components[0].Ref != "a" || got.Components[1].Ref != "b" {
		t.Errorf("%+v", got)
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command to compare with")
	}
	listed := map[string]bool{}
	for _, c := range got.Components {
		listed[c.Name+" "+c.Version] = true
	}
	for _, line := range strings.Split(command(t, "go", "version", "-m", self), "\n") {
		words := strings.Fields(line)
		if len(words) > 2 && words[0] == "dep" && !listed[words[1]+" "+words[2]] {
			t.Errorf("not listed: %s", line)
		}
	}
	if len(got.Dependencies) != 2 || len(got.Dependencies[0].DependsOn) == 0 {
		t.Errorf("who uses what: %+v", got.Dependencies)
	}
	if _, err := SBOM("0.1.0", map[string][]byte{"x": []byte("no program")}, 0); err == nil {
		t.Error("a list of what is in no program")
	}
}
