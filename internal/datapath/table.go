// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpl2/xdpl2/bpf"
)

// How a station's word is made; see bpf/stations.h.
const (
	ways        = int(bpf.DatapathStationWordSTATION_WAYS)
	wordAnswer  = uint64(bpf.DatapathStationWordSTATION_ANSWER)
	wordSlot    = uint64(bpf.DatapathStationWordSTATION_SLOT)
	wordValid   = uint64(bpf.DatapathStationWordSTATION_VALID)
	wordOther   = uint64(bpf.DatapathStationWordSTATION_OTHER)
	wordRest    = ^(wordAnswer | wordValid | wordOther)
	wordLocal   = uint64(bpf.DatapathStationWordSTATION_LOCAL)
	wordStay    = uint64(bpf.DatapathStationWordSTATION_STAY)
	wordUnsure  = uint64(bpf.DatapathStationWordSTATION_UNSURE)
	mixer       = uint64(0x9e37_79b9_7f4a_7c15) // STATION_MIX
	foldBits    = uint(bpf.DatapathStationWordSTATION_FOLD)
	numberBits  = 60 // of an address with its VLAN
	leastBits   = 7
	leastLines  = 1 << leastBits // fewer would leave the rest no room in a word
	linesFilled = 3              // stations a line has, at most, if there are as many as allowed
	deepest     = 2              // lines that are looked at behind two full ones
)

type line = bpf.DatapathStationLine

// table is the station table that the programs look into, see bpf/stations.h:
// written here through a mapping of its memory, word by word, and cleared in
// places by the programs.
type table struct {
	lines      []line
	bits       uint   // there are 2^bits lines
	multiplier uint64 // odd, of 60 bits
	inverse    uint64 // of the multiplier, modulo 2^64
	unmixer    uint64 // the inverse of mixer

	mu    sync.Mutex // one writer
	most  int        // stations
	count int        // that are in it, or were: the programs remove some

	m      *ebpf.Map // nil in tests
	memory []byte
}

// linesFor is how many lines a table for n stations has: a power of two, so
// that seldom more want to be in a line than fit.
func linesFor(n int) int {
	return max(leastLines, 1<<bits.Len(uint((n-1)/linesFilled)))
}

// newTable makes a table over some memory, which must be zero. The multiplier
// is drawn by lot, so that nobody can choose addresses that share a line.
func newTable(lines []line, most int) (*table, error) {
	var lot [8]byte
	if _, err := rand.Read(lot[:]); err != nil {
		return nil, fmt.Errorf("draw a multiplier for the station table: %w", err)
	}
	t := &table{lines: lines, bits: uint(bits.Len(uint(len(lines)))) - 1, most: most}
	t.multiplier = binary.NativeEndian.Uint64(lot[:])>>(64-numberBits) | 1
	t.inverse, t.unmixer = inverse(t.multiplier), inverse(mixer)
	return t, nil
}

// inverse is by what a product with an odd number is multiplied to have the
// other number again, modulo 2^64.
func inverse(odd uint64) uint64 {
	x := uint64(1)
	for range 6 { // Newton: each step doubles the number of bits that are right
		x *= 2 - odd*x
	}
	return x
}

// mapTable makes a table of a map's memory.
func mapTable(m *ebpf.Map, most int) (*table, error) {
	memory, err := mapMemory(m)
	if err != nil {
		return nil, fmt.Errorf("map the station table: %w", err)
	}
	lines := unsafe.Slice((*line)(unsafe.Pointer(&memory[0])), m.MaxEntries())
	t, err := newTable(lines, most)
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(memory))
	}
	t.m, t.memory = m, memory
	return t, nil
}

// Close gives the memory back. Programs that are still attached keep theirs.
func (t *table) Close() error {
	return errors.Join(t.unmap(), t.m.Close())
}

func (t *table) unmap() error {
	if t == nil {
		return nil
	}
	return unix.Munmap(t.memory)
}

// place is where an address belongs: its first line, and its word there
// without an answer.
func (t *table) place(k StationKey) (number uint64, word uint64) {
	mixed := t.mix(numberOf(k))
	return mixed >> (64 - t.bits), mixed<<t.bits | wordValid
}

// second is the other line of a word's address, whichever it is in.
func (t *table) second(number, word uint64) uint64 {
	return number ^ (word&wordRest*mixer>>(64-t.bits) | 1)
}

// keyOf is the address of a word that is in a line.
func (t *table) keyOf(number, word uint64) StationKey {
	if word&wordOther != 0 {
		number = t.second(number, word)
	}
	mixed := number<<(64-t.bits) | word&wordRest>>t.bits
	return keyOf(t.unmix(mixed))
}

// mix does what the programs do with an address; see bpf/stations.h.
func (t *table) mix(number uint64) uint64 {
	mixed := fold(number) * t.multiplier << (64 - numberBits)
	return fold(mixed>>(64-numberBits)) << (64 - numberBits) * mixer
}

func (t *table) unmix(mixed uint64) uint64 {
	number := fold(mixed * t.unmixer >> (64 - numberBits))
	return fold(number * t.inverse & (1<<numberBits - 1))
}

// fold is its own inverse, since it folds more than half of the number's bits
// away.
func fold(number uint64) uint64 {
	return number ^ number>>foldBits
}

// numberOf is an address as the programs read it: 48 bits in the machine's
// byte order, the VLAN above.
func numberOf(k StationKey) uint64 {
	var b [8]byte
	copy(b[macAt:], k.MAC[:])
	return binary.NativeEndian.Uint64(b[:]) | uint64(k.VLAN)<<48
}

func keyOf(number uint64) StationKey {
	k := StationKey{VLAN: uint16(number >> 48)}
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], number&(1<<48-1))
	copy(k.MAC[:], b[macAt:])
	return k
}

// macAt is where the lower 48 bits begin in the memory of a 64-bit number, and
// lowHalf which 32 bits of it are the lower ones.
var macAt, lowHalf = func() (int, int) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) == 1 {
		return 0, 0
	}
	return 2, 1
}()

// spot is one place for a word.
type spot struct {
	word *uint64
	seen *uint32
}

func (t *table) spot(number uint64, way int) spot {
	s := &t.lines[number].Station[way]
	return spot{&s.Word, &s.Seen}
}

func (s spot) low() *uint32 { return &(*[2]uint32)(unsafe.Pointer(s.word))[lowHalf] }

func (s spot) load() uint64 { return atomic.LoadUint64(s.word) }

// store writes a word. A machine of 32 bits does it in two steps: what has no
// lower half yet is not valid.
func (s spot) store(word uint64) {
	if bits.UintSize == 64 {
		atomic.StoreUint64(s.word, word)
		return
	}
	high := &(*[2]uint32)(unsafe.Pointer(s.word))[1-lowHalf]
	if word == 0 {
		atomic.StoreUint32(s.low(), 0)
	}
	atomic.StoreUint32(high, uint32(word>>32))
	atomic.StoreUint32(s.low(), uint32(word))
}

// swap replaces a word by another of the same address, or by 0, unless a
// program has cleared it meanwhile.
func (s spot) swap(before, after uint64) bool {
	if !atomic.CompareAndSwapUint32(s.low(), uint32(before), uint32(after)) {
		return false
	}
	if after == 0 {
		s.store(0)
	}
	return true
}

// find returns where a station is.
func (t *table) find(k StationKey) (at spot, word uint64, ok bool) {
	number, want := t.place(k)
	if at, word, ok = t.inLine(number, want); ok {
		return at, word, true
	}
	return t.inLine(t.second(number, want), want|wordOther)
}

func (t *table) inLine(number, want uint64) (at spot, word uint64, ok bool) {
	for way := range ways {
		at := t.spot(number, way)
		if word := at.load(); word&^wordAnswer == want {
			return at, word, true
		}
	}
	return spot{}, 0, false
}

func (t *table) freeIn(number uint64) (spot, bool) {
	for way := range ways {
		if at := t.spot(number, way); at.load() == 0 {
			return at, true
		}
	}
	return spot{}, false
}

func answerOf(s Station) uint64 {
	answer := uint64(s.Slot) & wordSlot
	for flag, on := range map[uint64]bool{wordLocal: s.Local, wordStay: s.Stay, wordUnsure: s.Unsure} {
		if on {
			answer |= flag
		}
	}
	return answer
}

func stationOf(word uint64, seen uint32) Station {
	return Station{
		Slot:   uint32(word & wordSlot),
		Local:  word&wordLocal != 0,
		Stay:   word&wordStay != 0,
		Unsure: word&wordUnsure != 0,
		Seen:   seen,
	}
}

func (t *table) get(k StationKey) (Station, bool) {
	at, word, ok := t.find(k)
	if !ok {
		return Station{}, false
	}
	return stationOf(word, atomic.LoadUint32(at.seen)), true
}

// put adds or replaces a station; false if there is no room.
func (t *table) put(k StationKey, s Station) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, word, ok := t.find(k); ok {
		atomic.StoreUint32(at.seen, s.Seen)
		at.store(word&^wordAnswer | answerOf(s))
		return true
	}
	if t.count >= t.most {
		if t.count = t.recount(); t.count >= t.most {
			return false
		}
	}
	number, word := t.place(k)
	at, ok := t.freeIn(number)
	if !ok {
		second := t.second(number, word)
		if at, ok = t.freeIn(second); ok {
			word |= wordOther
		} else if at, ok = t.makeRoom(number, deepest); !ok {
			if at, ok = t.makeRoom(second, deepest); !ok {
				return false
			}
			word |= wordOther
		}
	}
	atomic.StoreUint32(at.seen, s.Seen)
	at.store(word | answerOf(s))
	t.count++
	return true
}

// makeRoom moves a station of a full line to its other line, where it may have
// to make room as well. Three lines deep it finds room as good as always.
func (t *table) makeRoom(number uint64, depth int) (spot, bool) {
	for way := range ways {
		from := t.spot(number, way)
		word := from.load()
		if word == 0 { // cleared by a program just now
			return from, true
		}
		second := t.second(number, word)
		to, ok := t.freeIn(second)
		if !ok && depth > 0 {
			to, ok = t.makeRoom(second, depth-1)
		}
		if ok && from.load() == word { // it may have been moved itself
			move(from, to, word)
			return from, true
		}
	}
	return spot{}, false
}

// move gives a word another place. In between nothing is sent to the station,
// as its second word is unsure, but if it moves to another port, both go.
func move(from, to spot, word uint64) {
	moved := word ^ wordOther
	atomic.StoreUint32(to.seen, atomic.LoadUint32(from.seen))
	to.store(moved | wordUnsure)
	if from.swap(word, 0) {
		to.swap(moved|wordUnsure, moved)
	} else {
		to.store(0)
	}
}

// confirm replaces what is said of a station, unless a program has removed it.
func (t *table) confirm(k StationKey, s Station) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, word, ok := t.find(k); ok {
		at.swap(word, word&^wordAnswer|answerOf(s))
	}
}

func (t *table) delete(k StationKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if at, _, ok := t.find(k); ok {
		at.store(0)
		t.count--
	}
}

func (t *table) recount() int {
	n := 0
	for i := range t.lines {
		for way := range ways {
			if t.spot(uint64(i), way).load() != 0 {
				n++
			}
		}
	}
	return n
}

// entry is a station as it was met in the table.
type entry struct {
	key     StationKey
	station Station
}

// read appends the stations of some lines.
func (t *table) read(out []entry, from, to int) []entry {
	for i := from; i < min(to, len(t.lines)); i++ {
		for way := range ways {
			at := t.spot(uint64(i), way)
			if word := at.load(); word != 0 {
				out = append(out, entry{t.keyOf(uint64(i), word), stationOf(word, atomic.LoadUint32(at.seen))})
			}
		}
	}
	return out
}
