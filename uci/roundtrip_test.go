// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// content is what a package says, without where it says it.
func content(p *Package) string {
	var b strings.Builder
	for _, s := range p.Sections {
		fmt.Fprintf(&b, "%q %q %v %d\n", s.Type, s.Name, s.Anonymous, s.Index)
		for _, o := range s.Options {
			fmt.Fprintf(&b, "\t%q %v %q\n", o.Name, o.List, o.Values)
		}
	}
	return b.String()
}

// readsBack says whether libuci can write a package so that it reads back: it does
// not quote types, and an empty list has no line.
func readsBack(p *Package) bool {
	for _, s := range p.Sections {
		if strings.ContainsAny(s.Type, `'"\#;`) {
			return false
		}
		if slices.ContainsFunc(s.Options, func(o *Option) bool { return len(o.Values) == 0 }) {
			return false
		}
	}
	return true
}

// checkRoundTrip writes a package that was read from a file, and reads it again.
func checkRoundTrip(t *testing.T, p *Package) {
	t.Helper()
	if !readsBack(p) {
		return
	}
	q, err := Parse(p.Name, "written", []byte(p.Text()))
	if err != nil {
		t.Fatalf("written text does not load: %v\n%s", err, p.Text())
	}
	equal(t, "content", content(q), content(p))
	if q.Text() != p.Text() {
		t.Errorf("text changes:\n%s\n---\n%s", q.Text(), p.Text())
	}
	exported, err := Parse(p.Name, "exported", []byte(p.Export(false)))
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "exported", content(exported), content(p))
}

func TestRoundTrip(t *testing.T) {
	n := 0
	walk := func(pattern string) {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p, err := Parse(filepath.Base(file), file, data)
			if err != nil {
				continue // one of those that must not load
			}
			n++
			checkRoundTrip(t, p)
		}
	}
	for _, folder := range []string{"config", "initial", "committed"} {
		walk(filepath.Join("testdata", "golden", "*", folder, "*"))
	}
	if n == 0 {
		t.Fatal("no files")
	}
	t.Run("all", func(t *testing.T) {
		dir := goldenDir(t)
		for _, folder := range []string{"config", "initial", "committed"} {
			walk(filepath.Join(dir, "*", folder, "*"))
		}
		t.Logf("%d files", n)
	})
}
