// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"sync"

	"github.com/cilium/ebpf"
)

// mostLoaded bounds how many programs are kept: a port has one or two for each
// hook, and one of each for who asks what it would do.
const mostLoaded = 4 * MaxPorts

// programs are those that were loaded, by their name and constants. A program
// of a few hundred instructions takes the verifier milliseconds, on a small
// core tens of them, and the kernel a page or two to keep.
type programs struct {
	mu sync.Mutex
	by map[loadedProgram]*ebpf.Program
}

type loadedProgram struct {
	name string
	p    Program
}

// get returns a program, for the caller to close, and loads it if it is not
// there.
func (l *programs) get(name string, p Program, load func(string, Program) (*ebpf.Program, error)) (*ebpf.Program, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := loadedProgram{name, p}
	prog := l.by[key]
	if prog == nil {
		if len(l.by) >= mostLoaded {
			if err := l.forgetLocked(); err != nil {
				return nil, err
			}
		}
		var err error
		if prog, err = load(name, p); err != nil {
			return nil, err
		}
		if l.by == nil {
			l.by = map[loadedProgram]*ebpf.Program{}
		}
		l.by[key] = prog
	}
	return prog.Clone()
}

// forget lets go of all of them. Those that are attached stay.
func (l *programs) forget() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.forgetLocked()
}

func (l *programs) forgetLocked() error {
	var err error
	for key, prog := range l.by {
		err = errors.Join(err, prog.Close())
		delete(l.by, key)
	}
	return err
}
