// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/xdpl2/xdpl2/bpf"
)

// TestCoresShareNoWrittenLine: what a program writes for each frame must not be
// in memory that another core writes as well, or the line would travel between
// the cores with every frame. So the instructions that the kernel runs, after
// its verifier took out what this port never does, may store to per-CPU maps
// only, with two exceptions in the station table, each behind a comparison that
// found a difference: a station's mark is written once an epoch, and its word is
// cleared when it has moved to another slot.
func TestCoresShareNoWrittenLine(t *testing.T) {
	d := world(t)
	for _, engine := range []Engine{EngineGeneric, EngineTC} {
		for name, p := range map[string]Program{
			"mac":       {Mode: ModeMAC},
			"mac vlans": {Mode: ModeMAC, VLANs: true},
			"mac lease": {Mode: ModeMAC, lease: true},
			"watch":     {Mode: ModeMAC, Watch: true},
			"port":      {Mode: ModePort, Target: out1, PassLocal: true, PassGroup: true},
		} {
			t.Run(string(engine)+" "+name, func(t *testing.T) {
				stores := storesOf(t, d, engine, p)
				counted, marked := false, false
				for _, s := range stores {
					switch {
					case s.perCPU:
						counted = true
					case s.atomic:
						t.Errorf("instruction %d: an atomic operation on map %s", s.at, s.in)
					case s.unequal:
						marked = true
					default:
						t.Errorf("instruction %d: a store to map %s, offset %d, for every frame that comes there", s.at, s.in, s.offset)
					}
				}
				if !counted && !p.Watch {
					t.Errorf("no store to a per-CPU map found: this test looks at nothing (%v)", stores)
				}
				if want := p.Mode == ModeMAC; marked != want {
					t.Errorf("a store that marks a station found: %v, expected %v", marked, want)
				}
			})
		}
	}
}

// TestTracedProgramShares: the test above finds a store that is shared. Traced
// programs write their answer, which is why no attached program is traced.
func TestTracedProgramShares(t *testing.T) {
	d := world(t)
	for _, s := range storesOf(t, d, EngineTC, Program{Mode: ModeMAC, trace: true}) {
		if s.in == bpf.DatapathMapAnswers && !s.perCPU {
			return
		}
	}
	t.Error("the traced program's answer was not found")
}

// TestHelpersThatWrite: the kernel's functions could write on the programs'
// behalf. None of those in use does.
func TestHelpersThatWrite(t *testing.T) {
	spec, err := bpf.LoadDatapath()
	must(t, err)
	calls := 0
	for name, p := range spec.Programs {
		for i, ins := range p.Instructions {
			if !ins.IsBuiltinCall() {
				continue
			}
			calls++
			switch f := asm.BuiltinFunc(ins.Constant); f {
			case asm.FnMapLookupElem, asm.FnRedirect, asm.FnRedirectMap, asm.FnJiffies64,
				asm.FnXdpAdjustHead, asm.FnSkbVlanPush, asm.FnSkbVlanPop:
			default:
				t.Errorf("%s, instruction %d: %v: does it write what cores share? If not, add it here", name, i, f)
			}
		}
	}
	if calls == 0 {
		t.Error("no call found: this test looks at nothing")
	}
}

// store is an instruction that writes to a map's values.
type store struct {
	at      int
	in      string // the map
	offset  int16
	perCPU  bool
	atomic  bool
	unequal bool // behind a comparison of that map's value with another's: they differed
}

// storesOf loads a program and returns the stores of what the kernel runs.
func storesOf(t *testing.T, d *Datapath, engine Engine, p Program) []store {
	t.Helper()
	prog, err := d.load(engine, p)
	must(t, err)
	defer prog.Close()
	info, err := prog.Info()
	must(t, err)
	insns, err := info.Instructions()
	must(t, err)
	w := &walker{t: t, insns: map[int]asm.Instruction{}, number: map[int64]uint8{}, maps: make([]mapName, 1), seen: map[place]bool{}, found: map[store]bool{}}
	ids, ok := info.MapIDs()
	if !ok {
		t.Skip("kernel does not tell the maps of a program")
	}
	for _, id := range ids {
		m, err := ebpf.NewMapFromID(id)
		must(t, err)
		info, err := m.Info()
		must(t, err)
		must(t, m.Close())
		w.number[int64(id)] = uint8(len(w.maps))
		w.maps = append(w.maps, mapName{info.Name, info.Type == ebpf.PerCPUArray})
	}
	for it := insns.Iterate(); it.Next(); {
		w.insns[int(it.Offset)] = *it.Ins
	}
	w.walk(0, cpu{})
	var all []store
	for s := range w.found {
		all = append(all, s)
	}
	return all
}

type mapName struct {
	name   string
	perCPU bool
}

// value is what is known of a register or a place on the stack. Maps are
// numbers here, from 1 on, since there are many values.
type value struct {
	points uint8 // into this map, or is it
	read   uint8 // a number that was read from this map
	null   bool  // it is zero
}

// cpu is what is known at an instruction.
type cpu struct {
	reg     [16]value // programs have eleven, the kernel one or two more for itself
	stack   [64]value // by eight bytes below the frame pointer
	unequal uint64    // a bit for each map of which a value turned out to differ from one of another map
}

// place is an instruction with what is known there.
type place struct {
	at int
	c  cpu
}

// walker follows a program on all its paths, as the verifier does.
type walker struct {
	t      *testing.T
	insns  map[int]asm.Instruction
	number map[int64]uint8 // by the kernel's
	maps   []mapName       // by ours
	seen   map[place]bool
	found  map[store]bool
}

func (w *walker) walk(at int, c cpu) {
	for {
		key := place{at, c}
		if w.seen[key] {
			return
		}
		w.seen[key] = true
		ins, ok := w.insns[at]
		if !ok {
			w.t.Fatalf("no instruction %d", at)
		}
		next := at + 1
		switch class := ins.OpCode.Class(); {
		case ins.OpCode.IsDWordLoad(): // two instructions wide
			next++
			c.reg[ins.Dst] = value{}
			if ins.IsLoadFromMap() {
				n, known := w.number[int64(uint32(ins.Constant))]
				if !known {
					w.t.Fatalf("instruction %d: a map that the kernel does not count among the program's", at)
				}
				c.reg[ins.Dst] = value{points: n}
			}
		case class == asm.LdXClass:
			c.reg[ins.Dst] = w.load(&c, ins)
		case class == asm.StXClass || class == asm.StClass:
			w.store(&c, at, ins)
		case class.IsALU():
			c.compute(ins)
		case class.IsJump():
			switch ins.OpCode.JumpOp() {
			case asm.Exit:
				return
			case asm.Call:
				if ins.Src == asm.PseudoCall {
					// What it leaves on the caller's stack is not followed.
					w.walk(next+int(ins.Constant), cpu{})
					for r := asm.R0; r <= asm.R5; r++ {
						c.reg[r] = value{}
					}
					break
				}
				// What looks a map up returns a pointer into it.
				c.reg[asm.R0] = value{points: c.reg[asm.R1].points}
				for r := asm.R1; r <= asm.R5; r++ {
					c.reg[r] = value{}
				}
			case asm.Ja:
				next += int(ins.Offset)
			default:
				taken := c
				w.compare(&c, &taken, ins)
				jumps, stays := c.ways(ins)
				if jumps {
					w.walk(next+int(ins.Offset), taken)
				}
				if !stays {
					return
				}
			}
		}
		at = next
	}
}

func slot(offset int16) int { return int(-offset-1) / 8 }

func (w *walker) load(c *cpu, ins asm.Instruction) value {
	from := c.reg[ins.Src]
	switch {
	case ins.Src == asm.RFP:
		return c.stack[slot(ins.Offset)]
	case w.maps[from.points].perCPU: // the array's values are reached by a pointer
		return from
	}
	return value{read: from.points}
}

func (w *walker) store(c *cpu, at int, ins asm.Instruction) {
	if ins.Dst == asm.RFP {
		c.stack[slot(ins.Offset)] = value{}
		if ins.OpCode.Class() == asm.StXClass {
			c.stack[slot(ins.Offset)] = c.reg[ins.Src]
		}
		return
	}
	if n := c.reg[ins.Dst].points; n != 0 {
		to := w.maps[n]
		w.found[store{at, to.name, ins.Offset, to.perCPU, ins.OpCode.Mode() == asm.AtomicMode, c.unequal>>n&1 == 1}] = true
	}
}

func (c *cpu) compute(ins asm.Instruction) {
	src := value{null: ins.OpCode.ALUOp() == asm.Mov && ins.Constant == 0}
	if ins.OpCode.Source() == asm.RegSource {
		src = c.reg[ins.Src]
	}
	switch ins.OpCode.ALUOp() {
	case asm.Mov:
		c.reg[ins.Dst] = src
	case asm.Add:
		if src.points != 0 {
			c.reg[ins.Dst] = src
		}
		c.reg[ins.Dst].read, c.reg[ins.Dst].null = 0, false
	case asm.And: // a part of what was read
		c.reg[ins.Dst].null = false
	default:
		c.reg[ins.Dst].read, c.reg[ins.Dst].null = 0, false
	}
}

// ways tells which ways a branch can go. It knows only that zero is zero: a
// look-up that found nothing is not followed as if it had.
func (c *cpu) ways(ins asm.Instruction) (jumps, stays bool) {
	if ins.OpCode.Source() != asm.ImmSource || ins.Constant != 0 || !c.reg[ins.Dst].null {
		return true, true
	}
	switch ins.OpCode.JumpOp() {
	case asm.JEq:
		return true, false
	case asm.JNE:
		return false, true
	}
	return true, true
}

// compare notes when values of two maps turn out to differ; c goes straight on.
func (w *walker) compare(c, taken *cpu, ins asm.Instruction) {
	if ins.OpCode.Source() != asm.RegSource {
		return
	}
	a, b := c.reg[ins.Dst].read, c.reg[ins.Src].read
	if a == 0 || b == 0 || a == b {
		return
	}
	switch ins.OpCode.JumpOp() {
	case asm.JNE:
		taken.unequal |= 1<<a | 1<<b
	case asm.JEq:
		c.unequal |= 1<<a | 1<<b
	}
}
