// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/xdpl2/xdpl2/internal/lab"
	"github.com/xdpl2/xdpl2/internal/topology"
)

// TestJournalOfAnotherBoot: after a power cut nothing of what was changed is
// left, and the ifindexes are those of other devices.
func TestJournalOfAnotherBoot(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 1})
	boot, err := os.ReadFile(bootIDFile)
	if err != nil {
		t.Fatal(err)
	}
	index, err := l.Index(l.Hosts[0].Port())
	if err != nil {
		t.Fatal(err)
	}
	// As if eth1 had been in no bridge before.
	entry := journalEntry{Device: "eth1", Ifindex: index, Change: deviceMoved, Before: &topology.Snapshot{Ifindex: index, Up: true}}
	for _, c := range []struct {
		name, boot string
		restored   int
	}{
		{"another boot", "11111111-2222-3333-4444-555555555555", 0},
		{"this boot", strings.TrimSpace(string(boot)), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			data, err := json.Marshal(journalFile{c.boot, []journalEntry{entry}})
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, journalName)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			err = l.Router.Do(func() error {
				devices, err := Cleanup(dir)
				if len(devices) != c.restored {
					t.Errorf("restored %v", devices)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("journal afterwards: %v", err)
			}
		})
	}
}

// TestRestoreLeavesWhatOthersMoved: a device is brought back only from where
// xdpl2 put it, and one that is gone is no error.
func TestRestoreLeavesWhatOthersMoved(t *testing.T) {
	l := lab.ForTest(t, lab.Options{Hosts: 2, NoIPv6: true})
	handle, err := l.Router.Handle()
	if err != nil {
		t.Fatal(err)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "br-guest"
	guest := &netlink.Bridge{LinkAttrs: attrs}
	if err := handle.LinkAdd(guest); err != nil {
		t.Fatal(err)
	}
	err = l.Router.Do(func() error {
		j, err := openJournal("")
		if err != nil {
			return err
		}
		for _, h := range l.Hosts {
			index, err := l.Index(h.Port())
			if err != nil {
				return err
			}
			before, err := topology.Take(index)
			if err != nil {
				return err
			}
			if err := j.record(journalEntry{Device: h.Port().Name, Ifindex: index, Change: deviceMoved, Before: before}); err != nil {
				return err
			}
			if err := before.Move(topology.Place{Promisc: true}); err != nil {
				return err
			}
		}
		dev, err := netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		if err := netlink.LinkSetMaster(dev, guest); err != nil {
			return err
		}
		if err := l.DeletePort(l.Hosts[1].Port()); err != nil {
			return err
		}
		if err := j.restore(everything); err != nil {
			t.Errorf("restore: %v", err)
		}
		if len(j.entries) > 0 {
			t.Errorf("left in the journal: %+v", j.entries)
		}
		dev, err = netlink.LinkByName("eth1")
		if err != nil {
			return err
		}
		if dev.Attrs().MasterIndex != guest.Index {
			t.Errorf("eth1 was taken out of %s", guest.Name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
