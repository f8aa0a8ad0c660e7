// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/xdpl2/xdpl2/internal/dbusapi"
	"github.com/xdpl2/xdpl2/internal/dbusapi/dbustest"
	"github.com/xdpl2/xdpl2/internal/lab"
)

// TestDBusSwitchedOnAndOff by a reload, while the daemon runs.
func TestDBusSwitchedOnAndOff(t *testing.T) {
	if inGuest {
		t.Skip("not for guests: they have no dbus-daemon")
	}
	bus := dbustest.Start(t, "../../files/etc/dbus-1/system.d/org.xdpl2.conf")
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
	b.start("--dbus-address=" + bus.Address())
	conn, err := dbus.Connect(bus.Address())
	must(t, err)
	t.Cleanup(func() { conn.Close() })
	has := func() (has bool) {
		must(t, conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, dbusapi.Name).Store(&has))
		return has
	}
	if has() {
		t.Error("on D-Bus without being asked")
	}
	b.configure(confOf("tc", "option dbus '1'"))
	reload(b)
	b.wait("the daemon on D-Bus", has)
	mode, err := conn.Object(dbusapi.Name, dbusapi.Path).GetProperty(dbusapi.Interface + ".Mode")
	if err != nil || mode.Value() != "mac" {
		t.Errorf("mode %v, %v", mode, err)
	}
	b.configure(confOf("tc"))
	reload(b)
	b.wait("the daemon to leave D-Bus", func() bool { return !has() })
}

// TestAbsentDBus: a bus that there is not is a line in the log, not a failure.
func TestAbsentDBus(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc", "option dbus '1'"))
	b.start("--dbus-address=unix:path=/nonexistent/bus")
	b.waitLog("not on D-Bus")
	b.learn(b.lab.Hosts[0])
}

func TestMetricsSwitchedOnAndOff(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
	b.start()
	dial := func(_ context.Context, network, address string) (conn net.Conn, err error) {
		err = b.lab.Router.Do(func() error {
			conn, err = net.Dial(network, address)
			return err
		})
		return conn, err
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
	scrape := func(address string) string {
		t.Helper()
		resp, err := client.Get("http://" + address + "/metrics")
		if err != nil {
			return "" // nobody answers
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(t, err)
		return string(text)
	}
	const one, other = "127.0.0.1:9420", "127.0.0.1:9421"
	if text := scrape(one); text != "" {
		t.Error("metrics without being asked")
	}
	b.configure(confOf("tc", "option metrics '"+one+"'"))
	reload(b)
	b.wait("metrics", func() bool { return scrape(one) != "" })
	contains(t, scrape(one), `xdpl2_port_accelerating{port="eth1"} 1`)
	b.configure(confOf("tc", "option metrics '"+other+"'"))
	reload(b)
	b.wait("metrics at another address", func() bool { return scrape(other) != "" && scrape(one) == "" })
	b.configure(confOf("tc"))
	reload(b)
	b.wait("metrics to end", func() bool { return scrape(other) == "" })
}
