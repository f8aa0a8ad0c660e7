// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/internal/lab"
)

// patience bounds every wait; it is never waited out in a test that passes.
const patience = 2 * time.Minute

// A router is the lab's router with a root file system of its own: busybox, a
// stand-in for OpenWrt's scripts, and a package manager.
type router struct {
	t    *testing.T
	lab  *lab.Lab
	root string
	opkg *opkg
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// architectures of packages that run here.
var architectures = map[string]string{"arm64": "aarch64_generic", "amd64": "x86_64"}

// packageFiles returns the package of the daemon that was made for this machine,
// and the next release of it if that was made, too.
func packageFiles(t *testing.T) (first, next []byte) {
	t.Helper()
	dir := os.Getenv("XDPL2_PACKAGES")
	if dir == "" {
		t.Skip("no packages: make packages makes them, and XDPL2_PACKAGES says where they are (as make test-packages does)")
	}
	files, err := filepath.Glob(filepath.Join(dir, "xdpl2_*_"+architectures[runtime.GOARCH]+".ipk"))
	must(t, err)
	if len(files) == 0 || len(files) > 2 {
		t.Fatalf("expected one or two packages of the daemon for %s in %s, got %v", architectures[runtime.GOARCH], dir, files)
	}
	for i, to := range []*[]byte{&first, &next}[:len(files)] {
		*to, err = os.ReadFile(files[i])
		must(t, err)
	}
	return first, next
}

func newRouter(t *testing.T) *router {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		t.Skip("no busybox here (Debian's package busybox-static)")
	}
	l := lab.ForTest(t, lab.Options{})
	r := &router{t: t, lab: l, root: filepath.Join(t.TempDir(), "root")}
	r.opkg = &opkg{root: r.root, sums: map[string][32]byte{}, run: func(script string, env []string, args ...string) error {
		out, err := r.exec(env, append([]string{script}, args...)...)
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}}
	must(t, os.CopyFS(r.root, os.DirFS("testdata/root")))
	must(t, os.Chmod(filepath.Join(r.root, "etc", "rc.common"), 0o755))
	for _, dir := range []string{"bin", "dev", "proc", "sys", "tmp", "var/run", "var/log", "etc/config", "usr/sbin", "usr/lib/opkg/info", "etc/init.d"} {
		must(t, os.MkdirAll(filepath.Join(r.root, dir), 0o755))
	}
	r.copyProgram(busybox, "/bin/busybox")
	must(t, unix.Mknod(filepath.Join(r.root, "dev", "null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
	for _, name := range []string{"sh", "awk", "basename", "cat", "env", "grep", "kill", "ln", "logger", "mkdir", "mount", "rm", "sed", "sleep", "tail", "touch", "uname"} {
		must(t, os.Symlink("busybox", filepath.Join(r.root, "bin", name)))
	}
	t.Cleanup(func() {
		if pid := r.daemon(); pid != 0 {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(r.root, "var", "log", "xdpl2.log"))
			t.Logf("the daemon's log:\n%s", log)
		}
	})
	return r
}

// copyProgram copies a program into the root, with the libraries that it needs
// if it is not static.
func (r *router) copyProgram(from, to string) {
	r.t.Helper()
	copies := map[string]string{from: to}
	if ldd, err := exec.LookPath("ldd"); err == nil {
		out, _ := exec.Command(ldd, from).Output() // fails for a static program
		for _, word := range strings.Fields(string(out)) {
			if filepath.IsAbs(word) {
				copies[word] = word
			}
		}
	}
	for from, to := range copies {
		data, err := os.ReadFile(from)
		must(r.t, err)
		to = filepath.Join(r.root, to)
		must(r.t, os.MkdirAll(filepath.Dir(to), 0o755))
		must(r.t, os.WriteFile(to, data, 0o755))
	}
}

// exec runs a program in the router: its root, its network, and mounts of its own.
func (r *router) exec(env []string, args ...string) (string, error) {
	const mounted = `mount -t proc proc /proc && mount -t sysfs sysfs /sys && exec "$@"`
	cmd := exec.Command("/bin/sh", append([]string{"-c", mounted, "sh"}, args...)...)
	cmd.Path = "/bin/sh" // inside
	cmd.Err = nil
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=/usr/sbin:/bin"}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: r.root, Unshareflags: syscall.CLONE_NEWNS}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := r.lab.Router.Start(cmd); err != nil {
		return "", err
	}
	err := cmd.Wait()
	return out.String(), err
}

// do runs a program that must succeed.
func (r *router) do(args ...string) string {
	r.t.Helper()
	out, err := r.exec(nil, args...)
	if err != nil {
		r.t.Fatalf("%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return out
}

// daemon is the process that the init script runs, 0 if there is none.
func (r *router) daemon() int {
	text, err := os.ReadFile(filepath.Join(r.root, "var", "run", "procd", "xdpl2.pid"))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	must(r.t, err)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil || strings.Contains(string(status), "\nState:\tZ") {
		return 0
	}
	return pid
}

// status is what the test needs of `xdpl2 status --json`.
type status struct {
	Ports []struct {
		Device     string `json:"device"`
		State      string `json:"state"`
		Redirected struct {
			Packets uint64 `json:"packets"`
		} `json:"redirected"`
	} `json:"ports"`
}

// waitAccelerated waits until every port is accelerated, and returns how many
// frames have been redirected. The daemon is asked until it says so: what the
// init script starts need not be ready when the script ends.
func (r *router) waitAccelerated(ports int) uint64 {
	r.t.Helper()
	var last string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		out, err := r.exec(nil, "/usr/sbin/xdpl2", "status", "--json")
		last = out
		if err != nil {
			continue
		}
		var s status
		must(r.t, json.Unmarshal([]byte(out), &s))
		accelerated, frames := 0, uint64(0)
		for _, p := range s.Ports {
			if p.State == "accelerating" {
				accelerated++
			}
			frames += p.Redirected.Packets
		}
		if accelerated == ports {
			return frames
		}
	}
	r.t.Fatalf("waited in vain for %d accelerated ports; the last answer: %s", ports, last)
	return 0
}

// carries sends traffic until the fast path has carried some of it.
func (r *router) carries(ports int) {
	r.t.Helper()
	before := r.waitAccelerated(ports)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		r.ping(20)
		if r.waitAccelerated(ports) >= before+20 {
			return
		}
	}
	r.t.Fatal("nothing is redirected")
}

// ping pings from the first host to the second one and returns what was lost.
func (r *router) ping(count int) (lost int) {
	r.t.Helper()
	stats, err := r.lab.Hosts[0].NS.Ping(r.t.Context(), r.lab.Hosts[1].IP4, lab.PingOptions{Count: count, Interval: 5 * time.Millisecond, Timeout: patience})
	must(r.t, err)
	return stats.Lost()
}

// whilePinging carries something out while traffic goes on, and returns how many
// frames were lost, and sent.
func (r *router) whilePinging(f func() error) (lost, sent int) {
	r.t.Helper()
	done := make(chan error, 1)
	r.ping(5) // the neighbours are known by then
	go func() { done <- f() }()
	for {
		const batch = 10
		lost += r.ping(batch)
		sent += batch
		select {
		case err := <-done:
			must(r.t, err)
			return lost + r.ping(batch), sent + batch
		default:
		}
	}
}

// files lists everything in the root but for what is gone after a reboot.
func (r *router) files() map[string]string {
	r.t.Helper()
	all := map[string]string{}
	must(r.t, filepath.WalkDir(r.root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := strings.TrimPrefix(name, r.root)
		switch rel {
		case "/var/run", "/var/log", "/proc", "/sys", "/dev", "/tmp":
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[rel] = info.Mode().String()
		return nil
	}))
	return all
}

// devices is everything about the router's devices that xdpl2 could change.
func (r *router) devices() string {
	r.t.Helper()
	var out strings.Builder
	h, err := r.lab.Router.Handle()
	must(r.t, err)
	links, err := h.LinkList()
	must(r.t, err)
	for _, link := range links {
		a := link.Attrs()
		qdiscs, err := h.QdiscList(link)
		must(r.t, err)
		var kinds []string
		for _, q := range qdiscs {
			kinds = append(kinds, q.Type())
		}
		fmt.Fprintf(&out, "%s promisc %d mtu %d master %d qdiscs %v xdp %v\n", a.Name, a.Promisc, a.MTU, a.MasterIndex, kinds, a.Xdp != nil && a.Xdp.Attached)
	}
	return out.String()
}
