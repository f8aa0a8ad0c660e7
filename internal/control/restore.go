// SPDX-License-Identifier: Apache-2.0

package control

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xdpl2/xdpl2/internal/topology"
)

// The journal's part that belongs to topology replace.

func (e journalEntry) ofTopology() bool { return e.Change == deviceMoved || e.Change == bridgeAdded }

func ofOwn(e journalEntry) bool { return e.Change == bridgeAdded }

// movedDevice matches the entry that says where a device was.
func movedDevice(ifindex int) func(journalEntry) bool {
	return func(e journalEntry) bool { return e.Change == deviceMoved && e.Ifindex == ifindex }
}

// before returns how a device was that is still noted as moved; nil if none is.
func (j *journal) before(ifindex int) *topology.Snapshot {
	for _, e := range j.entries {
		if e.Change == deviceMoved && e.Ifindex == ifindex {
			return e.Before
		}
	}
	return nil
}

// restoreTopology brings devices back that the entries say were moved, and
// removes bridges that were made. It returns the entries that have to be kept,
// since that did not work.
func (j *journal) restoreTopology(entries []journalEntry) (kept []journalEntry, err error) {
	own := 0
	for _, e := range j.entries {
		if e.Own == nil {
			continue
		}
		if index, ferr := e.Own.Find(); ferr == nil {
			own = index
		}
	}
	var moved, added []journalEntry
	for _, e := range entries {
		switch {
		case e.Before != nil:
			moved = append(moved, e)
		case e.Own != nil:
			added = append(added, e)
		}
	}
	// In the order in which the bridge had them, so that each port gets its
	// number again; and settings when all are there, since a port's backup is
	// another port.
	slices.SortFunc(moved, func(a, b journalEntry) int {
		if d := strings.Compare(a.Before.Bridge, b.Before.Bridge); d != 0 {
			return d
		}
		return int(a.Before.Number) - int(b.Before.Number)
	})
	fail := func(e journalEntry, ferr error) bool {
		if ferr == nil || errors.Is(ferr, topology.ErrGone) {
			return false
		}
		err = errors.Join(err, fmt.Errorf("restore %s: %w", e.Device, ferr))
		return !errors.Is(ferr, topology.ErrPartly) // trying again would not help
	}
	for _, e := range moved {
		if fail(e, e.Before.Return(own)) {
			kept = append(kept, e)
		}
	}
	for _, e := range moved {
		if fail(e, e.Before.Settle()) && !slices.Contains(kept, e) {
			kept = append(kept, e)
		}
	}
	for _, e := range added {
		if len(kept) > 0 || fail(e, e.Own.Remove()) {
			kept = append(kept, e)
		}
	}
	return kept, err
}
