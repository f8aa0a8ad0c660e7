// SPDX-License-Identifier: Apache-2.0

package control

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

func feature(t *testing.T, dev, name string) bool {
	t.Helper()
	on, err := netdev.Feature(dev, name)
	if err != nil {
		t.Fatal(err)
	}
	return on
}

// TestKeepTagsIn treats a veth as if it were a card, since there is no card
// here whose VLAN offload could be changed: the driver obeys, and what was
// changed is undone by the daemon or, after a crash, by the next one.
func TestKeepTagsIn(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 1})
	dir := t.TempDir()
	err := l.Router.Do(func() error {
		card := bridge.Link{Index: 3, Name: "eth1"}
		if !feature(t, "eth1", netdev.RxVLAN) || !feature(t, "eth1", netdev.RxSTagVLAN) {
			t.Fatal("the device takes no tags out; nothing to test")
		}
		c := &Controller{log: slog.New(slog.DiscardHandler)}
		flags, err := c.tagFlags(card)
		if err != nil || flags&datapath.PortHidesTags == 0 || flags&datapath.PortLosesTags != 0 {
			t.Errorf("before: flags %b, %v", flags, err)
		}
		j, err := openJournal(dir)
		if err != nil {
			return err
		}
		c.journal = j
		if err := c.keepTagsIn(card); err != nil {
			return err
		}
		if feature(t, "eth1", netdev.RxVLAN) || feature(t, "eth1", netdev.RxSTagVLAN) {
			t.Error("the device still takes tags out")
		}
		if flags, err := c.tagFlags(card); err != nil || flags&datapath.PortHidesTags != 0 {
			t.Errorf("after: flags %b, %v", flags, err)
		}
		if err := j.restore(featuresOf("eth1")); err != nil {
			return err
		}
		if !feature(t, "eth1", netdev.RxVLAN) || !feature(t, "eth1", netdev.RxSTagVLAN) {
			t.Error("not restored")
		}
		if _, err := os.Stat(filepath.Join(dir, journalName)); !os.IsNotExist(err) {
			t.Errorf("journal after it was all undone: %v", err)
		}
		// A crash: nobody undoes anything, and only the file knows.
		if err := c.keepTagsIn(card); err != nil {
			return err
		}
		devices, err := Cleanup(dir)
		if err != nil || len(devices) != 1 || devices[0] != "eth1" {
			t.Errorf("cleanup: %v, %v", devices, err)
		}
		if !feature(t, "eth1", netdev.RxVLAN) || !feature(t, "eth1", netdev.RxSTagVLAN) {
			t.Error("not restored after a crash")
		}
		// A virtual device is left alone: its other end decides.
		veth := bridge.Link{Index: 3, Name: "eth1", Kind: "veth"}
		if err := c.keepTagsIn(veth); err != nil {
			return err
		}
		if !feature(t, "eth1", netdev.RxVLAN) {
			t.Error("a virtual device was changed")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestMergingIsRestored: what merges packets is on again after XDP, and after a
// crash. No device here has hardware GRO, so the kernel's own stands for it,
// and the test for the kernel, which turns it off.
func TestMergingIsRestored(t *testing.T) {
	before := mergeFeatures
	mergeFeatures = []string{netdev.LRO, netdev.GRO}
	t.Cleanup(func() { mergeFeatures = before })
	l := lab.ForTest(t, lab.Options{Hosts: 1})
	dir := t.TempDir()
	err := l.Router.Do(func() error {
		card := bridge.Link{Index: 3, Name: "eth1"}
		c := &Controller{log: slog.New(slog.DiscardHandler)}
		j, err := openJournal(dir)
		if err != nil {
			return err
		}
		c.journal = j
		set := func(on bool) {
			t.Helper()
			if err := netdev.SetFeature("eth1", netdev.GRO, on); err != nil {
				t.Fatal(err)
			}
		}
		set(false)
		if why := merging(card); why != "" {
			t.Errorf("nothing merges: %s", why)
		}
		if err := c.noteMerging(card); err != nil || len(j.entries) > 0 {
			t.Errorf("what is off was noted: %v, %v", j.entries, err)
		}
		set(true)
		if want := "eth1 merges packets itself (rx-gro), which generic XDP would end"; merging(card) != want {
			t.Errorf("%q, want %q", merging(card), want)
		}
		for _, crash := range []bool{false, true} {
			if err := c.noteMerging(card); err != nil {
				return err
			}
			set(false)
			if crash {
				if _, err := Cleanup(dir); err != nil {
					return err
				}
			} else if err := j.restore(featuresOf("eth1")); err != nil {
				return err
			}
			if !feature(t, "eth1", netdev.GRO) {
				t.Errorf("crash %v: not restored", crash)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestJournalComesFirst: what cannot be written down is not changed.
func TestJournalComesFirst(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 1})
	err := l.Router.Do(func() error {
		j := &journal{path: filepath.Join(t.TempDir(), "missing", journalName)}
		c := &Controller{log: slog.New(slog.DiscardHandler), journal: j}
		if err := c.keepTagsIn(bridge.Link{Index: 3, Name: "eth1"}); err == nil {
			t.Error("a change without a journal")
		}
		if !feature(t, "eth1", netdev.RxVLAN) {
			t.Error("the device was changed all the same")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestBrokenJournal(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, journalName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Cleanup(dir); err == nil {
		t.Error("a broken journal was taken for a good one")
	}
}
