// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/netns"
)

// TestClosedMirrorReadsNoOther: when a mirror is closed while it reads, the
// number of its descriptor may be another socket's at once. What comes there is
// not the mirror's: whoever waits for it would wait in vain.
func TestClosedMirrorReadsNoOther(t *testing.T) {
	netns.Require(t)
	m, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	number := m.sock.GetFd()
	m.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	other := pair[0]
	if other != number {
		if other, err = unix.FcntlInt(uintptr(pair[0]), unix.F_DUPFD_CLOEXEC, number); err != nil {
			t.Fatal(err)
		}
		defer unix.Close(pair[0])
	}
	defer unix.Close(other)
	defer unix.Close(pair[1])
	if other != number {
		t.Fatalf("descriptor %d is somebody's already", number)
	}
	if _, err := unix.Write(pair[1], []byte("an answer")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.drain(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("drain: %v, want that it is closed", err)
	}
	if err := m.discard(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("discard: %v, want that it is closed", err)
	}
	var buf [32]byte
	if n, _, err := unix.Recvfrom(other, buf[:], unix.MSG_DONTWAIT); err != nil || string(buf[:n]) != "an answer" {
		t.Errorf("the other socket's message: %q, %v", buf[:n], err)
	}
}
