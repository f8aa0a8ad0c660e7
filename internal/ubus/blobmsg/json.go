// SPDX-License-Identifier: Apache-2.0

package blobmsg

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// ErrJSON tells of text that ParseJSON refuses.
var ErrJSON = errors.New("no JSON object")

// ParseJSON reads the arguments of a call as `ubus call` takes them, with nearly
// everything that json-c forgives: single quotes, comments, a comma before a
// closing bracket, leading zeros, TRUE, NaN and Infinity, text behind the
// object. Integers are int32 where they fit, else int64, cut to its limits. Of
// a repeated key the first place and the last value count.
func ParseJSON(text string) (Table, error) {
	p := parser{in: cut(text)}
	p.space()
	if p.peek() != '{' {
		return nil, p.fail("it does not start with {")
	}
	t, err := p.table(1)
	if err != nil {
		return nil, err
	}
	// What follows is ignored, unless it looks like a comment and is none.
	if p.space(); p.peek() == '/' {
		return nil, p.fail("broken comment")
	}
	return t, nil
}

// quietNaN is the one that C's strtod and NAN give; Go's has another bit set.
const quietNaN = 0x7ff8000000000000

var words = []struct {
	text  string
	value any
}{
	{"null", nil}, {"true", true}, {"false", false},
	{"nan", math.Float64frombits(quietNaN)}, {"infinity", math.Inf(1)},
}

type parser struct {
	in string
	at int
}

func (p *parser) fail(why string) error {
	return fmt.Errorf("%w: %s at byte %d", ErrJSON, why, p.at)
}

// peek is the next byte; 0 at the end, where C's strings have one.
func (p *parser) peek() byte {
	if p.at < len(p.in) {
		return p.in[p.at]
	}
	return 0
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// space skips white space and comments. A comment that does not end leaves the
// parser at the end, where whatever is expected fails.
func (p *parser) space() {
	for {
		rest := p.in[p.at:]
		switch {
		case rest != "" && isSpace(rest[0]):
			p.at++
		case strings.HasPrefix(rest, "//"):
			p.skipPast("\n")
		case strings.HasPrefix(rest, "/*"):
			p.at += 2
			p.skipPast("*/")
		default:
			return
		}
	}
}

func (p *parser) skipPast(end string) {
	if i := strings.Index(p.in[p.at:], end); i >= 0 {
		p.at += i + len(end)
	} else {
		p.at = len(p.in)
	}
}

// descend is whether something may stand inside a container at that depth:
// json-c counts a value, too, and so lets the innermost container only be empty.
func (p *parser) descend(depth int) error {
	if depth >= MaxDepth {
		return fmt.Errorf("%w: %w", ErrJSON, ErrTooDeep)
	}
	return nil
}

func (p *parser) table(depth int) (Table, error) {
	p.at++
	t := Table{}
	places := map[string]int{}
	for {
		p.space()
		switch c := p.peek(); {
		case c == '}':
			p.at++
			return t, nil
		case c != '"' && c != '\'':
			return nil, p.fail("expected a quoted name")
		}
		if err := p.descend(depth); err != nil {
			return nil, err
		}
		name, err := p.text()
		if err != nil {
			return nil, err
		}
		name = cut(name)
		p.space()
		if p.peek() != ':' {
			return nil, p.fail("expected a colon")
		}
		p.at++
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		if i, ok := places[name]; ok {
			t[i].Value = v
		} else {
			places[name] = len(t)
			t = append(t, Field{name, v})
		}
		if err := p.comma('}'); err != nil {
			return nil, err
		}
	}
}

func (p *parser) array(depth int) (Array, error) {
	p.at++
	a := Array{}
	for {
		p.space()
		if p.peek() == ']' {
			p.at++
			return a, nil
		}
		if err := p.descend(depth); err != nil {
			return nil, err
		}
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		a = append(a, v)
		if err := p.comma(']'); err != nil {
			return nil, err
		}
	}
}

// comma passes the comma behind a value, or stays before the closing bracket.
func (p *parser) comma(end byte) error {
	p.space()
	switch p.peek() {
	case ',':
		p.at++
	case end:
	default:
		return p.fail("expected a comma or a closing bracket")
	}
	return nil
}

func (p *parser) value(depth int) (any, error) {
	p.space()
	switch c := p.peek(); {
	case c == '{':
		return p.table(depth + 1)
	case c == '[':
		return p.array(depth + 1)
	case c == '"' || c == '\'':
		return p.text()
	case c >= '0' && c <= '9' || c == '-':
		return p.number()
	}
	for _, w := range words {
		if p.word(w.text) {
			return w.value, nil
		}
	}
	return nil, p.fail("expected a value")
}

// word passes a word in upper or lower case.
func (p *parser) word(w string) bool {
	if len(p.in)-p.at < len(w) || !strings.EqualFold(p.in[p.at:p.at+len(w)], w) {
		return false
	}
	p.at += len(w)
	return true
}

func (p *parser) number() (any, error) {
	start, double, exponent := p.at, false, false
	if p.peek() == '-' {
		p.at++
		if p.word("infinity") {
			return math.Inf(-1), nil
		}
	}
scan:
	for ; ; p.at++ {
		switch c := p.peek(); {
		case c >= '0' && c <= '9':
		case c == '.' && !double:
			double = true
		case (c == 'e' || c == 'E') && !exponent:
			// A dot after the exponent is not a part of the number.
			double, exponent = true, true
			if next := p.in[p.at+1:]; next != "" && (next[0] == '+' || next[0] == '-') {
				p.at++
			}
		default:
			break scan
		}
	}
	digits := p.in[start:p.at]
	if c := p.peek(); c != 0 && !isSpace(c) && !strings.ContainsRune(",]}/", rune(c)) {
		return nil, p.fail("number goes on with something else")
	}
	if double {
		digits = strings.TrimRight(digits, "eE+-")
		f, err := strconv.ParseFloat(digits, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return nil, p.fail("malformed number")
		}
		return f, nil
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, p.fail("malformed number")
	}
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		return int32(n), nil
	}
	return n, nil
}

// text reads a string in either kind of quotes. Bytes that are no UTF-8 and
// control bytes pass.
func (p *parser) text() (string, error) {
	quote := p.peek()
	p.at++
	var out []byte
	for {
		c := p.peek()
		switch {
		case p.at >= len(p.in):
			return "", p.fail("string without an end")
		case c == quote:
			p.at++
			return string(out), nil
		case c != '\\':
			out = append(out, c)
			p.at++
			continue
		}
		p.at++
		c = p.peek()
		p.at++
		switch c {
		case '"', '\\', '/':
			out = append(out, c)
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, err := p.unicode()
			if err != nil {
				return "", err
			}
			out = utf8.AppendRune(out, r)
		default:
			return "", p.fail("unknown escape")
		}
	}
}

// unicode reads the digits behind \u and, if they are half of a pair, the other
// half. Half a pair alone is U+FFFD.
func (p *parser) unicode() (rune, error) {
	r, err := p.hex4()
	if err != nil {
		return 0, err
	}
	if !utf16.IsSurrogate(r) {
		return r, nil
	}
	if strings.HasPrefix(p.in[p.at:], `\u`) {
		back := p.at
		p.at += 2
		low, err := p.hex4()
		if err != nil {
			return 0, err
		}
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, nil
		}
		p.at = back
	}
	return utf8.RuneError, nil
}

func (p *parser) hex4() (rune, error) {
	if len(p.in)-p.at < 4 {
		return 0, p.fail("four hexadecimal digits expected")
	}
	n, err := strconv.ParseUint(p.in[p.at:p.at+4], 16, 16)
	if err != nil {
		return 0, p.fail("four hexadecimal digits expected")
	}
	p.at += 4
	return rune(n), nil
}
