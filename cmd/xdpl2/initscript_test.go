// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/uci"
)

// initScript runs the init script under BusyBox's ash, which is what OpenWrt
// has, on a box's directories.
type initScript struct {
	b                 *box
	shell, prog, get  string // programs
	script, rc, calls string // files
}

func newInitScript(t *testing.T, b *box) *initScript {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("needs busybox (Debian: apt-get install busybox)")
	}
	script, err := filepath.Abs("../../files/etc/init.d/xdpl2")
	must(t, err)
	if _, err := os.Stat(script); err != nil {
		t.Skipf("needs the sources: %v", err)
	}
	rc, err := filepath.Abs("testdata/rc.common")
	must(t, err)
	i := &initScript{b: b, shell: busybox, script: script, rc: rc}
	i.calls = filepath.Join(b.dir, "procd.log")
	i.prog = i.wrap("xdpl2", asProgram, b.dirs())
	i.get = i.wrap("uci-get", asUCI, []string{filepath.Join(b.dir, "config"), filepath.Join(b.dir, "save")})
	return i
}

// wrap makes a program of this one that always gets some arguments.
func (i *initScript) wrap(name, variable string, args []string) string {
	exe, err := os.Executable()
	must(i.b.t, err)
	path := filepath.Join(i.b.dir, name)
	text := fmt.Sprintf("#!%s ash\nexec env %s=1 '%s' \"$@\" '%s'\n", i.shell, variable, exe, strings.Join(args, "' '"))
	must(i.b.t, os.WriteFile(path, []byte(text), 0o700))
	return path
}

// asUCI turns the test binary into a program that prints an option of package
// xdpl2: SECTION OPTION CONFIGDIR SAVEDIR.
const asUCI = "XDPL2_TEST_AS_UCI"

func uciGet(args []string) {
	value, _ := uci.NewTree(args[2], args[3]).GetLast("xdpl2", args[0], args[1])
	fmt.Println(value)
}

// run runs an action and returns what was told to procd, line by line.
func (i *initScript) run(action string, pid int) (told []string, stderr string, code int) {
	i.b.t.Helper()
	must(i.b.t, os.WriteFile(i.calls, nil, 0o600))
	cmd := exec.Command(i.shell, "ash", i.rc, i.script, action)
	cmd.Env = append(os.Environ(), "PROCD_LOG="+i.calls, "TEST_UCI="+i.get, "TEST_PROG="+i.prog,
		"TEST_SOCKET="+filepath.Join(i.b.dir, "run", "control.sock"))
	if pid != 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("TEST_PID=%d", pid))
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	must(i.b.t, i.b.lab.Router.Start(cmd))
	if err := cmd.Wait(); err != nil {
		if _, ok := errors.AsType[*exec.ExitError](err); !ok {
			i.b.t.Fatal(err)
		}
	}
	text, err := os.ReadFile(i.calls)
	must(i.b.t, err)
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' }), errs.String(), cmd.ProcessState.ExitCode()
}

// set stages a change, as uci set does, and commits nothing.
func (i *initScript) set(section, option, value string) {
	i.b.t.Helper()
	must(i.b.t, uci.NewTree(filepath.Join(i.b.dir, "config"), filepath.Join(i.b.dir, "save")).Set("xdpl2", section, option, value))
}

// instance is what procd is told of a daemon that shall run.
func (i *initScript) instance() string {
	return strings.Join([]string{"open", "command " + i.prog + " daemon", "env GOMEMLIMIT=12MiB", "respawn", "stdout 1", "stderr 1", "close", "trigger xdpl2 network", "set"}, "\n")
}

const noInstance = "trigger xdpl2 network\nset"

func TestInitScriptStarts(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), "")
	i := newInitScript(t, b)
	for name, tt := range map[string]struct {
		config string
		told   string
		code   int
		says   string
	}{
		"on":           {confOf("tc"), i.instance(), 0, ""},
		"off":          {strings.Replace(confOf("tc"), "enabled '1'", "enabled '0'", 1), noInstance, 0, ""},
		"not said":     {"config xdpl2 'main'\n", noInstance, 0, ""},
		"empty":        {"", noInstance, 0, ""},
		"absent ports": {strings.ReplaceAll(confOf("tc"), "'eth", "'wan"), i.instance(), 0, ""},
		"a warning":    {confOf("tc", "option colour 'red'"), i.instance(), 0, ""},
		"a mistake":    {confOf("tc", "option mode 'wire'"), noInstance, 1, "option mode 'wire'"},
		"no UCI":       {"config xdpl2 'main\n\toption enabled '1'\n", noInstance, 1, "unterminated"},
	} {
		t.Run(name, func(t *testing.T) {
			b.configure(tt.config)
			told, stderr, code := i.run("start", 0)
			if strings.Join(told, "\n") != tt.told || code != tt.code || !strings.Contains(stderr, tt.says) || tt.says == "" && stderr != "" {
				t.Errorf("exit code %d, procd was told\n%s\nwant %d and\n%s\nstderr: %s", code, strings.Join(told, "\n"), tt.code, tt.told, stderr)
			}
		})
	}
}

// TestInitScriptReloads: a staged change is in force after a reload, and no
// frame is lost.
func TestInitScriptReloads(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), `config xdpl2 'main'
	option enabled '1'
	option mode 'port'
config port 'one'
	option device 'eth1'
	option target 'eth2'
config port 'two'
	option device 'eth2'
	option target 'eth1'
`)
	i := newInitScript(t, b)
	b.start()
	h1, h2 := b.lab.Hosts[0], b.lab.Hosts[1]
	b.ping(h1.NS, h2)
	ctx := testContext(t)
	stream, err := b.lab.StartStream(ctx, h1, h2, lab.StreamOptions{})
	must(t, err)
	must(t, stream.WaitReceived(ctx, scaled(5000)))

	i.set("main", "mode", "mac")
	told, stderr, code := i.run("reload", 0)
	if code != 0 || strings.Join(told, "\n") != i.instance() || stderr != "" {
		t.Errorf("exit code %d, procd was told %q, stderr %s", code, told, stderr)
	}
	if mode := b.status().Mode; mode != "mac" {
		t.Errorf("mode %s after the reload", mode)
	}
	must(t, stream.WaitReceived(ctx, stream.Progress().Received+scaled(5000)))
	stream.Stop()
	stats, err := stream.Wait()
	must(t, err)
	if stats.Lost() > 0 || stats.Duplicated > 0 || stats.Elsewhere > 0 || stats.Corrupt > 0 {
		t.Errorf("%+v", stats)
	}

	// A mistake is told, and the daemon goes on as before.
	i.set("main", "mode", "wire")
	told, stderr, code = i.run("reload", 0)
	if code == 0 || len(told) > 0 {
		t.Errorf("a mistake: exit code %d, procd was told %q", code, told)
	}
	contains(t, stderr, "option mode 'wire': not valid; expected one of mac, port")
	if s := b.status(); s.Mode != "mac" || len(s.ConfigErrors) != 1 {
		t.Errorf("after a mistake: %+v", s)
	}
	// start does not end a daemon that runs, either.
	told, stderr, code = i.run("start", 0)
	if code == 0 || strings.Join(told, "\n") != i.instance() {
		t.Errorf("start with a mistake: exit code %d, procd was told %q", code, told)
	}
	contains(t, stderr, "option mode 'wire'")
	// Not even if the file cannot be read at all.
	good, err := os.ReadFile(filepath.Join(b.dir, "config", "xdpl2"))
	must(t, err)
	b.configure("config xdpl2 'main\n")
	if told, _, code = i.run("start", 0); code == 0 || strings.Join(told, "\n") != i.instance() {
		t.Errorf("start with a broken file: exit code %d, procd was told %q", code, told)
	}
	b.configure(string(good))

	// Switched off: the daemon lets go of its ports, and procd ends it.
	i.set("main", "mode", "mac")
	i.set("main", "enabled", "0")
	told, stderr, code = i.run("reload", 0)
	if code != 0 || strings.Join(told, "\n") != noInstance || stderr != "" {
		t.Errorf("off: exit code %d, procd was told %q, stderr %s", code, told, stderr)
	}
	if s := b.status(); s.Enabled {
		t.Errorf("off: %+v", s)
	}
}

// TestInitScriptStops: when stop returns the daemon has ended, and what a
// killed one left is gone.
func TestInitScriptStops(t *testing.T) {
	b := newBox(t, lab.ForTest(t, lab.Options{NoIPv6: true}), confOf("tc"))
	i := newInitScript(t, b)
	before := traces(t, b.lab)
	b.start("--no-tcx")
	told, stderr, code := i.run("stop", b.cmd.Process.Pid)
	if code != 0 || strings.Join(told, "\n") != "kill" || stderr != "" {
		t.Errorf("exit code %d, procd was told %q, stderr %s", code, told, stderr)
	}
	if after := traces(t, b.lab); after != before {
		t.Errorf("before:\n%safter:\n%s", before, after)
	}
	if code := b.end(0); code != exitFine {
		t.Errorf("the daemon's exit code: %d", code)
	}

	b.start("--no-tcx")
	b.end(unix.SIGKILL)
	if traces(t, b.lab) == before {
		t.Fatal("a killed daemon left nothing; this test shows nothing")
	}
	// A socket is left, too.
	told, _, code = i.run("reload", 0)
	if code != 0 || strings.Join(told, "\n") != i.instance() {
		t.Errorf("reload after a crash: exit code %d, procd was told %q", code, told)
	}
	if _, stderr, code := i.run("stop", 0); code != 0 {
		t.Errorf("stop after a crash: exit code %d, stderr %s", code, stderr)
	}
	if after := traces(t, b.lab); after != before {
		t.Errorf("after a crash and stop: before:\n%safter:\n%s", before, after)
	}
	// Switched off while it was not running.
	b.start("--no-tcx")
	b.end(unix.SIGKILL)
	i.set("main", "enabled", "0")
	if _, stderr, code := i.run("start", 0); code != 0 || stderr != "" {
		t.Errorf("start when off: exit code %d, stderr %s", code, stderr)
	}
	if after := traces(t, b.lab); after != before {
		t.Errorf("after a crash and a start that is off: before:\n%safter:\n%s", before, after)
	}
}
