// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/lab/nft"
	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
)

// bridgerDouble does what bridger does as far as xdpl2 meets it: it has a tc
// filter on each port of the bridge, unless the port is on a blacklist.
type bridgerDouble struct {
	t      *testing.T
	h      *netlink.Handle
	prog   *ebpf.Program
	client *ubus.Client
	lists  chan string
}

func startBridger(t *testing.T, l *lab.Lab, bus *ubustest.Daemon) *bridgerDouble {
	t.Helper()
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()}})
	must(t, err)
	h, err := l.Router.Handle()
	must(t, err)
	d := &bridgerDouble{t: t, h: h, prog: prog, client: ubus.New(ubus.Options{Socket: bus.Socket()}), lists: make(chan string, 100)}
	t.Cleanup(func() { d.client.Close(); d.client.Wait(); prog.Close() })
	for _, port := range []string{"eth1", "eth2", "eth3"} {
		must(t, d.attach(port, true))
	}
	registration, err := d.client.Register(ubus.Object{Path: "bridger", Methods: []ubus.Method{{
		Name: "set_blacklist",
		Args: []ubus.Arg{{Name: "name", Type: blobmsg.String}, {Name: "devices", Type: blobmsg.Arr}},
		Handler: func(_ context.Context, r *ubus.Request) error {
			list, _ := r.Args.Array("devices")
			for _, port := range []string{"eth1", "eth2", "eth3"} {
				if err := d.attach(port, !strings.Contains(fmt.Sprint(list), port)); err != nil {
					return err
				}
			}
			d.lists <- fmt.Sprint(list)
			return nil
		},
	}}})
	must(t, err)
	must(t, registration.Wait(testContext(t)))
	return d
}

func (d *bridgerDouble) attach(port string, on bool) error {
	dev, err := d.h.LinkByName(port)
	if err != nil {
		return err
	}
	index := dev.Attrs().Index
	err = d.h.QdiscAdd(&netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: index, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT}})
	if err != nil && err != unix.EEXIST {
		return err
	}
	filter := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: index, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1, Priority: 0xbb00, Protocol: unix.ETH_P_ALL},
		Fd:          d.prog.FD(), Name: "bridger_input", DirectAction: true,
	}
	if on {
		return d.h.FilterReplace(filter)
	}
	if err := d.h.FilterDel(filter); err != nil && err != unix.ENOENT {
		return err
	}
	return nil
}

func (d *bridgerDouble) expect(want string) {
	d.t.Helper()
	deadline := time.After(patience)
	for {
		select {
		case got := <-d.lists:
			if got == want {
				return
			}
		case <-deadline:
			d.t.Fatalf("bridger was not told %s", want)
		}
	}
}

// TestBridgerLeavesPortsAlone: with bridger on the bridge, xdpl2 has it leave
// its ports, and accelerates them only when it has.
func TestBridgerLeavesPortsAlone(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	bus := ubustest.Start(t, ubustest.Options{})
	d := startBridger(t, l, bus)
	b := newBox(t, l, confOf("tc"))
	b.ubus = bus.Socket()
	b.start()
	d.expect("[eth1 eth2 eth3]")
	for _, port := range []string{"eth1", "eth2", "eth3"} {
		b.waitFiltered(port, "")
	}
	b.learn(l.Hosts[0], l.Hosts[1])
	transfer(t, l.Hosts[0], l.Hosts[1], false)

	// Where a firewall keeps xdpl2 off the ports, bridger may have them.
	chain := newChain(t, l.Router, nft.ChainOptions{Family: nft.Bridge, Table: "fw", Chain: "forward", Hook: nft.Forward})
	must(t, chain.Accept())
	d.expect("[]")
	must(t, chain.Delete())
	d.expect("[eth1 eth2 eth3]")
	b.waitFiltered("eth1", "")

	if code := b.end(unix.SIGTERM); code != exitFine {
		t.Errorf("exit code %d", code)
	}
	d.expect("[]")
}

// TestBridgerWithoutUbus: a bridger that cannot be told keeps the ports, and
// status says so.
func TestBridgerWithoutUbus(t *testing.T) {
	l := lab.ForTest(t, lab.Options{NoIPv6: true})
	startBridger(t, l, ubustest.Start(t, ubustest.Options{}))
	b := newBox(t, l, confOf("tc"))
	b.start()
	if p := b.portStatus("eth1"); p.State != api.NotAccelerated || !strings.Contains(p.Reason, "tc filter (bpf bridger_input) at the ingress of eth1") {
		t.Errorf("%+v", p)
	}
}
