// SPDX-License-Identifier: Apache-2.0

package parity

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/config"
	"github.com/xdpl2/xdpl2/internal/control"
	"github.com/xdpl2/xdpl2/internal/httpapi"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// asDaemon is set in the environment of this program when it is to be the
// daemon: the controller acts in the network namespace of its whole process.
const asDaemon = "XDPL2_PARITY_DAEMON"

// MaybeDaemon turns the program into the daemon if it was started as one, and
// does not return then. Call it first.
func MaybeDaemon() {
	if os.Getenv(asDaemon) == "" {
		return
	}
	if err := serve(os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "parity daemon:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve is the daemon without what only a router needs: the controller and its
// control socket.
func serve(args []string) error {
	var o control.Options
	fs := flag.NewFlagSet("daemon", flag.ContinueOnError)
	fs.StringVar(&o.ConfigDir, "config-dir", "", "")
	fs.StringVar(&o.SaveDir, "save-dir", "", "")
	fs.StringVar(&o.RunDir, "run-dir", "", "")
	fs.BoolVar(&o.NoTCX, "no-tcx", false, "")
	fs.BoolVar(&o.TrustTags, "trust-tags", false, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	o.Level = &slog.LevelVar{}
	o.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: o.Level}))
	cfg, problems := config.Load(o.ConfigDir, o.SaveDir)
	if err := problems.Err(); err != nil {
		return err
	}
	c, err := control.New(cfg, problems, o)
	if err != nil {
		return err
	}
	listener, err := httpapi.Listen(o.RunDir)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- httpapi.Serve(ctx, listener, c) }()
	err = c.Run(ctx, nil)
	cancel()
	return errors.Join(err, <-served)
}

// daemon is xdpl2 at work in a box.
type daemon struct {
	api.Service
	dir  string // with config, save and run directories
	cmd  *exec.Cmd
	done chan struct{}
	log  *logTail
	side *side
	// markers numbers the entries by which settle finds out how far it is.
	markers uint32
}

// startDaemon starts xdpl2 in a box.
func startDaemon(ctx context.Context, s *side, conf string, o Options) (_ *daemon, err error) {
	d := &daemon{side: s, done: make(chan struct{}), log: &logTail{}}
	if d.dir, err = os.MkdirTemp("", "xdpl2-parity-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	for _, sub := range []string{"config", "save", "run"} {
		if err := os.Mkdir(filepath.Join(d.dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	if err := d.configure(conf); err != nil {
		return nil, err
	}
	env, program := os.Environ(), o.Program
	if program == "" {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
		env = append(env, asDaemon+"=1")
	}
	args := []string{"daemon", "--config-dir=" + filepath.Join(d.dir, "config"),
		"--save-dir=" + filepath.Join(d.dir, "save"), "--run-dir=" + filepath.Join(d.dir, "run")}
	if o.NoTCX {
		args = append(args, "--no-tcx")
	}
	if o.TrustTags {
		args = append(args, "--trust-tags")
	}
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Stderr = env, d.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.router.Start(cmd); err != nil {
		return nil, err
	}
	d.cmd = cmd
	go func() {
		_ = cmd.Wait()
		close(d.done)
	}()
	d.Service = httpapi.NewClient(filepath.Join(d.dir, "run"))
	return d, d.poll(ctx, "the daemon to answer", func() (bool, error) {
		_, err := d.Status(ctx)
		if errors.Is(err, httpapi.ErrNotRunning) {
			return false, nil
		}
		return err == nil, err
	})
}

// configure writes the UCI file.
func (d *daemon) configure(conf string) error {
	return os.WriteFile(filepath.Join(d.dir, "config", config.Package), []byte(conf), 0o600)
}

// reload puts another configuration into force.
func (d *daemon) reload(ctx context.Context, conf string) error {
	if err := d.configure(conf); err != nil {
		return err
	}
	_, err := d.Reload(ctx)
	return err
}

// markerKind is the second byte of the addresses of markers.
const markerKind = 0xfe

// settle waits until the daemon has heard of everything that the kernel has
// done so far. The kernel tells changes in order, so an entry that is made last
// is heard of last.
func (d *daemon) settle(ctx context.Context) error {
	d.markers++
	n := d.markers
	marker := lab.FDBEntry{MAC: [6]byte{0x02, markerKind, 0, byte(n >> 16), byte(n >> 8), byte(n)}, Port: d.side.ports[0], Local: true}
	if err := d.side.router.PutFDB(marker); err != nil {
		return err
	}
	text := fmt.Sprintf("02:%02x:00:%02x:%02x:%02x", markerKind, byte(n>>16), byte(n>>8), byte(n))
	err := d.poll(ctx, "the daemon to hear of the newest entry", func() (bool, error) {
		list, err := d.Stations(ctx, api.StationQuery{VLAN: -1})
		if err != nil {
			return false, err
		}
		for _, s := range list.Stations {
			if s.MAC == text {
				return true, nil
			}
		}
		return false, nil
	})
	return errors.Join(err, d.side.router.DelFDB(marker))
}

// poll asks until f holds: the daemon tells nothing by itself.
func (d *daemon) poll(ctx context.Context, what string, f func() (bool, error)) error {
	const patience = 30 * time.Second
	deadline := time.Now().Add(patience)
	for interval := 100 * time.Microsecond; ; interval = min(2*interval, 10*time.Millisecond) {
		ok, err := f()
		if err != nil || ok {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("waited in vain for %s; its log:\n%s", what, d.log)
		}
		select {
		case <-time.After(interval):
		case <-d.done:
			return fmt.Errorf("the daemon ended while %s was awaited; its log:\n%s", what, d.log)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// stop ends the daemon and removes its directories.
func (d *daemon) stop() error {
	var err error
	if d.cmd != nil {
		err = d.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-d.done:
		case <-time.After(10 * time.Second):
			err = errors.Join(err, d.cmd.Process.Kill())
			<-d.done
		}
		if errors.Is(err, os.ErrProcessDone) {
			err = fmt.Errorf("the daemon had ended; its log:\n%s", d.log)
		}
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// logTail keeps the end of what a program says.
type logTail struct {
	mu   sync.Mutex
	text []byte
}

var _ io.Writer = (*logTail)(nil)

// Write implements io.Writer.
func (l *logTail) Write(p []byte) (int, error) {
	const most = 16 << 10
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, p...)
	if len(l.text) > most {
		l.text = l.text[len(l.text)-most:]
	}
	return len(p), nil
}

// String returns what was kept.
func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.TrimSpace(string(l.text))
}
