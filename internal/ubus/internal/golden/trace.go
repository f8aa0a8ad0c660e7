// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"encoding/binary"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// Trace is what went over ubusd's socket in one scenario.
type Trace struct {
	Name  string
	ACL   map[string]json.RawMessage
	Steps []Step
}

// Step is one line of a trace: a connection that opens or ends, or bytes.
type Step struct {
	Conn    string
	Connect bool
	Close   bool
	// FromClient tells who sent the bytes or closed.
	FromClient bool
	// Chunk tells of bytes of a hand-made client: one write, of which nothing
	// says that it is one whole frame.
	Chunk bool
	Bytes []byte
	IDs   []ID
	Note  string
	// Comment is a remark on the scenario, in a line without a connection.
	Comment string
}

// ID is a place in a step's bytes that holds a random id.
type ID struct {
	Offset int    `json:"off"`
	Name   string `json:"id"` // C1 ... clients, O1 ... objects, T1 ... types
}

// Traces are the files of all scenarios in a folder.
func Traces(tb testing.TB, dir string) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "traces", "*.jsonl"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no traces in %s: %v", dir, err)
	}
	return paths
}

// Load reads one trace.
func Load(tb testing.TB, path string) *Trace {
	tb.Helper()
	t := &Trace{Name: strings.TrimSuffix(filepath.Base(path), ".jsonl")}
	Lines(tb, path, func(line []byte) {
		var l struct {
			ACL     map[string]json.RawMessage `json:"acl_files"`
			Conn    string                     `json:"conn"`
			Event   string                     `json:"event"`
			Dir     string                     `json:"dir"`
			Hex     string                     `json:"hex"`
			Chunk   bool                       `json:"chunk"`
			IDs     []ID                       `json:"ids"`
			Note    string                     `json:"note"`
			Comment string                     `json:"comment"`
		}
		unmarshal(tb, line, &l)
		if l.ACL != nil {
			t.ACL = l.ACL
		}
		if l.Hex == "" && l.Event == "" && l.Comment == "" {
			return
		}
		t.Steps = append(t.Steps, Step{
			Conn: l.Conn, Connect: l.Event == "connect", Close: l.Event == "close",
			FromClient: l.Dir == "c2s", Chunk: l.Chunk, Bytes: Expand(tb, l.Hex),
			IDs: l.IDs, Note: l.Note, Comment: l.Comment,
		})
	})
	return t
}

// ByConn splits a trace by connection, in the order of connecting.
func (t *Trace) ByConn() (names []string, steps map[string][]Step) {
	steps = map[string][]Step{}
	for _, s := range t.Steps {
		if s.Conn == "" {
			continue
		}
		if steps[s.Conn] == nil {
			names = append(names, s.Conn)
		}
		steps[s.Conn] = append(steps[s.Conn], s)
	}
	return names, steps
}

// Mask replaces the random ids in a copy of the bytes by what the function
// gives for each.
func (s Step) Mask(id func(name string, old uint32) uint32) []byte {
	out := append([]byte(nil), s.Bytes...)
	for _, i := range s.IDs {
		p := out[i.Offset : i.Offset+4]
		binary.BigEndian.PutUint32(p, id(i.Name, binary.BigEndian.Uint32(p)))
	}
	return out
}
