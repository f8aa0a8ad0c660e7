// SPDX-License-Identifier: Apache-2.0

// Ubusd runs the test daemon of package ubustest for tests that are not written
// in Go. It says "ready" when it listens and ends with its standard input.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
)

func main() {
	socket := flag.String("s", "", "`socket` to listen on")
	flag.Parse()
	if err := run(*socket); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(socket string) error {
	if socket == "" {
		return fmt.Errorf("ubusd: no socket given (-s)")
	}
	d := ubustest.New(ubustest.Options{Socket: socket})
	if err := d.Start(); err != nil {
		return err
	}
	defer d.Stop()
	fmt.Println("ready")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
