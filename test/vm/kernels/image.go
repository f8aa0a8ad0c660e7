// SPDX-License-Identifier: Apache-2.0

package kernels

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// plainImage returns the arm64 Image in a kernel file, which is what QEMU
// starts. Kernels can be packed as a gzip file or as an EFI program that
// unpacks itself (CONFIG_EFI_ZBOOT).
func plainImage(file []byte) ([]byte, error) {
	switch {
	case isImage(file):
		return file, nil
	case bytes.HasPrefix(file, []byte{0x1f, 0x8b}):
		return gunzipImage(file)
	case len(file) > 64 && bytes.HasPrefix(file, []byte("MZ")) && string(file[4:8]) == "zimg":
		// Place, length and compression of the payload follow the mark.
		offset := uint64(binary.LittleEndian.Uint32(file[8:]))
		size := uint64(binary.LittleEndian.Uint32(file[12:]))
		method, _, _ := bytes.Cut(file[24:56], []byte{0})
		if offset+size > uint64(len(file)) {
			return nil, errors.New("packed kernel ends too early")
		}
		if string(method) != "gzip" {
			return nil, fmt.Errorf("packed with %q, only gzip is known", method)
		}
		return gunzipImage(file[offset : offset+size])
	default:
		return nil, errors.New("not an arm64 kernel")
	}
}

func gunzipImage(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	r.Multistream(false) // padding may follow
	image, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	if !isImage(image) {
		return nil, errors.New("holds no arm64 kernel")
	}
	return image, nil
}

// isImage looks for the mark of an arm64 Image at its place in the header.
func isImage(file []byte) bool {
	return len(file) > 64 && string(file[56:60]) == "ARM\x64"
}
