// SPDX-License-Identifier: Apache-2.0

package datapath

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/xdpl2/xdpl2/bpf"
)

// Decision is what the data path would do with a frame.
type Decision struct {
	Verdict Verdict
	Slot    uint32 // where it would go; for Redirected and RedirectFailed
	// Tag is what becomes of the frame's VLAN tag; TCI is that of a tag that is
	// pushed or set.
	Tag TagChange
	TCI uint16
	// VLAN is the one that the frame travels in (0: none), and Here what its
	// port is there (VLANMember and so on), in a VLAN-aware bridge.
	VLAN uint16
	Here byte
}

// TagChange is what becomes of a frame's VLAN tag.
type TagChange uint32

// The changes of a tag. TagSet gives a priority tag, VID 0, the port's VLAN.
const (
	TagKeep = TagChange(bpf.DatapathTagChangeTAG_KEEP)
	TagPop  = TagChange(bpf.DatapathTagChangeTAG_POP)
	TagPush = TagChange(bpf.DatapathTagChangeTAG_PUSH)
	TagSet  = TagChange(bpf.DatapathTagChangeTAG_SET)
)

// Explain runs the port's own program over a frame, with the live maps and
// without an effect on them: nothing is sent, counted, marked or removed. The
// frame must have at least the 14 bytes of an Ethernet header.
func (d *Datapath) Explain(engine Engine, p Program, frame []byte) (Decision, error) {
	p.dryRun = true
	d.asking.Lock() // there is one place for answers
	defer d.asking.Unlock()
	return d.run(engine, p, frame, nil)
}

// run has the kernel run a traced program (BPF_PROG_TEST_RUN) once.
func (d *Datapath) run(engine Engine, p Program, frame []byte, context any) (Decision, error) {
	p.trace = true
	prog, err := d.load(engine, p)
	if err != nil {
		return Decision{}, err
	}
	defer prog.Close()
	decision, _, err := d.runLoaded(prog, frame, context)
	return decision, err
}

func (d *Datapath) runLoaded(prog *ebpf.Program, frame []byte, context any) (Decision, uint32, error) {
	none := bpf.DatapathAnswer{Verdict: bpf.DatapathVerdictVERDICTS}
	if err := d.maps.Answers.Put(uint32(0), none); err != nil {
		return Decision{}, 0, fmt.Errorf("reset the answer: %w", err)
	}
	action, err := prog.Run(&ebpf.RunOptions{Data: frame, Context: context})
	if err != nil {
		return Decision{}, 0, fmt.Errorf("run the program over a frame of %d bytes: %w", len(frame), err)
	}
	var told bpf.DatapathAnswer
	if err := d.maps.Answers.Lookup(uint32(0), &told); err != nil {
		return Decision{}, 0, fmt.Errorf("read the answer: %w", err)
	}
	if told.Verdict == bpf.DatapathVerdictVERDICTS {
		return Decision{}, action, errors.New("the program gave no answer")
	}
	return Decision{Verdict(told.Verdict), told.Slot, TagChange(told.Tag), uint16(told.Tci), uint16(told.Vid), byte(told.Here)}, action, nil
}
