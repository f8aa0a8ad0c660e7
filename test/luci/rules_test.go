// SPDX-License-Identifier: Apache-2.0

// Package luci has the tests of the LuCI pages: those in JavaScript, and here
// what ties them to the daemon.
package luci

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/config"
)

// refusal is a configuration and where the daemon finds fault with it.
type refusal struct {
	Name     string           `json:"name"`
	Main     map[string]any   `json:"main"`
	Ports    []map[string]any `json:"ports"`
	Stations []map[string]any `json:"stations"`
	Tuning   map[string]any   `json:"tuning"`
	Problems []string         `json:"problems"`
}

func section(b *strings.Builder, head string, options map[string]any) {
	fmt.Fprintf(b, "config %s\n", head)
	for _, name := range slices.Sorted(maps.Keys(options)) {
		switch v := options[name].(type) {
		case []any:
			for _, item := range v {
				fmt.Fprintf(b, "\tlist %s '%v'\n", name, item)
			}
		default:
			fmt.Fprintf(b, "\toption %s '%v'\n", name, v)
		}
	}
}

// TestRefusals: what testdata/refused.json says is refused is what the daemon
// refuses. The form is tested with the same file, and with the daemon's words,
// which are kept in testdata/words.json.
func TestRefusals(t *testing.T) {
	data, err := os.ReadFile("testdata/refused.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []refusal
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	words := map[string][]string{}
	for _, c := range cases {
		var b strings.Builder
		section(&b, "xdpl2 'main'", c.Main)
		for _, p := range c.Ports {
			section(&b, "port", p)
		}
		for _, s := range c.Stations {
			section(&b, "station", s)
		}
		section(&b, "tuning 'tuning'", c.Tuning)
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, config.Package), []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		_, problems := config.Load(dir, "")
		found := []string{}
		words[c.Name] = []string{}
		for _, p := range problems.Errors() {
			found = append(found, p.Section+" "+p.Option)
			// Suggestions (did you mean ...?) are for a typing error, which a
			// form has no room for.
			message, _, _ := strings.Cut(p.Message, " (did you mean")
			words[c.Name] = append(words[c.Name], message+"; expected "+p.Expected)
		}
		if !slices.Equal(found, c.Problems) {
			t.Errorf("%s: the daemon finds %q, the file says %q", c.Name, found, c.Problems)
		}
	}
	text, err := json.MarshalIndent(words, "", "\t")
	if err != nil {
		t.Fatal(err)
	}
	const name = "testdata/words.json"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(name, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if string(kept) != string(text)+"\n" {
		t.Errorf("the daemon's words have changed: run this test with UPDATE=1, and change rules.js if the test of the form fails then")
	}
}
