// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func owner(st os.FileInfo) (uid, gid int) {
	sys := st.Sys().(*syscall.Stat_t)
	return int(sys.Uid), int(sys.Gid)
}

// refused makes sure that neither reading nor staging nor committing works, and
// that the error says why and names the path.
func refused(t *testing.T, tree *Tree, path string, want error, text string) {
	t.Helper()
	for name, do := range map[string]func() error{
		"load":   func() error { return tree.LoadConfig("xdpl2", true) },
		"set":    func() error { return tree.Set("xdpl2", "main", "mode", "x") },
		"commit": func() error { return tree.CommitConfig("xdpl2") },
	} {
		err := do()
		if !errors.Is(err, want) || !strings.Contains(err.Error(), text) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v\nwant %v, with %q and %q", name, err, want, text, path)
		}
	}
}

// odd makes the kinds of things that are no regular file.
var odd = []struct {
	kind string
	make func(path string) error
}{
	{"a named pipe", func(path string) error { return unix.Mkfifo(path, 0o600) }},
	{"a directory", func(path string) error { return os.Mkdir(path, 0o700) }},
	{"a device", func(path string) error { return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))) }},
	{"a socket", func(path string) error {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err == nil {
			l.SetUnlinkOnClose(false)
			err = l.Close()
		}
		return err
	}},
}

func makeOdd(t *testing.T, path string, make func(string) error) {
	t.Helper()
	// A socket's path must be short; make it where we are.
	t.Chdir(filepath.Dir(path))
	if err := make(filepath.Base(path)); errors.Is(err, unix.EPERM) {
		t.Skipf("not allowed: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
}

func TestOddConfigFile(t *testing.T) {
	for _, tc := range odd {
		t.Run(tc.kind, func(t *testing.T) {
			tree := newTree(t, treeConfig, "xdpl2.main.mode='x'\n")
			path := filepath.Join(tree.configDir, "xdpl2")
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			makeOdd(t, path, tc.make)
			refused(t, tree, path, ErrUnsafe, tc.kind)
		})
	}
	t.Run("link to a device", func(t *testing.T) {
		tree := newTree(t, treeConfig, "")
		path := filepath.Join(tree.configDir, "xdpl2")
		if err := errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)); err != nil {
			t.Fatal(err)
		}
		refused(t, tree, path, ErrUnsafe, "a device")
	})
}

func TestOddStagedFile(t *testing.T) {
	for _, tc := range odd {
		t.Run(tc.kind, func(t *testing.T) {
			tree := newTree(t, treeConfig, "")
			path := filepath.Join(tree.saveDir, "xdpl2")
			if err := os.Mkdir(tree.saveDir, 0o700); err != nil {
				t.Fatal(err)
			}
			makeOdd(t, path, tc.make)
			refused(t, tree, path, ErrUnsafe, tc.kind)
		})
	}
	for name, target := range map[string]string{"link to a file": "target", "link to nothing": "nosuch"} {
		t.Run(name, func(t *testing.T) {
			tree := newTree(t, treeConfig, "")
			path, dir := filepath.Join(tree.saveDir, "xdpl2"), t.TempDir()
			write(t, filepath.Join(dir, "target"), "xdpl2.main.mode='evil'\n")
			if err := errors.Join(os.Mkdir(tree.saveDir, 0o700), os.Symlink(filepath.Join(dir, target), path)); err != nil {
				t.Fatal(err)
			}
			refused(t, tree, path, ErrUnsafe, "a symbolic link")
			equal(t, "target", read(t, filepath.Join(dir, "target")), "xdpl2.main.mode='evil'\n")
			if _, err := os.Stat(filepath.Join(dir, "nosuch")); err == nil {
				t.Error("a file was made through the link")
			}
		})
	}
	t.Run("of somebody else", func(t *testing.T) {
		tree := newTree(t, treeConfig, "xdpl2.main.mode='evil'\n")
		path := filepath.Join(tree.saveDir, "xdpl2")
		if err := os.Chown(path, 1234, 0); err != nil {
			t.Skipf("only root can give files away: %v", err)
		}
		refused(t, tree, path, ErrUnsafe, "belongs to user 1234")
	})
}

func TestOddSaveDir(t *testing.T) {
	t.Run("link", func(t *testing.T) {
		tree := newTree(t, treeConfig, "")
		real := t.TempDir()
		write(t, filepath.Join(real, "xdpl2"), "xdpl2.main.mode='evil'\n")
		if err := os.Symlink(real, tree.saveDir); err != nil {
			t.Fatal(err)
		}
		refused(t, tree, tree.saveDir, ErrUnsafe, "a symbolic link")
		refused(t, NewTree(tree.configDir, tree.saveDir+"/"), tree.saveDir, ErrUnsafe, "a symbolic link")
	})
	t.Run("file", func(t *testing.T) {
		tree := newTree(t, treeConfig, "")
		write(t, tree.saveDir, "")
		refused(t, tree, tree.saveDir, ErrUnsafe, "it is a file")
	})
	t.Run("open to all", func(t *testing.T) {
		tree := newTree(t, treeConfig, "xdpl2.main.mode='evil'\n")
		for _, mode := range []os.FileMode{0o777, 0o702, 0o777 | os.ModeSticky} {
			if err := os.Chmod(tree.saveDir, mode); err != nil {
				t.Fatal(err)
			}
			refused(t, tree, tree.saveDir, ErrUnsafe, "everybody can write to it")
		}
	})
	t.Run("of somebody else", func(t *testing.T) {
		tree := newTree(t, treeConfig, "xdpl2.main.mode='evil'\n")
		if err := os.Chown(tree.saveDir, 1234, 0); err != nil {
			t.Skipf("only root can give files away: %v", err)
		}
		refused(t, tree, tree.saveDir, ErrUnsafe, "belongs to user 1234")
	})
	t.Run("link in the way there", func(t *testing.T) {
		// On OpenWrt /var is a link to /tmp.
		tree := newTree(t, treeConfig, "xdpl2.main.mode='x'\n")
		link := filepath.Join(t.TempDir(), "var")
		if err := os.Symlink(filepath.Dir(tree.saveDir), link); err != nil {
			t.Fatal(err)
		}
		tree = NewTree(tree.configDir, filepath.Join(link, "save"))
		if v, _ := tree.GetLast("xdpl2", "main", "mode"); v != "x" {
			t.Errorf("mode is %q", v)
		}
	})
}

func TestDistrust(t *testing.T) {
	for _, tc := range []struct {
		uid, gid, mode uint32
		euid, egid     int
		trusted        bool
	}{
		{0, 0, 0o700, 0, 0, true},
		{0, 0, 0o755, 0, 0, true},
		{0, 0, 0o775, 0, 0, true},
		{0, 0, 0o700, 1000, 1000, true},
		{1000, 1000, 0o775, 1000, 1000, true},
		{1000, 0, 0o700, 0, 0, false},
		{1000, 1000, 0o700, 1001, 1000, false},
		{0, 0, 0o777, 0, 0, false},
		{0, 0, 0o1777, 0, 0, false},
		{0, 0, 0o702, 0, 0, false},
		{0, 100, 0o770, 0, 0, false},
		{0, 100, 0o750, 0, 0, true},
		{1000, 100, 0o770, 1000, 1000, false},
	} {
		if why := distrust(tc.uid, tc.gid, tc.mode, tc.euid, tc.egid); (why == "") != tc.trusted {
			t.Errorf("%+v: %q", tc, why)
		}
	}
}

// TestHuge makes files that are only large, and would take long to read.
func TestHuge(t *testing.T) {
	for _, where := range []string{"config", "staged"} {
		t.Run(where, func(t *testing.T) {
			tree := newTree(t, treeConfig, "xdpl2.main.mode='x'\n")
			path := filepath.Join(tree.configDir, "xdpl2")
			if where == "staged" {
				path = filepath.Join(tree.saveDir, "xdpl2")
			}
			if err := os.Truncate(path, 1<<40); err != nil {
				if err = os.Truncate(path, 100<<20); err != nil {
					t.Fatal(err)
				}
			}
			refused(t, tree, path, ErrTooLarge, "at most 4194304 are read")
		})
	}
	t.Run("just fits", func(t *testing.T) {
		text := "config xdpl2 main\n#"
		tree := newTree(t, text+strings.Repeat("x", MaxFileSize-len(text)), "")
		if err := tree.LoadConfig("xdpl2", true); err != nil {
			t.Error(err)
		}
	})
	t.Run("staged gets too large", func(t *testing.T) {
		staged := strings.Repeat("#", MaxFileSize-20) + "\n"
		tree := newTree(t, treeConfig, staged)
		if err := tree.Set("xdpl2", "main", "mode", "longer"); !errors.Is(err, ErrTooLarge) {
			t.Errorf("error %v", err)
		}
		if got := read(t, filepath.Join(tree.saveDir, "xdpl2")); got != staged {
			t.Errorf("%d bytes are staged, want %d", len(got), len(staged))
		}
	})
}

// TestSlow parses files that are made to take long. What grows with the square of
// the size would take minutes here.
func TestSlow(t *testing.T) {
	fill := func(unit string) string { return strings.Repeat(unit, MaxFileSize/8/len(unit)) }
	for name, text := range map[string]string{
		"line ends in a quote":     "config a b\noption x '" + fill("\n"),
		"line ends in two quotes":  "config a b\noption x \"" + fill("\n"),
		"lines that are continued": "config a b\noption x y" + fill("\\\n"),
		"backslashes":              fill("\\"),
		"quotes":                   "config a b\noption x " + fill("'"),
		"semicolons":               "config a b\n" + fill("o x '1';"),
		"nul bytes":                fill("\x00"),
		"nul bytes in a quote":     "config a b\noption x '" + fill("y\x00"),
		"one line":                 fill("x"),
		"sections":                 fill("c a\n"),
		"sections of one name":     fill("c a b\n"),
		"lists":                    "config a b\n" + fill("l x y\n"),
	} {
		t.Run(name, func(t *testing.T) {
			ParseLenient("x", "file", []byte(text))
			p, err := Parse("x", "base", []byte(fuzzConfig))
			if err != nil {
				t.Fatal(err)
			}
			p.applyStaged("staged", []byte(text))
		})
	}
	var names strings.Builder
	names.WriteString("config a b\n")
	for i := range 40_000 {
		names.WriteString("option o" + generatedName(i, "") + " 1\n")
	}
	for i := range 20_000 {
		names.WriteString("config a " + generatedName(i, "a") + "\n")
	}
	t.Run("names", func(t *testing.T) {
		p, err := Parse("x", "file", []byte(names.String()))
		if err != nil || len(p.Sections) != 20_001 || len(p.Sections[0].Options) != 40_000 {
			t.Fatalf("%v", err)
		}
	})
}
