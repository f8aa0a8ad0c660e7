// SPDX-License-Identifier: Apache-2.0

// Package guest is what the runner and the /init inside a test guest agree on:
// the plan of what to run, and the frames in which the guest tells what
// happened.
//
// A guest has one serial line, and the kernel writes to it too. /init is the
// only program that writes there; everything it tells, the tests' output and
// the kernel's log included, goes into frames, one a line, each with a
// checksum. What is on the line outside a frame was therefore written by the
// kernel itself (a panic) or by a dying /init, and no test can imitate it.
package guest

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"
	"sync"
)

// Kind says what a frame is about.
type Kind string

// The kinds of frames, with the meaning of their subject and text.
const (
	Hello   Kind = "hello"   // subject: the kernel's release; the first frame
	Ready   Kind = "ready"   // the guest is set up, the first package follows
	Log     Kind = "log"     // a kernel log record; subject: kernel or user, who wrote it
	Note    Kind = "note"    // something worth telling
	Problem Kind = "problem" // something that makes the run fail
	Begin   Kind = "begin"   // subject: the package that starts
	List    Kind = "list"    // subject: the package; text: its tests, one a line
	Output  Kind = "output"  // subject: the package; text: a piece of its output
	End     Kind = "end"     // subject: the package; text: how it ended (Exited)
	Done    Kind = "done"    // everything was run: the exit line
	Raw     Kind = "raw"     // not sent: text outside any frame
	Damaged Kind = "damaged" // not sent: a frame whose checksum is wrong
)

// Subjects of Log frames.
const (
	FromKernel = "kernel"
	FromUser   = "user"
)

// Exited is the text of an End frame for a test binary whose tests passed.
const Exited = "exit status 0"

// start begins a frame; texts are quoted, so that it cannot occur inside one.
const start = "\x02"

// MaxText is how much text /init puts into one frame.
const MaxText = 2048

// maxLine is the longest console line that is taken as one.
const maxLine = 64 << 10

// Frame is one message of a guest.
type Frame struct {
	Kind    Kind
	Subject string
	Text    string
}

// A Writer writes frames. It may be used by several goroutines.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer to a guest's console.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Send writes one frame, with a single call of Write.
func (w *Writer) Send(kind Kind, subject, text string) error {
	body := fmt.Sprintf("%s %s %s", kind, strconv.QuoteToASCII(subject), strconv.QuoteToASCII(text))
	line := fmt.Sprintf("%s%08x %s\n", start, crc32.ChecksumIEEE([]byte(body)), body)
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(w.w, line); err != nil {
		return fmt.Errorf("write console: %w", err)
	}
	return nil
}

// A Reader reads what a guest's console shows.
type Reader struct {
	r       *bufio.Reader
	pending []Frame
}

// NewReader returns a Reader of a guest's console.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, maxLine)}
}

// Next returns the next frame, or text outside of frames as a Raw one. At the
// end of the console it returns io.EOF.
func (r *Reader) Next() (Frame, error) {
	for len(r.pending) == 0 {
		line, err := r.r.ReadSlice('\n')
		r.split(strings.TrimRight(string(line), "\r\n"))
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && len(r.pending) == 0 {
			return Frame{}, err
		}
	}
	f := r.pending[0]
	r.pending = r.pending[1:]
	return f, nil
}

// split takes one console line apart. It may hold raw text before a frame, and
// a frame that was cut short by another one.
func (r *Reader) split(line string) {
	raw, rest, found := strings.Cut(line, start)
	if strings.TrimSpace(raw) != "" {
		r.pending = append(r.pending, Frame{Kind: Raw, Text: raw})
	}
	if !found {
		return
	}
	for part := range strings.SplitSeq(rest, start) {
		f, err := parse(part)
		if err != nil {
			f = Frame{Kind: Damaged, Text: part}
		}
		r.pending = append(r.pending, f)
	}
}

// parse reads a frame without its start.
func parse(s string) (Frame, error) {
	sum, body, _ := strings.Cut(s, " ")
	if sum != fmt.Sprintf("%08x", crc32.ChecksumIEEE([]byte(body))) {
		return Frame{}, errors.New("wrong checksum")
	}
	kind, quoted, _ := strings.Cut(body, " ")
	subject, err := strconv.QuotedPrefix(quoted)
	if err != nil {
		return Frame{}, fmt.Errorf("subject: %w", err)
	}
	f := Frame{Kind: Kind(kind)}
	if f.Text, err = strconv.Unquote(strings.TrimPrefix(quoted[len(subject):], " ")); err != nil {
		return Frame{}, fmt.Errorf("text: %w", err)
	}
	if f.Subject, err = strconv.Unquote(subject); err != nil {
		return Frame{}, fmt.Errorf("subject: %w", err)
	}
	return f, nil
}
