// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/test/vm/guest"
)

// processes starts programs and collects every process that ends, as the
// first process must: those that tests leave behind become its children.
type processes struct {
	mu      sync.Mutex
	waiting map[int]chan syscall.WaitStatus
}

func newProcesses() *processes {
	p := &processes{waiting: map[int]chan syscall.WaitStatus{}}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			p.collect()
		}
	}()
	return p
}

// collect takes the status of all processes that have ended.
func (p *processes) collect() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if c, ok := p.waiting[pid]; ok {
			c <- status
			delete(p.waiting, pid)
		}
	}
}

// start starts a program; its status arrives on the channel.
func (p *processes) start(argv []string, attr *syscall.ProcAttr) (<-chan syscall.WaitStatus, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err := syscall.ForkExec(argv[0], argv, attr)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	c := make(chan syscall.WaitStatus, 1)
	p.waiting[pid] = c
	return c, nil
}

// runPackage runs one test binary: first for the names of its tests, then for
// the tests. What they leave behind is ended and told.
func (p *processes) runPackage(plan *guest.Plan, pkg guest.Package, console *guest.Writer) error {
	if err := console.Send(guest.Begin, pkg.Path, ""); err != nil {
		return err
	}
	var names strings.Builder
	if _, _, err := p.output(plan, pkg, []string{"-test.list=."}, func(text string) error {
		names.WriteString(text)
		return nil
	}); err != nil {
		return err
	}
	for chunk := range slices.Chunk([]byte(names.String()), guest.MaxText) {
		if err := console.Send(guest.List, pkg.Path, string(chunk)); err != nil {
			return err
		}
	}
	before := links()
	status, running, err := p.output(plan, pkg, plan.Args, func(text string) error {
		return console.Send(guest.Output, pkg.Path, text)
	})
	if err != nil {
		return err
	}
	for _, line := range running {
		console.Send(guest.Note, pkg.Path, "left running: "+line)
	}
	for _, name := range links() {
		if !slices.Contains(before, name) {
			console.Send(guest.Note, pkg.Path, "left behind: network device "+name)
		}
	}
	return console.Send(guest.End, pkg.Path, status)
}

// output runs a test binary to its end and hands over what it prints. It
// returns in words how the binary ended, and the programs that still ran then.
func (p *processes) output(plan *guest.Plan, pkg guest.Package, args []string, take func(string) error) (status string, left []string, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", nil, err
	}
	defer r.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		w.Close()
		return "", nil, err
	}
	defer null.Close()
	ended, err := p.start(append([]string{pkg.Binary}, args...), &syscall.ProcAttr{
		Dir:   pkg.Dir,
		Env:   plan.Env,
		Files: []uintptr{null.Fd(), w.Fd(), w.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	w.Close()
	if err != nil {
		return err.Error(), nil, nil
	}
	copied := make(chan error, 1)
	go func() { copied <- copyText(r, take) }()
	status = describe(<-ended)
	// Whoever still runs may hold the pipe open.
	left = running()
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && err != unix.ESRCH {
		return "", nil, fmt.Errorf("end left processes: %w", err)
	}
	if err := <-copied; err != nil {
		return "", nil, err
	}
	return status, left, nil
}

// copyText hands over what r has in pieces that fit into a frame.
func copyText(r io.Reader, take func(string) error) error {
	buf := make([]byte, guest.MaxText)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if err := take(string(buf[:n])); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read output: %w", err)
		}
	}
}

// describe tells how a process ended.
func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "signal: " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// running lists the command lines of all other programs. Kernel threads have
// none, and ended processes that were not collected yet neither.
func running() []string {
	var found []string
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil
	}
	for _, file := range lines {
		pid := filepath.Base(filepath.Dir(file))
		line, err := os.ReadFile(file)
		if err != nil || len(line) == 0 || pid == strconv.Itoa(os.Getpid()) {
			continue
		}
		found = append(found, strings.TrimSpace(strings.ReplaceAll(string(line), "\x00", " ")))
	}
	return found
}

// links names the network devices of the guest's own namespace.
func links() []string {
	all, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var names []string
	for _, l := range all {
		names = append(names, l.Name)
	}
	return names
}
