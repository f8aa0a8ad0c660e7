// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/pack/usign"
)

// Names of the files of a feed for opkg.
const (
	IndexName     = "Packages"
	SignatureName = IndexName + ".sig"
	ManifestName  = IndexName + ".manifest" // the index with all fields
)

// manifestOnly are the fields that OpenWrt leaves out of the index that routers
// load.
var manifestOnly = []string{"Maintainer", "LicenseFiles", "Source", "SourceName", "Require-User", "SourceDateEpoch"}

// WriteIndex indexes and signs the .ipk files of a folder, which makes it a feed.
func WriteIndex(dir string, key *usign.SecretKey) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.ipk"))
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return fmt.Errorf("%s: no packages to index", dir)
	}
	slices.Sort(names)
	var full, index strings.Builder
	for _, name := range names {
		ipk, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		control, err := ReadControl(ipk)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		entry := indexEntry(control, filepath.Base(name), ipk)
		full.WriteString(entry + "\n")
		index.WriteString(withoutFields(entry, manifestOnly) + "\n")
	}
	text := padIndex([]byte(index.String()))
	compressed, err := compress(text)
	if err != nil {
		return err
	}
	for name, data := range map[string][]byte{
		IndexName:         text,
		IndexName + ".gz": compressed,
		ManifestName:      []byte(full.String()),
		SignatureName:     key.Sign(text),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return fmt.Errorf("write index: %w", err)
		}
	}
	return nil
}

// padIndex keeps the index away from two lengths for which the usign of older
// OpenWrt releases computes a wrong hash, and refuses every signature.
func padIndex(text []byte) []byte {
	const block, signaturePart = 128, 64
	for n := (signaturePart + len(text)) % block; n == 110 || n == 111; n = (signaturePart + len(text)) % block {
		text = append(text, '\n')
	}
	return text
}

// indexEntry puts what the index knows of the file before the description.
func indexEntry(control, name string, ipk []byte) string {
	about := fmt.Sprintf("Filename: %s\nSize: %d\nSHA256sum: %x\n", name, len(ipk), sha256.Sum256(ipk))
	return strings.Replace(control, "\nDescription:", "\n"+about+"Description:", 1)
}

// withoutFields drops fields of one line.
func withoutFields(entry string, names []string) string {
	lines := slices.DeleteFunc(strings.SplitAfter(entry, "\n"), func(line string) bool {
		name, _, ok := strings.Cut(line, ":")
		return ok && slices.Contains(names, name)
	})
	return strings.Join(lines, "")
}

// ReadControl finds the control file in an .ipk.
func ReadControl(ipk []byte) (string, error) {
	controlTar, err := memberOf(ipk, "./control.tar.gz")
	if err != nil {
		return "", err
	}
	control, err := memberOf(controlTar, "./control")
	return string(control), err
}

// memberOf returns a file of a compressed tar archive.
func memberOf(archive []byte, name string) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("not a compressed archive: %w", err)
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s is missing", name)
		}
		if err != nil {
			return nil, fmt.Errorf("find %s: %w", name, err)
		}
		if h.Name == name {
			return io.ReadAll(t)
		}
	}
}

// An IndexedPackage is an entry of a feed's index.
type IndexedPackage map[string]string

// ParseIndex reads an index back.
func ParseIndex(text string) ([]IndexedPackage, error) {
	var all []IndexedPackage
	for _, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		p := IndexedPackage{}
		last := ""
		for _, line := range strings.Split(paragraph, "\n") {
			if strings.HasPrefix(line, " ") && last != "" {
				p[last] += "\n" + line[1:]
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if !ok {
				return nil, fmt.Errorf("index: %q is no field", line)
			}
			if _, twice := p[name]; twice {
				return nil, fmt.Errorf("index: package %s has two fields %s", p["Package"], name)
			}
			p[name], last = strings.TrimSpace(value), name
		}
		all = append(all, p)
	}
	return all, nil
}

// CheckFeed checks a feed as a router does, and more: the signature, that the
// compressed index is the same, that each package is there with size and
// checksum, and that nothing else is.
func CheckFeed(dir string, key *usign.PublicKey) error {
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			data = nil // an empty file fits nothing below
		}
		return data
	}
	index := read(IndexName)
	if err := key.Verify(index, read(SignatureName)); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, SignatureName), err)
	}
	z, err := gzip.NewReader(bytes.NewReader(read(IndexName + ".gz")))
	if err != nil {
		return fmt.Errorf("%s.gz: %w", filepath.Join(dir, IndexName), err)
	}
	if unpacked, err := io.ReadAll(z); err != nil || !bytes.Equal(unpacked, index) {
		return fmt.Errorf("%s.gz: not the same index (%v)", filepath.Join(dir, IndexName), err)
	}
	packages, err := ParseIndex(string(index))
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	var listed []string
	for _, p := range packages {
		name := p["Filename"]
		listed = append(listed, name)
		ipk := read(name)
		if got := fmt.Sprint(len(ipk)); got != p["Size"] {
			return fmt.Errorf("%s: %s bytes, the index says %s", filepath.Join(dir, name), got, p["Size"])
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(ipk)); got != p["SHA256sum"] {
			return fmt.Errorf("%s: checksum %s, the index says %s", filepath.Join(dir, name), got, p["SHA256sum"])
		}
	}
	there, err := filepath.Glob(filepath.Join(dir, "*.ipk"))
	if err != nil {
		return err
	}
	for _, name := range there {
		if !slices.Contains(listed, filepath.Base(name)) {
			return fmt.Errorf("%s: not in the index", name)
		}
	}
	return nil
}
