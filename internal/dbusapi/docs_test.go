// SPDX-License-Identifier: Apache-2.0

package dbusapi

import (
	"os"
	"strings"
	"testing"

	"github.com/xdpl2/xdpl2/internal/api"
)

// TestDocumentIsComplete: docs/dbus.md names every method, property and signal.
func TestDocumentIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/dbus.md")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range api.Methods() {
		names = append(names, camel(m.Name))
	}
	for _, p := range properties {
		names = append(names, p.name)
	}
	for _, s := range signals {
		names = append(names, camel(s))
	}
	for _, name := range names {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("%s is missing", name)
		}
	}
}
