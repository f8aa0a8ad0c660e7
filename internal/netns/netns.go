// SPDX-License-Identifier: Apache-2.0

// Package netns makes network namespaces and works inside them: devices, settings,
// sockets, processes. It needs root, but no program besides this one, and leaves
// nothing behind when the process ends, however it ends, unless a namespace was
// given a name.
package netns

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	vnetns "github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ErrClosed is returned by what is used after its Close.
var ErrClosed = errors.New("closed")

// NS is a network namespace that this process made. It lives as long as this
// process holds it, unless processes or mounts keep it.
type NS struct {
	label string   // for messages
	file  *os.File // the namespace
	path  string   // its bind mount, "" when anonymous

	jobs chan func() // what the keeper thread shall do
	done chan struct{}

	mu     sync.Mutex
	handle *netlink.Handle
	rtnl   *nl.SocketHandle // for Request
	sysfs  *os.File         // root of a sysfs that shows this namespace
	closed bool
	// sockets would keep the namespace alive after Close.
	sockets map[io.Closer]struct{}
}

// New makes an anonymous namespace with its loopback up. The label is used
// in messages only.
func New(label string) (*NS, error) {
	return newNS(label, "")
}

// newNS makes a namespace and, when name is not empty, mounts it there for
// programs that look for namespaces by name.
func newNS(label, name string) (*NS, error) {
	ns := &NS{label: label, jobs: make(chan func()), done: make(chan struct{})}
	ready := make(chan error, 1)
	go ns.keep(name, ready)
	if err := <-ready; err != nil {
		return nil, fmt.Errorf("create namespace %s: %w", label, err)
	}
	if err := ns.prepare(); err != nil {
		ns.Close()
		return nil, fmt.Errorf("prepare namespace %s: %w", label, err)
	}
	return ns, nil
}

// keep runs on the thread that made the namespace until Close. It is the only
// thread that stays inside: processes are forked from it, because the kernel
// sends a child its Pdeathsig when the forking thread ends, not the process.
func (ns *NS) keep(name string, ready chan<- error) {
	// Never unlocked: the runtime ends the thread with the goroutine, so no
	// other goroutine ever runs in the namespace by accident.
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The main thread cannot end, and /proc/self speaks for it. It is held
		// here until the real keeper has found another one.
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			ns.hold(name, ready)
		}()
		<-taken
		runtime.UnlockOSThread()
		return
	}
	ns.hold(name, ready)
}

// hold is keep on the thread that it has found.
func (ns *NS) hold(name string, ready chan<- error) {
	defer close(ns.done)
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		ready <- fmt.Errorf("unshare: %w", err)
		return
	}
	file, err := os.Open(threadNetNS())
	if err != nil {
		ready <- err
		return
	}
	ns.file = file
	if name != "" {
		if ns.path, err = mountNS(name); err != nil {
			file.Close()
			ready <- err
			return
		}
	}
	ready <- nil
	for job := range ns.jobs {
		job()
	}
}

// threadNetNS is the calling thread's namespace as a file.
func threadNetNS() string {
	return fmt.Sprintf("/proc/self/task/%d/ns/net", unix.Gettid())
}

// prepare makes a fresh namespace quiet and quick: loopback up, no duplicate
// address detection (IPv6 addresses work at once), no router solicitations.
func (ns *NS) prepare() error {
	for _, conf := range []string{"all", "default"} {
		for key, value := range map[string]string{"accept_dad": "0", "dad_transmits": "0", "router_solicitations": "0"} {
			err := ns.SetSysctl("net/ipv6/conf/"+conf+"/"+key, value)
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	h, err := ns.Handle()
	if err != nil {
		return err
	}
	lo, err := h.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find loopback: %w", err)
	}
	if err := h.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set loopback up: %w", err)
	}
	return nil
}

// String returns the namespace's label.
func (ns *NS) String() string { return ns.label }

// Path returns the file under which the namespace is visible to other
// programs: its mount when it has a name, else this process's descriptor,
// which other processes can open while this one lives.
func (ns *NS) Path() string {
	if ns.path != "" {
		return ns.path
	}
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), ns.file.Fd())
}

// FD returns the descriptor of the namespace, valid until Close.
func (ns *NS) FD() int { return int(ns.file.Fd()) }

// Do runs f on the calling goroutine with its OS thread inside the namespace
// and brings the thread back. Goroutines that f starts are not inside.
// Sockets that f makes stay in the namespace for good.
func (ns *NS) Do(f func() error) error {
	runtime.LockOSThread()
	origin, err := os.Open(threadNetNS())
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open own namespace: %w", err)
	}
	defer origin.Close()
	if err := ns.enter(); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter namespace %s: %w", ns.label, err)
	}
	defer func() {
		// A thread that cannot come back stays locked and ends with its
		// goroutine, so that nothing else runs on it.
		if unix.Setns(int(origin.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	return f()
}

// enter moves the calling thread inside. The lock keeps Close from giving the
// descriptor's number to another file in between.
func (ns *NS) enter() error {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.closed {
		return ErrClosed
	}
	return unix.Setns(ns.FD(), unix.CLONE_NEWNET)
}

// Start starts a process inside the namespace. It may carry a Pdeathsig: then
// it is sent when the namespace is closed or this process ends, whichever
// comes first. The caller waits for the process as usual.
func (ns *NS) Start(cmd *exec.Cmd) error {
	result := make(chan error, 1)
	ns.mu.Lock()
	if ns.closed {
		ns.mu.Unlock()
		return fmt.Errorf("start %s in namespace %s: %w", cmd.Path, ns.label, ErrClosed)
	}
	ns.jobs <- func() { result <- cmd.Start() }
	ns.mu.Unlock()
	if err := <-result; err != nil {
		return fmt.Errorf("start in namespace %s: %w", ns.label, err)
	}
	return nil
}

// Handle returns a route netlink handle of the namespace. It is shared, safe
// for concurrent use, and closed with the namespace.
func (ns *NS) Handle() (*netlink.Handle, error) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.closed {
		return nil, fmt.Errorf("namespace %s: %w", ns.label, ErrClosed)
	}
	if ns.handle == nil {
		h, err := netlink.NewHandleAt(vnetns.NsHandle(ns.FD()), unix.NETLINK_ROUTE)
		if err != nil {
			return nil, fmt.Errorf("netlink in namespace %s: %w", ns.label, err)
		}
		ns.handle = h
	}
	return ns.handle, nil
}

// Link returns a device of the namespace by name.
func (ns *NS) Link(name string) (netlink.Link, error) {
	h, err := ns.Handle()
	if err != nil {
		return nil, err
	}
	link, err := h.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("namespace %s: link %s: %w", ns.label, name, err)
	}
	return link, nil
}

// Track remembers a socket to close with the namespace.
func (ns *NS) Track(c io.Closer) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	if ns.sockets == nil {
		ns.sockets = make(map[io.Closer]struct{})
	}
	ns.sockets[c] = struct{}{}
}

func (ns *NS) Untrack(c io.Closer) {
	ns.mu.Lock()
	defer ns.mu.Unlock()
	delete(ns.sockets, c)
}

// Close gives the namespace up. Its devices vanish with it once no socket and
// no process is left inside. Closing twice is fine.
func (ns *NS) Close() error {
	ns.mu.Lock()
	if ns.closed {
		ns.mu.Unlock()
		return nil
	}
	ns.closed = true
	handle, rtnl, sysfs, sockets := ns.handle, ns.rtnl, ns.sysfs, ns.sockets
	ns.sockets = nil
	close(ns.jobs)
	ns.mu.Unlock()
	<-ns.done

	var errs []error
	for s := range sockets {
		errs = append(errs, s.Close())
	}
	if handle != nil {
		handle.Close()
	}
	if rtnl != nil {
		rtnl.Close()
	}
	if sysfs != nil {
		errs = append(errs, sysfs.Close())
	}
	if ns.path != "" {
		errs = append(errs, unmountNS(ns.path))
	}
	errs = append(errs, ns.file.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close namespace %s: %w", ns.label, err)
	}
	return nil
}
