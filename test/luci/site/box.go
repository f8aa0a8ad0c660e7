// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/ether"
	"github.com/xdpl2/xdpl2/internal/httpapi"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
	"github.com/xdpl2/xdpl2/uci"
)

// box is the router: a lab with three hosts, one port without a host, one that
// is not in the bridge, and the daemon.
type box struct {
	*options
	dir string
	bus *ubustest.Daemon
	lab *lab.Lab

	mu      sync.Mutex // one at a time starts and stops things
	cmd     *exec.Cmd  // the daemon; nil: none runs
	ended   chan struct{}
	streams []*lab.Stream
	quiet   func() // ends the broadcasts
}

// config has a port of each state that a healthy box can have.
const config = `config xdpl2 'main'
	option enabled '1'

config port
	option device 'eth1'

config port
	option device 'eth2'

config port
	option device 'eth3'

config port
	option device 'eth4'

config port
	option device 'usb0'

config station
	option mac '02:00:5e:00:53:07'
	option port 'eth3'
`

// patience bounds every wait.
const patience = 30 * time.Second

func (b *box) file() string { return filepath.Join(b.dir, "config", "xdpl2") }

func (b *box) build(ctx context.Context) (err error) {
	if err := os.WriteFile(b.file(), []byte(config), 0o600); err != nil {
		return err
	}
	// LuCI asks for these; what is in them does not matter here.
	for name, text := range map[string]string{"luci": "", "network": "", "system": "", "wireless": wireless} {
		if err := os.WriteFile(filepath.Join(b.dir, "config", name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	if b.noLab {
		return nil
	}
	if b.lab, err = lab.New(ctx, lab.Options{Spares: 1, NoIPv6: true}); err != nil {
		return err
	}
	spare, err := b.lab.Port(4)
	if err == nil {
		err = b.lab.SetBridged(spare, false)
	}
	if err == nil {
		err = b.start()
	}
	if err != nil {
		return errors.Join(err, b.close())
	}
	return nil
}

func (b *box) args() []string {
	return []string{"--config-dir=" + filepath.Join(b.dir, "config"), "--save-dir=" + filepath.Join(b.dir, "save"),
		"--run-dir=" + filepath.Join(b.dir, "run"), "--ubus-socket=" + b.bus.Socket(),
		"--calibration-file=" + filepath.Join(b.dir, "calibration.json")}
}

// start starts the daemon and waits until it is on the bus.
func (b *box) start() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cmd != nil {
		return nil
	}
	log, err := os.Create(filepath.Join(b.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(b.daemon, append(b.args(), "daemon")...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := b.lab.Router.Start(cmd); err != nil {
		return fmt.Errorf("start the daemon: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // how it ended is in its log
		close(ended)
	}()
	b.cmd, b.ended = cmd, ended
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.bus.WaitObject(ctx, "xdpl2", true); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%w; its log:\n%s", err, text)
	}
	return nil
}

// stop ends the daemon as an init script does, or as a crash would.
func (b *box) stop(sig syscall.Signal) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.cmd == nil {
		return nil
	}
	if err := b.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-b.ended:
	case <-time.After(patience):
		_ = b.cmd.Process.Kill()
		return errors.New("the daemon did not end")
	}
	b.cmd = nil
	return nil
}

// changed does what procd and the init script do when a configuration changes.
func (b *box) changed(pkg string) {
	if pkg != "xdpl2" || b.noLab {
		return
	}
	var err error
	enabled, _ := uci.NewTree(filepath.Join(b.dir, "config"), "").GetBool("xdpl2", "main", "enabled")
	if enabled {
		if err = b.start(); err == nil {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_, err = httpapi.NewClient(filepath.Join(b.dir, "run")).Reload(ctx)
		}
	} else {
		err = b.stop(syscall.SIGTERM)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "site: after a change:", err)
	}
}

// traffic starts streams between the hosts, or ends them.
func (b *box) traffic(on bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !on || len(b.streams) > 0 {
		for _, s := range b.streams {
			s.Stop()
		}
		b.streams = nil
		if b.quiet != nil {
			b.quiet()
			b.quiet = nil
		}
		return nil
	}
	h := b.lab.Hosts
	for _, flow := range []struct {
		from, to     *lab.Host
		rate, length int
	}{{h[0], h[1], 300, 1514}, {h[1], h[0], 100, 1514}, {h[2], h[0], 50, 300}} {
		s, err := b.lab.StartStream(context.Background(), flow.from, flow.to, lab.StreamOptions{Rate: b.load * flow.rate, Length: flow.length})
		if err != nil {
			return err
		}
		b.streams = append(b.streams, s)
	}
	return b.broadcast()
}

// broadcast has a host ask for an address that nobody has, ten times a second
// for each unit of load: frames that the bridge floods.
func (b *box) broadcast() error {
	h := b.lab.Hosts[2]
	sender, err := h.Sender()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	b.quiet = func() {
		cancel()
		<-done
	}
	frame := ether.ARPRequest(h.MAC, h.IP4, netip.MustParseAddr("192.0.2.99"))
	go func() {
		defer close(done)
		defer sender.Close()
		tick := time.NewTicker(100 * time.Millisecond / time.Duration(b.load))
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = sender.Send(frame) // the lab may be on its way down
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}

func (b *box) close() error {
	if b.lab == nil {
		return nil
	}
	return errors.Join(b.traffic(false), b.stop(syscall.SIGTERM), b.lab.Close())
}
