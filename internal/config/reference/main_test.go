// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"
)

// The committed reference must be what the declarations say.
func TestReferenceIsCurrent(t *testing.T) {
	committed, err := os.ReadFile("../../../docs/uci.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != text() {
		t.Error("docs/uci.md differs from the declarations in internal/config/declare.go: run make generate")
	}
}
