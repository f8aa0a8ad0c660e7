// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// seed adds the small recorded files of a folder to what a fuzz test starts from.
func seed(f *testing.F, folder string) {
	files, err := filepath.Glob(filepath.Join("testdata", "golden", "*", folder, "*"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no files in %s: %v", folder, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 2000 {
			f.Add(data)
		}
	}
}

// checkPlace makes sure that an error points into the file.
func checkPlace(t *testing.T, err *ParseError, data []byte) {
	t.Helper()
	lines := bytes.Split(data, []byte("\n"))
	if err.Line < 1 || err.Line > len(lines) || err.Column < 1 || err.Column > len(lines[err.Line-1])+1 {
		t.Errorf("no such place: %v", err)
	}
}

func FuzzConfig(f *testing.F) {
	seed(f, "config")
	f.Fuzz(func(t *testing.T, data []byte) {
		lenient, errs := ParseLenient("fuzz", "file", data)
		for _, err := range errs {
			checkPlace(t, err, data)
		}
		lenient.Show(false)
		checkRoundTrip(t, lenient)

		p, err := Parse("fuzz", "file", data)
		if (err == nil) == (p == nil) {
			t.Fatalf("package %v and error %v", p, err)
		}
		if err != nil {
			checkPlace(t, err.(*ParseError), data)
			return
		}
		for _, s := range p.Sections {
			if p.Section(s.Name) == nil {
				t.Errorf("section %q is not found", s.Name)
			}
			for _, o := range s.Options {
				if s.Option(o.Name) != o || len(o.Values) == 0 || !o.List && len(o.Values) != 1 {
					t.Errorf("option %q: %v", o.Name, o)
				}
			}
		}
		checkRoundTrip(t, p)
	})
}

// fuzzConfig is what fuzzed staged changes are applied to.
const fuzzConfig = `
config xdpl2 'main'
	option mode 'mac'
	list skip 'a'
	list skip 'b'

config port
	option device 'eth1'

config port
	option device 'eth2'
`

func FuzzStaged(f *testing.F) {
	seed(f, "delta")
	f.Fuzz(func(t *testing.T, data []byte) {
		load := func() *Package {
			p, errs := parse("xdpl2", "file", []byte(fuzzConfig), false)
			if errs != nil {
				t.Fatal(errs)
			}
			return p
		}
		p := load()
		applied := p.applyStaged("staged", data)
		p.finish()
		for _, err := range p.Ignored {
			checkPlace(t, err, data)
		}
		p.Show(false)

		// What was read as a change is written so that it reads as the same.
		var text []byte
		for _, c := range p.staged {
			text = c.append(text, "xdpl2")
		}
		q := load()
		if again := q.applyStaged("staged", text); again != applied {
			t.Errorf("%d changes were applied and then %d\n%s", applied, again, text)
		}
		q.finish()
		equal(t, "content", content(q), content(p))
		equal(t, "changes", q.Changes(), p.Changes())
		for i, c := range p.staged {
			if i >= len(q.staged) || q.staged[i] != c {
				t.Errorf("change %d: %v is not read back", i, c)
			}
		}
	})
}

func FuzzReference(f *testing.F) {
	for _, s := range []string{"main", "@port[0]", "@port[-1]", "@[1]", "@port[]", "@port[99999999999999999999]", "@[", "", "@port[ 1]"} {
		f.Add(s)
	}
	p, err := Parse("xdpl2", "file", []byte(fuzzConfig))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, ref string) {
		s, err := p.section(ref)
		if (s == nil) == (err == nil) {
			t.Errorf("section %v and error %v", s, err)
		}
	})
}
