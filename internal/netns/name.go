// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// netnsDir is where `ip netns` looks for namespaces.
	netnsDir = "/run/netns"
	// namePrefix marks the names that are ours to remove.
	namePrefix = "xdpl2-"
)

// NewNamed makes a namespace that `ip netns` shows as xdpl2-PID-NAME until
// Close. Names that processes left behind when they were killed are removed
// on the way.
func NewNamed(name string) (*NS, error) {
	if name == "" || strings.ContainsAny(name, "/ ") {
		return nil, fmt.Errorf("namespace name %q: expected a file name without spaces", name)
	}
	if err := removeLeftovers(netnsDir); err != nil {
		return nil, err
	}
	return newNS(name, fmt.Sprintf("%s%d-%s", namePrefix, os.Getpid(), name))
}

// mountNS mounts the calling thread's namespace under its name.
func mountNS(name string) (string, error) {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return "", fmt.Errorf("create %s: %w", netnsDir, err)
	}
	path := filepath.Join(netnsDir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return "", fmt.Errorf("name namespace: %w", err)
	}
	f.Close()
	if err := unix.Mount(threadNetNS(), path, "", unix.MS_BIND, ""); err != nil {
		os.Remove(path)
		return "", fmt.Errorf("mount namespace on %s: %w", path, err)
	}
	return path, nil
}

// unmountNS takes a name away. A name that somebody else removed is fine.
func unmountNS(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove namespace name: %w", err)
	}
	return nil
}

// removeLeftovers removes our names whose process no longer exists.
func removeLeftovers(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for leftover namespaces: %w", err)
	}
	for _, e := range entries {
		rest, ours := strings.CutPrefix(e.Name(), namePrefix)
		if !ours {
			continue
		}
		digits, _, _ := strings.Cut(rest, "-")
		pid, err := strconv.Atoi(digits)
		if err != nil || pid <= 0 {
			continue // not a name of this form: not ours to judge
		}
		if !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			continue
		}
		if err := unmountNS(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}
