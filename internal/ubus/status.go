// SPDX-License-Identifier: Apache-2.0

package ubus

import (
	"context"
	"errors"
	"fmt"
)

// Status is how ubusd or the owner of an object answers. A Status other than
// StatusOK is an error: errors.Is(err, ubus.StatusNotFound).
type Status uint32

// The status codes.
const (
	StatusOK               Status = 0
	StatusInvalidCommand   Status = 1
	StatusInvalidArgument  Status = 2
	StatusMethodNotFound   Status = 3
	StatusNotFound         Status = 4
	StatusNoData           Status = 5
	StatusPermissionDenied Status = 6
	StatusTimeout          Status = 7
	StatusNotSupported     Status = 8
	StatusUnknownError     Status = 9
	StatusConnectionFailed Status = 10
	StatusNoMemory         Status = 11
	StatusParseError       Status = 12
	StatusSystemError      Status = 13
)

// Error is the status in words.
func (s Status) Error() string {
	names := [...]string{"success", "invalid command", "invalid argument", "method not found",
		"not found", "no response", "permission denied", "request timed out",
		"operation not supported", "unknown error", "connection failed", "out of memory",
		"parsing message data failed", "system error"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("unknown status %d", uint32(s))
}

// err is nil for StatusOK.
func (s Status) err() error {
	if s == StatusOK {
		return nil
	}
	return s
}

// statusOf is what a handler's error is to the caller: the Status in it, else
// StatusTimeout for a deadline and StatusUnknownError for the rest.
func statusOf(err error) Status {
	if err == nil {
		return StatusOK
	}
	if s, ok := errors.AsType[Status](err); ok && s != StatusOK {
		return s
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return StatusTimeout
	}
	return StatusUnknownError
}

var (
	// ErrNotConnected is the answer to a request while there is no connection.
	ErrNotConnected error = connectionError("not connected to ubusd")
	// ErrConnectionLost is the answer to a request whose connection ends
	// before it is answered. Whether it was carried out is not known.
	ErrConnectionLost error = connectionError("connection to ubusd lost")
	// ErrClosed is the answer to everything after Close.
	ErrClosed error = connectionError("ubus client closed")
)

// connectionError is also a StatusConnectionFailed.
type connectionError string

func (e connectionError) Error() string { return string(e) }

func (e connectionError) Is(target error) bool { return target == StatusConnectionFailed }

// TooLargeError is the answer to a message over the limit. It has not been sent.
type TooLargeError struct {
	Size, Limit int // bytes
}

// Error names the size and the limit.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("ubus message of %d bytes, the limit is %d", e.Size, e.Limit)
}
