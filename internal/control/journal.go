// SPDX-License-Identifier: Apache-2.0

package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/bridge"
	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
	"github.com/xdpl2/xdpl2/internal/topology"
)

// journalName is the file in the run directory that says what was changed on
// the system and how it was before.
const journalName = "restore.json"

// journal remembers changes to devices that must be undone: on stop, and after
// a crash by the next daemon or by cleanup. An entry is on disk before the
// change is made. After a reboot nothing of it is left to undo, and the same
// ifindexes are other devices: what was written before this boot is void.
type journal struct {
	path    string
	boot    string
	entries []journalEntry
}

// journalFile is what is on disk.
type journalFile struct {
	Boot    string         `json:"boot"` // the kernel's boot_id
	Entries []journalEntry `json:"entries"`
}

// journalEntry is one change: a feature that was on, a clsact qdisc that was
// not there, a device that was somewhere else, a bridge that was not there.
type journalEntry struct {
	Device  string             `json:"device"`
	Ifindex int                `json:"ifindex,omitempty"`
	Change  string             `json:"change"` // clsact, moved, bridge, or a feature's name
	Before  *topology.Snapshot `json:"before,omitempty"`
	Own     *topology.Own      `json:"own,omitempty"`
}

// What has changed, beside features.
const (
	clsactAdded = "clsact"
	deviceMoved = "moved"  // Before says from where
	bridgeAdded = "bridge" // Own
)

// bootIDFile says which boot this is.
var bootIDFile = "/proc/sys/kernel/random/boot_id"

// openJournal reads what an earlier daemon left. An empty directory name gives
// a journal that is kept in memory only.
func openJournal(runDir string) (*journal, error) {
	boot, err := os.ReadFile(bootIDFile)
	if err != nil {
		return nil, fmt.Errorf("tell this boot from others: %w", err)
	}
	j := &journal{boot: strings.TrimSpace(string(boot))}
	if runDir == "" {
		return j, nil
	}
	j.path = filepath.Join(runDir, journalName)
	data, err := os.ReadFile(j.path)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what has to be restored: %w", err)
	}
	var f journalFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("read what has to be restored: %s: %w", j.path, err)
	}
	if f.Boot != j.boot {
		return j, j.write()
	}
	j.entries = f.Entries
	return j, nil
}

// record notes a change before it is made. What is noted already stays.
func (j *journal) record(e journalEntry) error {
	if slices.Contains(j.entries, e) {
		return nil
	}
	j.entries = append(j.entries, e)
	if err := j.write(); err != nil {
		j.entries = j.entries[:len(j.entries)-1]
		return fmt.Errorf("write down what has to be restored: %w", err)
	}
	return nil
}

// forget drops entries whose change is not ours to undo any more.
func (j *journal) forget(match func(journalEntry) bool) error {
	before := len(j.entries)
	j.entries = slices.DeleteFunc(j.entries, match)
	if len(j.entries) == before {
		return nil
	}
	return j.write()
}

// restore undoes the changes that match. A device that is gone took its
// changes along.
func (j *journal) restore(match func(journalEntry) bool) error {
	var mine []journalEntry
	for _, e := range j.entries {
		if match(e) {
			mine = append(mine, e)
		}
	}
	if len(mine) == 0 {
		return nil
	}
	var err error
	for _, e := range mine {
		if uerr := e.undo(); uerr != nil {
			err = errors.Join(err, fmt.Errorf("restore %s: %w", e.Device, uerr))
		}
	}
	kept, uerr := j.restoreTopology(mine)
	return errors.Join(err, uerr, j.forget(func(e journalEntry) bool {
		return slices.Contains(mine, e) && !slices.Contains(kept, e)
	}))
}

// undo takes back what was changed on the device alone.
func (e journalEntry) undo() error {
	if e.ofTopology() {
		return nil
	}
	l, err := bridge.Read(e.Ifindex)
	if errors.Is(err, bridge.ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if e.Change == clsactAdded {
		return datapath.RemoveClsact(e.Ifindex)
	}
	// By the name that it has now.
	err = netdev.SetFeature(l.Name, e.Change, true)
	var refused *netdev.RefusedError
	switch {
	case errors.Is(err, netdev.ErrNoDevice):
		return nil
	case errors.As(err, &refused) && slices.Contains(mergeFeatures, e.Change):
		return nil // the bridge that it is in does not want it
	}
	return err
}

func everything(journalEntry) bool { return true }

// of matches what was prepared on a device, featuresOf its features alone.
// Where the device is, and what else is there of xdpl2's, is another matter
// (replace.go).
func of(device string) func(journalEntry) bool {
	return func(e journalEntry) bool { return e.Device == device && !e.ofTopology() }
}

func featuresOf(device string) func(journalEntry) bool {
	return func(e journalEntry) bool { return of(device)(e) && e.Change != clsactAdded }
}

func (j *journal) write() error {
	defer topology.Step()
	if j.path == "" {
		return nil
	}
	if len(j.entries) == 0 {
		if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(journalFile{j.boot, j.entries})
	if err != nil {
		return err
	}
	temp := j.path + ".new"
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return os.Rename(temp, j.path)
}

// Cleanup restores what an earlier daemon with this run directory changed and
// did not undo, since it was killed. It returns the names of the devices.
func Cleanup(runDir string) (devices []string, err error) {
	j, err := openJournal(runDir)
	if err != nil {
		return nil, err
	}
	for _, e := range j.entries {
		if e.Own == nil && !slices.Contains(devices, e.Device) {
			devices = append(devices, e.Device)
		}
	}
	return devices, j.restore(everything)
}
