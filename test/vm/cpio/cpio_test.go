// SPDX-License-Identifier: Apache-2.0

package cpio

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// entry is one archive member as a reader sees it.
type entry struct {
	name         string
	mode         uint64
	major, minor uint64
	content      string
}

func (e entry) String() string {
	return fmt.Sprintf("%s %06o %d:%d %q", e.name, e.mode, e.major, e.minor, e.content)
}

// read takes an archive apart, strictly: every field and every padding byte.
func read(t *testing.T, archive []byte) []entry {
	t.Helper()
	var entries []entry
	offset := 0
	take := func(n int) string {
		t.Helper()
		if offset+n > len(archive) {
			t.Fatalf("archive ends at %d inside a field of %d bytes at %d", len(archive), n, offset)
		}
		s := string(archive[offset : offset+n])
		offset += n
		return s
	}
	align := func() {
		t.Helper()
		for offset%4 != 0 {
			if take(1) != "\x00" {
				t.Fatalf("padding before %d is not zero", offset)
			}
		}
	}
	inodes := map[uint64]bool{}
	for {
		if got := take(6); got != "070701" {
			t.Fatalf("magic at %d is %q", offset-6, got)
		}
		var fields [13]uint64
		for i := range fields {
			v, err := strconv.ParseUint(take(8), 16, 32)
			if err != nil {
				t.Fatalf("field %d: %v", i, err)
			}
			fields[i] = v
		}
		if inodes[fields[0]] {
			t.Fatalf("inode %d twice: the kernel would take it for a hard link", fields[0])
		}
		inodes[fields[0]] = true
		name := take(int(fields[11]))
		if !strings.HasSuffix(name, "\x00") {
			t.Fatalf("name %q has no end", name)
		}
		align()
		content := take(int(fields[6]))
		align()
		name = strings.TrimSuffix(name, "\x00")
		if name == "TRAILER!!!" {
			break
		}
		entries = append(entries, entry{name, fields[1], fields[9], fields[10], content})
	}
	if offset != len(archive) {
		t.Fatalf("%d bytes after the trailer", len(archive)-offset)
	}
	return entries
}

func TestWriter(t *testing.T) {
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		build func(w *Writer)
		want  []entry
	}{
		{"empty", func(*Writer) {}, nil},
		{"file", func(w *Writer) { w.File("init", 0o755, []byte("#!")) },
			[]entry{{"init", 0o100755, 0, 0, "#!"}}},
		{"leading slash", func(w *Writer) { w.File("/init", 0o755, nil) },
			[]entry{{"init", 0o100755, 0, 0, ""}}},
		{"parents once", func(w *Writer) {
			w.File("a/b/c", 0o644, []byte("1"))
			w.File("a/b/d", 0o600, []byte("22"))
			w.Folder("a", 0o700)
		}, []entry{
			{"a", 0o040755, 0, 0, ""},
			{"a/b", 0o040755, 0, 0, ""},
			{"a/b/c", 0o100644, 0, 0, "1"},
			{"a/b/d", 0o100600, 0, 0, "22"},
		}},
		{"folder with its own mode", func(w *Writer) { w.Folder("root", 0o700) },
			[]entry{{"root", 0o040700, 0, 0, ""}}},
		{"symlink", func(w *Writer) { w.Symlink("bin/sh", "/bin/busybox") }, []entry{
			{"bin", 0o040755, 0, 0, ""},
			{"bin/sh", 0o120777, 0, 0, "/bin/busybox"},
		}},
		{"device", func(w *Writer) { w.Device("dev/console", 0o600, 5, 1) }, []entry{
			{"dev", 0o040755, 0, 0, ""},
			{"dev/console", 0o020600, 5, 1, ""},
		}},
		{"from a file", func(w *Writer) { w.FileFrom("copy", 0o644, source) },
			[]entry{{"copy", 0o100644, 0, 0, "from a file"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			w := NewWriter(&out)
			tt.build(w)
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprint(read(t, out.Bytes())), fmt.Sprint(tt.want); got != want {
				t.Errorf("archive holds\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// Every length of name and content must end on a multiple of four.
func TestWriterPadding(t *testing.T) {
	for length := range 9 {
		var out bytes.Buffer
		w := NewWriter(&out)
		name, content := strings.Repeat("n", length+1), strings.Repeat("c", length)
		if err := w.File(name, 0o644, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if err := w.File("next", 0o644, []byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		entries := read(t, out.Bytes())
		if len(entries) != 2 || entries[0].content != content || entries[1].name != "next" {
			t.Errorf("length %d: archive holds %v", length, entries)
		}
	}
}

func TestWriterErrors(t *testing.T) {
	tests := []struct {
		name  string
		build func(w *Writer) error
		want  error
	}{
		{"same file twice", func(w *Writer) error {
			w.File("a", 0o644, nil)
			return w.File("/a", 0o644, nil)
		}, fs.ErrExist},
		{"missing source", func(w *Writer) error { return w.FileFrom("a", 0o644, "/nonexistent/file") }, fs.ErrNotExist},
		{"root", func(w *Writer) error { return w.Folder("/", 0o755) }, nil},
		{"outside", func(w *Writer) error { return w.File("../a", 0o644, nil) }, nil},
		{"after close", func(w *Writer) error {
			w.Close()
			return w.File("a", 0o644, nil)
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := NewWriter(io.Discard)
			err := tt.build(w)
			if err == nil {
				t.Fatal("no error")
			}
			if tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error is %v, want %v", err, tt.want)
			}
			if w.Close() == nil {
				t.Error("Close forgets the error")
			}
		})
	}
}
