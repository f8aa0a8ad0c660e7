// SPDX-License-Identifier: Apache-2.0

package calibrate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
)

// A worker is a process that measures for another one. It says a line of JSON
// for each turn, and at last its table, on its standard output. When its
// standard input ends, so does it: its parent has gone, however. What it made
// are namespaces without a name, and descriptors, which the kernel takes down
// with the process.

// said is a line of a worker.
type said struct {
	Progress *api.CalibrationProgress `json:"progress,omitempty"`
	Result   *api.Calibration         `json:"result,omitempty"`
	Failure  *api.Failure             `json:"failure,omitempty"`
}

// Work is the worker's side.
func Work(ctx context.Context, in io.Reader, out io.Writer, budget time.Duration) error {
	go func() {
		_, _ = io.Copy(io.Discard, in)
		os.Exit(1) // whatever it is in the middle of
	}()
	enc := json.NewEncoder(out)
	c, err := Run(ctx, Options{Budget: budget, Progress: func(p api.CalibrationProgress) {
		_ = enc.Encode(said{Progress: &p}) // without a reader the parent has gone
	}})
	last := said{Result: c}
	if err != nil {
		last = said{Failure: api.FailureOf(err)}
	}
	return enc.Encode(last)
}

// Command makes the command that a Worker starts.
type Command func(seconds int) *exec.Cmd

// Ask has a worker measure and waits for its table. When the context ends, the
// worker is killed.
func (command Command) Ask(ctx context.Context, seconds int, progress func(api.CalibrationProgress)) (*api.Calibration, error) {
	cmd := command(seconds)
	parent, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start a process that measures: %w", err)
	}
	defer parent.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start a process that measures: %w", err)
	}
	var complaint tail
	cmd.Stderr = &complaint
	cmd.WaitDelay = time.Second // once it has ended, for what it said last
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a process that measures: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	var result *api.Calibration
	var failure *api.Failure
	dec := json.NewDecoder(out)
	for {
		var line said
		if err = dec.Decode(&line); err != nil {
			break
		}
		switch {
		case line.Progress != nil:
			progress(*line.Progress)
		case line.Failure != nil:
			failure = line.Failure
		case line.Result != nil:
			result = line.Result
		}
	}
	if !errors.Is(err, io.EOF) {
		_ = cmd.Process.Kill() // it may be waiting for somebody to read
	}
	ended := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case failure != nil:
		return nil, failure.Err()
	case result != nil:
		return result, nil
	case ended != nil:
		return nil, fmt.Errorf("the process that measures ended: %w%s", ended, complaint.words())
	}
	return nil, fmt.Errorf("the process that measures said nothing%s", complaint.words())
}

// tail keeps the end of what is written to it.
type tail struct{ buf bytes.Buffer }

const tailLimit = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.buf.Write(p)
	if n := t.buf.Len() - tailLimit; n > 0 {
		t.buf.Next(n)
	}
	return len(p), nil
}

func (t *tail) words() string {
	if text := strings.TrimSpace(t.buf.String()); text != "" {
		return ": " + text
	}
	return ""
}
