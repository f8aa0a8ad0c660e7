// SPDX-License-Identifier: Apache-2.0

package api

import "errors"

// Failure is an error as every way in carries it, so that it arrives as it was.
type Failure struct {
	Text     string    `json:"error"`
	Kind     string    `json:"kind"`
	Port     string    `json:"port,omitempty"`     // unknown_port
	Argument string    `json:"argument,omitempty"` // usage
	Value    string    `json:"value,omitempty"`    // usage
	Expected string    `json:"expected,omitempty"` // usage
	Problems []Problem `json:"problems,omitempty"` // config
}

// Kinds of failure.
const (
	FailedConfig      = "config"       // the configuration is wrong
	FailedUnknownPort = "unknown_port" // no such port
	FailedUsage       = "usage"        // an argument is wrong
	FailedBusy        = "busy"         // one at a time, and one is running
	FailedNoData      = "no_data"      // there is nothing to tell yet
	FailedOther       = "failed"       // anything else
)

// FailureOf describes an error.
func FailureOf(err error) *Failure {
	f := &Failure{Text: err.Error(), Kind: FailedOther}
	if e, ok := errors.AsType[*ConfigError](err); ok {
		f.Kind, f.Problems = FailedConfig, e.Problems
	} else if e, ok := errors.AsType[*UnknownPortError](err); ok {
		f.Kind, f.Port = FailedUnknownPort, e.Port
	} else if e, ok := errors.AsType[*ExplainError](err); ok {
		f.Kind, f.Argument, f.Value, f.Expected = FailedUsage, e.Field, e.Value, e.Expected
	} else if e, ok := errors.AsType[*ArgumentError](err); ok {
		f.Kind, f.Argument, f.Value, f.Expected = FailedUsage, e.Name, e.Value, e.Expected
	} else if errors.Is(err, ErrBusy) {
		f.Kind = FailedBusy
	} else if errors.Is(err, ErrNoData) {
		f.Kind = FailedNoData
	}
	return f
}

// Err is the error that the failure describes.
func (f *Failure) Err() error {
	switch f.Kind {
	case FailedConfig:
		return &ConfigError{Problems: f.Problems}
	case FailedUnknownPort:
		return &UnknownPortError{Port: f.Port}
	case FailedUsage:
		return &UsageError{Failure: *f}
	case FailedBusy:
		return &kindError{f.Text, ErrBusy}
	case FailedNoData:
		return &kindError{f.Text, ErrNoData}
	}
	return errors.New(f.Text)
}

// ErrBusy and ErrNoData are what errors of these kinds are.
var (
	ErrBusy   = errors.New("a calibration is running already")
	ErrNoData = errors.New("nothing has been measured yet")
)

// kindError is an error of a kind that came over a wire.
type kindError struct {
	text string
	kind error
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.kind }

// UsageError is an ArgumentError or an ExplainError that came over a wire.
type UsageError struct{ Failure Failure }

// Error is what the error said at the other end.
func (e *UsageError) Error() string { return e.Failure.Text }

// ArgumentError is the answer to an argument that a method does not take.
type ArgumentError struct {
	Method, Name, Value string
	Missing             bool
	Expected            string
}

// Error names method, argument, value and what was expected.
func (e *ArgumentError) Error() string {
	if e.Missing {
		return e.Method + ": " + e.Name + " is missing; expected " + e.Expected
	}
	return e.Method + ": " + e.Name + " '" + e.Value + "': expected " + e.Expected
}
