// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"testing"
)

func tableFor(t testing.TB, most int) *table {
	t.Helper()
	tab, err := newTable(make([]line, linesFor(most)), most)
	must(t, err)
	return tab
}

// families are kinds of addresses: what a LAN has, and what would be hard on a
// bad mixture.
var families = map[string]func(i int) StationKey{
	"counted":    func(i int) StationKey { return addressed(uint64(i), 0) },
	"vendors":    func(i int) StationKey { return addressed(uint64(i%16)<<40|uint64(i/16)<<8, 0) },
	"by VLAN":    func(i int) StationKey { return addressed(uint64(i/4094), uint16(1+i%4094)) },
	"first byte": func(i int) StationKey { return addressed(uint64(i)<<32, 0) },
	"scattered": func(i int) StationKey {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		return addressed(r.Uint64()&(1<<48-1), uint16(r.IntN(4096)))
	},
}

func addressed(n uint64, vlan uint16) StationKey {
	k := StationKey{VLAN: vlan}
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], n)
	copy(k.MAC[:], b[2:])
	return k
}

// TestTableFull puts in as many as are allowed, of each kind, with many
// multipliers: all are found, with what was said of them, and read back.
func TestTableFull(t *testing.T) {
	for name, family := range families {
		for _, most := range []int{1, 4, 256, 257, 1024, 16384} {
			for range 1 + 4096/most {
				tab := tableFor(t, most)
				for i := range most {
					if !tab.put(family(i), saidOf(i)) {
						t.Fatalf("%s: station %d of %d does not fit, multiplier %#x", name, i, most, tab.multiplier)
					}
				}
				if tab.put(addressed(1<<47-1, 4095), Station{}) {
					t.Fatalf("%s: one more than %d fits", name, most)
				}
				for i := range most {
					if s, ok := tab.get(family(i)); !ok || s != saidOf(i) {
						t.Fatalf("%s: station %d of %d: %+v, %v, want %+v", name, i, most, s, ok, saidOf(i))
					}
				}
				seen := map[StationKey]bool{}
				for _, e := range tab.read(nil, 0, len(tab.lines)) {
					seen[e.key] = true
				}
				for i := range most {
					if !seen[family(i)] {
						t.Fatalf("%s: station %d of %d is not read back", name, i, most)
					}
				}
			}
		}
	}
}

func saidOf(i int) Station {
	return Station{Slot: uint32(i % MaxPorts), Local: i%3 == 0, Stay: i%5 == 0, Unsure: i%7 == 0, Seen: uint32(i)}
}

// TestTableChanges compares random changes with a map of Go's, in a table that
// is so small that stations are moved all the time.
func TestTableChanges(t *testing.T) {
	const most = 400 // of 512 places: fuller than linesFor would have it
	r := rand.New(rand.NewPCG(1, 2))
	tab, err := newTable(make([]line, leastLines), most)
	must(t, err)
	want := map[StationKey]Station{}
	refused := 0
	for n := range 200_000 {
		k := addressed(uint64(r.IntN(600)), uint16(r.IntN(2)))
		switch r.IntN(4) {
		case 0, 1:
			s := saidOf(r.IntN(1000))
			_, had := want[k]
			switch ok := tab.put(k, s); {
			case ok:
				want[k] = s
			case had:
				t.Fatalf("step %d: a station that is there cannot be changed", n)
			default:
				refused++
			}
		case 2:
			tab.delete(k)
			delete(want, k)
		case 3:
			s := saidOf(r.IntN(1000))
			tab.confirm(k, s)
			if had, ok := want[k]; ok {
				s.Seen = had.Seen
				want[k] = s
			}
		}
		if got, ok := tab.get(k); got != want[k] {
			t.Fatalf("step %d: %v is %+v, %v, want %+v", n, k, got, ok, want[k])
		}
	}
	if got := tab.recount(); got != len(want) || tab.count != got {
		t.Errorf("%d words, %d counted, want %d", got, tab.count, len(want))
	}
	for k, s := range want {
		if got, ok := tab.get(k); !ok || got != s {
			t.Errorf("%v is %+v, %v, want %+v", k, got, ok, s)
		}
	}
	t.Logf("%d stations in %d places, %d refused", len(want), ways*leastLines, refused)
}

// TestTableRoomAgain: places that programs have cleared count as free.
func TestTableRoomAgain(t *testing.T) {
	tab := tableFor(t, 4)
	for i := range 4 {
		tab.put(addressed(uint64(i), 0), Station{})
	}
	at, _, ok := tab.find(addressed(2, 0))
	if !ok {
		t.Fatal("not there")
	}
	at.store(0) // as a program does
	if !tab.put(addressed(9, 0), Station{}) {
		t.Error("the place of a station that is gone is not used again")
	}
	if tab.put(addressed(10, 0), Station{}) {
		t.Error("a fifth station fits")
	}
}

// TestTableMoved: a station that a program removes while it changes its place
// is gone from both.
func TestTableMoved(t *testing.T) {
	tab := tableFor(t, 256)
	k := addressed(5, 0)
	tab.put(k, Station{Slot: 3})
	from, word, _ := tab.find(k)
	number, _ := tab.place(k)
	to, _ := tab.freeIn(tab.second(number, word))

	from.store(0) // the program was faster
	move(from, to, word)
	if s, ok := tab.get(k); ok {
		t.Errorf("it is back: %+v", s)
	}
	if n := tab.recount(); n != 0 {
		t.Errorf("%d words are left", n)
	}
}

// TestTableReaders: whoever reads while stations change sees each as it was or
// as it is.
func TestTableReaders(t *testing.T) {
	tab, err := newTable(make([]line, leastLines), 400)
	must(t, err)
	// Each has one slot, whatever else is said of it.
	slot := func(i int) uint32 { return uint32(i % MaxPorts) }
	for i := range 380 {
		tab.put(addressed(uint64(i), 0), Station{Slot: slot(i)})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				i %= 420
				if s, ok := tab.get(addressed(uint64(i), 0)); ok && s.Slot != slot(i) {
					t.Errorf("station %d is behind slot %d, want %d", i, s.Slot, slot(i))
					return
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 300_000 {
		i := r.IntN(420)
		if k := addressed(uint64(i), 0); r.IntN(2) == 0 {
			tab.put(k, Station{Slot: slot(i), Stay: r.IntN(2) == 0})
		} else {
			tab.delete(k)
		}
	}
	close(stop)
	readers.Wait()
}

// TestTableInPrograms: the programs find what is in the table, in first and in
// second lines, and nothing else.
func TestTableInPrograms(t *testing.T) {
	needBPF(t)
	d, err := Open(Options{MaxStations: 16384})
	must(t, err)
	t.Cleanup(func() { d.Close() })
	for _, slot := range []uint32{in, out1} {
		must(t, d.SetPort(slot, Port{Ifindex: loopback, Flags: usual, MaxLen: mtu1500}))
	}
	must(t, d.PutStation(StationKey{MAC: a}, Station{Slot: in}))
	const n = 16383
	r := rand.New(rand.NewPCG(5, 6))
	keys := map[StationKey]bool{}
	for len(keys) < n {
		k := addressed(r.Uint64()&(1<<40-1)|2<<40, 0)
		if !keys[k] && k.MAC != a {
			keys[k] = true
			must(t, d.PutStation(k, Station{Slot: out1}))
		}
	}
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		p := macMode
		p.trace = true
		prog, err := d.load(engine, p)
		must(t, err)
		defer prog.Close()
		seconds := 0
		ask := func(k StationKey, want Verdict) {
			t.Helper()
			got, _, err := d.runLoaded(prog, frame(k.MAC, a, ip4, 64), nil)
			if err != nil || got.Verdict != want {
				t.Fatalf("%s: %v: %s, %v, want %s", engine, k, got.Verdict, err, want)
			}
		}
		asked := 0
		for k := range keys {
			_, word, ok := d.table.find(k)
			if !ok {
				t.Fatalf("%v is not in the table", k)
			}
			if word&wordOther != 0 {
				seconds++
			} else if asked++; asked > 1000 {
				continue
			}
			ask(k, Redirected)
		}
		for range 1000 {
			if k := addressed(r.Uint64()&(1<<40-1)|2<<40, 0); !keys[k] {
				ask(k, PassUnknownDestination)
			}
		}
		if seconds == 0 {
			t.Error("no station is in a second line: nothing was tried there")
		}
		t.Logf("%s: %d of %d stations in their second line", engine, seconds, n)
	}
}

// TestTableClearedByProgram: a station in its second line that sends from
// elsewhere is removed there, too.
func TestTableClearedByProgram(t *testing.T) {
	d := world(t)
	number, _ := d.table.place(StationKey{MAC: c})
	d.DeleteStation(StationKey{MAC: c})
	fill(t, d.table, number)
	must(t, d.PutStation(StationKey{MAC: c}, Station{Slot: out2}))
	if _, word, _ := d.table.find(StationKey{MAC: c}); word&wordOther == 0 {
		t.Fatal("it is not in its second line")
	}
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		must(t, d.PutStation(StationKey{MAC: c}, Station{Slot: out2}))
		if got, err := d.run(engine, macMode, frame(b, c, ip4, 64), nil); err != nil || got.Verdict != PassMovedSource {
			t.Errorf("%s: %s, %v", engine, got.Verdict, err)
		}
		known(c, false)(t, d)
	}
}

// fill makes a line full of addresses that belong there and cannot go elsewhere
// at once.
func fill(t testing.TB, tab *table, number uint64) {
	t.Helper()
	for i := uint64(1); ; i++ {
		if _, free := tab.freeIn(number); !free {
			return
		}
		if k := addressed(3<<40|i, 0); i > 1<<20 {
			t.Fatal("no addresses for the line")
		} else if first, _ := tab.place(k); first == number {
			tab.put(k, Station{Slot: out1})
		}
	}
}
