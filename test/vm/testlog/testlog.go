// SPDX-License-Identifier: Apache-2.0

// Package testlog reads what a Go test binary prints with -test.v=test2json
// and finds each test's result, output and, for a skipped one, the reason.
//
// In that form the testing package marks its own lines with the byte 0x16, so
// that a line like "--- PASS: TestX" that a test prints itself counts for
// nothing.
package testlog

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Flag is the argument that makes a test binary print this form.
const Flag = "-test.v=test2json"

// marker begins each line of the testing package.
const marker = "\x16"

// Status is how a test ended.
type Status string

// The statuses of a test. One that began and never ended, because its binary
// ended before, is Unfinished; one that never began is Missing.
const (
	Passed     Status = "passed"
	Failed     Status = "failed"
	Skipped    Status = "skipped"
	Unfinished Status = "unfinished"
	Missing    Status = "missing"
)

// A Test is one test, example or subtest.
type Test struct {
	Name    string   `json:"name"`
	Status  Status   `json:"status"`
	Seconds float64  `json:"seconds"`
	Reason  string   `json:"reason,omitempty"` // of a skip
	Output  []string `json:"output,omitempty"` // the lines that it printed
}

// A Line is a line of a test binary's output.
type Line struct {
	Text  string
	Frame bool // written by the testing package, such as "--- PASS: TestA (0.00s)"
}

// A Parser takes a test binary's output through Write.
type Parser struct {
	OnLine func(Line) // called for each line, if set

	tests   []*Test
	byName  map[string]*Test
	current *Test // whose output follows
	rest    []byte
}

// Write takes a piece of output. It never fails.
func (p *Parser) Write(b []byte) (int, error) {
	p.rest = append(p.rest, b...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		p.line(string(line))
		p.rest = rest
	}
}

// Expect adds tests that the binary has, so that those that never begin are
// known as Missing.
func (p *Parser) Expect(names ...string) {
	for _, name := range names {
		p.test(name)
	}
}

// Tests ends the output and returns the tests in the order of their beginning.
func (p *Parser) Tests() []*Test {
	if len(p.rest) > 0 {
		p.line(string(p.rest))
		p.rest = nil
	}
	for _, t := range p.tests {
		if t.Status == Skipped && t.Reason == "" {
			t.Reason = reason(t.Output)
		}
	}
	return p.tests
}

// test returns the test of this name.
func (p *Parser) test(name string) *Test {
	if t, ok := p.byName[name]; ok {
		return t
	}
	t := &Test{Name: name, Status: Missing}
	if p.byName == nil {
		p.byName = map[string]*Test{}
	}
	p.byName[name] = t
	p.tests = append(p.tests, t)
	return t
}

// line takes one line, which a marker may divide: a test can print text
// without a newline.
func (p *Parser) line(line string) {
	line = strings.TrimSuffix(line, "\r")
	text, frame, marked := strings.Cut(line, marker)
	if text != "" || !marked {
		p.output(text)
	}
	if marked {
		p.frame(strings.ReplaceAll(frame, marker, ""))
	}
}

// output takes a line that is not the testing package's.
func (p *Parser) output(text string) {
	if p.current != nil {
		p.current.Output = append(p.current.Output, text)
	}
	p.show(Line{Text: text})
}

// frame takes a line of the testing package, without its marker.
func (p *Parser) frame(text string) {
	p.show(Line{Text: text, Frame: true})
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "===":
		verb, name, _ := strings.Cut(rest, " ")
		p.follow(verb, strings.TrimSpace(name))
	case "---":
		verdict, name, _ := strings.Cut(rest, ": ")
		name, took, _ := strings.Cut(name, " (")
		seconds, _ := strconv.ParseFloat(strings.TrimSuffix(took, "s)"), 64)
		p.end(verdict, name, seconds)
	}
}

// follow takes a line that says whose output follows.
func (p *Parser) follow(verb, name string) {
	switch verb {
	case "RUN", "CONT", "NAME":
	default: // PAUSE, ATTR and what may come
		return
	}
	if name == "" {
		p.current = nil
		return
	}
	p.current = p.test(name)
	if p.current.Status == Missing {
		p.current.Status = Unfinished
	}
}

// end takes a test's result. What is printed next still belongs to it, as the
// stack of a panic does.
func (p *Parser) end(verdict, name string, seconds float64) {
	status, ok := map[string]Status{"PASS": Passed, "FAIL": Failed, "SKIP": Skipped}[verdict]
	if !ok {
		return
	}
	p.current = p.test(name)
	p.current.Status, p.current.Seconds = status, seconds
}

func (p *Parser) show(l Line) {
	if p.OnLine != nil {
		p.OnLine(l)
	}
}

var (
	// logLine matches the first line of what t.Log and t.Skip print.
	logLine = regexp.MustCompile(`^ {4}[^\s:]+\.go:\d+: (.*)$`)
	// more matches the lines after it.
	more = regexp.MustCompile(`^ {8}(.*)$`)
)

// NotForGuests is the text in the reason of a skip which says that a test,
// a benchmark rig for one, is not meant to run in guests at all.
const NotForGuests = "not for guests:"

// reason finds a skip's reason in a test's output: the last that it logged,
// since a skip ends the test. Cleanup functions may log more, so that a text
// with the declared mark comes first.
func reason(output []string) string {
	var logged []string
	for _, line := range output {
		if m := logLine.FindStringSubmatch(line); m != nil {
			logged = append(logged, strings.TrimSpace(m[1]))
		} else if m := more.FindStringSubmatch(line); m != nil && len(logged) > 0 {
			logged[len(logged)-1] += " " + strings.TrimSpace(m[1])
		}
	}
	marked := slices.IndexFunc(logged, func(s string) bool { return strings.Contains(s, NotForGuests) })
	switch {
	case marked >= 0:
		return logged[marked]
	case len(logged) > 0:
		return logged[len(logged)-1]
	default:
		return "no reason given"
	}
}
