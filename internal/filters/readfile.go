// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"
)

// readFile is os.ReadFile for the small files of /proc and /sys that are read
// every PollInterval: three system calls a file. os.ReadFile has ten, since it
// tries to wait for files as for sockets.
func readFile(path string) ([]byte, error) {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	all, chunk := []byte(nil), make([]byte, 512)
	for {
		n := 0
		err := again(func() (err error) {
			n, err = unix.Read(fd, chunk)
			return err
		})
		switch {
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n <= 0:
			return all, nil
		}
		all = append(all, chunk[:n]...)
	}
}

// again repeats what a signal has interrupted.
func again(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
