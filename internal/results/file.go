// SPDX-License-Identifier: Apache-2.0

package results

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds what is read: the largest run has some thousand cells.
const maxFile = 64 << 20

// Read reads and checks a file. The name is for the errors.
func Read(r io.Reader, file string) (*File, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(text) > maxFile {
		return nil, fmt.Errorf("%s: more than %d MiB: not a results file", file, maxFile>>20)
	}
	// What another version or program wrote is told as that, not by the first
	// field that is unknown.
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, fmt.Errorf("%s: %w", file, explain(text, err))
	}
	if head.Format != Format || head.Version != Version {
		h := &File{Format: head.Format, Version: head.Version, Meta: Meta{Command: "none"}}
		return nil, inFile(file, h.Validate())
	}
	f := &File{}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(f); err != nil {
		return nil, fmt.Errorf("%s: %w", file, explain(text, err))
	}
	if err := f.Validate(); err != nil {
		return nil, inFile(file, err)
	}
	return f, nil
}

// ReadFile reads and checks a file.
func ReadFile(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return Read(file, path)
}

// inFile puts a file's name before each of the joined errors.
func inFile(file string, err error) error {
	var lines []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		lines = append(lines, fmt.Errorf("%s: %s", file, line))
	}
	return errors.Join(lines...)
}

// explain says where in the text an error of encoding/json is.
func explain(text []byte, err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		err = fmt.Errorf("%s: %s: expected %s", kind.Field, kind.Value, kind.Type)
		if kind.Field == "" {
			err = fmt.Errorf("%s: expected an object with format, version, meta and cells", kind.Value)
		}
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return err
	}
	line := 1 + bytes.Count(text[:offset], []byte("\n"))
	return fmt.Errorf("line %d: %w", line, err)
}

// Write writes a checked file as JSON.
func (f *File) Write(w io.Writer) error {
	if err := f.Validate(); err != nil {
		return err
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(f)
}

// WriteFile writes a file as JSON: all of it or, on an error, nothing.
func (f *File) WriteFile(path string) error {
	return writeFile(path, f.Write)
}

// WriteCSVFile writes a file as CSV: all of it or, on an error, nothing.
func (f *File) WriteCSVFile(path string) error {
	return writeFile(path, f.WriteCSV)
}

func writeFile(path string, write func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	err = errors.Join(write(tmp), tmp.Chmod(0o644), tmp.Close())
	if err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
