// SPDX-License-Identifier: Apache-2.0

// Package hang is a test package that stops its own process, so that not even
// the testing package's limit ends it. The runner's own tests boot it.
package hang

import (
	"fmt"
	"os"
	"syscall"
	"testing"
)

func TestHang(t *testing.T) {
	if os.Getenv("XDPL2_GUEST") == "" {
		t.Skip("runs in a test guest only")
	}
	for i := range 100 {
		fmt.Printf("line %d before the hang\n", i)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}
