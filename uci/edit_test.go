// SPDX-License-Identifier: Apache-2.0

package uci

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEdit checks what each method stages, and what a commit makes of it.
func TestEdit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		edit   func(t *Tree) error
		staged string
	}{
		{"set", func(t *Tree) error { return t.Set("xdpl2", "main", "mode", "it's\ntwo") }, "xdpl2.main.mode='it'\\''s\ntwo'\n"},
		{"set to what it is", func(t *Tree) error { return t.Set("xdpl2", "main", "mode", "mac") }, ""},
		{"set to nothing", func(t *Tree) error { return t.Set("xdpl2", "main", "mode") }, "-xdpl2.main.mode\n"},
		{"set to nothing what is nothing", func(t *Tree) error { return t.Set("xdpl2", "main", "nosuch", "") }, ""},
		{"set by index", func(t *Tree) error { return t.Set("xdpl2", "@port[0]", "device", "x") }, "xdpl2.cfg02614a.device='x'\n"},
		{"set several", func(t *Tree) error { return t.Set("xdpl2", "main", "mode", "a", "b") },
			"-xdpl2.main.mode\n|xdpl2.main.mode='a'\n|xdpl2.main.mode='b'\n"},
		{"set list of one", func(t *Tree) error { return t.SetType("xdpl2", "main", "new", TypeList, "a") }, "|xdpl2.main.new='a'\n"},
		{"set list to what it is", func(t *Tree) error { return t.Set("xdpl2", "main", "skip", "a", "b c") }, ""},
		{"set list to one value", func(t *Tree) error { return t.Set("xdpl2", "main", "skip", "a") }, "xdpl2.main.skip='a'\n"},
		{"set list to nothing", func(t *Tree) error { return t.SetType("xdpl2", "main", "skip", TypeList) }, "-xdpl2.main.skip\n"},
		{"add to list", func(t *Tree) error { return t.AddList("xdpl2", "main", "skip", "d") }, "|xdpl2.main.skip='d'\n"},
		{"delete from list", func(t *Tree) error { return t.DelList("xdpl2", "main", "skip", "a") }, "~xdpl2.main.skip='a'\n"},
		{"delete from no list", func(t *Tree) error { return t.DelList("xdpl2", "main", "mode", "a") }, ""},
		{"delete item", func(t *Tree) error { return t.DelItem("xdpl2", "main", "skip", 1) }, "-xdpl2.main.skip='1'\n"},
		{"delete item too far", func(t *Tree) error { return t.DelItem("xdpl2", "main", "skip", 2) }, ""},
		{"delete", func(t *Tree) error { return t.Del("xdpl2", "main", "mode") }, "-xdpl2.main.mode\n"},
		{"delete section", func(t *Tree) error { return t.DelSection("xdpl2", "@port[1]") }, "-xdpl2.wan\n"},
		{"add section", func(t *Tree) error { return t.AddSection("xdpl2", "lan", "port") }, "xdpl2.lan='port'\n"},
		{"add section that is there", func(t *Tree) error { return t.AddSection("xdpl2", "wan", "port") }, ""},
		{"add without a name", func(t *Tree) error { return t.AddSection("xdpl2", "", "station") }, "+xdpl2.cfg040347='station'\n"},
		{"type", func(t *Tree) error { return t.SetSectionType("xdpl2", "wan", "station") }, "xdpl2.wan='station'\n"},
		{"rename section", func(t *Tree) error { return t.Rename("xdpl2", "@port[0]", "", "lan") }, "@xdpl2.cfg02614a='lan'\n"},
		{"rename option", func(t *Tree) error { return t.Rename("xdpl2", "main", "mode", "way") }, "@xdpl2.main.mode='way'\n"},
		{"reorder", func(t *Tree) error { return t.Reorder("xdpl2", "wan", 0) }, "^xdpl2.wan='0'\n"},
		{"reorder to the same place", func(t *Tree) error { return t.Reorder("xdpl2", "wan", 99) }, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := newTree(t, treeConfig, "")
			if err := tc.edit(tree); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(tree.saveDir, "xdpl2")
			if tc.staged == "" {
				if _, err := os.Stat(tree.saveDir); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("something was staged: %v", err)
				}
				return
			}
			equal(t, "staged", read(t, path), tc.staged)

			// The tree sees the change, and so does one that reads it anew,
			// before the commit and after it.
			seen, err := tree.Package("xdpl2")
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := NewTree(tree.configDir, tree.saveDir).Package("xdpl2")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "fresh", content(fresh), content(seen))
			if len(fresh.Ignored) > 0 {
				t.Errorf("ignored: %v", fresh.Ignored)
			}
			if err := tree.Commit(); err != nil {
				t.Fatal(err)
			}
			equal(t, "staged after commit", read(t, path), "")
			after, err := NewTree(tree.configDir, tree.saveDir).Package("xdpl2")
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "committed", after.Show(false), seen.Show(false))
		})
	}
}

func TestEditRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(t *Tree) error
		want error
	}{
		{"missing section", func(t *Tree) error { return t.Set("xdpl2", "nosuch", "a", "b") }, ErrNotFound},
		{"missing index", func(t *Tree) error { return t.Set("xdpl2", "@port[7]", "a", "b") }, ErrNotFound},
		{"missing package", func(t *Tree) error { return t.Set("nosuch", "main", "a", "b") }, fs.ErrNotExist},
		{"bad package", func(t *Tree) error { return t.Set("../xdpl2", "main", "a", "b") }, ErrInvalid},
		{"bad section", func(t *Tree) error { return t.Set("xdpl2", "ma-in", "a", "b") }, ErrInvalid},
		{"no option", func(t *Tree) error { return t.Set("xdpl2", "main", "", "b") }, ErrInvalid},
		{"no list", func(t *Tree) error { return t.AddList("xdpl2", "main", "", "b") }, ErrInvalid},
		{"bad option", func(t *Tree) error { return t.Set("xdpl2", "main", "a.b", "b") }, ErrInvalid},
		{"bad list", func(t *Tree) error { return t.Set("xdpl2", "main", "a b", "b", "c") }, ErrInvalid},
		{"nul", func(t *Tree) error { return t.Set("xdpl2", "main", "a", "b\x00c") }, ErrInvalid},
		{"escape", func(t *Tree) error { return t.AddList("xdpl2", "main", "a", "\x1b[0m") }, ErrInvalid},
		{"two values for an option", func(t *Tree) error { return t.SetType("xdpl2", "main", "a", TypeOption, "b", "c") }, ErrInvalid},
		{"delete missing", func(t *Tree) error { return t.Del("xdpl2", "main", "nosuch") }, ErrNotFound},
		{"delete no option", func(t *Tree) error { return t.Del("xdpl2", "main", "") }, ErrInvalid},
		{"delete missing section", func(t *Tree) error { return t.DelSection("xdpl2", "nosuch") }, ErrNotFound},
		{"add with bad type", func(t *Tree) error { return t.AddSection("xdpl2", "", "bad type") }, ErrInvalid},
		{"add with bad name", func(t *Tree) error { return t.AddSection("xdpl2", "bad-name", "port") }, ErrInvalid},
		{"add by index", func(t *Tree) error { return t.AddSection("xdpl2", "@port[9]", "port") }, ErrNotFound},
		{"add with other type", func(t *Tree) error { return t.AddSection("xdpl2", "wan", "station") }, ErrInvalid},
		{"bad new type", func(t *Tree) error { return t.SetSectionType("xdpl2", "wan", "a\n") }, ErrInvalid},
		{"rename to taken", func(t *Tree) error { return t.Rename("xdpl2", "wan", "", "main") }, ErrInvalid},
		{"rename option to taken", func(t *Tree) error { return t.Rename("xdpl2", "main", "mode", "skip") }, ErrInvalid},
		{"rename to bad", func(t *Tree) error { return t.Rename("xdpl2", "wan", "", "w-n") }, ErrInvalid},
		{"reorder missing", func(t *Tree) error { return t.Reorder("xdpl2", "nosuch", 0) }, ErrNotFound},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := newTree(t, treeConfig, "")
			if err := tc.edit(tree); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
			if _, err := os.Stat(tree.saveDir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something was staged: %v", err)
			}
		})
	}
	if err := NewTree(newTree(t, treeConfig, "").configDir, "").Set("xdpl2", "main", "a", "b"); !errors.Is(err, ErrInvalid) {
		t.Errorf("without a save directory: %v", err)
	}
}

// TestDamaged stages behind what does not end as a line should.
func TestDamaged(t *testing.T) {
	for _, tc := range []struct {
		name, staged string
		want         string // staged after, "" if it is refused
	}{
		{"no line end", "xdpl2.main.a='1'", "xdpl2.main.a='1'\nxdpl2.main.mode='x'\n"},
		{"open quote", "xdpl2.main.a='1\n", ""},
		{"backslash", "xdpl2.main.a=1\\\n", ""},
		{"nul", "xdpl2.main.a='1'\x00\n", ""},
		{"garbage", "garbage\n", "garbage\nxdpl2.main.mode='x'\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := newTree(t, treeConfig, tc.staged)
			err := tree.Set("xdpl2", "main", "mode", "x")
			var parse *ParseError
			if want := tc.want; want == "" {
				if !errors.As(err, &parse) {
					t.Errorf("not refused: %v", err)
				}
				equal(t, "staged", read(t, filepath.Join(tree.saveDir, "xdpl2")), tc.staged)
				// A revert mends it.
				if err := errors.Join(tree.Revert("xdpl2"), tree.Set("xdpl2", "main", "mode", "x")); err != nil {
					t.Fatal(err)
				}
			} else if err != nil {
				t.Fatal(err)
			} else {
				equal(t, "staged", read(t, filepath.Join(tree.saveDir, "xdpl2")), want)
			}
			if got, _ := NewTree(tree.configDir, tree.saveDir).GetLast("xdpl2", "main", "mode"); got != "x" {
				t.Errorf("mode is %q", got)
			}
		})
	}
}

func TestRevert(t *testing.T) {
	const staged = "xdpl2.main.mode='x'\n# kept\nxdpl2.main.other='y'\n-xdpl2.cfg02614a\nbad\nxdpl2.main='xdpl2'\n"
	for _, tc := range []struct {
		name   string
		revert func(t *Tree) error
		want   string
	}{
		{"option", func(t *Tree) error { return t.RevertChanges("xdpl2", "main", "mode") }, strings.SplitN(staged, "\n", 2)[1]},
		{"section by index", func(t *Tree) error { return t.RevertChanges("xdpl2", "@xdpl2[0]", "") }, "# kept\n-xdpl2.cfg02614a\nbad\n"},
		{"deleted section", func(t *Tree) error { return t.RevertChanges("xdpl2", "cfg02614a", "") }, strings.Replace(staged, "-xdpl2.cfg02614a\n", "", 1)},
		{"package", func(t *Tree) error { return t.Revert("xdpl2") }, ""},
		{"nothing of ours", func(t *Tree) error { return t.Revert() }, staged},
		{"what there is not", func(t *Tree) error { return t.RevertChanges("xdpl2", "main", "nosuch") }, staged},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tree := newTree(t, treeConfig, staged)
			if v, _ := tree.GetLast("xdpl2", "main", "mode"); v != "x" {
				t.Fatalf("mode is %q", v)
			}
			if err := tc.revert(tree); err != nil {
				t.Fatal(err)
			}
			equal(t, "staged", read(t, filepath.Join(tree.saveDir, "xdpl2")), tc.want)
			want := "x"
			if !strings.Contains(tc.want, ".mode=") {
				want = "mac"
			}
			if v, _ := tree.GetLast("xdpl2", "main", "mode"); v != want {
				t.Errorf("mode is %q, want %q", v, want)
			}
		})
	}
	t.Run("ours", func(t *testing.T) {
		tree := newTree(t, treeConfig, "")
		write(t, filepath.Join(tree.configDir, "other"), "config a b")
		write(t, filepath.Join(tree.saveDir, "other"), "other.b.c='d'\n")
		if err := errors.Join(tree.Set("xdpl2", "main", "mode", "x"), tree.Revert()); err != nil {
			t.Fatal(err)
		}
		equal(t, "ours", read(t, filepath.Join(tree.saveDir, "xdpl2")), "")
		equal(t, "other", read(t, filepath.Join(tree.saveDir, "other")), "other.b.c='d'\n")
	})
	t.Run("broken and missing files", func(t *testing.T) {
		tree := newTree(t, "broken", "xdpl2.main.mode='x'\n")
		write(t, filepath.Join(tree.saveDir, "gone"), "gone.a.b='c'\n")
		if err := tree.Revert("xdpl2", "gone"); err != nil {
			t.Fatal(err)
		}
		equal(t, "staged", read(t, filepath.Join(tree.saveDir, "xdpl2")), "")
		equal(t, "staged", read(t, filepath.Join(tree.saveDir, "gone")), "")
	})
}

func TestCommit(t *testing.T) {
	t.Run("ours only", func(t *testing.T) {
		tree := newTree(t, treeConfig, "")
		other := filepath.Join(tree.configDir, "other")
		write(t, other, "config a b")
		write(t, filepath.Join(tree.saveDir, "other"), "other.b.c='d'\n")
		if err := errors.Join(tree.Set("xdpl2", "main", "mode", "x"), tree.Commit(), tree.Commit()); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(read(t, filepath.Join(tree.configDir, "xdpl2")), "option mode 'x'") {
			t.Error("ours is not committed")
		}
		equal(t, "other", read(t, other), "config a b")
		if err := tree.CommitConfig("other"); err != nil {
			t.Fatal(err)
		}
		equal(t, "other", read(t, other), "\nconfig a 'b'\n\toption c 'd'\n\n")
	})
	t.Run("mode and owner", func(t *testing.T) {
		for _, mode := range []fs.FileMode{0o600, 0o644, 0o640, 0o400} {
			tree := newTree(t, treeConfig, "")
			path := filepath.Join(tree.configDir, "xdpl2")
			uid, gid := os.Getuid(), os.Getgid()
			if uid == 0 {
				uid, gid = 1234, 5678
			}
			if err := errors.Join(os.Chmod(path, mode), os.Chown(path, uid, gid)); err != nil {
				t.Fatal(err)
			}
			if mode&0o200 == 0 && os.Getuid() != 0 {
				continue // only root can write to it
			}
			if err := errors.Join(tree.Set("xdpl2", "main", "mode", "x"), tree.Commit()); err != nil {
				t.Fatal(err)
			}
			st, err := os.Stat(path)
			if err != nil || st.Mode() != mode {
				t.Errorf("mode is %v, want %v (%v)", st.Mode(), mode, err)
			}
			if u, g := owner(st); u != uid || g != gid {
				t.Errorf("owner is %d:%d, want %d:%d", u, g, uid, gid)
			}
		}
	})
	t.Run("symbolic link", func(t *testing.T) {
		tree := newTree(t, treeConfig, "xdpl2.main.mode='x'\n")
		link, real := filepath.Join(tree.configDir, "xdpl2"), filepath.Join(t.TempDir(), "real")
		if err := errors.Join(os.Rename(link, real), os.Symlink(real, link)); err != nil {
			t.Fatal(err)
		}
		if err := tree.CommitConfig("xdpl2"); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Lstat(link); err != nil || st.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("the link is gone: %v %v", st, err)
		}
		if !strings.Contains(read(t, real), "option mode 'x'") {
			t.Error("what the link points to was not written")
		}
	})
	t.Run("would not load", func(t *testing.T) {
		const staged = "@xdpl2.wan='main'\n"
		tree := newTree(t, treeConfig, staged)
		var parse *ParseError
		if err := tree.CommitConfig("xdpl2"); !errors.As(err, &parse) {
			t.Errorf("committed: %v", err)
		}
		equal(t, "file", read(t, filepath.Join(tree.configDir, "xdpl2")), treeConfig)
		equal(t, "staged", read(t, filepath.Join(tree.saveDir, "xdpl2")), staged)
	})
	t.Run("broken file", func(t *testing.T) {
		tree := newTree(t, treeConfig+"broken", "xdpl2.main.mode='x'\n")
		if err := tree.CommitConfig("xdpl2"); err == nil {
			t.Error("committed")
		}
		equal(t, "file", read(t, filepath.Join(tree.configDir, "xdpl2")), treeConfig+"broken")
	})
	t.Run("leftovers", func(t *testing.T) {
		tree := newTree(t, treeConfig, "xdpl2.main.mode='x'\n")
		left := filepath.Join(tree.configDir, ".xdpl2.new-1234")
		write(t, left, "half a fi")
		if err := tree.CommitConfig("xdpl2"); err != nil {
			t.Fatal(err)
		}
		if entries, err := os.ReadDir(tree.configDir); err != nil || len(entries) != 1 {
			t.Errorf("files: %v %v", entries, err)
		}
	})
}
