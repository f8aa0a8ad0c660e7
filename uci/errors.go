// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"fmt"
)

// Errors that callers can tell apart with [errors.Is]. A configuration file
// that does not exist is reported as [io/fs.ErrNotExist].
var (
	// ErrNotFound says that a section or an option is not there.
	ErrNotFound = errors.New("entry not found")
	// ErrInvalid says that a name, a type, a value or a reference such as
	// @type[n] is not a possible one.
	ErrInvalid = errors.New("invalid argument")
	// ErrUnsafe says that a file or a directory was refused without reading
	// it, because it is not what it should be or belongs to somebody else.
	ErrUnsafe = errors.New("refused")
	// ErrTooLarge says that a file is larger than MaxFileSize.
	ErrTooLarge = errors.New("file too large")
	// ErrLocked says that another program held a lock for too long.
	ErrLocked = errors.New("locked by another program")
)

// ParseError is one error in a configuration file, or one staged line that was
// skipped.
type ParseError struct {
	// File is the path of the file.
	File string
	// Line and Column say where the offending text begins. Both count from
	// 1, columns in bytes.
	Line, Column int
	// Reason says what is wrong, in libuci's words where libuci has some.
	Reason string
	// Expected says what should have been there; it may be empty.
	Expected string

	// libuci counts the line ends it has read, and reports the offset in its
	// line buffer where its reader stands.
	uciLine, uciByte int
}

// Error returns file, line, column, what is wrong and what was expected.
func (e *ParseError) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Column, e.Reason)
	if e.Expected != "" {
		s += ": expected " + e.Expected
	}
	return s
}

// UCI returns the error as the uci program words it, with libuci's own count
// of lines and bytes: the byte is an offset in libuci's line buffer, and the
// line is one less than Line where a file does not end in a line end.
func (e *ParseError) UCI() string {
	return fmt.Sprintf("Parse error (%s) at line %d, byte %d", e.Reason, e.uciLine, e.uciByte)
}
