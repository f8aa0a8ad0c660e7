// SPDX-License-Identifier: Apache-2.0

package uci

// Parse reads a configuration file. name is the name of the package; the line
// "package x" in a file does not change it. file is the path for errors and
// places. An error is a *ParseError, and then nothing of the file counts.
func Parse(name, file string, data []byte) (*Package, error) {
	p, errs := parse(name, file, data, false)
	if errs != nil {
		return nil, errs[0]
	}
	p.finish()
	return p, nil
}

// ParseLenient reads a configuration file as "uci -S" does: it skips a line with
// an error and goes on. It returns what it could read and all errors.
func ParseLenient(name, file string, data []byte) (*Package, []*ParseError) {
	p, errs := parse(name, file, data, true)
	p.finish()
	return p, errs
}

// parser turns the commands of a configuration file into a package.
type parser struct {
	*scanner
	pkg     *Package
	sec     *Section // the one that options belong to
	lenient bool
	names   map[string]string
}

func parse(name, file string, data []byte, lenient bool) (*Package, []*ParseError) {
	p := &parser{
		scanner: newScanner(file, data),
		pkg:     &Package{Name: name},
		lenient: lenient,
		names:   make(map[string]string),
	}
	var errs []*ParseError
	for p.nextLine() {
		if err := p.line(); err != nil {
			errs = append(errs, err)
			if !lenient {
				break
			}
		}
	}
	return p.pkg, errs
}

// line carries out the commands of one logical line.
func (p *parser) line() *ParseError {
	p.skipSpace()
	for {
		word, at := p.command()
		if len(word) == 0 || word[0] == '#' {
			return nil
		}
		var err *ParseError
		switch string(word) {
		case "package", "p":
			err = p.packageCommand(word, at)
		case "config", "c":
			err = p.configCommand(word, at)
		case "option", "o":
			err = p.optionCommand(word, at, false)
		case "list", "l":
			err = p.optionCommand(word, at, true)
		default:
			err = p.fail(at, "invalid command", "config, option, list or package")
		}
		if err != nil {
			return err
		}
	}
}

// skipCommand moves behind the command word. If nothing follows it in the file,
// not even a line end, that is an error of its own.
func (p *parser) skipCommand(word []byte, at int, reason, expected string) *ParseError {
	end := at + len(word)
	if end >= len(p.buf) {
		return p.fail(end, reason, expected)
	}
	p.pos = end + 1
	return nil
}

func (p *parser) packageCommand(word []byte, at int) *ParseError {
	const expected = "the name of a package (letters, digits, _ and -)"
	if err := p.skipCommand(word, at, "package without name", expected); err != nil {
		return err
	}
	name, at, err := p.arg()
	if err != nil {
		return err
	}
	if len(name) == 0 {
		return p.fail(at, "insufficient arguments", expected)
	}
	if !validPackageWord(name) {
		return p.fail(at, "invalid character in name field", expected)
	}
	return p.end()
}

func (p *parser) configCommand(word []byte, at int) *ParseError {
	const (
		typeExpected = "the type of a section (printable ASCII without blanks)"
		nameExpected = "the name of a section (letters, digits and _)"
	)
	line, _ := p.place(at)
	where := place{p.file, line}
	if err := p.skipCommand(word, at, "config without name", typeExpected); err != nil {
		return err
	}
	text, at, err := p.arg()
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return p.fail(at, "insufficient arguments", typeExpected)
	}
	if !validType(text) {
		return p.fail(at, "invalid character in type field", typeExpected)
	}
	typ := p.intern(text)
	text, at, err = p.arg()
	if err != nil {
		return err
	}
	if len(text) > 0 && !validName(text) {
		return p.fail(at, "invalid character in name field", nameExpected)
	}
	name := string(text)
	if err := p.end(); err != nil {
		return err
	}
	var sec *Section
	if name != "" {
		sec = p.pkg.secs.find(name)
	}
	switch {
	case sec == nil:
		sec = p.pkg.addSection(name, typ, where)
	case sec.Type == typ:
	case p.lenient:
		sec.setType(typ, where)
	default:
		return p.fail(at, "section of different type overwrites prior section with same name",
			"type "+sec.Type+" as before, or another name")
	}
	p.sec = sec
	return nil
}

func (p *parser) optionCommand(word []byte, at int, list bool) *ParseError {
	const nameExpected = "the name of an option (letters, digits and _)"
	if p.sec == nil {
		return p.fail(at, "option/list command found before the first section", "config")
	}
	line, _ := p.place(at)
	if err := p.skipCommand(word, at, "option without name", nameExpected); err != nil {
		return err
	}
	text, at, err := p.arg()
	if err != nil {
		return err
	}
	if len(text) == 0 {
		return p.fail(at, "insufficient arguments", nameExpected)
	}
	if !validName(text) {
		return p.fail(at, "invalid character in name field", nameExpected)
	}
	name := p.intern(text)
	text, _, err = p.arg()
	if err != nil {
		return err
	}
	value := string(text)
	if err := p.end(); err != nil {
		return err
	}
	switch where := (place{p.file, line}); {
	case list:
		p.sec.addItem(name, value, where)
	case value != "":
		p.sec.set(name, value, where)
	}
	return nil
}

// end checks that nothing follows in the command.
func (p *parser) end() *ParseError {
	text, at, err := p.arg()
	if err != nil {
		return err
	}
	if len(text) > 0 && !p.lenient {
		return p.fail(at, "too many arguments", "the end of the line")
	}
	return nil
}

// intern returns text as a string, the same one for the same text: a file has few
// types and names, and many of each.
func (p *parser) intern(text []byte) string {
	if s, ok := p.names[string(text)]; ok {
		return s
	}
	s := string(text)
	p.names[s] = s
	return s
}
