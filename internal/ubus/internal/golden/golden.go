// SPDX-License-Identifier: Apache-2.0

// Package golden reads recordings of a real ubusd, its command line and
// libubus for the tests of the packages around it.
package golden

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Kept is the folder with the part of the recordings that is in the repository.
func Kept(tb testing.TB) string {
	tb.Helper()
	return filepath.Join(root(tb), "internal", "ubus", "testdata")
}

// Recorded is the folder with all recordings, which are not part of the
// repository. The test is skipped where they are absent.
func Recorded(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("XDPL2_GOLDEN")
	if dir == "" {
		dir = filepath.Join(root(tb), "..", "shared", "golden")
	}
	dir = filepath.Join(dir, "ubus")
	if _, err := os.Stat(dir); err != nil {
		tb.Skipf("no recordings: %v (XDPL2_GOLDEN names the folder that has ubus/ in it)", err)
	}
	return dir
}

// root is the module's folder.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if up := filepath.Dir(dir); up != dir {
			dir = up
			continue
		}
		tb.Fatal("no go.mod above the test's folder")
	}
}

// Lines calls f with each line of a file of JSON lines.
func Lines(tb testing.TB, path string, f func(line []byte)) {
	tb.Helper()
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	for r := bufio.NewReader(file); ; {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			f(line)
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			tb.Fatalf("read %s: %v", path, err)
		}
	}
}

// Pair is a text and the blobmsg that libubox makes of it.
type Pair struct {
	JSON         string
	Blob         []byte // with its outer header; nil if the text is refused
	Format       string
	FormatIndent string
}

// Pairs reads blobmsg.jsonl.
func Pairs(tb testing.TB, dir string) (pairs []Pair) {
	tb.Helper()
	Lines(tb, filepath.Join(dir, "blobmsg.jsonl"), func(line []byte) {
		var p struct {
			JSON            string `json:"json"`
			JSONB64         []byte `json:"json_b64"`
			Hex             string `json:"hex"`
			Format          string `json:"format"`
			FormatB64       []byte `json:"format_b64"`
			FormatIndent    string `json:"format_indent"`
			FormatIndentB64 []byte `json:"format_indent_b64"`
			Error           bool   `json:"error"`
		}
		unmarshal(tb, line, &p)
		or := func(s string, b []byte) string {
			if b != nil {
				return string(b)
			}
			return s
		}
		pair := Pair{JSON: or(p.JSON, p.JSONB64), Format: or(p.Format, p.FormatB64),
			FormatIndent: or(p.FormatIndent, p.FormatIndentB64)}
		if !p.Error {
			pair.Blob = Expand(tb, p.Hex)
		}
		pairs = append(pairs, pair)
	})
	return pairs
}

// Blob is a blob that no JSON makes, and what libubox says of it.
type Blob struct {
	Description string
	Blob        []byte // with its outer header
	// Check is whether each of the outermost values has a name and is in order.
	Check  bool
	Format string
}

// Blobs reads blobmsg_decode.jsonl.
func Blobs(tb testing.TB, dir string) (blobs []Blob) {
	tb.Helper()
	Lines(tb, filepath.Join(dir, "blobmsg_decode.jsonl"), func(line []byte) {
		var b struct {
			Description string `json:"description"`
			Hex         string `json:"hex"`
			Check       bool   `json:"check"`
			Format      string `json:"format"`
			FormatB64   string `json:"format_b64"`
		}
		unmarshal(tb, line, &b)
		if b.FormatB64 != "" {
			text, err := base64.StdEncoding.DecodeString(b.FormatB64)
			if err != nil {
				tb.Fatal(err)
			}
			b.Format = string(text)
		}
		blobs = append(blobs, Blob{b.Description, Expand(tb, b.Hex), b.Check, b.Format})
	})
	return blobs
}

func unmarshal(tb testing.TB, line []byte, into any) {
	tb.Helper()
	if err := json.Unmarshal(line, into); err != nil {
		tb.Fatalf("%.80s: %v", line, err)
	}
}

// Expand reads hexadecimal digits in which <42*500000> stands for 500000 times
// the byte 0x42.
func Expand(tb testing.TB, text string) []byte {
	tb.Helper()
	out, err := expand(text)
	if err != nil {
		tb.Fatalf("%.80s: %v", text, err)
	}
	return out
}

func expand(text string) ([]byte, error) {
	out := []byte{}
	for text != "" {
		plain, run, ok := strings.Cut(text, "<")
		b, err := hex.DecodeString(plain)
		if err != nil {
			return nil, err
		}
		out = append(out, b...)
		if !ok {
			break
		}
		run, text, _ = strings.Cut(run, ">")
		value, count, _ := strings.Cut(run, "*")
		b, err = hex.DecodeString(value)
		if err != nil {
			return nil, err
		}
		n, err := strconv.Atoi(count)
		if err != nil {
			return nil, fmt.Errorf("run %q: %w", run, err)
		}
		out = append(out, bytes.Repeat(b, n)...)
	}
	return out, nil
}
