// SPDX-License-Identifier: Apache-2.0

package uci

import "strconv"

// isSpace is white space as libuci's reader has it: in files vertical tabs, form
// feeds and carriage returns separate words too.
func isSpace(c byte) bool {
	return c == ' ' || c >= '\t' && c <= '\r'
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// validName says whether s can name a section or an option.
func validName[T string | []byte](s T) bool {
	for i := range len(s) {
		if !isWord(s[i]) {
			return false
		}
	}
	return len(s) > 0
}

// validPackageWord says whether s can follow the word "package" in a file.
func validPackageWord(s []byte) bool {
	for _, c := range s {
		if !isWord(c) && c != '-' {
			return false
		}
	}
	return len(s) > 0
}

// validType says whether s can be the type of a section.
func validType[T string | []byte](s T) bool {
	for i := range len(s) {
		if s[i] < 33 || s[i] > 126 {
			return false
		}
	}
	return len(s) > 0
}

// validConfig says whether s can name a package, which is a file. libuci takes
// every printable character here; a dot would end the name in "uci get a.b", and
// a slash would lead out of the directory.
func validConfig(s string) bool {
	for i := range len(s) {
		if s[i] == '.' || s[i] == '/' || s[i] == '=' {
			return false
		}
	}
	return validType(s)
}

// validText says whether s can be staged as a value.
func validText(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < 32 && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return true
}

// generatedName is the name that a section without one gets: count is the number
// of sections that the package has been given so far, this one included.
func generatedName(count int, typ string) string {
	hash := uint32(5381)
	for i := range len(typ) {
		// A char is signed where libuci was recorded, and types beyond
		// ASCII do not load anyway.
		hash = hash*33 + uint32(int8(typ[i]))
	}
	const hex = "0123456789abcdef"
	b := append(make([]byte, 0, 16), "cfg"...)
	if count < 16 {
		b = append(b, '0')
	}
	b = strconv.AppendInt(b, int64(count), 16)
	return string(append(b, hex[hash>>12&15], hex[hash>>8&15], hex[hash>>4&15], hex[hash&15]))
}
