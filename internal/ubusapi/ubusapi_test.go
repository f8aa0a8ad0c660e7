// SPDX-License-Identifier: Apache-2.0

package ubusapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/api"
	"github.com/xdpl2/xdpl2/internal/api/apitest"
	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
)

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// offer offers a service and returns a caller.
func offer(t testing.TB, s api.Service) (*ubustest.Daemon, *ubus.Client) {
	t.Helper()
	d := ubustest.Start(t, ubustest.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, s, Options{Socket: d.Socket(), Log: slog.New(slog.DiscardHandler)}) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if err := d.WaitObject(within(t), Path, true); err != nil {
		t.Fatal(err)
	}
	if s, ok := s.(*apitest.Service); ok {
		s.WaitReader()
	}
	c, err := ubus.Dial(within(t), ubus.Options{Socket: d.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return d, c
}

func table(pairs ...any) blobmsg.Table {
	t := blobmsg.Table{}
	for i := 0; i < len(pairs); i += 2 {
		t = append(t, blobmsg.Field{Name: pairs[i].(string), Value: pairs[i+1]})
	}
	return t
}

// TestAnswersAreTheJSON: what a caller reads is the JSON of api's types.
func TestAnswersAreTheJSON(t *testing.T) {
	s := apitest.New()
	_, c := offer(t, s)
	for _, m := range api.Methods() {
		args := blobmsg.Table{}
		for _, a := range m.Args {
			if a.Required {
				args = append(args, blobmsg.Field{Name: a.Name, Value: "02:00:00:00:00:01"})
			}
		}
		got, err := c.Call(within(t), Path, m.Name, args)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		values := api.Values{}
		for _, f := range args {
			values[f.Name] = f.Value
		}
		result, err := m.CallPaged(within(t), s, values)
		if err != nil {
			t.Fatal(err)
		}
		want, err := json.Marshal(result)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(generic(t, text), generic(t, want)) {
			t.Errorf("%s answers\n%s\nwant\n%s", m.Name, text, want)
		}
	}
}

func generic(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return listed(v)
}

// listed makes empty lists of nothing: where JSON may have null, blobmsg has a
// list without elements.
func listed(v any) any {
	switch v := v.(type) {
	case nil:
		return []any{}
	case []any:
		for i := range v {
			v[i] = listed(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = listed(v[key])
		}
	}
	return v
}

// TestLuCIMayAsk: LuCI's access file grants every question to who may read, and
// every change to who may write.
func TestLuCIMayAsk(t *testing.T) {
	text, err := os.ReadFile("../../luci-app/root/usr/share/rpcd/acl.d/luci-app-xdpl2.json")
	if err != nil {
		t.Fatal(err)
	}
	var groups map[string]struct {
		Read, Write struct{ Ubus map[string][]string }
	}
	if err := json.Unmarshal(text, &groups); err != nil {
		t.Fatal(err)
	}
	group := groups["luci-app-xdpl2"]
	var questions, changes []string
	for _, m := range api.Methods() {
		if m.Changes {
			changes = append(changes, m.Name)
		} else {
			questions = append(questions, m.Name)
		}
	}
	for _, name := range questions {
		if !slices.Contains(group.Read.Ubus[Path], name) {
			t.Errorf("%s may not be asked", name)
		}
	}
	for _, name := range changes {
		if !slices.Contains(group.Write.Ubus[Path], name) || slices.Contains(group.Read.Ubus[Path], name) {
			t.Errorf("%s is not for who may write alone", name)
		}
	}
}

// TestCountersAreInt64: an int32 would wrap after minutes.
func TestCountersAreInt64(t *testing.T) {
	_, c := offer(t, apitest.New())
	got, err := c.Call(within(t), Path, "counters", nil)
	if err != nil {
		t.Fatal(err)
	}
	ports, _ := got.Array("counters")
	verdicts, _ := ports[0].(blobmsg.Table).Array("verdicts")
	for i, want := range []int64{apitest.Big, 7} {
		if n, _ := verdicts[i].(blobmsg.Table).Get("packets"); n != want {
			t.Errorf("packets: %T %v, want int64 %d", n, n, want)
		}
	}
}

// TestSignatures: as ubus -v list shows them.
func TestSignatures(t *testing.T) {
	_, c := offer(t, apitest.New())
	objects, err := c.Lookup(within(t), Path)
	if err != nil || len(objects) != 1 {
		t.Fatalf("%v, %v", objects, err)
	}
	var got []string
	for _, m := range objects[0].Methods {
		line := m.Name
		for _, a := range m.Args {
			line += fmt.Sprintf(" %s:%v", a.Name, a.Type)
		}
		got = append(got, line)
	}
	want := []string{
		"status", "ports",
		"stations port:string vlan:int32 search:string limit:int32 offset:int32",
		"counters port:string",
		"explain device:string source:string destination:string vlan:int32",
		"reload",
		"calibrate seconds:int32",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

func TestStationsComeInPages(t *testing.T) {
	s := apitest.New()
	_, c := offer(t, s)
	seen := map[any]bool{}
	for offset := 0; ; {
		got, err := c.Call(within(t), Path, "stations", table("offset", int32(offset), ubus.SessionKey, "0123"))
		if err != nil {
			t.Fatal(err)
		}
		page, _ := got.Array("stations")
		for _, e := range page {
			mac, _ := e.(blobmsg.Table).Get("mac")
			seen[mac] = true
		}
		offset += len(page)
		if total, _ := got.Int("total"); int64(offset) >= total {
			break
		}
		if len(page) != api.PageSize {
			t.Fatalf("a page of %d, want %d", len(page), api.PageSize)
		}
	}
	if len(seen) != 2500 {
		t.Errorf("%d stations on all pages", len(seen))
	}
	for args, want := range map[*blobmsg.Table]api.StationQuery{
		ptr(table()): {VLAN: -1, Limit: api.PageSize},
		ptr(table("limit", int32(5), "vlan", int32(0))):   {VLAN: 0, Limit: 5},
		ptr(table("limit", int32(1<<30), "port", "eth1")): {Port: "eth1", VLAN: -1, Limit: api.PageSize},
		ptr(table("vlan", int32(-1), "search", "02:")):    {VLAN: -1, Search: "02:", Limit: api.PageSize},
	} {
		if _, err := c.Call(within(t), Path, "stations", *args); err != nil || s.Query() != want {
			t.Errorf("%v: asked %+v, %v; want %+v", *args, s.Query(), err, want)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestLargestPageFits: what no page may exceed is the limit of a message.
func TestLargestPageFits(t *testing.T) {
	list := api.StationList{Total: 1 << 20}
	for range api.PageSize {
		list.Stations = append(list.Stations, api.Station{MAC: "02:00:00:00:00:00", VLAN: 4094, Port: "abcdefghijklmno", Source: "static", Seen: 1e9})
	}
	data, err := blobmsg.Encode(list)
	if err != nil || len(data) > 1<<19 {
		t.Errorf("%d bytes, %v; want at most half a megabyte", len(data), err)
	}
}

func TestRefusals(t *testing.T) {
	s := apitest.New()
	_, c := offer(t, s)
	for name, tt := range map[string]struct {
		method string
		args   blobmsg.Table
		err    error
		status ubus.Status
		says   string // "": refused before api sees it
	}{
		"no such method":    {"nosuch", nil, nil, ubus.StatusMethodNotFound, ""},
		"wrong type":        {"stations", table("limit", "5"), nil, ubus.StatusInvalidArgument, ""},
		"unknown argument":  {"status", table("verbose", true), nil, ubus.StatusInvalidArgument, ""},
		"out of range":      {"stations", table("vlan", int32(4095)), nil, ubus.StatusInvalidArgument, "stations: vlan '4095': expected a number from 0 to 4094"},
		"negative":          {"stations", table("limit", int32(-1)), nil, ubus.StatusInvalidArgument, "stations: limit '-1': expected a number from 0 to 2147483647"},
		"no such port":      {"counters", table("port", "eth9"), nil, ubus.StatusNotFound, "no port eth9 is configured"},
		"wrong config":      {"reload", nil, &api.ConfigError{Problems: []api.Problem{{File: "f", Line: 3, Text: "f:3: wrong"}}}, ubus.StatusUnknownError, "f:3: wrong"},
		"anything":          {"status", nil, errors.New("out of order"), ubus.StatusUnknownError, "out of order"},
		"with a session id": {"counters", table("port", "eth9", ubus.SessionKey, "01"), nil, ubus.StatusNotFound, "no port eth9 is configured"},
	} {
		t.Run(name, func(t *testing.T) {
			s.Fail(tt.err)
			id, err := c.LookupID(within(t), Path)
			if err != nil {
				t.Fatal(err)
			}
			replies, err := c.Invoke(within(t), id, tt.method, tt.args)
			if !errors.Is(err, tt.status) {
				t.Errorf("got %v, want %v", err, tt.status)
			}
			says := ""
			if len(replies) > 0 {
				says, _ = replies[0].Text("error")
			}
			if says != tt.says {
				t.Errorf("says %q, want %q", says, tt.says)
			}
			if tt.err != nil && tt.method == "reload" {
				problems, _ := replies[0].Array("problems")
				if line, _ := problems[0].(blobmsg.Table).Int("line"); line != 3 {
					t.Errorf("the place is lost: %v", replies[0])
				}
			}
		})
	}
}

func TestEvents(t *testing.T) {
	s := apitest.New()
	d, c := offer(t, s)
	heard := make(chan ubus.Event, 10)
	l, err := c.Listen(func(e ubus.Event) { heard <- e }, "xdpl2.*")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	notified := make(chan *ubus.Request, 10)
	sub, err := c.Subscribe(Path, ubus.SubscribeOptions{Handler: func(_ context.Context, r *ubus.Request) error { notified <- r; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := sub.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := d.WaitSubscriber(within(t), Path, true); err != nil {
		t.Fatal(err)
	}
	// The object has been told of its subscriber when it answers what came after.
	if _, err := c.Call(within(t), Path, "status", nil); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{api.EventPort, api.EventStation, api.EventEngine, api.EventConfig} {
		want := api.Event{Time: time.Unix(1700000000, 5).UTC(), Kind: kind, Text: "eth1: what happened", Device: "eth1", VLAN: 7}
		s.Tell(want)
		e := <-heard
		if text, _ := e.Data.Text("text"); e.Name != "xdpl2."+kind || text != want.Text {
			t.Errorf("event %+v", e)
		}
		if at, _ := e.Data.Text("time"); at != "2023-11-14T22:13:20.000000005Z" {
			t.Errorf("time %q", at)
		}
		if _, ok := e.Data.Get("missed"); ok {
			t.Errorf("something is said to be missed: %v", e.Data)
		}
		if r := <-notified; r.Method != kind {
			t.Errorf("notification %q, want %q", r.Method, kind)
		}
	}
}

// TestEventsWithoutUbusdAreCounted: the first one after ubusd is back says how
// many nobody could hear.
func TestEventsWithoutUbusdAreCounted(t *testing.T) {
	s := apitest.New()
	d, _ := offer(t, s)
	d.Stop()
	for range 3 {
		s.Tell(api.Event{Kind: api.EventPort})
	}
	// Told one after another: when the queue is empty at most one is under way.
	s.WaitRead()
	if err := d.Start(); err != nil {
		t.Fatal(err)
	}
	if err := d.WaitObject(within(t), Path, true); err != nil {
		t.Fatal(err)
	}
	c, err := ubus.Dial(within(t), ubus.Options{Socket: d.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	heard := make(chan ubus.Event, 10)
	l, err := c.Listen(func(e ubus.Event) { heard <- e }, "xdpl2.port")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(within(t)); err != nil {
		t.Fatal(err)
	}
	s.Tell(api.Event{Kind: api.EventPort})
	e := <-heard
	if n, _ := e.Data.Int("missed"); n != 3 {
		t.Errorf("%d missed, want 3: %v", n, e.Data)
	}
}

func BenchmarkStations(b *testing.B) {
	_, c := offer(b, apitest.New())
	for b.Loop() {
		if _, err := c.Call(b.Context(), Path, "stations", nil); err != nil {
			b.Fatal(err)
		}
	}
}
