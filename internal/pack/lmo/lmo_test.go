// SPDX-License-Identifier: Apache-2.0

package lmo

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAgainstLuCI compares with what LuCI's own po2lmo made of our files.
func TestAgainstLuCI(t *testing.T) {
	files, err := filepath.Glob("testdata/*.po")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files to compare: %v", err)
	}
	for _, name := range files {
		po, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(name, ".po") + ".lmo")
		if err != nil {
			t.Fatal(err)
		}
		got, err := Compile(po)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes differ from the %d that po2lmo makes\n got %x\nwant %x", name, len(got), len(want), got, want)
		}
	}
}

func TestRefused(t *testing.T) {
	long := strings.Repeat("x", keyLimit)
	for po, want := range map[string]string{
		"msgid \"a\"\nmsgstr \"\"\n":               "nothing is translated",
		"msgid \"a\"\nmsgstr \"a\"\n":              "nothing is translated",
		"msgid \"a\"\n":                            "line 1: the message has no msgstr",
		"msgid \"a\"\nmsgid \"b\"\nmsgstr \"c\"\n": "line 2: msgid: the message of line 1 has no msgstr",
		"msgstr \"a\"\n":                           "line 1: msgstr before any msgid",
		"\"a\"\n":                                  "line 1: a text without a keyword",
		"msgid \"a\n":                              "line 1: the text has no closing quote",
		"msgid \"a\" b\n":                          `line 1: unexpected "b"`,
		"msgid \"a\\\n":                            "line 1: the text ends with a backslash",
		"msgid a\n":                                "line 1: expected a keyword and a quoted text",
		"\n\nmsgid \"a\"\nmsgstr[10] \"b\"\n":      "line 4: msgstr[10]: expected a plural form from 0 to 9",
		"msgid \"a\"\nmsgstring \"b\"\n":           `line 2: unknown keyword "msgstring"`,
		"#\nmsgid \"" + long + "\"\nmsgstr \"translated\"\n": "line 2: the text is too long (4096 bytes",
	} {
		if _, err := Compile([]byte(po)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v; want %q", po, err, want)
		}
	}
}

func FuzzCompile(f *testing.F) {
	for _, name := range []string{"testdata/sample.po", "testdata/plurals.po"} {
		po, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(po)
	}
	f.Fuzz(func(t *testing.T, po []byte) {
		if file, err := Compile(po); err == nil && len(file)%4 != 0 {
			t.Errorf("%d bytes are no catalogue", len(file))
		}
	})
}
