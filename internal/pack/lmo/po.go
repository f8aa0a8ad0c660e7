// SPDX-License-Identifier: Apache-2.0

package lmo

import (
	"fmt"
	"strconv"
	"strings"
)

// A message is an entry of a .po file. The one without an id is the header.
type message struct {
	line    int // where it begins
	context string
	id      string
	plural  string
	forms   []string
}

// formLimit is the number of plural forms that LuCI knows.
const formLimit = 10

// parser reads a .po file line by line.
type parser struct {
	messages []*message
	current  *message
	into     func(string) // takes the text of this and the following lines
	context  bool         // a msgctxt was read, its msgid comes next
	complete bool         // the current message has a msgstr
}

// parse reads a .po file. Of the escapes only \" and \\ are resolved: LuCI
// looks texts up with the others as they are written.
func parse(po string) ([]*message, error) {
	p := &parser{}
	for n, line := range strings.Split(po, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if err := p.take(n+1, line); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+1, err)
		}
	}
	if p.current != nil && !p.complete {
		return nil, fmt.Errorf("line %d: the message has no msgstr", p.current.line)
	}
	return p.messages, nil
}

func (p *parser) take(n int, line string) error {
	keyword, text, ok := strings.Cut(line, `"`)
	if !ok {
		return fmt.Errorf("expected a keyword and a quoted text, got %q", line)
	}
	keyword = strings.TrimSpace(keyword)
	value, err := unquote(text)
	if err != nil {
		return err
	}
	if keyword != "" {
		if err := p.keyword(n, keyword); err != nil {
			return err
		}
	} else if p.into == nil {
		return fmt.Errorf("a text without a keyword before it: %q", line)
	}
	p.into(value)
	return nil
}

// keyword decides where the text goes.
func (p *parser) keyword(n int, keyword string) error {
	appendTo := func(s *string) func(string) { return func(v string) { *s += v } }
	begin := func() error {
		if p.current != nil && !p.complete {
			return fmt.Errorf("%s: the message of line %d has no msgstr", keyword, p.current.line)
		}
		p.current, p.complete = &message{line: n}, false
		p.messages = append(p.messages, p.current)
		return nil
	}
	switch {
	case keyword == "msgctxt":
		if err := begin(); err != nil {
			return err
		}
		p.into, p.context = appendTo(&p.current.context), true
	case keyword == "msgid":
		if !p.context {
			if err := begin(); err != nil {
				return err
			}
		}
		p.context = false
		p.into = appendTo(&p.current.id)
	case p.current == nil:
		return fmt.Errorf("%s before any msgid", keyword)
	case keyword == "msgid_plural":
		p.into = appendTo(&p.current.plural)
	case keyword == "msgstr":
		p.form(0)
	case strings.HasPrefix(keyword, "msgstr[") && strings.HasSuffix(keyword, "]"):
		i, err := strconv.Atoi(keyword[len("msgstr[") : len(keyword)-1])
		if err != nil || i < 0 || i >= formLimit {
			return fmt.Errorf("%s: expected a plural form from 0 to %d", keyword, formLimit-1)
		}
		p.form(i)
	default:
		return fmt.Errorf("unknown keyword %q", keyword)
	}
	return nil
}

// form makes the text go into a translation.
func (p *parser) form(i int) {
	m := p.current
	for len(m.forms) <= i {
		m.forms = append(m.forms, "")
	}
	p.into, p.complete = func(v string) { m.forms[i] += v }, true
}

// unquote takes the text behind an opening quote.
func unquote(text string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"':
			if rest := strings.TrimSpace(text[i+1:]); rest != "" {
				return "", fmt.Errorf("unexpected %q behind the text", rest)
			}
			return b.String(), nil
		case '\\':
			i++
			if i == len(text) {
				return "", fmt.Errorf("the text ends with a backslash")
			}
			if text[i] != '"' && text[i] != '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(text[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", fmt.Errorf("the text has no closing quote")
}
