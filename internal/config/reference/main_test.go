// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// What is committed must be what the declarations say.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	for name, want := range map[string]string{
		"docs/uci.md": text(),
		"luci-app/htdocs/luci-static/resources/xdpl2/options.js": luci(),
	} {
		committed, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if string(committed) != want {
			t.Errorf("%s differs from the declarations in internal/config/declare.go: run make generate", name)
		}
	}
}
