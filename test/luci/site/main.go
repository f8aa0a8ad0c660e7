// SPDX-License-Identifier: Apache-2.0

// Site is a router with its web interface, for tests of the pages: the real
// daemon in a lab router, a test ubusd, what uhttpd and rpcd do for a browser,
// and the pages in a LuCI runtime. It prints its address as a line of JSON and
// ends with its standard input.
//
// The LuCI runtime is the test's own small one, or with --luci a real one: the
// folder that LuCI's sources call modules/luci-base/htdocs/luci-static.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
	"github.com/xdpl2/xdpl2/test/luci/rpcd"
)

type options struct {
	root   string // of the repository
	daemon string
	luci   string
	theme  string
	listen string
	noLab  bool
	load   int
}

func main() {
	var o options
	flag.StringVar(&o.root, "root", ".", "the repository's `folder`")
	flag.StringVar(&o.daemon, "daemon", "build/xdpl2", "the daemon's `program`")
	flag.StringVar(&o.luci, "luci", "", "a real LuCI's luci-static `folder`; empty: the test's own runtime")
	flag.StringVar(&o.theme, "theme", "", "a real theme's luci-static `folder`, with the real LuCI")
	flag.StringVar(&o.listen, "listen", "127.0.0.1:0", "`address` to listen on")
	flag.BoolVar(&o.noLab, "no-lab", false, "no router and no daemon: only the pages and an empty bus")
	flag.IntVar(&o.load, "load", 1, "how much traffic there is, in `units` of 450 frames a second")
	flag.Parse()
	if err := run(&o); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

func run(o *options) (err error) {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp("", "xdpl2-site")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, sub := range []string{"config", "save", "sessions"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	bus := ubustest.New(ubustest.Options{Socket: filepath.Join(dir, "ubus.sock")})
	if err := bus.Start(); err != nil {
		return err
	}
	defer bus.Stop()
	client, err := ubus.Dial(ctx, ubus.Options{Socket: bus.Socket()})
	if err != nil {
		return err
	}
	defer client.Close()

	box := &box{options: o, dir: dir, bus: bus}
	if err := box.build(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, box.close()) }()

	groups := map[string]*rpcd.Group{}
	if err := rpcd.ReadGroups(groups,
		filepath.Join(o.root, "luci-app/root/usr/share/rpcd/acl.d/luci-app-xdpl2.json"),
		filepath.Join(o.root, "test/luci/site/acl.json")); err != nil {
		return err
	}
	server := rpcd.New(client, rpcd.Options{
		ConfigDir: filepath.Join(dir, "config"), RunDir: filepath.Join(dir, "sessions"), Groups: groups,
		Accounts: map[string]rpcd.Account{
			"root":   {Read: []string{"luci", "luci-app-xdpl2"}, Write: []string{"luci", "luci-app-xdpl2"}},
			"viewer": {Read: []string{"luci", "luci-app-xdpl2"}},
			"other":  {Read: []string{"luci"}, Write: []string{"luci"}},
		},
		Objects: doubles(),
		Changed: box.changed,
	})

	listener, err := net.Listen("tcp", o.listen)
	if err != nil {
		return err
	}
	web := &http.Server{Handler: pages(o, server, box), ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	ready, err := json.Marshal(map[string]string{"url": "http://" + listener.Addr().String()})
	if err != nil {
		return err
	}
	fmt.Println(string(ready))

	eof := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, bufio.NewReader(os.Stdin))
		close(eof)
	}()
	select {
	case <-eof:
	case <-ctx.Done():
	case err = <-ended:
	}
	return errors.Join(err, web.Close())
}
