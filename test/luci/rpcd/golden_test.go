// SPDX-License-Identifier: Apache-2.0

package rpcd

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/xdpl2/xdpl2/internal/ubus"
	"github.com/xdpl2/xdpl2/internal/ubus/blobmsg"
	"github.com/xdpl2/xdpl2/internal/ubus/ubustest"
)

// The recordings in testdata are of the real uhttpd and rpcd: requests and what
// came back. Replayed are those parts that pages use; a recording is left where
// a step needs more (until), and single steps are left out where they ask for
// what is not there (without).
var recordings = []struct {
	name, until string
	without     []string
}{
	{name: "jsonrpc-forms"},
	{name: "object-status"},
	{name: "uci-get", without: []string{`"state"`, `"configs"`}},
	{name: "uci-set", until: `"type": "port"`},
	{name: "apply-confirm"},
	{name: "apply-odd"},
	{name: "apply-timeout"},
	{name: "uci-broken-file", without: []string{`"changes"`}},
}

type step struct {
	Scenario string          `json:"scenario"`
	Config   string          `json:"config"`
	Request  json.RawMessage `json:"request"`
	Raw      *string         `json:"request_raw"`
	Method   string          `json:"method"`
	Status   int             `json:"http_status"`
	Response json.RawMessage `json:"response"`
	File     string          `json:"file"`
	Content  *string         `json:"content"`
	Note     string          `json:"note"`
	Wait     float64         `json:"wait_seconds"`
}

// The accounts and access groups of the recordings, as far as they count here.
var recordedGroups = `{
	"unauthenticated": {"read": {"ubus": {"luci": ["getFeatures"]}}},
	"luci-base": {"read": {"ubus": {"file": ["list"], "uci": ["changes", "get"]}, "uci": ["system", "luci"]},
		"write": {"ubus": {"uci": ["add", "apply", "confirm", "delete", "order", "rename", "set"]}}},
	"luci-app-xdpl2": {"read": {"ubus": {"xdpl2": ["status", "echo"]}, "uci": ["xdpl2"]},
		"write": {"ubus": {"xdpl2": ["ret", "multi"]}, "uci": ["xdpl2"]}},
	"xdpl2-test": {"read": {"ubus": {"xdpl2": ["*"], "session": ["access"], "uci": ["get", "changes"]}, "uci": ["*"]},
		"write": {"ubus": {"uci": ["*"]}, "uci": ["*"]}}
}`

// testObject is the object that the recordings were made with.
func testObject(t *testing.T, bus *ubustest.Daemon) {
	c, err := ubus.Dial(t.Context(), ubus.Options{Socket: bus.Socket()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	number := func(r *ubus.Request, name string) int {
		n, _ := r.Args.Get(name)
		v, _ := n.(int32)
		return int(v)
	}
	status := func(code int) error {
		if code == 0 {
			return nil
		}
		return ubus.Status(code)
	}
	method := func(name string, f func(r *ubus.Request) error) ubus.Method {
		return ubus.Method{Name: name, AnyArgs: true, Handler: func(_ context.Context, r *ubus.Request) error { return f(r) }}
	}
	r, err := c.Register(ubus.Object{Path: "xdpl2", Methods: []ubus.Method{
		method("ret", func(r *ubus.Request) error { return status(number(r, "code")) }),
		method("retdata", func(r *ubus.Request) error {
			if err := r.Reply(blobmsg.Table{{Name: "why", Value: "partial"}}); err != nil {
				return err
			}
			return status(number(r, "code"))
		}),
		method("emptyreply", func(r *ubus.Request) error { return r.Reply(blobmsg.Table{}) }),
		method("multi", func(r *ubus.Request) error {
			for i := range number(r, "n") {
				if err := r.Reply(blobmsg.Table{{Name: "i", Value: int32(i)}}); err != nil {
					return err
				}
			}
			return status(number(r, "code"))
		}),
		method("defer", func(r *ubus.Request) error {
			tag, _ := r.Args.Get("json")
			return r.Reply(blobmsg.Table{{Name: "tag", Value: tag}})
		}),
		method("echo", func(r *ubus.Request) error { return r.Reply(r.Args) }),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

type replay struct {
	*testing.T
	web  *httptest.Server
	dir  string
	sids map[string]string // by user
}

func TestRecordings(t *testing.T) {
	for _, rec := range recordings {
		t.Run(rec.name, func(t *testing.T) {
			file, err := os.Open(filepath.Join("testdata", rec.name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			bus := ubustest.Start(t, ubustest.Options{})
			testObject(t, bus)
			client, err := ubus.Dial(t.Context(), ubus.Options{Socket: bus.Socket()})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			r := &replay{T: t, dir: t.TempDir(), sids: map[string]string{}}
			groups := map[string]*Group{}
			if err := json.Unmarshal([]byte(recordedGroups), &groups); err != nil {
				t.Fatal(err)
			}
			base, all := []string{"luci-base", "luci-app-xdpl2"}, []string{"luci-base", "luci-app-xdpl2", "xdpl2-test"}
			r.web = httptest.NewServer(New(client, Options{
				ConfigDir: filepath.Join(r.dir, "etc/config"), RunDir: filepath.Join(r.dir, "var/run/rpcd"), Groups: groups,
				Accounts: map[string]Account{
					"operator": {Password: "secret1", Read: base, Write: base}, "viewer": {Password: "secret2", Read: base},
					"other":  {Password: "secret3", Read: []string{"unauthenticated"}},
					"tester": {Password: "secret4", Read: all, Write: all}, "root": {Password: "secret0", Read: base, Write: base},
				},
			}))
			defer r.web.Close()
			lines := bufio.NewScanner(file)
			lines.Buffer(nil, 1<<20)
			replayed := 0
		steps:
			for lines.Scan() {
				line := lines.Text()
				var s step
				if err := json.Unmarshal([]byte(line), &s); err != nil {
					t.Fatal(err)
				}
				if rec.until != "" && strings.Contains(string(s.Request), rec.until) {
					break
				}
				for _, w := range rec.without {
					if strings.Contains(string(s.Request), w) {
						continue steps
					}
				}
				r.step(&s)
				replayed++
			}
			if replayed < 5 {
				t.Errorf("only %d steps were replayed", replayed)
			}
		})
	}
}

// path is where a file of the recording is here.
func (r *replay) path(name string) string {
	return filepath.Join(r.dir, r.masked(name))
}

var mask = regexp.MustCompile(`<SID:(\w+)>`)

// masked puts the sessions of this run in place of the recorded ones.
func (r *replay) masked(s string) string {
	return mask.ReplaceAllStringFunc(s, func(m string) string { return r.sids[mask.FindStringSubmatch(m)[1]] })
}

func (r *replay) step(s *step) {
	switch {
	case s.Scenario != "":
		for _, sub := range []string{"etc/config", "var/run/rpcd"} {
			if err := os.MkdirAll(filepath.Join(r.dir, sub), 0o700); err != nil {
				r.Fatal(err)
			}
		}
		if err := os.WriteFile(r.path("etc/config/xdpl2"), []byte(s.Config), 0o600); err != nil {
			r.Fatal(err)
		}
	case s.File != "":
		r.compareFile(s)
	case s.Wait > 0:
		// What is waited for is that the file is as before.
		r.waitRollback(time.Duration(10*s.Wait) * time.Second)
	case s.Note == "the file is removed":
		if err := os.Remove(r.path("etc/config/xdpl2")); err != nil {
			r.Fatal(err)
		}
	case s.Status != 0:
		r.request(s)
	}
}

// waitRollback waits for what was staged to be staged again.
func (r *replay) waitRollback(most time.Duration) {
	for deadline := time.Now().Add(most); ; time.Sleep(10 * time.Millisecond) {
		if staged, err := filepath.Glob(filepath.Join(r.dir, "var/run/rpcd/*/xdpl2")); err == nil && len(staged) > 0 {
			return
		}
		if time.Now().After(deadline) {
			r.Fatal("no rollback")
		}
	}
}

func (r *replay) compareFile(s *step) {
	got, err := os.ReadFile(r.path(s.File))
	if s.Content == nil || *s.Content == "" {
		if err == nil && len(got) > 0 {
			r.Errorf("%s (%s) is %q, want none", s.File, s.Note, got)
		}
		return
	}
	if string(got) != *s.Content {
		r.Errorf("%s (%s) is\n%s(%v)\nwant\n%s", s.File, s.Note, got, err, *s.Content)
	}
}

func (r *replay) request(s *step) {
	body := r.masked(string(s.Request))
	if s.Raw != nil {
		body = r.masked(*s.Raw)
	}
	method := s.Method
	if method == "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(r.Context(), method, r.web.URL+"/ubus/", strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	res, err := r.web.Client().Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != s.Status {
		r.Errorf("%s: HTTP status %d, want %d", body, res.StatusCode, s.Status)
	}
	if len(s.Response) == 0 {
		return
	}
	var got, want any
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		r.Fatalf("%s: %v", body, err)
	}
	if err := json.Unmarshal([]byte(r.masked(string(s.Response))), &want); err != nil {
		r.Fatal(err)
	}
	if strings.Contains(body, `"login"`) {
		r.login(got, s)
		return
	}
	if !reflect.DeepEqual(got, want) {
		g, _ := json.Marshal(got)
		w, _ := json.Marshal(want)
		r.Errorf("%s (%s)\ngot  %s\nwant %s", body, s.Note, g, w)
	}
}

// login keeps the session; its rights are too many to be compared here.
func (r *replay) login(got any, s *step) {
	answer, _ := got.(map[string]any)
	result, _ := answer["result"].([]any)
	if len(result) != 2 {
		r.Fatalf("login answers %v", got)
	}
	data, _ := result[1].(map[string]any)
	sid, _ := data["ubus_rpc_session"].(string)
	user := mask.FindSubmatch(s.Response)
	if len(sid) != 32 || user == nil {
		r.Fatalf("login answers %v", got)
	}
	r.sids[string(user[1])] = sid
}
