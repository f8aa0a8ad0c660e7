// SPDX-License-Identifier: Apache-2.0

package uci

import "slices"

// indexFrom is the length from which a list keeps an index of its names. Most
// sections have fewer options, and a walk over them is as fast.
const indexFrom = 12

// list is an ordered list of things with names. Names may occur more than once
// (a rename or a generated name does not look for others); the first one counts.
type list[T interface {
	comparable
	key() string
}] struct {
	items  []T
	byName map[string]T // the first item of each name
	dups   bool         // some name occurs more than once
}

// find returns the first item with a name, or the zero value.
func (l *list[T]) find(name string) T {
	if l.byName != nil {
		return l.byName[name]
	}
	for _, it := range l.items {
		if it.key() == name {
			return it
		}
	}
	var none T
	return none
}

// add appends an item.
func (l *list[T]) add(it T) {
	if l.items == nil {
		l.items = make([]T, 0, 4) // most sections have a few options
	}
	l.items = append(l.items, it)
	switch {
	case l.byName != nil:
		l.note(it)
	case len(l.items) == indexFrom:
		l.reindex()
	}
}

// remove takes an item out.
func (l *list[T]) remove(it T) {
	if i := slices.Index(l.items, it); i >= 0 {
		l.items = slices.Delete(l.items, i, i+1)
		l.forget(it.key())
	}
}

// move puts an item at a position among the others. A position before the start
// is the start, one beyond the end the end. It reports whether that changed
// anything.
func (l *list[T]) move(it T, to int) bool {
	from := slices.Index(l.items, it)
	to = min(max(to, 0), len(l.items)-1)
	if from < 0 || from == to {
		return false
	}
	l.items = slices.Insert(slices.Delete(l.items, from, from+1), to, it)
	if l.dups {
		l.reindex()
	}
	return true
}

// rename calls set, which gives an item another name.
func (l *list[T]) rename(it T, set func()) {
	old := it.key()
	set()
	if l.byName == nil || old == it.key() {
		return
	}
	l.forget(old)
	if _, taken := l.byName[it.key()]; taken {
		l.reindex()
	} else {
		l.byName[it.key()] = it
	}
}

// forget brings the index up to date after an item has lost its name.
func (l *list[T]) forget(name string) {
	switch {
	case l.byName == nil:
	case l.dups:
		l.reindex()
	default:
		delete(l.byName, name)
	}
}

func (l *list[T]) note(it T) {
	if _, taken := l.byName[it.key()]; taken {
		l.dups = true
	} else {
		l.byName[it.key()] = it
	}
}

func (l *list[T]) reindex() {
	l.byName = make(map[string]T, 2*len(l.items))
	l.dups = false
	for _, it := range l.items {
		l.note(it)
	}
}
