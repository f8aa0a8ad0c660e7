// SPDX-License-Identifier: Apache-2.0

package netns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// SetSysctl writes a setting of the namespace, such as
// "net/ipv4/ip_forward". Only settings below net/ belong to a namespace.
func (ns *NS) SetSysctl(key, value string) error {
	path, err := sysctlPath(key)
	if err != nil {
		return err
	}
	// /proc/sys/net shows the namespace of the thread that opens it.
	err = ns.Do(func() error { return os.WriteFile(path, []byte(value), 0) })
	if err != nil {
		return fmt.Errorf("set sysctl %s: %w", key, err)
	}
	return nil
}

// Sysctl reads a setting of the namespace without its line end.
func (ns *NS) Sysctl(key string) (string, error) {
	path, err := sysctlPath(key)
	if err != nil {
		return "", err
	}
	var text []byte
	err = ns.Do(func() error {
		text, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read sysctl %s: %w", key, err)
	}
	return strings.TrimSpace(string(text)), nil
}

func sysctlPath(key string) (string, error) {
	path := filepath.Join("/proc/sys", key)
	if !strings.HasPrefix(path, "/proc/sys/net/") {
		return "", fmt.Errorf("sysctl %q: expected a key below net/", key)
	}
	return path, nil
}

// SetCallIPTables changes br_netfilter's settings where it exists. Its
// defaults are on, and they are per namespace.
func (ns *NS) SetCallIPTables(on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	for _, key := range []string{"iptables", "ip6tables", "arptables"} {
		err := ns.SetSysctl("net/bridge/bridge-nf-call-"+key, value)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ReadSys reads a file of the namespace's sysfs by its path below /sys, such
// as "class/net/eth1/brport/state", without its line end.
func (ns *NS) ReadSys(path string) (string, error) {
	f, err := ns.openSys(path, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return "", fmt.Errorf("read /sys/%s: %w", path, err)
	}
	return strings.TrimSpace(string(text)), nil
}

// WriteSys writes a file of the namespace's sysfs.
func (ns *NS) WriteSys(path, value string) error {
	f, err := ns.openSys(path, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("write /sys/%s: %w", path, err)
	}
	return nil
}

func (ns *NS) openSys(path string, flags int) (*os.File, error) {
	root, err := ns.sysRoot()
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(root.Fd()), filepath.Clean(path), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: "/sys/" + path, Err: err}
	}
	return os.NewFile(uintptr(fd), "/sys/"+path), nil
}

// sysRoot returns the root of a sysfs of the namespace. It is mounted
// nowhere, so it needs no mount namespace and leaves nothing behind.
func (ns *NS) sysRoot() (*os.File, error) {
	ns.mu.Lock()
	root := ns.sysfs
	ns.mu.Unlock()
	if root != nil {
		return root, nil
	}
	err := ns.Do(func() error {
		fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
		if err != nil {
			return fmt.Errorf("fsopen: %w", err)
		}
		defer unix.Close(fs)
		if err := unix.FsconfigCreate(fs); err != nil {
			return fmt.Errorf("fsconfig: %w", err)
		}
		fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("fsmount: %w", err)
		}
		root = os.NewFile(uintptr(fd), "/sys")
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sysfs of namespace %s: %w", ns.label, err)
	}
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.sysfs != nil || ns.closed {
		root.Close() // somebody was quicker, or it is too late
		if ns.closed {
			return nil, fmt.Errorf("namespace %s: %w", ns.label, ErrClosed)
		}
		return ns.sysfs, nil
	}
	ns.sysfs = root
	return root, nil
}
