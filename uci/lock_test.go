// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// workerEnv makes the test program one of several writers, each in a process of
// its own.
const workerEnv = "XDPL2_UCI_WORKER"

func TestMain(m *testing.M) {
	if job := os.Getenv(workerEnv); job != "" {
		if err := work(strings.Split(job, "|")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// work does the job of a worker: directory, what to do, a name and a number.
func work(job []string) error {
	tree := NewTree(filepath.Join(job[0], "config"), filepath.Join(job[0], "save"))
	name := job[2]
	n, err := strconv.Atoi(job[3])
	if err != nil {
		return err
	}
	switch job[1] {
	case "stage":
		for i := range n {
			if err := stageOne(tree, name, i); err != nil {
				return err
			}
		}
	case "commit":
		// Until the other side closes our input.
		done := make(chan struct{})
		go func() {
			io.Copy(io.Discard, os.Stdin)
			close(done)
		}()
		for {
			if err := tree.CommitConfig("xdpl2"); err != nil {
				return err
			}
			select {
			case <-done:
				return nil
			default:
			}
		}
	case "crash":
		// Until we are killed; each line says that a commit is through.
		for i := 0; ; i++ {
			if err := errors.Join(tree.Set("xdpl2", "main", "value", strconv.Itoa(n+i)), tree.Commit()); err != nil {
				return err
			}
			fmt.Println(n + i)
		}
	}
	return nil
}

// stageOne stages an option of its own and an item of a list of all, and makes sure
// that they are seen, whoever commits meanwhile.
func stageOne(tree *Tree, name string, i int) error {
	value := fmt.Sprintf("%s_%d", name, i)
	if err := errors.Join(
		tree.Set("xdpl2", "main", name, value),
		tree.AddList("xdpl2", "main", "all", value),
		tree.LoadConfig("xdpl2", true),
	); err != nil {
		return err
	}
	if got, _ := tree.GetLast("xdpl2", "main", name); got != value {
		return fmt.Errorf("%s is %q after it was set to %q", name, got, value)
	}
	if all, _ := tree.Get("xdpl2", "main", "all"); !slices.Contains(all, value) {
		return fmt.Errorf("%q is not in the list: %q", value, all)
	}
	return nil
}

// start starts a worker. It stops when the test ends, if not before.
func start(t *testing.T, dir, what, name string, n int) (cmd *exec.Cmd, in io.Closer, out io.Reader) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%s|%d", workerEnv, dir, what, name, n))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, out
}

// checkAll commits, and makes sure that the list has every item of all writers
// once, and the options the last value.
func checkAll(t *testing.T, tree *Tree, writers []string, n int) {
	t.Helper()
	if err := tree.CommitConfig("xdpl2"); err != nil {
		t.Fatal(err)
	}
	all, _ := tree.Get("xdpl2", "main", "all")
	var want []string
	for _, w := range writers {
		for i := range n {
			want = append(want, fmt.Sprintf("%s_%d", w, i))
		}
		if v, _ := tree.GetLast("xdpl2", "main", w); v != want[len(want)-1] {
			t.Errorf("%s is %q, want %q", w, v, want[len(want)-1])
		}
	}
	slices.Sort(all)
	slices.Sort(want)
	if !slices.Equal(all, want) {
		t.Errorf("%d items are left of %d:\n%q", len(all), len(want), all)
	}
}

// TestConcurrentProcesses has several processes stage changes, while others commit
// them all the time.
func TestConcurrentProcesses(t *testing.T) {
	const n = 40
	tree := newTree(t, treeConfig, "")
	dir := filepath.Dir(tree.configDir)
	writers := []string{"a", "b", "c"}
	var staging []*exec.Cmd
	for _, w := range writers {
		cmd, _, _ := start(t, dir, "stage", w, n)
		staging = append(staging, cmd)
	}
	var stop []func()
	for range 2 {
		cmd, in, _ := start(t, dir, "commit", "", 0)
		stop = append(stop, func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
	for _, cmd := range staging {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	for _, f := range stop {
		f()
	}
	checkAll(t, tree, writers, n)
}

// TestConcurrentGoroutines does the same in one process, with one tree for all and
// with one for each.
func TestConcurrentGoroutines(t *testing.T) {
	for _, shared := range []bool{true, false} {
		t.Run(fmt.Sprintf("shared %v", shared), func(t *testing.T) {
			const n = 20
			tree := newTree(t, treeConfig, "")
			writers := []string{"a", "b", "c"}
			var wg sync.WaitGroup
			for _, w := range writers {
				mine := tree
				if !shared {
					mine = NewTree(tree.configDir, tree.saveDir)
				}
				wg.Go(func() {
					for i := range n {
						if err := stageOne(mine, w, i); err != nil {
							t.Error(err)
						}
						if i%5 == 0 {
							if err := mine.Commit(); err != nil {
								t.Error(err)
							}
						}
					}
				})
			}
			wg.Wait()
			checkAll(t, tree, writers, n)
		})
	}
}

// TestConcurrentWithUCI has the real program on one side.
func TestConcurrentWithUCI(t *testing.T) {
	program := realUCI(t)
	const n = 60
	loop := func(tree *Tree, done <-chan struct{}, args ...string) error {
		for {
			if o := runUCI(t, program, tree, args...); o.Exit != 0 {
				return errors.New(o.Stderr)
			}
			select {
			case <-done:
				return nil
			default:
			}
		}
	}
	t.Run("uci commits", func(t *testing.T) {
		tree := newTree(t, treeConfig, "")
		done := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := loop(tree, done, "commit", "xdpl2"); err != nil {
				t.Error(err)
			}
		})
		a, _, _ := start(t, filepath.Dir(tree.configDir), "stage", "a", n)
		b, _, _ := start(t, filepath.Dir(tree.configDir), "stage", "b", n)
		if err := errors.Join(a.Wait(), b.Wait()); err != nil {
			t.Error(err)
		}
		close(done)
		wg.Wait()
		checkAll(t, tree, []string{"a", "b"}, n)
	})
	t.Run("uci sets", func(t *testing.T) {
		tree := newTree(t, treeConfig, "")
		cmd, in, _ := start(t, filepath.Dir(tree.configDir), "commit", "", 0)
		writers := []string{"a", "b"}
		var wg sync.WaitGroup
		for _, w := range writers {
			wg.Go(func() {
				for i := range n {
					value := fmt.Sprintf("%s_%d", w, i)
					for _, args := range [][]string{{"set", "xdpl2.main." + w + "=" + value}, {"add_list", "xdpl2.main.all=" + value}} {
						if o := runUCI(t, program, tree, args...); o.Exit != 0 {
							t.Error(o.Stderr)
						}
					}
					if o := runUCI(t, program, tree, "get", "xdpl2.main."+w); o.Stdout != value+"\n" {
						t.Errorf("uci get after uci set %s: %q %q", value, o.Stdout, o.Stderr)
					}
				}
			})
		}
		wg.Wait()
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		checkAll(t, tree, writers, n)
	})
}

// TestCrash kills a process that commits all the time. What is left is a whole
// file, and everything that was committed before is in it.
func TestCrash(t *testing.T) {
	bulk := benchConfig(800)
	tree := newTree(t, "config xdpl2 'main'\n\toption value '0'\n\n"+bulk, "")
	path := filepath.Join(tree.configDir, "xdpl2")
	whole, err := Parse("xdpl2", path, []byte(read(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	for round := 1; round <= 8; round++ {
		cmd, _, out := start(t, filepath.Dir(tree.configDir), "crash", "", round*1000)
		last, lines := 0, bufio.NewScanner(out)
		for range round%3 + 1 {
			if lines.Scan() {
				last, _ = strconv.Atoi(lines.Text())
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			last, _ = strconv.Atoi(lines.Text())
		}
		cmd.Wait()

		p, err := Parse("xdpl2", path, []byte(read(t, path)))
		if err != nil {
			t.Fatal(err)
		}
		value, _ := strconv.Atoi(p.Section("main").Option("value").Last())
		if value != last && value != last+1 {
			t.Errorf("the file has %d, and %d was committed", value, last)
		}
		if len(p.Sections) != len(whole.Sections) || p.Sections[800].Name != whole.Sections[800].Name {
			t.Errorf("%d sections of %d", len(p.Sections), len(whole.Sections))
		}
		if err := tree.LoadConfig("xdpl2", true); err != nil {
			t.Error(err)
		}
	}
}

// flocked opens a file and locks it, as another program would.
func flocked(t *testing.T, path string, how int) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), how); err != nil {
		t.Fatal(err)
	}
	return f
}

// short makes a wait short for a test.
func short(t *testing.T, d *time.Duration, to time.Duration) {
	was := *d
	*d = to
	t.Cleanup(func() { *d = was })
}

func TestLocked(t *testing.T) {
	short(t, &lockTimeout, 20*time.Millisecond)
	for _, tc := range []struct {
		name              string
		staged            bool // the staged file is locked, not the other
		how               int
		load, set, commit error
	}{
		{"config read", false, unix.LOCK_SH, nil, nil, ErrLocked},
		{"config written", false, unix.LOCK_EX, ErrLocked, ErrLocked, ErrLocked},
		{"staged read", true, unix.LOCK_SH, nil, ErrLocked, ErrLocked},
		{"staged written", true, unix.LOCK_EX, ErrLocked, ErrLocked, ErrLocked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := newTree(t, treeConfig, "xdpl2.main.mode='x'\n")
			path := filepath.Join(tree.configDir, "xdpl2")
			if tc.staged {
				path = filepath.Join(tree.saveDir, "xdpl2")
			}
			f := flocked(t, path, tc.how)
			for name, r := range map[string]struct{ got, want error }{
				"load":   {tree.LoadConfig("xdpl2", true), tc.load},
				"set":    {tree.Set("xdpl2", "main", "other", "y"), tc.set},
				"commit": {tree.CommitConfig("xdpl2"), tc.commit},
			} {
				if !errors.Is(r.got, r.want) {
					t.Errorf("%s: %v, want %v", name, r.got, r.want)
				}
			}
			f.Close()
			if err := errors.Join(tree.Set("xdpl2", "main", "more", "z"), tree.CommitConfig("xdpl2")); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRenamePending stands where libuci is between emptying the staged file and
// renaming the new file: unlocked, with the changes in the temporary file alone.
func TestRenamePending(t *testing.T) {
	tree := newTree(t, treeConfig, "")
	path, tmp := filepath.Join(tree.configDir, "xdpl2"), filepath.Join(tree.configDir, ".xdpl2.uci-Ab3x9Z")
	write(t, tmp, strings.Replace(treeConfig, "'mac'", "'port'", 1))

	looking := make(chan error)
	go func() { looking <- tree.Set("xdpl2", "main", "other", "x") }()
	select {
	case err := <-looking:
		t.Fatalf("did not wait for the rename: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := os.Rename(tmp, path); err != nil {
		t.Fatal(err)
	}
	if err := <-looking; err != nil {
		t.Fatal(err)
	}
	if v, _ := tree.GetLast("xdpl2", "main", "mode"); v != "port" {
		t.Errorf("mode is %q: that is from before the commit", v)
	}

	// What a crash has left does not hold us up for ever, and not at all when it
	// is old.
	write(t, tmp, "")
	short(t, &renameTimeout, 20*time.Millisecond)
	if err := tree.LoadConfig("xdpl2", true); err != nil {
		t.Error(err)
	}
	short(t, &renameTimeout, time.Hour)
	old := time.Now().Add(-2 * renameStale)
	if err := os.Chtimes(tmp, old, old); err != nil {
		t.Fatal(err)
	}
	if err := tree.LoadConfig("xdpl2", true); err != nil {
		t.Error(err)
	}
}

// TestReplaced is a uci that has opened the file before a commit and is granted the
// lock after it: it must not see what was before.
func TestReplaced(t *testing.T) {
	for _, grow := range []bool{true, false} {
		tree := newTree(t, treeConfig, "")
		path := filepath.Join(tree.configDir, "xdpl2")
		waiting, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer waiting.Close()
		if grow {
			err = tree.Set("xdpl2", "main", "mode", strings.Repeat("x", 1000))
		} else {
			err = tree.DelSection("xdpl2", "main")
		}
		if err := errors.Join(err, tree.Commit()); err != nil {
			t.Fatal(err)
		}
		seen, err := io.ReadAll(waiting)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "seen", string(seen), read(t, path))
	}

	// What has another name is somebody's copy.
	tree := newTree(t, treeConfig, "")
	path := filepath.Join(tree.configDir, "xdpl2")
	if err := errors.Join(os.Link(path, path+"-copy"), tree.Set("xdpl2", "main", "mode", "x"), tree.Commit()); err != nil {
		t.Fatal(err)
	}
	equal(t, "copy", read(t, path+"-copy"), treeConfig)
}

// countOpen returns how often this process has a file open.
func countOpen(t *testing.T, path string) (n int) {
	t.Helper()
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		t.Fatal(err)
	}
	fds, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(fds) == 0 {
		t.Skipf("no /proc/self/fd: %v", err)
	}
	for _, fd := range fds {
		if target, err := os.Readlink(fd); err == nil && target == real {
			n++
		}
	}
	return n
}

// TestStagedRemoved has somebody delete the staged file while we wait for its lock.
func TestStagedRemoved(t *testing.T) {
	tree := newTree(t, treeConfig, "xdpl2.main.mode='x'\n")
	path := filepath.Join(tree.saveDir, "xdpl2")
	f := flocked(t, path, unix.LOCK_EX)
	done := make(chan error)
	go func() { done <- tree.Set("xdpl2", "main", "other", "y") }()
	for opened := 0; opened < 2; opened = countOpen(t, path) {
		runtime.Gosched()
	}
	if err := errors.Join(os.Remove(path), f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	equal(t, "staged", read(t, path), "xdpl2.main.other='y'\n")
}
