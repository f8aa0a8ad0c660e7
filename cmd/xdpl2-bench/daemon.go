// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/httpapi"
	"github.com/xdpl2/xdpl2/internal/netns"
)

// daemon is the real program, started in a namespace on a configuration in a
// directory of its own.
type daemon struct {
	program string
	dir     string
	client  *httpapi.Client
	cmd     *exec.Cmd

	ended chan struct{} // closed when the process has ended
	err   error         // of its end

	mu    sync.Mutex
	log   []string // the last lines
	ready chan struct{}
}

// findDaemon returns the path of the daemon's program: the given one, else
// the one beside this program, else that in PATH.
func findDaemon(given string) (string, error) {
	if given != "" {
		path, err := filepath.Abs(given)
		if err != nil {
			return "", err
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			return "", err
		case info.IsDir() || info.Mode()&0o111 == 0:
			return "", fmt.Errorf("%s is not a program", path)
		}
		return path, nil
	}
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), "xdpl2")
		if info, err := os.Stat(path); err == nil && !info.IsDir() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	path, err := exec.LookPath("xdpl2")
	if err != nil {
		return "", errors.New("no program xdpl2 beside this one or in PATH")
	}
	return filepath.Abs(path)
}

// uciConfig writes a UCI file in mode mac for ports of a bridge. Without an
// engine xdpl2 is switched off.
func uciConfig(bridge, engine string, ports ...string) string {
	enabled := "1"
	if engine == "" {
		enabled, engine = "0", "auto"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "config xdpl2 'main'\n\toption enabled '%s'\n\toption mode 'mac'\n\toption engine '%s'\n\toption bridge '%s'\n",
		enabled, engine, bridge)
	for _, p := range ports {
		fmt.Fprintf(&b, "\nconfig port\n\toption device '%s'\n", p)
	}
	return b.String()
}

// startDaemon makes the directories below dir, writes the configuration, starts
// the daemon and waits until it is ready.
func startDaemon(ctx context.Context, program, dir string, ns *netns.NS, config string) (*daemon, error) {
	d := &daemon{
		program: program, dir: dir, client: httpapi.NewClient(filepath.Join(dir, "run")),
		ended: make(chan struct{}), ready: make(chan struct{}),
	}
	for _, sub := range []string{"config", "save"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("start the daemon: %w", err)
		}
	}
	if err := d.configure(config); err != nil {
		return nil, err
	}
	// The networks here are virtual, but what their hosts send is finished.
	d.cmd = exec.Command(program, append(d.options(), "daemon", "--trust-frames")...)
	// A process group of its own: an interrupt from the terminal is for this
	// program, which then ends the daemon in good order. Should this program
	// be killed, the kernel kills the daemon.
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	d.cmd.Stdout = d.cmd.Stderr
	if err := ns.Start(d.cmd); err != nil {
		return nil, fmt.Errorf("start the daemon: %w", err)
	}
	go d.follow(out)
	select {
	case <-d.ready:
		return d, nil
	case <-d.ended:
		return nil, fmt.Errorf("the daemon ended before it was ready (%v):\n%s", d.err, d.lastWords())
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("wait for the daemon: %w", context.Cause(ctx)), d.stop())
	}
}

// options are those that the daemon and everything that asks it share.
func (d *daemon) options() []string {
	return []string{"--config-dir=" + filepath.Join(d.dir, "config"), "--save-dir=" + filepath.Join(d.dir, "save"),
		"--run-dir=" + filepath.Join(d.dir, "run")}
}

// file is where the configuration is.
func (d *daemon) file() string { return filepath.Join(d.dir, "config", "xdpl2") }

// config is what it says.
func (d *daemon) config() string {
	text, err := os.ReadFile(d.file())
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (d *daemon) configure(config string) error {
	if err := os.WriteFile(d.file(), []byte(config), 0o600); err != nil {
		return fmt.Errorf("configure the daemon: %w", err)
	}
	return nil
}

// logKept is how many lines of the log are kept.
const logKept = 20

// follow reads the log until the process ends.
func (d *daemon) follow(out io.Reader) {
	lines := bufio.NewScanner(out)
	ready := false
	for lines.Scan() {
		d.mu.Lock()
		d.log = append(d.log, lines.Text())
		d.log = d.log[max(0, len(d.log)-logKept):]
		d.mu.Unlock()
		if !ready && strings.Contains(lines.Text(), "msg=ready") {
			ready = true
			close(d.ready)
		}
	}
	_, _ = io.Copy(io.Discard, out) // a line too long to scan must not stop it
	d.err = d.cmd.Wait()
	close(d.ended)
}

// lastWords are the last lines of the log.
func (d *daemon) lastWords() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.log, "\n")
}

// alive tells why the daemon no longer runs, nil while it does.
func (d *daemon) alive() error {
	select {
	case <-d.ended:
		return fmt.Errorf("the daemon has ended (%v):\n%s", d.err, d.lastWords())
	default:
		return nil
	}
}

// stop ends the daemon as an init script does and waits for it. One that has
// ended already is fine.
func (d *daemon) stop() error {
	if d.alive() != nil {
		return nil
	}
	// Only the process itself is signalled, and only while it is not waited
	// for: os.Process sees to that.
	if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the daemon: %w", err)
	}
	select {
	case <-d.ended:
		if d.err != nil {
			return fmt.Errorf("the daemon did not end well (%w):\n%s", d.err, d.lastWords())
		}
		return nil
	case <-time.After(2 * time.Second):
		_ = d.cmd.Process.Kill()
		<-d.ended
		return fmt.Errorf("the daemon did not end when it was told to and was killed:\n%s", d.lastWords())
	}
}
