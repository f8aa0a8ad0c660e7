// SPDX-License-Identifier: Apache-2.0

package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// A File is what a package installs. Its folders are implied.
type File struct {
	Path     string // absolute
	Mode     fs.FileMode
	Data     []byte
	Conffile bool
}

// tarball packs files as `tar --format=gnu --numeric-owner --sort=name` does with
// a folder that root owns: names begin with ./, each folder comes before what
// is in it.
func tarball(files []File, epoch int64) ([]byte, error) {
	return writeTar(withFolders(files), epoch)
}

// bareTarball packs files in the given order, and no folders.
func bareTarball(files []File, epoch int64) ([]byte, error) {
	var entries []tarEntry
	for _, f := range files {
		entries = append(entries, tarEntry{"." + f.Path, f})
	}
	return writeTar(entries, epoch)
}

func writeTar(entries []tarEntry, epoch int64) ([]byte, error) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		h := &tar.Header{
			Name:     e.name,
			Mode:     int64(e.file.Mode.Perm()),
			Size:     int64(len(e.file.Data)),
			ModTime:  time.Unix(epoch, 0),
			Format:   tar.FormatGNU,
			Typeflag: tar.TypeReg,
		}
		if strings.HasSuffix(e.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
		if _, err := w.Write(e.file.Data); err != nil {
			return nil, fmt.Errorf("pack %s: %w", e.name, err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	// GNU tar fills its last record; opkg does not care, people who compare do.
	const record = 20 * 512
	if rest := buf.Len() % record; rest != 0 {
		buf.Write(make([]byte, record-rest))
	}
	return buf.Bytes(), nil
}

type tarEntry struct {
	name string
	file File
}

// withFolders adds the folders and sorts everything.
func withFolders(files []File) []tarEntry {
	const folderMode = 0o755
	entries := map[string]File{"./": {Mode: folderMode}}
	for _, f := range files {
		for dir := path.Dir(f.Path); dir != "/"; dir = path.Dir(dir) {
			entries["."+dir+"/"] = File{Mode: folderMode}
		}
		entries["."+f.Path] = f
	}
	var sorted []tarEntry
	for name, f := range entries {
		sorted = append(sorted, tarEntry{name, f})
	}
	// By the path's parts, so that a folder's content follows it at once.
	slices.SortFunc(sorted, func(a, b tarEntry) int {
		return slices.Compare(strings.Split(strings.TrimSuffix(a.name, "/"), "/"), strings.Split(strings.TrimSuffix(b.name, "/"), "/"))
	})
	return sorted
}

// compress is `gzip -9n`: neither name nor time.
func compress(data []byte) ([]byte, error) {
	var buf bytes.Buffer
	w, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}
