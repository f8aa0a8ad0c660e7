// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"bytes"
	"sort"
)

// firstRoom is the size at which libuci's line buffer starts. It matters for
// files with NUL bytes only: there the pieces in which a line is read decide how
// much of it is lost.
const firstRoom = 32

// scanner splits a file into logical lines and words.
//
// libuci reads one line at a time into a buffer and lets a quote or a backslash
// pull further lines into it. Its error messages count in that buffer, so the
// scanner keeps the same positions; segs leads from them back to the file.
type scanner struct {
	file string
	data []byte
	off  int  // how much of data has been read
	eof  bool // reading has hit the end

	phys int // line ends before off
	bol  int // where the line that off is in begins

	hasNUL bool
	room   int // size of libuci's buffer, kept only if hasNUL
	lines  int // line ends that libuci has noticed

	buf   []byte // the logical line, a part of data as long as that is possible
	own   []byte // storage for buf where it is not
	owned bool   // buf is in own
	pos   int
	segs  []segment
	// keep is the last position behind pos that can still be asked for: the
	// segments of a long value after it are dropped as they come.
	keep int

	text []byte // the word that was read last
}

// segment says that buf holds, from at on, what begins at line and col.
type segment struct {
	at, line, col int
}

func newScanner(file string, data []byte) *scanner {
	return &scanner{
		file:   file,
		data:   data,
		hasNUL: bytes.IndexByte(data, 0) >= 0,
		room:   firstRoom,
	}
}

// nextLine starts a new logical line. It returns false at the end of the file.
func (s *scanner) nextLine() bool {
	if s.eof {
		return false
	}
	s.pos, s.keep = 0, 0
	s.buf = nil
	s.segs = s.segs[:0]
	s.fill()
	return true
}

// cur returns the byte at the current position, 0 at the end of the buffer. The
// buffer itself never holds a NUL.
func (s *scanner) cur() byte {
	if s.pos < len(s.buf) {
		return s.buf[s.pos]
	}
	return 0
}

// fill replaces everything from the current position on by the next line.
func (s *scanner) fill() {
	s.buf = s.buf[:s.pos]
	for n := len(s.segs); n > 1 && s.segs[n-1].at > s.keep; n-- {
		s.segs = s.segs[:n-1]
	}
	if !s.hasNUL {
		line, ok := s.readPiece(len(s.data) + 1)
		if !ok {
			return
		}
		s.append(line)
		if line[len(line)-1] == '\n' {
			s.lines++
		} else {
			s.eof = true
		}
		return
	}
	if s.pos >= s.room-1 {
		s.room *= 2
	}
	for {
		piece, ok := s.readPiece(s.room - len(s.buf) - 1)
		if !ok {
			return
		}
		kept := bytes.IndexByte(piece, 0)
		if kept < 0 {
			kept = len(piece)
		}
		if kept == 0 {
			return
		}
		s.append(piece[:kept])
		if s.buf[len(s.buf)-1] == '\n' {
			s.lines++
			return
		}
		s.room *= 2
	}
}

// readPiece returns the next bytes, at most limit, up to and with a line end. The
// caller adds it to the buffer.
func (s *scanner) readPiece(limit int) ([]byte, bool) {
	rest := s.data[s.off:]
	if len(rest) == 0 {
		s.eof = true
		return nil, false
	}
	short := len(rest) < limit
	if !short {
		rest = rest[:limit]
	}
	if i := bytes.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i+1]
	} else if short {
		s.eof = true
	}
	s.segs = append(s.segs, segment{len(s.buf), s.phys + 1, s.off - s.bol + 1})
	s.off += len(rest)
	if rest[len(rest)-1] == '\n' {
		s.phys++
		s.bol = s.off
	}
	return rest, true
}

// append adds a piece to the buffer.
func (s *scanner) append(piece []byte) {
	if len(s.buf) == 0 {
		s.buf = piece[:len(piece):len(piece)]
		s.owned = false
		return
	}
	// From the second piece on the buffer is a copy: a backslash at a line end
	// leaves a gap between the pieces. The copy is kept from then on, or a
	// value of many lines would be copied once for each of them.
	if !s.owned {
		s.own = append(s.own[:0], s.buf...)
		s.owned = true
	}
	s.own = append(s.own[:len(s.buf)], piece...)
	s.buf = s.own
}

// place translates a position in the buffer to line and column.
func (s *scanner) place(at int) (line, col int) {
	i := sort.Search(len(s.segs), func(i int) bool { return s.segs[i].at > at }) - 1
	if i < 0 {
		return s.phys + 1, 1
	}
	return s.segs[i].line, s.segs[i].col + at - s.segs[i].at
}

// fail makes an error about what begins at a position in the buffer.
func (s *scanner) fail(at int, reason, expected string) *ParseError {
	// What is missing at the end of a line is missing before its line end.
	if at == len(s.buf) {
		at = len(bytes.TrimRight(s.buf, "\r\n"))
	}
	line, col := s.place(at)
	return &ParseError{
		File: s.file, Line: line, Column: col,
		Reason: reason, Expected: expected,
		uciLine: s.lines, uciByte: s.pos,
	}
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.buf) && isSpace(s.buf[s.pos]) {
		s.pos++
	}
}

// command returns the first word of a command, which only blanks and tabs end,
// and where it begins. It does not move on: errors about it count from before.
func (s *scanner) command() (word []byte, at int) {
	at = s.pos
	for at < len(s.buf) && (s.buf[at] == ' ' || s.buf[at] == '\t') {
		at++
	}
	word = s.buf[at:]
	if i := bytes.IndexAny(word, " \t"); i >= 0 {
		word = word[:i]
	}
	return word, at
}

// arg reads one word. It is empty where the line or the command ends. at is where
// it begins; the text is valid until the next call.
func (s *scanner) arg() (text []byte, at int, err *ParseError) {
	s.skipSpace()
	at = s.pos
	s.keep = at
	if s.cur() == ';' {
		s.pos++
		return nil, at, nil
	}
	s.text = s.text[:0]
	err = s.word()
	return s.text, at, err
}

// word reads the parts of a word, and the white space that ends it.
func (s *scanner) word() *ParseError {
	start := s.pos
	for first := true; first || s.cur() != 0 && !isSpace(s.cur()); first = false {
		switch s.cur() {
		case 0:
			return nil
		case '\'':
			if err := s.singleQuoted(); err != nil {
				return err
			}
		case '"':
			if err := s.doubleQuoted(); err != nil {
				return err
			}
		case '#':
			s.buf = s.buf[:s.pos]
			return nil
		case ';':
			// libuci ends a word with a NUL in its own buffer. After a
			// word without quotes and backslashes that NUL lands on the
			// semicolon, and the rest of the line is never seen.
			if len(s.text) == s.pos-start {
				s.buf = s.buf[:s.pos]
			}
			return nil
		case '\\':
			if s.backslash() {
				s.take()
			}
		default:
			s.take()
		}
	}
	if s.cur() != 0 {
		s.pos++
	}
	return nil
}

func (s *scanner) take() {
	s.text = append(s.text, s.buf[s.pos])
	s.pos++
}

// backslash skips a backslash. It returns false if that was at a line end, which
// goes too: the next line follows.
func (s *scanner) backslash() bool {
	s.pos++
	rest := s.buf[s.pos:]
	if len(rest) == 0 || rest[0] == '\n' || len(rest) == 2 && string(rest) == "\r\n" {
		s.fill()
		return false
	}
	return true
}

func (s *scanner) singleQuoted() *ParseError {
	open := s.pos
	s.keep = open
	s.pos++
	for {
		if i := bytes.IndexByte(s.buf[s.pos:], '\''); i >= 0 {
			s.text = append(s.text, s.buf[s.pos:s.pos+i]...)
			s.pos += i + 1
			return nil
		}
		s.text = append(s.text, s.buf[s.pos:]...)
		s.pos = len(s.buf)
		s.fill()
		if s.cur() == 0 {
			return s.fail(open, "EOF with unterminated '", "a closing '")
		}
	}
}

func (s *scanner) doubleQuoted() *ParseError {
	open := s.pos
	s.keep = open
	s.pos++
	for {
		switch s.cur() {
		case '"':
			s.pos++
			return nil
		case 0:
			s.fill()
			if s.cur() == 0 {
				return s.fail(open, `EOF with unterminated "`, `a closing "`)
			}
		case '\\':
			if s.backslash() {
				s.take()
			}
		default:
			s.take()
		}
	}
}
