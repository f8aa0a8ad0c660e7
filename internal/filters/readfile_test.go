// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	for _, length := range []int{0, 1, 512, 513, 5000} {
		path, want := filepath.Join(dir, "f"), bytes.Repeat([]byte("x"), length)
		if err := os.WriteFile(path, want, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := readFile(path); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bytes: read %d, %v", length, len(got), err)
		}
	}
	if _, err := readFile(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := readFile(dir); err == nil {
		t.Error("a folder was read")
	}
}
