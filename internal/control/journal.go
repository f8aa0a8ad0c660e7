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

	"github.com/xdpl2/xdpl2/internal/datapath"
	"github.com/xdpl2/xdpl2/internal/netdev"
)

// journalName is the file in the run directory that says what was changed on
// the system and how it was before.
const journalName = "restore.json"

// journal remembers changes to devices that must be undone: on stop, and after
// a crash by the next daemon or by cleanup. An entry is on disk before the
// change is made. The run directory does not survive a reboot, and neither do
// the changes.
type journal struct {
	path    string
	entries []journalEntry
}

// journalEntry is one change: a feature that was on, or a clsact qdisc that was
// not there.
type journalEntry struct {
	Device  string `json:"device"`
	Ifindex int    `json:"ifindex"`
	Change  string `json:"change"` // clsact, or a feature's name
}

const clsactAdded = "clsact"

// openJournal reads what an earlier daemon left. An empty directory name gives
// a journal that is kept in memory only.
func openJournal(runDir string) (*journal, error) {
	j := &journal{}
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
	if err := json.Unmarshal(data, &j.entries); err != nil {
		return nil, fmt.Errorf("read what has to be restored: %s: %w", j.path, err)
	}
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

// restore undoes the changes that match. A device that is gone took its
// changes along.
func (j *journal) restore(match func(journalEntry) bool) error {
	var err error
	before := len(j.entries)
	j.entries = slices.DeleteFunc(j.entries, func(e journalEntry) bool {
		if !match(e) {
			return false
		}
		if uerr := e.undo(); uerr != nil && !errors.Is(uerr, netdev.ErrNoDevice) {
			err = errors.Join(err, fmt.Errorf("restore %s: %w", e.Device, uerr))
		}
		return true
	})
	if len(j.entries) == before {
		return nil
	}
	return errors.Join(err, j.write())
}

func (e journalEntry) undo() error {
	if e.Change == clsactAdded {
		return datapath.RemoveClsact(e.Ifindex)
	}
	return netdev.SetFeature(e.Device, e.Change, true)
}

func everything(journalEntry) bool { return true }

// of matches all changes of a device, featuresOf those of its features.
func of(device string) func(journalEntry) bool {
	return func(e journalEntry) bool { return e.Device == device }
}

func featuresOf(device string) func(journalEntry) bool {
	return func(e journalEntry) bool { return e.Device == device && e.Change != clsactAdded }
}

func (j *journal) write() error {
	if j.path == "" {
		return nil
	}
	if len(j.entries) == 0 {
		if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	data, err := json.Marshal(j.entries)
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
		if !slices.Contains(devices, e.Device) {
			devices = append(devices, e.Device)
		}
	}
	return devices, j.restore(everything)
}
