// SPDX-License-Identifier: Apache-2.0

package dbusapi

import (
	"context"
	"encoding/xml"
	"errors"
	"log/slog"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/api/apitest"
	"github.com/xdpl2/xdpl2/internal/dbusapi/dbustest"
)

// bus is a bus of the test's own.
type bus struct {
	*dbustest.Bus
	t *testing.T
}

func newBus(t *testing.T) *bus {
	t.Helper()
	return &bus{dbustest.Start(t, "../../files/etc/dbus-1/system.d/org.xdpl2.conf"), t}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// caller connects as root.
func (b *bus) caller() *dbus.Conn {
	b.t.Helper()
	conn, err := dbus.Connect(b.Address())
	must(b.t, err)
	b.t.Cleanup(func() { conn.Close() })
	return conn
}

// waitName waits until somebody has the name, or nobody.
func (b *bus) waitName(conn *dbus.Conn, there bool) {
	b.t.Helper()
	signals := make(chan *dbus.Signal, 100)
	conn.Signal(signals)
	defer conn.RemoveSignal(signals)
	must(b.t, conn.AddMatchSignal(dbus.WithMatchInterface("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged")))
	for {
		var has bool
		must(b.t, conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, Name).Store(&has))
		if has == there {
			return
		}
		select {
		case <-signals:
		case <-time.After(30 * time.Second):
			b.t.Fatalf("the name %s does not become (there: %v)", Name, there)
		}
	}
}

// lines keeps a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}

// offer offers a service on an address until the test ends.
func offer(t *testing.T, s api.Service, address string) *lines {
	t.Helper()
	log := &lines{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, s, Options{Address: address, Log: slog.New(slog.NewTextHandler(log, nil)), RetryMin: time.Millisecond, RetryMax: 20 * time.Millisecond})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return log
}

func offered(t *testing.T) (*apitest.Service, *bus, dbus.BusObject, *dbus.Conn) {
	t.Helper()
	b := newBus(t)
	s := apitest.New()
	offer(t, s, b.Address())
	conn := b.caller()
	b.waitName(conn, true)
	return s, b, conn.Object(Name, Path), conn
}

func TestMethods(t *testing.T) {
	s, _, o, _ := offered(t)
	var d dict
	must(t, o.Call(Interface+".Status", 0).Store(&d))
	if d["mode"].Value() != "mac" || d["accelerated_share"].Value() != 0.5 || d["stations"].Value() != int64(2500) {
		t.Errorf("status %v", d)
	}
	ports, ok := d["ports"].Value().([]map[string]dbus.Variant)
	if !ok || ports[0]["device"].Value() != "eth1" || !reflect.DeepEqual(ports[0]["engines"].Value(), map[string]string{"tc": "in use"}) {
		t.Errorf("ports of the status: %v", d["ports"])
	}
	must(t, o.Call(Interface+".Counters", 0, "").Store(&d))
	counters := d["counters"].Value().([]map[string]dbus.Variant)
	verdicts := counters[0]["verdicts"].Value().([]map[string]dbus.Variant)
	if verdicts[0]["packets"].Value() != uint64(apitest.Big) || counters[0]["since"].Value() != "2023-11-14T22:13:20Z" {
		t.Errorf("counters %v", d)
	}
	must(t, o.Call(Interface+".Stations", 0, "eth1", int32(-1), "02", int32(0), int32(3)).Store(&d))
	if want := (api.StationQuery{Port: "eth1", VLAN: -1, Search: "02", Limit: api.PageSize, Offset: 3}); s.Query() != want {
		t.Errorf("asked %+v, want %+v", s.Query(), want)
	}
	if list := d["stations"].Value().([]map[string]dbus.Variant); len(list) != api.PageSize {
		t.Errorf("a page of %d", len(list))
	}
	must(t, o.Call("Reload", 0).Store(&d)) // without an interface
	if d["changed"].Value() != true {
		t.Errorf("reload %v", d)
	}
}

func TestErrors(t *testing.T) {
	s, _, o, conn := offered(t)
	s.Fail(&api.ConfigError{Problems: []api.Problem{{Text: "f:3: wrong"}}})
	for name, tt := range map[string]struct {
		call       *dbus.Call
		want, says string
	}{
		"config":       {o.Call(Interface+".Reload", 0), "org.xdpl2.Error.Config", "f:3: wrong"},
		"unknown port": {o.Call(Interface+".Counters", 0, "eth9"), "org.xdpl2.Error.UnknownPort", "no port eth9"},
		"range":        {o.Call(Interface+".Stations", 0, "", int32(5000), "", int32(0), int32(0)), "org.freedesktop.DBus.Error.InvalidArgs", "expected a number from 0 to 4094"},
		"type":         {o.Call(Interface+".Counters", 0, int32(1)), "org.freedesktop.DBus.Error.InvalidArgs", "arguments of type (i), expected (s)"},
		"missing":      {o.Call(Interface+".Counters", 0), "org.freedesktop.DBus.Error.InvalidArgs", ""},
		"method":       {o.Call(Interface+".Nothing", 0), "org.freedesktop.DBus.Error.UnknownMethod", ""},
		"interface":    {o.Call("org.xdpl2.Manager2.Status", 0), "org.freedesktop.DBus.Error.UnknownInterface", ""},
		"object":       {conn.Object(Name, "/org/other").Call(Interface+".Status", 0), "org.freedesktop.DBus.Error.NoSuchObject", ""},
		"property":     {o.Call(propertiesInterface+".Get", 0, Interface, "Colour"), "org.freedesktop.DBus.Error.UnknownProperty", "Colour"},
		"set":          {o.Call(propertiesInterface+".Set", 0, Interface, "Mode", dbus.MakeVariant("port")), "org.freedesktop.DBus.Error.PropertyReadOnly", "UCI"},
	} {
		e, ok := errors.AsType[dbus.Error](tt.call.Err)
		if !ok || e.Name != tt.want || !strings.Contains(e.Error(), tt.says) {
			t.Errorf("%s: %v (%s), want %s saying %q", name, tt.call.Err, e.Name, tt.want, tt.says)
		}
	}
}

func TestPropertiesAndSignals(t *testing.T) {
	s, _, o, conn := offered(t)
	mode, err := o.GetProperty(Interface + ".Mode")
	if err != nil || mode.Value() != "mac" {
		t.Errorf("mode %v, %v", mode, err)
	}
	var all dict
	must(t, o.Call(propertiesInterface+".GetAll", 0, Interface).Store(&all))
	if len(all) != len(properties) || !reflect.DeepEqual(all["PortEngines"].Value(), map[string]string{"eth1": "tc"}) {
		t.Errorf("all properties: %v", all)
	}
	for _, p := range properties {
		if got := all[p.name].Signature().String(); got != p.signature {
			t.Errorf("property %s is %s, declared %s", p.name, got, p.signature)
		}
	}
	heard := make(chan *dbus.Signal, 100)
	conn.Signal(heard)
	must(t, conn.AddMatchSignal(dbus.WithMatchObjectPath(Path)))
	s.Tell(api.Event{Kind: api.EventStation, Text: "a new one", MAC: "02:00:00:00:00:01", VLAN: 5})
	signal := <-heard
	event := signal.Body[0].(map[string]dbus.Variant)
	if signal.Name != Interface+".Station" || event["mac"].Value() != "02:00:00:00:00:01" || event["vlan"].Value() != int64(5) {
		t.Errorf("%+v", signal)
	}
	s.Change(func(state *api.Status) {
		state.Ports[0].Engine, state.Stations, state.Uptime = "generic", 99, 5
	})
	s.Tell(api.Event{Kind: api.EventEngine, Text: "eth1: engine generic instead of tc", Device: "eth1"})
	if signal = <-heard; signal.Name != Interface+".Engine" {
		t.Errorf("%+v", signal)
	}
	signal = <-heard
	want := map[string]dbus.Variant{"PortEngines": dbus.MakeVariant(map[string]string{"eth1": "generic"})}
	if signal.Name != propertiesInterface+".PropertiesChanged" || signal.Body[0] != Interface || !reflect.DeepEqual(signal.Body[1], want) {
		t.Errorf("%+v", signal)
	}
	// What changes nothing changes no property.
	s.Tell(api.Event{Kind: api.EventConfig, Text: "configuration loaded, nothing has changed"})
	s.Tell(api.Event{Kind: api.EventStation, Text: "another"})
	if a, b := <-heard, <-heard; a.Name != Interface+".Config" || b.Name != Interface+".Station" {
		t.Errorf("%+v, %+v", a, b)
	}
}

// described is a node as introspection describes it.
type described struct {
	Interfaces []describedInterface `xml:"interface"`
	Nodes      []named              `xml:"node"`
}

type describedInterface struct {
	Name    string `xml:"name,attr"`
	Methods []struct {
		Name string `xml:"name,attr"`
		Args []struct {
			Type      string `xml:"type,attr"`
			Direction string `xml:"direction,attr"`
		} `xml:"arg"`
	} `xml:"method"`
	Signals    []named `xml:"signal"`
	Properties []named `xml:"property"`
}

type named struct {
	Name string `xml:"name,attr"`
}

// TestIntrospection: what is described is what there is.
func TestIntrospection(t *testing.T) {
	_, _, o, conn := offered(t)
	var node described
	var text string
	must(t, o.Call(introspectable+".Introspect", 0).Store(&text))
	must(t, xml.Unmarshal([]byte(text), &node))
	i := slices.IndexFunc(node.Interfaces, func(i describedInterface) bool { return i.Name == Interface })
	if i < 0 {
		t.Fatalf("no %s in\n%s", Interface, text)
	}
	manager := node.Interfaces[i]
	if len(manager.Methods) != len(api.Methods()) || len(manager.Properties) != len(properties) || len(manager.Signals) != len(signals) {
		t.Errorf("incomplete:\n%s", text)
	}
	for _, m := range manager.Methods {
		// A call with arguments of the described types is understood.
		var in []any
		for _, a := range m.Args {
			switch {
			case a.Direction == "out":
			case a.Type == "i":
				in = append(in, int32(0))
			default:
				in = append(in, "")
			}
		}
		err := o.Call(Interface+"."+m.Name, 0, in...).Err
		if err != nil && strings.Contains(err.Error(), "arguments of type") {
			t.Errorf("%s does not take what is described: %v", m.Name, err)
		}
	}
	for path, want := range map[dbus.ObjectPath]string{"/": "org", "/org": "xdpl2"} {
		must(t, conn.Object(Name, path).Call(introspectable+".Introspect", 0).Store(&text))
		node.Nodes = nil
		must(t, xml.Unmarshal([]byte(text), &node))
		if len(node.Nodes) != 1 || node.Nodes[0].Name != want {
			t.Errorf("%s leads to %v, want %s", path, node.Nodes, want)
		}
	}
}

// TestPolicy: users may ask, root alone may change.
func TestPolicy(t *testing.T) {
	_, b, _, _ := offered(t)
	const nobody = 65534
	call := func(uid uint32, member string, args ...string) (string, error) {
		cmd := exec.Command("dbus-send", append([]string{"--bus=" + b.Address(), "--dest=" + Name, "--print-reply", string(Path), member}, args...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for _, m := range api.Methods() {
		var args []string
		for _, a := range m.Args {
			if a.Kind == api.Integer {
				args = append(args, "int32:0")
			} else {
				args = append(args, "string:")
			}
		}
		for _, uid := range []uint32{0, nobody} {
			out, err := call(uid, Interface+"."+camel(m.Name), args...)
			denied := err != nil && strings.Contains(out, "AccessDenied")
			if want := m.Changes && uid == nobody; denied != want {
				t.Errorf("%s by user %d: denied %v, want %v: %s", m.Name, uid, denied, want, out)
			}
		}
	}
	if out, err := call(nobody, propertiesInterface+".GetAll", "string:"+Interface); err != nil {
		t.Errorf("properties: %s", out)
	}
	// Nobody else may be org.xdpl2.
	cmd := exec.Command("dbus-send", "--bus="+b.Address(), "--dest=org.freedesktop.DBus", "--print-reply", "/org/freedesktop/DBus",
		"org.freedesktop.DBus.RequestName", "string:org.xdpl2", "uint32:2")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "AccessDenied") {
		t.Errorf("a user may take the name: %s", out)
	}
}

// TestBusComesAndGoes: its absence is one line in the log, and the daemon is
// back when the bus is.
func TestBusComesAndGoes(t *testing.T) {
	b := newBus(t)
	b.Stop()
	s := apitest.New()
	log := offer(t, s, b.Address())
	for range 3 { // as good as an attempt: an event is taken while it waits
		s.Tell(api.Event{Kind: api.EventPort})
	}
	s.WaitRead()
	for range 2 {
		b.Start()
		conn := b.caller()
		b.waitName(conn, true)
		must(t, conn.Object(Name, Path).Call(Interface+".Status", 0).Err)
		b.Stop()
	}
	b.Start()
	b.waitName(b.caller(), true)
	if n := log.count("connection lost"); n != 2 {
		t.Errorf("%d losses told, want 2:\n%s", n, log.text.String())
	}
	if n := log.count("msg=\"not on D-Bus\" error=\"connect: "); n < 1 || n > 3 {
		t.Errorf("the absence of the bus is told %d times:\n%s", n, log.text.String())
	}
}

// TestNameTaken: a second daemon waits for the name.
func TestNameTaken(t *testing.T) {
	b := newBus(t)
	conn := b.caller()
	reply, err := conn.RequestName(Name, 0)
	if err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(reply, err)
	}
	s := apitest.New()
	log := offer(t, s, b.Address())
	other := b.caller()
	for log.count("another process has it") == 0 {
		time.Sleep(time.Millisecond)
	}
	_, err = conn.ReleaseName(Name)
	must(t, err)
	b.waitName(other, true)
	must(t, other.Object(Name, Path).Call(Interface+".Status", 0).Err)
}
